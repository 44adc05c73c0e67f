from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cuolr.errors import InputError
from cuolr.experiments.packed_results import write_packed
from cuolr.experiments.renaming import Renames, read_renames, renamed
from cuolr.experiments.results import CellResult, Results
from cuolr.experiments.results_folder import PACKED, ResultsFolder, read_results
from cuolr.experiments.spec import Cell, Experiment
from tests.experiments.small import numbers, run_small

# What the code is taken to have called everything before.
OLD_NAMES = {"CQL 0": "CUOLR 0", "CQL 0.1": "CUOLR 0.1", "CQL": "CUOLR"}
OLD_WEIGHT, NEW_WEIGHT = "learner.caution", "learner.conservative_weight"
RENAMES = Renames(
    method={old: new for new, old in OLD_NAMES.items()},
    learner={"careful": "cql"},
    setting={"cql": {OLD_WEIGHT: NEW_WEIGHT, "learner.nets.hidden": "learner.hidden"}},
    value={"cql": {"learner.encoder": {"place": "position"}}},
    added={"cql": {"learner.discount": 0.8}},
    removed={"*": ("training.colour",)},
    text={"Little": "Small"},
)


def to_old(results: Results) -> Results:
    """Results as they would have been saved under the old names."""

    def old_cell(cell: Cell) -> Cell:
        return replace(cell, method=OLD_NAMES.get(cell.method, cell.method))

    def old_experiment(experiment: Experiment) -> Experiment:
        methods = {
            OLD_NAMES.get(name, name): replace(
                method,
                learner="careful",
                settings={"learner.nets.hidden": [8, 8], "learner.encoder": "place", OLD_WEIGHT: method.swept_value},
                sweep={OLD_WEIGHT: (method.swept_value,)},
                swept_from="CUOLR",
            )
            if method.learner == "cql"
            else method
            for name, method in experiment.method.items()
        }
        grids = tuple(
            replace(grid, method=tuple(OLD_NAMES.get(name, name) for name in grid.method)) for grid in experiment.grid
        )
        return replace(experiment, title="Little", method=methods, grid=grids)

    def old_result(result: CellResult) -> CellResult:
        if not result.settings:
            return result
        learner = dict(result.settings["learner"])
        if learner["name"] == "cql":
            learner["name"], learner["caution"] = "careful", learner.pop("conservative_weight")
            learner["nets"], learner["encoder"] = {"hidden": learner.pop("hidden")}, "place"
            del learner["discount"]
        training = {**result.settings["training"], "colour": "red"}
        return replace(result, settings={"learner": learner, "training": training})

    command = "cuolr experiment small --only 'method=CUOLR 0,seed=1' --out CUOLR"
    description = replace(
        results.description,
        experiment=old_experiment(results.experiment),
        data={**results.data, "command": command},
        names={old_cell(cell): f"old-{name}" for cell, name in results.description.names.items()},
    )
    cells = {old_cell(cell): old_result(result) for cell, result in results.cells.items()}
    return Results(description, cells, {}, ())


def test_after_a_rename_nothing_is_run_again(finished: Path, tmp_path: Path) -> None:
    now = read_results(finished)
    write_packed(to_old(now), tmp_path / "old.parquet")
    old = read_results(tmp_path / "old.parquet")
    assert {cell.method for cell in old.cells} == {"LOGGING", "naive", "IPW", "CUOLR 0", "CUOLR 0.1"}
    converted = renamed(old, RENAMES)
    assert converted.description.names == now.description.names
    assert converted.experiment == now.experiment
    assert {cell: r.settings for cell, r in converted.cells.items()} == {c: r.settings for c, r in now.cells.items()}
    assert {cell: numbers(r) for cell, r in converted.cells.items()} == {c: numbers(r) for c, r in now.cells.items()}
    assert converted.data["command"] == "cuolr experiment small --only 'method=CQL 0,seed=1' --out CUOLR"
    (tmp_path / "renamed").mkdir()
    write_packed(converted, tmp_path / "renamed" / PACKED)
    assert run_small(ResultsFolder(tmp_path / "renamed")).ran == []


def test_a_table_can_be_applied_again(finished: Path) -> None:
    once = renamed(to_old(read_results(finished)), RENAMES)
    twice = renamed(once, RENAMES)
    assert twice.description == once.description
    assert {cell: r.settings for cell, r in twice.cells.items()} == {c: r.settings for c, r in once.cells.items()}


def test_what_was_run_with_other_settings_is_not_taken_for_finished(finished: Path, tmp_path: Path) -> None:
    otherwise = replace(RENAMES, added={"cql": {"learner.discount": 0.5}})
    converted = renamed(to_old(read_results(finished)), otherwise)
    (tmp_path / "renamed").mkdir()
    write_packed(converted, tmp_path / "renamed" / PACKED)
    assert {cell.method for cell in run_small(ResultsFolder(tmp_path / "renamed")).ran} == {"CQL 0", "CQL 0.1"}


def test_without_digests_of_the_data_names_are_kept(finished: Path) -> None:
    old = to_old(read_results(finished))
    data = {name: value for name, value in old.data.items() if name != "digests"}
    converted = renamed(replace(old, description=replace(old.description, data=data)), RENAMES)
    assert set(converted.description.names.values()) == set(old.description.names.values())
    assert {cell.method for cell in converted.cells} == {"LOGGING", "naive", "IPW", "CQL 0", "CQL 0.1"}


def test_cells_of_a_learner_that_is_not_installed_keep_their_names(finished: Path) -> None:
    old = to_old(read_results(finished))
    converted = renamed(old, Renames())
    kept = {cell for cell, name in converted.description.names.items() if name.startswith("old-")}
    assert {cell.method for cell in kept} == {"CUOLR 0", "CUOLR 0.1"}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"learner.rankers": ["trees", "linear"]}, {"learner.rankers.kinds": ["lambdamart", "linear"]}),
        ({"learner.other": ["trees"]}, {"learner.other": ["trees"]}),
        ({"learner.hidden": [8]}, {"learner.rankers.hidden": [8]}),
    ],
)
def test_settings_become_nested_and_values_get_new_names(given: dict[str, Any], expected: dict[str, Any]) -> None:
    renames = Renames(
        setting={"mine": {"learner.rankers": "learner.rankers.kinds", "learner.hidden": "learner.rankers.hidden"}},
        value={"mine": {"learner.rankers.kinds": {"trees": "lambdamart"}}},
    )
    assert renames.settings("mine", given) == expected


def test_complete_settings_are_nested_tables() -> None:
    renames = Renames(
        setting={"mine": {"learner.rankers": "learner.rankers.kinds", "learner.hidden": "learner.rankers.hidden"}}
    )
    tables = {
        "learner": {"name": "mine", "hidden": [8], "rankers": ["linear"], "empty": {}},
        "training": {"steps": 3},
    }
    expected = {
        "learner": {"name": "mine", "rankers": {"kinds": ["linear"], "hidden": [8]}, "empty": {}},
        "training": {"steps": 3},
    }
    assert renames.all_settings(tables) == expected
    assert renames.all_settings({}) == {}, "a reference ranker has none"


def test_renames_are_read_from_a_file_and_a_wrong_table_is_named(tmp_path: Path) -> None:
    (tmp_path / "names.toml").write_text('[method]\n"CUOLR(factored)" = "factored"\n')
    assert read_renames(tmp_path / "names.toml") == Renames(method={"CUOLR(factored)": "factored"})
    (tmp_path / "names.toml").write_text("[methods]\n")
    with pytest.raises(InputError, match=r"names\.toml: .*'methods'.*did you mean 'method'"):
        read_renames(tmp_path / "names.toml")
