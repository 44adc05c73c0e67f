import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.thorough
def test_the_installed_package_runs_an_experiment_and_its_report_anywhere(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path / "dist")]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = (tmp_path / "dist").iterdir()
    zipfile.ZipFile(wheel).extractall(tmp_path / "installed")
    here = tmp_path / "empty"
    here.mkdir()

    def python(*arguments: str) -> str:
        environment = {**os.environ, "PYTHONPATH": str(tmp_path / "installed"), "OMP_NUM_THREADS": "1"}
        command = [sys.executable, *arguments]
        done = subprocess.run(command, cwd=here, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    assert python("-c", "import cuolr; print(*cuolr.__path__)") == str(tmp_path / "installed" / "cuolr")
    small = ("--data", "tiny", "--queries", "20", "--steps", "2", "--jobs", "1")
    only = "seed=1,click_model=pbm,learner=naive,learner=logging"
    python("-m", "cuolr", "experiment", "table1", *small, "--only", only, "--out", "R")
    assert "naive" in python("-m", "cuolr", "report", "R")
    assert (here / "R" / "report" / "report.html").is_file()
