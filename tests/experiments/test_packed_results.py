import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from cuolr.errors import InputError
from cuolr.experiments.packed_results import read_packed, write_packed
from cuolr.experiments.renaming import Renames, read_renames, renamed
from cuolr.experiments.results import CellResult, Results
from cuolr.experiments.results_folder import PACKED, ResultsFolder, read_results
from cuolr.experiments.spec import Cell, Experiment
from cuolr.files import unverified
from tests.experiments.made_up import sweep_like, table1_like, write_made_up
from tests.experiments.small import InTurn, numbers, run_small, small


@pytest.fixture
def results(tmp_path: Path) -> Results:
    """Some cells finished, some failed, some missing."""
    return write_made_up(
        tmp_path / "results",
        table1_like(grid=[{"method": ["LOGGING", "naive", "CUOLR(CQL)"], "click_model": ["pbm", "dcm"]}]),
        (1, 2),
        queries=20,
        fail=lambda cell: "no luck" if cell.method == "naive" and cell.fold == 1 else "",
        skip=lambda cell: cell.method == "naive" and cell.click_model == "dcm",
    )


def same(first: Results, second: Results) -> bool:
    """Whether two have the same content, to the last digit of each value per query."""
    described = [(r.description.as_dict(), r.description.names, dict(r.failed), r.missing) for r in (first, second)]
    cells = [
        [(cell, numbers(r), r.seconds, r.steps, r.log, r.settings, r.notes) for cell, r in one.cells.items()]
        for one in (first, second)
    ]
    return described[0] == described[1] and cells[0] == cells[1]


def test_a_file_has_all_that_the_folder_has(results: Results, tmp_path: Path) -> None:
    write_packed(results, tmp_path / "all.parquet")
    packed = read_results(tmp_path / "all.parquet")
    assert (len(packed.cells), len(packed.failed), len(packed.missing)) == (2 + 4 + 1, 2, 1)
    assert same(packed, results)


def test_it_is_a_table_with_a_row_for_each_cell_that_anybody_can_read(results: Results, tmp_path: Path) -> None:
    write_packed(results, tmp_path / "all.parquet")
    table = pl.read_parquet(tmp_path / "all.parquet")
    assert len(table) == len(results.description.names)
    row = table.row(by_predicate=(pl.col("method") == "LOGGING") & (pl.col("fold") == 2), named=True)
    result = results.cells[Cell("LOGGING", 2, 1, "ranksvm")]
    assert row["ndcg@10"] == result.measures["ndcg@10"]
    third = results.experiment.measures.index("ndcg@10")
    assert row["per_query"][1][third] == round(result.per_query["ndcg@10"][1] * 1e6)
    assert row["per_query"][0][third] is None, "its query does not count"


def test_a_sweep_is_packed_too(tmp_path: Path) -> None:
    results = write_made_up(tmp_path / "results", sweep_like(), (1,), queries=10)
    write_packed(results, tmp_path / "all.parquet")
    assert same(read_packed(tmp_path / "all.parquet"), results)


def test_nothing_finished_can_be_packed(tmp_path: Path) -> None:
    results = write_made_up(tmp_path / "results", table1_like(), (1,), queries=10, skip=lambda cell: True)
    write_packed(results, tmp_path / "all.parquet")
    assert same(read_packed(tmp_path / "all.parquet"), results)


@pytest.mark.thorough
def test_packed_cells_are_not_run_again_and_newer_ones_stand_beside_them(tmp_path: Path) -> None:
    def fail_in_seed_2(cell: Cell) -> None:
        if cell.seed == 2:
            raise ValueError("no luck")

    run_small(ResultsFolder(tmp_path / "first"), workers=InTurn(small(), fail_in_seed_2))
    (tmp_path / "second").mkdir()
    write_packed(read_results(tmp_path / "first"), tmp_path / "second" / PACKED)
    packed = read_results(tmp_path / "second")
    assert {cell.seed for cell in packed.cells} == {1}
    assert {cell.seed for cell in packed.failed} == {2}
    assert {cell.seed for cell in run_small(ResultsFolder(tmp_path / "second")).ran} == {2}
    merged = read_results(tmp_path / "second")
    assert (len(merged.cells), merged.failed, merged.missing) == (18, {}, ())
    assert {cell: numbers(r) for cell, r in packed.cells.items()}.items() <= {
        cell: numbers(r) for cell, r in merged.cells.items()
    }.items()


@pytest.mark.thorough
def test_packed_results_of_another_configuration_are_stale(finished: Path, tmp_path: Path) -> None:
    (tmp_path / "second").mkdir()
    write_packed(read_results(finished), tmp_path / "second" / PACKED)
    changed = small(training={"steps": 4, "validate_every": 2, "batch_size": 16})
    folder = ResultsFolder(tmp_path / "second")
    assert {cell.method for cell in run_small(folder, changed).ran} == {"naive", "IPW", "CQL 0", "CQL 0.1"}
    assert folder.stale(read_results(tmp_path / "second").description.names) == 16


@pytest.mark.parametrize("content", [b"", b"PAR1 and no more"])
def test_another_file_is_told_apart(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "other.parquet").write_bytes(content)
    with pytest.raises(InputError, match=r"other\.parquet: not a Parquet file of results"):
        read_results(tmp_path / "other.parquet")


def test_a_table_of_something_else_is_told_apart(tmp_path: Path) -> None:
    pl.DataFrame({"x": [1]}).write_parquet(tmp_path / "other.parquet")
    with pytest.raises(InputError, match=r"other\.parquet: not a file of results of this version"):
        read_results(tmp_path / "other.parquet")


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.parquet: file not found"):
        read_results(tmp_path / "none.parquet")


def test_a_file_without_a_column_is_damaged(results: Results, tmp_path: Path) -> None:
    file = tmp_path / "all.parquet"
    write_packed(results, file)
    metadata = pl.read_parquet_metadata(file)
    pl.read_parquet(file).drop("seconds").write_parquet(file, metadata={"cuolr": metadata["cuolr"]})
    with pytest.raises(InputError, match=r"all\.parquet: damaged: it does not match its hash"):
        read_results(file)
    with unverified(), pytest.raises(InputError, match=r"all\.parquet: damaged .*seconds"):
        read_results(file)


@pytest.mark.parametrize("place", [0.3, 0.9, -40])
def test_a_byte_that_was_changed_is_noticed(results: Results, place: float, tmp_path: Path) -> None:
    file = tmp_path / "all.parquet"
    write_packed(results, file)
    content = bytearray(file.read_bytes())
    content[int(place * len(content)) if 0 < place < 1 else int(place)] ^= 1
    file.write_bytes(content)
    with pytest.raises(InputError, match=r"^\S*all\.parquet: "):
        read_results(file)


def test_a_file_from_before_there_were_hashes_is_read(results: Results, tmp_path: Path) -> None:
    file = tmp_path / "all.parquet"
    write_packed(results, file)
    described = json.loads(pl.read_parquet_metadata(file)["cuolr"])
    digest = described.pop("sha256")
    assert len(digest) == 64
    rows = pl.read_parquet(file)
    rows.write_parquet(file, metadata={"cuolr": json.dumps(described)})
    with pytest.raises(InputError, match="does not match its hash"):
        read_results(file)
    rows.write_parquet(file, metadata={"cuolr": json.dumps({**described, "format": "cuolr-results-2"})})
    assert read_results(file).cells.keys() == results.cells.keys()


def test_values_per_query_keep_six_digits(tmp_path: Path) -> None:
    values = np.array([0.1234564, 1.5, np.nan, 12.000001])
    results = write_made_up(
        tmp_path / "results", table1_like(grid=[{"method": ["naive"]}]), (1,), per_query=lambda cell, measure: values
    )
    write_packed(results, tmp_path / "all.parquet")
    (result,) = read_packed(tmp_path / "all.parquet").cells.values()
    assert json.dumps(result.per_query["err@3"].tolist()) == "[0.123456, 1.5, NaN, 12.000001]"


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
