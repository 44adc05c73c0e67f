import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from cuolr.errors import InputError
from cuolr.experiments.packed_results import read_packed, write_packed
from cuolr.experiments.results import Results
from cuolr.experiments.results_folder import PACKED, ResultsFolder, read_results
from cuolr.experiments.spec import Cell
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
