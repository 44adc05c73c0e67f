import csv
import dataclasses
import re
import tomllib
from pathlib import Path
from typing import Any, get_args

import pytest

from cuolr.config import to_dict
from cuolr.errors import InputError
from cuolr.experiments.built_in import BUILT_IN
from cuolr.experiments.report.paper import NUMBERS
from cuolr.experiments.selection import select
from cuolr.experiments.spec import Cell, PaperTable, self_contained
from cuolr.experiments.spec_file import check, parse_experiment, parse_saved_experiment, read_experiment
from tests.experiments.small import SMALL, small


def test_a_grid_is_every_method_under_every_click_model_and_reference_rankers_once() -> None:
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


def test_a_condition_takes_the_cells_that_it_names_and_the_reference_rankers() -> None:
    experiment = small()
    cells = experiment.cells(folds=[])
    chosen = select(cells, experiment, "click_model=pbm,seed=2")
    assert {cell.click_model for cell in chosen} == {"pbm", ""}
    assert {cell.seed for cell in chosen} == {2}
    assert {cell.method for cell in select(cells, experiment, "learner=cql")} == {"CQL 0", "CQL 0.1"}
    assert {cell.method for cell in select(cells, experiment, "method=naive,method=IPW")} == {"naive", "IPW"}
    assert {cell.method for cell in select(cells, experiment, "encoder=position")} == {"CQL 0", "CQL 0.1"}


def test_a_seed_of_0_is_a_seed() -> None:
    experiment = small(first_seed=0)
    cells = experiment.cells(folds=[])
    for seed in ("0", "1"):
        assert {str(cell.seed) for cell in select(cells, experiment, f"seed={seed}")} == {seed}


def test_a_condition_may_be_spelled_as_the_report_does() -> None:
    experiment = small()
    cells = experiment.cells(folds=[])
    assert select(cells, experiment, "click_model=PBM,method=ipw") == select(
        cells, experiment, "click_model=pbm,method=IPW"
    )


def test_by_default_the_baselines_are_told_by_their_learner() -> None:
    experiment = parse_experiment({"title": "mine", "grid": [{"method": ["logging", "naive", "dla", "cql"]}]})
    assert experiment.baselines == ("naive", "dla")
    chosen = parse_experiment(
        {"title": "mine", "grid": [{"method": ["naive", "dla", "cql"]}], "report": {"baselines": ["cql"]}}
    )
    assert chosen.baselines == ("cql",)


def test_a_name_with_commas_can_be_in_a_condition() -> None:
    experiment = read_experiment("candidates")
    cells = experiment.cells(folds=[])
    chosen = select(cells, experiment, "method=SAC, shown,seed=1, click_model=pbm")
    assert [(cell.method, cell.seed, cell.click_model) for cell in chosen] == [("SAC, shown", 1, "pbm")]
    experiment = read_experiment("robustness")
    chosen = select(experiment.cells(folds=[1]), experiment, "click_model=PBM, η = 2,learner=naive")
    assert [cell.click_model for cell in chosen] == ["PBM, η = 2"]


@pytest.mark.parametrize(
    ("only", "message"),
    [
        ("pbm", "expected <name>"),
        ("model=pbm", "click_model"),
        ("seed=9", "9"),
        ("fold=1", "no cell of this experiment on this data has a fold"),
        ("encoder=position,method=naive", "no cell of the experiment meets"),
    ],
)
def test_a_condition_that_names_nothing_says_so(only: str, message: str) -> None:
    experiment = small()
    with pytest.raises(InputError, match=message):
        select(experiment.cells(folds=[]), experiment, only)


def test_every_learner_is_a_method_by_its_own_name() -> None:
    experiment = parse_experiment({**SMALL, "method": {}, "grid": [{"method": ["dla", "oracle"]}]})
    assert {cell.method for cell in experiment.cells([])} == {"dla", "oracle"}


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


@pytest.mark.parametrize(
    "change",
    [
        {"title": "\x1b]0;owned\x07"},
        {"method": {"\x9b31m": {"learner": "naive"}}, "grid": [{"method": ["\x9b31m"]}]},
        {"about": "a\u202eb"},
    ],
)
def test_texts_that_a_terminal_would_obey_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"expected no control characters$") as caught:
        small(**change)
    assert str(caught.value).isprintable()


def test_saved_results_with_such_texts_are_refused() -> None:
    saved = to_dict(self_contained(dataclasses.replace(small(), title="\x1b")))
    with pytest.raises(InputError, match=r"x1b': expected no control characters$"):
        parse_saved_experiment(saved, "RESULTS")


def a_method(learner: str, **table: Any) -> dict[str, Any]:
    return {"method": {"A": {"learner": learner, **table}}, "grid": [{"method": ["A"]}]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (a_method("orcale"), "method 'A': unknown learner 'orcale' .did you mean 'oracle'"),
        (a_method("oracle", settings={"tree": 9}), "method 'A': unknown setting 'tree' .did you mean 'trees'"),
        (a_method("oracle", settings={"trees": "many"}), "'trees': expected a whole number, found 'many'"),
        (a_method("oracle", settings={"leaves": -1}), "'leaves': expected a whole number >= 2, found -1"),
        (a_method("oracle", settings={"seed": 3}), "'seed': set first_seed instead"),
        (a_method("oracle", propensities="pbm"), "do not apply to oracle"),
        (a_method("skyline", settings={"trees": 9}), "skyline has no settings, found trees"),
        (a_method("logging", settings={"fraction": 1.0}), "logging has no settings, found fraction"),
        (a_method("naive", propensities="pbm"), "naive does not use them"),
        (a_method("naive", settings={"training.seed": 3}), "'training.seed': set first_seed instead"),
        (a_method("ipw", settings={"learner.propensities": "p.json"}), "unknown setting .learner.propensities."),
        (a_method("cql", sweep={"learner.conservative_weight": []}), "method 'A': sweep: .* found none"),
        (a_method("cql", sweep={"learner.conservative_weight": [1, 1.0]}), "method 'A': sweep: expected each value of"),
        (
            a_method("cql", sweep={"learner.hidden": [[8]], "training.steps": [9]}),
            "sweep: expected one setting with a list of values, found learner.hidden, training.steps",
        ),
        (a_method("cql", swept_from="B"), "method 'A': sweep: .* found none"),
        (
            {"method": {"A": {"learner": "cql", "sweep": {"learner.hidden": [[8]]}}, "A [8]": {"learner": "dla"}}},
            "A .8",
        ),
        ({"method": {"not used": {"learner": "nothing"}}, "grid": [{"method": ["naive"]}]}, "method 'not used'"),
        ({"click_model": {"not used": {"name": "pbm", "etta": 1}}}, "click_model 'not used': .*'etta'"),
        ({"logging": {"not used": {"fraction": 1.5}}}, "'logging.not used.fraction': .*found 1.5"),
        ({"training": {"seed": 3}}, "set first_seed instead"),
        ({"seeds": 0}, "'seeds': expected a whole number >= 1, found 0"),
        ({"k": 0}, "'k'"),
        ({"measures": []}, "'measures': expected at least one"),
        ({"measures": ["err@5", "err@5"]}, "'measures': expected each once"),
        ({"measures": ["err@05"]}, "measure 'err@05': expected the spelling err@5"),
        ({"validation": "ndcg@010"}, "measure 'ndcg@010': expected the spelling ndcg@10"),
        ({"grid": []}, "'grid': expected at least one"),
        ({"grid": [{"method": []}]}, "'grid.0..method': expected at least one"),
        ({"grid": [{"method": ["naive"], "sessions_per_query": [0]}]}, "sessions_per_query.0.': .*found 0"),
        ({"report": {"baselines": ["nave"]}}, "report.baselines 'nave' .did you mean 'naive'"),
        ({"report": {"paper": ["table3"]}}, "report.paper.0.': expected one of 'table1_click_models'"),
    ],
)
def test_a_mistake_in_any_table_is_found_before_anything_is_run(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        small(**change)


def test_all_mistakes_are_told_together_with_the_name_of_the_file() -> None:
    table = to_dict(small()) | {"seeds": 0, "measures": ["ndgc@5"]}
    with pytest.raises(InputError) as caught:
        parse_experiment(table, "mine.toml")
    assert len(caught.value.problems) == 2
    assert all(problem.startswith("mine.toml: ") for problem in caught.value.problems)


def test_what_the_command_line_changes_is_checked_too() -> None:
    with pytest.raises(InputError, match="'seeds'"):
        check(dataclasses.replace(small(), seeds=-1))


def test_every_table_of_the_papers_numbers_can_be_named() -> None:
    with NUMBERS.open(encoding="utf-8", newline="") as file:
        assert set(get_args(PaperTable)) == {row["table"] for row in csv.DictReader(file)}


@pytest.mark.parametrize("name", sorted(BUILT_IN))
def test_every_built_in_experiment_is_sound(name: str) -> None:
    experiment = read_experiment(name)
    assert len(experiment.cells(folds=[1, 2, 3, 4, 5])) > 5
    assert experiment.about


def test_an_unknown_experiment_lists_the_known_ones() -> None:
    with pytest.raises(InputError, match="table1"):
        read_experiment("tabel1")


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
