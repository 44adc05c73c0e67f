import subprocess
import sys
import tomllib
from pathlib import Path

SLOW_TO_LOAD = ("torch", "lightgbm", "xgboost", "sklearn", "scipy.stats", "matplotlib", "ray")


def test_the_command_line_starts_without_what_is_slow_to_load() -> None:
    code = f"import cuolr.cli.main, sys; print([name for name in {SLOW_TO_LOAD} if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_ctrl_c_while_the_command_line_is_loaded_is_no_traceback() -> None:
    code = """
import sys

class Interrupted:
    def find_spec(self, name, *_):
        if name == "cuolr.cli.compare":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupted())
from cuolr.__main__ import main
main()
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 130
    assert result.stderr == "stopped\n"


def test_the_installed_command_is_the_one_that_minds_ctrl_c() -> None:
    project = tomllib.loads((Path(__file__).resolve().parents[2] / "pyproject.toml").read_text())["project"]
    assert project["scripts"] == {"cuolr": "cuolr.__main__:main"}
