import subprocess
import sys


def test_the_command_line_starts_without_torch_and_without_lightgbm() -> None:
    code = "import cuolr.cli, sys; print([name for name in ('torch', 'lightgbm') if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
