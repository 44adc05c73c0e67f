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
from cuolr.experiments.spec import PaperTable, self_contained
from cuolr.experiments.spec_file import check, parse_experiment, parse_saved_experiment, read_experiment
from tests.experiments.small import small


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
