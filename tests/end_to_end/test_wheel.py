"""The release: the sdist makes the same wheel as the repository, and the installed wheel works anywhere."""

import os
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

import cuolr

ROOT = Path(__file__).parents[2]


def build(target: str, source: Path, out: Path) -> Path:
    """The file that hatchling makes of a source tree."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(out)]
    subprocess.run(command, cwd=source, check=True, capture_output=True)
    (file,) = out.iterdir()
    return file


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The wheels of the repository and of its sdist."""
    folder = tmp_path_factory.mktemp("release")
    with tarfile.open(build("sdist", ROOT, folder / "sdist")) as sdist:
        sdist.extractall(folder, filter="data")
    (unpacked,) = folder.glob("cuolr-*")
    return build("wheel", ROOT, folder / "wheel"), build("wheel", unpacked, folder / "wheel-of-sdist")


@pytest.fixture(scope="module")
def installed(wheels: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Callable[..., str]:
    """Runs a program of an environment with the wheel, which sees the dependencies of this one, in an empty folder."""
    environment, here = tmp_path_factory.mktemp("environment"), tmp_path_factory.mktemp("empty")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
    places = {"base": str(environment), "platbase": str(environment)}
    packages = Path(sysconfig.get_path("purelib", "venv", places))
    # Behind its own packages; what is installed here as editable is not followed.
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    scripts = Path(sysconfig.get_path("scripts", "venv", places))
    pip = [sys.executable, "-m", "pip", "--python", str(scripts / "python"), "install", "--quiet", "--no-index"]
    subprocess.run([*pip, "--no-deps", "--ignore-installed", str(wheels[1])], check=True)
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {"OMP_NUM_THREADS": "1"}

    def run(program: str, *arguments: object, status: int = 0) -> str:
        command = [str(scripts / program), *map(str, arguments)]
        done = subprocess.run(command, cwd=here, env=variables, capture_output=True, text=True, check=False)
        assert done.returncode == status, done.stderr
        return done.stdout.strip()

    assert str(environment) in run("python", "-c", "import cuolr; print(*cuolr.__path__)")
    return run


@pytest.mark.thorough
def test_the_sdist_makes_the_wheel_of_the_repository(wheels: tuple[Path, Path]) -> None:
    names, of_sdist = (zipfile.ZipFile(wheel).namelist() for wheel in wheels)
    assert names == of_sdist
    assert "cuolr/py.typed" in names
    assert f"cuolr-{cuolr.__version__}.dist-info/METADATA" in names
    assert not [name for name in names if name.startswith(("tests/", "docs/", "studies/"))]


@pytest.mark.thorough
def test_the_installed_package_goes_from_a_log_to_a_decision(installed: Callable[..., str]) -> None:
    assert installed("cuolr", "--version") == f"cuolr {cuolr.__version__}"
    installed("cuolr", "generate", "tiny", "--train", 40, "--out", "DATA")
    simulate = ("simulate", "--data", "DATA", "--click-model", "pbm", "--sessions", 2_000, "--randomised-lists", 0)
    installed("cuolr", *simulate, "--temperature", 0.5, "--out", "LOG")
    installed("cuolr", "train", "LOG", "--learner", "lightgbm", "--steps", 5, "--out", "MODEL")
    rankings = ("--candidates", "DATA/Fold1/test.txt", "--k", 3, "--out", "rankings.csv")
    installed("cuolr", "rank", "MODEL", *rankings)
    exported = installed(
        "cuolr", "export", "MODEL", "--to", "elasticsearch-ltr", "--name", "shop", "--out", "shop.json"
    )
    assert "pairs in another order             none" in exported


@pytest.mark.thorough
def test_the_installed_package_runs_an_experiment_and_its_report(installed: Callable[..., str]) -> None:
    small = ("--data", "tiny", "--queries", "20", "--steps", "2", "--jobs", "1")
    only = "seed=1,click_model=pbm,learner=naive,learner=logging"
    installed("python", "-m", "cuolr", "experiment", "table1", *small, "--only", only, "--out", "R")
    assert "naive" in installed("cuolr", "report", "R")
    assert "<svg" in installed("python", "-c", "print(open('R/report/report.html', encoding='utf-8').read())")
