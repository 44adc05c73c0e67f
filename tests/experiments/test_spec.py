import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from cuolr.config import to_dict
from cuolr.errors import InputError
from cuolr.experiments.spec import BUILT_IN, Cell, parse_experiment, read_experiment, select
from tests.experiments.small import SMALL, small


def test_a_grid_is_every_method_under_every_click_model_and_yardsticks_once() -> None:
    cells = small().cells(folds=[])
    learners = 4  # naive, IPW, and CQL with two weights
    assert len(cells) == 2 * (1 + 2 * learners)
    assert len([cell for cell in cells if cell.method == "LOGGING"]) == 2
    assert cells[0] == Cell("LOGGING", fold=0, seed=1, logging="ranksvm")
    assert cells[1] == Cell("naive", 0, 1, "ranksvm", "pbm", 10)


def test_folds_take_the_place_of_seeds() -> None:
    assert {(cell.fold, cell.seed) for cell in small().cells(folds=[1, 2, 3])} == {(1, 1), (2, 1), (3, 1)}


def test_a_sweep_is_a_method_for_each_value() -> None:
    experiment = small()
    assert [name for name in experiment.method if name.startswith("CQL")] == ["CQL 0", "CQL 0.1"]
    method = experiment.method["CQL 0.1"]
    assert (method.swept_from, method.swept_value) == ("CQL", 0.1)
    assert experiment.config_of(Cell("CQL 0.1")).learner_config.conservative_weight == 0.1  # type: ignore[union-attr]


def test_an_experiment_is_the_same_after_it_was_written_down() -> None:
    experiment = small()
    assert parse_experiment(to_dict(experiment)) == experiment


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"grid": [{"method": ["naiv"]}]}, "naive"),
        ({"grid": [{"method": ["naive"], "click_model": ["pmb"]}]}, "pbm"),
        ({"grid": [{"method": ["naive"], "logging": ["svm"]}]}, "ranksvm"),
        ({"training": {"step": 3}}, "training.steps"),
        ({"measures": ["ndgc@5"]}, "ndcg"),
        ({"validation": "labels"}, "labels"),
        ({"colour": 1}, "colour"),
        (
            {"method": {"A": {"learner": "cql", "settings": {"learner.hiden": [8, 8]}}}, "grid": [{"method": ["A"]}]},
            "hidden",
        ),
        ({"method": {"A": {"learner": "ipw", "propensities": "pmb"}}, "grid": [{"method": ["A"]}]}, "pbm"),
    ],
)
def test_a_wrong_name_is_found_before_anything_is_run(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        small(**change)


@pytest.mark.parametrize("name", sorted(BUILT_IN))
def test_every_built_in_experiment_is_sound(name: str) -> None:
    experiment = read_experiment(name)
    assert len(experiment.cells(folds=[1, 2, 3, 4, 5])) > 5
    assert experiment.about


def test_an_unknown_experiment_lists_the_known_ones() -> None:
    with pytest.raises(InputError, match="table1"):
        read_experiment("tabel1")


def test_a_condition_takes_the_cells_that_it_names_and_the_yardsticks() -> None:
    experiment = small()
    cells = experiment.cells(folds=[])
    chosen = select(cells, experiment, "click_model=pbm,seed=2")
    assert {cell.click_model for cell in chosen} == {"pbm", ""}
    assert {cell.seed for cell in chosen} == {2}
    assert {cell.method for cell in select(cells, experiment, "learner=cql")} == {"CQL 0", "CQL 0.1"}
    assert {cell.method for cell in select(cells, experiment, "method=naive,method=IPW")} == {"naive", "IPW"}
    assert {cell.method for cell in select(cells, experiment, "encoder=position")} == {"CQL 0", "CQL 0.1"}


@pytest.mark.parametrize(
    ("only", "message"), [("pbm", "expected <name>"), ("model=pbm", "click_model"), ("seed=9", "9")]
)
def test_a_condition_that_names_nothing_says_so(only: str, message: str) -> None:
    experiment = small()
    with pytest.raises(InputError, match=message):
        select(experiment.cells(folds=[]), experiment, only)


def test_every_learner_is_a_method_by_its_own_name() -> None:
    experiment = parse_experiment({**SMALL, "method": {}, "grid": [{"method": ["dla", "oracle"]}]})
    assert {cell.method for cell in experiment.cells([])} == {"dla", "oracle"}


def test_the_example_in_the_documentation_is_sound() -> None:
    page = (Path(__file__).parents[2] / "docs" / "experiments.md").read_text()
    match = re.search(r"```toml\n(.*?)```", page, re.DOTALL)
    assert match
    experiment = parse_experiment(tomllib.loads(match[1]))
    learners = 4  # naive, and CQL with three weights
    assert len(experiment.cells([])) == 3 * (1 + 2 * 2 * learners)


def test_the_documentation_names_every_built_in_experiment() -> None:
    page = (Path(__file__).parents[2] / "docs" / "experiments.md").read_text()
    assert set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)) == set(BUILT_IN)
