"""The command line starts quickly: a verb loads what it needs, and nothing that only another verb needs."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

from cuolr.data.normalise import Normaliser
from cuolr.logs.counting import count_log
from cuolr.logs.log_folder import save_click_log
from cuolr.policies.linear_policy import LinearPolicy
from cuolr.policies.model_folder import save_policy
from cuolr.policies.policy import RankingPolicy
from cuolr.policies.trees_policy import TreesPolicy, grow_ranking_trees
from tests.small_log import small_candidates, small_log

SLOW_TO_LOAD = {"torch", "lightgbm", "xgboost", "sklearn", "scipy.stats", "matplotlib", "ray", "polars", "pandas"}
# Packages that only an extra installs.
OF_EXTRAS = {"matplotlib", "ray", "xgboost", "onnx", "onnxruntime", "fastapi", "uvicorn", "prometheus_client"}
OF_TREES = {"lightgbm", "sklearn", "scipy.stats", "polars", "pandas"}


def loaded_by(code: str) -> set[str]:
    """Which of the packages that are slow to load are there after a program has run."""
    program = f"import json, sys\n{code}\nprint(json.dumps([name for name in {SLOW_TO_LOAD} if name in sys.modules]))"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(json.loads(result.stdout.splitlines()[-1]))


def loaded_by_command(*arguments: object) -> set[str]:
    return loaded_by(f"from cuolr.cli.main import main\nmain({[str(argument) for argument in arguments]})")


@pytest.mark.parametrize("arguments", [("--help",), ("--version",), ("list",), ("list", "pbm"), ("list", "measures")])
def test_help_and_names_load_nothing_that_is_slow_to_load(arguments: tuple[str, ...]) -> None:
    assert loaded_by_command(*arguments) == set()


@pytest.mark.parametrize("verb", ["train", "assess", "experiment", "report", "oracle"])
def test_the_help_of_a_command_loads_no_learning_library(verb: str) -> None:
    assert loaded_by_command(verb, "--help") <= {"polars", "scipy.stats"}


def test_log_info_loads_tables_only(tmp_path: Path) -> None:
    save_click_log(small_log(rows=200), tmp_path / "LOG")
    count_log(tmp_path / "LOG", tmp_path / "COUNTS")
    assert loaded_by_command("log-info", tmp_path / "LOG") <= {"polars"}
    assert loaded_by_command("log-info", tmp_path / "COUNTS") <= {"polars"}


def a_linear_policy() -> LinearPolicy:
    return LinearPolicy(np.ones(4, np.float32), Normaliser.fit("min-max", small_candidates()))


def a_trees_policy() -> TreesPolicy:
    documents = small_candidates()
    grades = (documents.features[:, 0] > 0).astype(np.int8)
    parameters = {"num_threads": 1, "min_data_in_leaf": 2, "num_leaves": 3}
    return TreesPolicy(grow_ranking_trees(documents.features, grades, documents.sizes, parameters, 3))


@pytest.mark.parametrize(("policy", "may"), [(a_linear_policy(), {"polars"}), (a_trees_policy(), OF_TREES)])
def test_trees_and_linear_models_are_loaded_and_rank_without_torch(
    tmp_path: Path, policy: RankingPolicy, may: set[str]
) -> None:
    save_policy(policy, tmp_path / "MODEL")
    code = (
        "import cuolr, numpy as np\n"
        f"policy = cuolr.load_policy({str(tmp_path / 'MODEL')!r})\n"
        "documents = cuolr.Candidates(np.eye(4, dtype=np.float32), np.array([0, 4]), np.array(['q']))\n"
        "assert (np.sort(policy.rank(documents, 4)) == np.arange(4)).all()\n"
    )
    assert loaded_by(code) <= may


def test_the_core_works_without_the_packages_of_the_extras(tmp_path: Path) -> None:
    """Every module but those of the service loads; a log is learned from, assessed and ranked."""
    save_click_log(small_log(rows=300), tmp_path / "LOG")
    code = f"""
import importlib, pkgutil, sys
sys.modules.update(dict.fromkeys({sorted(OF_EXTRAS)}))  # as if they were not installed
import cuolr
for module in pkgutil.walk_packages(cuolr.__path__, "cuolr."):
    if not module.name.startswith(("cuolr.serving", "cuolr.__main__")):
        importlib.import_module(module.name)
log = cuolr.load_click_log("LOG")
ranker = cuolr.Ranker("lightgbm", steps=2).fit(log)
ranker.save("MODEL")
assert ranker.rank(log.candidates, k=2).shape[1] == 2
assert ranker.assess(log).recommendation in ("ship", "test", "keep")
from cuolr.cli.main import main
for arguments in ("log-info LOG --html page.html", "propensity LOG --plot plot.svg", "serve MODEL"):
    try:
        main(arguments.split())
    except SystemExit as ended:
        assert ended.code == 2
"""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    refusals = [line for line in done.stderr.splitlines() if "pip install 'cuolr[" in line]
    assert [line.partition("cuolr[")[2] for line in refusals] == ["report]'", "report]'", "serve]'"]
    assert list(tmp_path.glob("*.html")) == []


def test_ctrl_c_while_the_command_line_is_loaded_is_no_traceback() -> None:
    code = """
import sys

class Interrupted:
    def find_spec(self, name, *_):
        if name == "{}":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupted())
from cuolr.__main__ import main
sys.argv = ["cuolr", "compare", "--help"]
main()
"""
    for module in ("cuolr.cli.help", "cuolr.cli.compare"):
        command = [sys.executable, "-c", code.format(module)]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        assert result.returncode == 130
        assert result.stderr == "stopped\n"


def test_the_installed_command_is_the_one_that_minds_ctrl_c() -> None:
    project = tomllib.loads((Path(__file__).resolve().parents[2] / "pyproject.toml").read_text())["project"]
    assert project["scripts"] == {"cuolr": "cuolr.__main__:main"}


def test_a_reader_that_ends_early_is_no_error() -> None:
    """As in `cuolr list | head -1`."""
    command = subprocess.Popen([sys.executable, "-m", "cuolr", "list"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert command.stdout is not None
    command.stdout.close()
    assert command.stderr is not None
    assert command.stderr.read() == b""
    command.stderr.close()
    assert command.wait() == 1


def test_a_log_that_cannot_be_read_is_refused_before_torch_is_loaded(tmp_path: Path) -> None:
    save_click_log(small_log(), tmp_path / "log")
    (tmp_path / "log" / "features.npy").write_bytes(b"damaged")
    train = ["train", str(tmp_path / "log"), "--out", str(tmp_path / "model")]
    assert "torch" not in loaded_by(
        f"from cuolr.cli.main import main\ntry:\n    main({train})\nexcept SystemExit:\n    pass"
    )
