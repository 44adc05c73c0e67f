import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest

from cuolr.errors import InputError
from cuolr.files import unverified
from cuolr.logs.aggregate import aggregate
from cuolr.logs.log_folder import load_click_log, save_click_log
from tests.data.small_data import assert_same_log, candidates_of, full_log, log_of


@pytest.fixture(autouse=True)
def no_verify() -> Iterator[None]:
    """What is checked of a log without its hashes."""
    with unverified():
        yield


def edit_sessions(**columns: pl.Expr) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        file = folder / "sessions.parquet"
        pl.read_parquet(file).with_columns(**columns).write_parquet(file)

    return damage


def edit_meta(**values: Any) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        file = folder / "meta.json"
        file.write_text(json.dumps(json.loads(file.read_text()) | values))

    return damage


def remove(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).unlink()


def write(name: str, content: bytes) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        (folder / name).unlink()
        (folder / name).write_bytes(content)

    return damage


def save_array(name: str, array: npt.NDArray[Any], allow_pickle: bool = False) -> Callable[[Path], None]:
    return lambda folder: np.save(folder / name, array, allow_pickle=allow_pickle)


ROW = pl.int_range(pl.len())
DAMAGES: dict[str, tuple[Callable[[Path], None], str]] = {
    "no sessions": (remove("sessions.parquet"), "not a click log: it has no sessions.parquet"),
    "no meta": (remove("meta.json"), "not a click log: it has no meta.json"),
    "no features": (remove("features.npy"), "not a click log: it has no features.npy"),
    "no offsets": (remove("offsets.npy"), "not a click log: it has no offsets.npy"),
    "sessions are no Parquet": (write("sessions.parquet", b"PAR1 and no more"), "sessions.parquet: cannot be read"),
    "features are no array": (write("features.npy", b"no"), "features.npy: expected features"),
    "features end early": (
        lambda folder: write("features.npy", (folder / "features.npy").read_bytes()[:-4])(folder),
        "features.npy: expected features",
    ),
    "features of another type": (
        save_array("features.npy", np.zeros((16, 3))),
        r"expected features \[n_documents, F\] in float32, found float64 \[16, 3\]",
    ),
    "pickled ids": (
        save_array("query_ids.npy", np.array([print, 1, 2], object), allow_pickle=True),
        "query_ids.npy: expected texts",
    ),
    "too few document ids": (save_array("document_ids.npy", np.array(["d"])), "expected 16 texts, found 1"),
    "too many feature names": (
        save_array("feature_names.npy", np.array(["f"] * 9)),
        "feature_names.npy: expected 3 texts",
    ),
    "too many offsets": (save_array("offsets.npy", np.arange(9)), "expected 4 offsets, found 9"),
    "falling offsets": (save_array("offsets.npy", np.array([0, 9, 2, 16])), "offsets that rise from 0 to 16"),
    "meta is no JSON": (write("meta.json", b"{"), "meta.json: not valid JSON"),
    "meta of something else": (write("meta.json", b"{}"), "not the description of a click log"),
    "a newer format": (edit_meta(format=3), "format 3 needs a newer cuolr; this version reads up to 2"),
    "aggregated or not": (edit_meta(aggregated="maybe"), "expected 'aggregated' to be true or false, found 'maybe'"),
    "no K": (edit_meta(k=None), "expected 'k' to be the number of positions of a list, found None"),
    "another K": (edit_meta(k=3), r"column 'ranking': expected Array\(Int16, shape=\(3,\)\)"),
    "a query that is none": (edit_sessions(query=pl.lit(3)), "row 1: expected a query between 0 and 2 .50 such rows"),
    "a slot that is none": (
        edit_sessions(query=pl.when(ROW == 6).then(1).otherwise(2)),
        r"row 7: ranking: expected candidate indices of the query, or −1 \(1 such rows",
    ),
    "a gap in a list": (
        edit_sessions(ranking=pl.lit([-1, 0, 1, -1], pl.Array(pl.Int16, 4)), clicks=pl.lit([0] * 4, pl.List(pl.UInt8))),
        "row 1: ranking: expected −1 only after the last document",
    ),
    "a document twice": (
        edit_sessions(ranking=pl.lit([1, 0, 1, -1], pl.Array(pl.Int16, 4)), clicks=pl.lit([0] * 4, pl.List(pl.UInt8))),
        "row 1: ranking: expected each document once",
    ),
    "a click on nothing": (
        edit_sessions(
            ranking=pl.lit([-1] * 4, pl.Array(pl.Int16, 4)), clicks=pl.lit([0, 0, 0, 1], pl.Array(pl.UInt8, 4))
        ),
        "row 1: clicks: expected none where nothing was shown",
    ),
    "two clicks": (edit_sessions(clicks=pl.lit([2, 0, 0, 0], pl.Array(pl.UInt8, 4))), "clicks: expected 0 or 1"),
    "half a click": (
        edit_sessions(clicks=pl.lit([0.5, 0, 0, 0], pl.Array(pl.Float64, 4))),
        r"column 'clicks': expected Array\(UInt8, shape=\(4,\)\), found Array\(Float64",
    ),
    "a null": (edit_sessions(query=pl.lit(None, pl.Int32)), "column 'query': expected a value in every row, found 50"),
    "a null in a list": (
        edit_sessions(clicks=pl.lit([0, None, 0, 0], pl.Array(pl.UInt8, 4))),
        "column 'clicks': expected a value in every row, found 50 nulls",
    ),
    "a time that is no number": (
        edit_sessions(timestamp=pl.when(ROW == 6).then(float("nan")).otherwise(1.0)),
        r"row 7: timestamp: expected finite numbers \(1 such rows",
    ),
    "a column of text": (edit_sessions(query=pl.lit("q1")), "column 'query': expected Int32, found String"),
    "a label": (edit_sessions(relevance=pl.lit(1)), "unexpected column 'relevance'; known: query, ranking, clicks"),
    "lists of another length": (
        edit_sessions(clicks=pl.lit([0, 0], pl.List(pl.UInt8))),
        "sessions.parquet: cannot be read",
    ),
    "no rows": (
        lambda folder: pl.read_parquet(folder / "sessions.parquet").clear().write_parquet(folder / "sessions.parquet"),
        "sessions.parquet: expected at least one session, found none",
    ),
    "an impossible propensity": (
        edit_sessions(logging_propensity=pl.lit([0.5, 0.0, 0.5, 0.5], pl.Array(pl.Float32, 4))),
        "logging_propensity: expected more than 0 and at most 1",
    ),
    "a reward that is no number": (
        edit_sessions(reward=pl.lit([1.0, np.nan, 0, 0], pl.Array(pl.Float32, 4))),
        "reward: expected finite numbers",
    ),
    "a negative reward": (
        edit_sessions(reward=pl.lit([-1.0, 0, 0, 0], pl.Array(pl.Float32, 4))),
        "reward: expected finite numbers from 0 up",
    ),
    "a reward of nothing": (
        edit_sessions(reward=pl.lit([1.0] * 4, pl.Array(pl.Float32, 4))),
        "reward: expected 0 where there is no click",
    ),
    "a document nowhere on the page": (
        edit_sessions(page_position=pl.lit([-1, 0, 1, 2], pl.Array(pl.Int32, 4))),
        "page_position: expected 0 or more where a document was shown",
    ),
    "nothing at a position of the page": (
        edit_sessions(page_position=pl.lit([0, 1, 2, 3], pl.Array(pl.Int32, 4))),
        "page_position: expected −1 where nothing was shown",
    ),
    "positions of the page out of order": (
        edit_sessions(page_position=pl.lit([0, 2, 2, 3], pl.Array(pl.Int32, 4))),
        "page_position: expected to increase down the list",
    ),
    "a label as context": (
        edit_sessions(**{"context.relevance": pl.lit(1)}),
        "unexpected column 'context.relevance'",
    ),
    "a list as context": (
        edit_sessions(**{"context.clicked_before": pl.lit([1], pl.List(pl.Int64))}),
        "unexpected column 'context.clicked_before'",
    ),
    "a null as context": (
        edit_sessions(**{"context.device": pl.lit(None, pl.String)}),
        "column 'context.device': expected a value in every row, found 50",
    ),
    "an impossible examination": (
        edit_sessions(examination=pl.lit([3, 0, 0, 0], pl.Array(pl.UInt8, 4))),
        "examination: expected numbers between 0 and 1",
    ),
}


@pytest.mark.thorough
@pytest.mark.parametrize(("damage", "message"), DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_or_foreign_folder_is_refused_in_words(
    damage: Callable[[Path], None], message: str, tmp_path: Path
) -> None:
    save_click_log(full_log(), tmp_path / "log")
    load_click_log(tmp_path / "log")
    damage(tmp_path / "log")
    with pytest.raises(InputError, match=message):
        load_click_log(tmp_path / "log")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (edit_sessions(count=pl.lit(0)), "row 1: count: expected 1 or more"),
        (edit_sessions(clicks=pl.lit([np.inf, 0, 0, 0], pl.Array(pl.Float64, 4))), "clicks: expected finite numbers"),
        (edit_meta(aggregated=False), "unexpected column 'count'"),
    ],
)
def test_a_damaged_aggregated_log_is_refused_in_words(
    damage: Callable[[Path], None], message: str, tmp_path: Path
) -> None:
    save_click_log(aggregate(full_log()), tmp_path / "log")
    damage(tmp_path / "log")
    with pytest.raises(InputError, match=message):
        load_click_log(tmp_path / "log")


def test_a_raw_log_that_claims_to_be_aggregated_lacks_the_count(tmp_path: Path) -> None:
    save_click_log(full_log(), tmp_path / "log")
    edit_meta(aggregated=True)(tmp_path / "log")
    with pytest.raises(InputError, match="column 'count' is missing"):
        load_click_log(tmp_path / "log")


@pytest.mark.parametrize("name", ["nowhere", "a file"])
def test_a_path_that_is_no_folder_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / "a file").touch()
    with pytest.raises(InputError, match=r"folder not found|expected the folder of a log, found a file"):
        load_click_log(tmp_path / name)


def test_all_missing_files_are_told_at_once(tmp_path: Path) -> None:
    files = "sessions.parquet, meta.json, features.npy, offsets.npy, query_ids.npy"
    with pytest.raises(InputError, match=f"not a click log: it has no {files}$"):
        load_click_log(tmp_path)


def test_lists_and_truth_values_as_other_programs_write_them_are_read(tmp_path: Path) -> None:
    log = log_of(candidates_of(3, 2), [0, 1], [[2, 0], [1, -1]], [[0, 1], [1, 0]])
    save_click_log(log, tmp_path / "log")
    pl.DataFrame(
        {"query": [0, 1], "ranking": [[2, 0], [1, -1]], "clicks": [[False, True], [True, False]]},
        schema={"query": pl.Int64, "ranking": pl.List(pl.Int64), "clicks": pl.List(pl.Boolean)},
    ).write_parquet(tmp_path / "log" / "sessions.parquet")
    assert_same_log(load_click_log(tmp_path / "log"), log)
