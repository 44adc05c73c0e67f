"""Merged logs equal one import of all files."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cuolr
from cuolr.errors import InputError
from cuolr.files import unverified
from cuolr.logs.aggregate import aggregate
from cuolr.logs.hashed_ids import IdKey
from cuolr.logs.log_folder import load_click_log, read_meta, save_click_log
from cuolr.logs.log_meta import identities
from cuolr.logs.merge import merge_logs
from cuolr.logs.time_window import TimeWindow
from tests.logs.day_tables import imported, make_days, rows, save_days
from tests.small_log import small_log


@pytest.mark.thorough
@settings(max_examples=15)
@given(seed=st.integers(0, 10_000), days=st.integers(2, 3), gaps=st.booleans())
def test_merging_days_is_importing_them_at_once(
    tmp_path_factory: pytest.TempPathFactory, seed: int, days: int, gaps: bool
) -> None:
    folder = tmp_path_factory.mktemp("days")
    made = make_days(seed, days=days, gaps=gaps)
    report = merge_logs(save_days(made, folder), folder / "merged")
    merged, at_once = load_click_log(folder / "merged"), imported(made.table, made.features)
    assert rows(merged).equals(rows(at_once))
    assert (report.sessions, report.kept, report.repeated, report.changed) == (12 * days, 12 * days, 0, 0)
    assert merged.clicks.sum() == made.table["click"].sum()
    assert merged.where.sum() == len(made.table)
    shown = made.table.select("query_id", "doc_id").n_unique()
    assert merged.candidates.n_documents == report.documents == shown


def test_a_session_in_several_logs_is_counted_once_and_the_last_log_counts(tmp_path: Path) -> None:
    days = make_days(1)
    paths = save_days(days, tmp_path)
    changed = days.table.with_columns(
        click=pl.when(session_id="0-3").then(1 - pl.col("click")).otherwise("click").cast(pl.Int64)
    ).filter(pl.col("session_id").is_in(["0-3", "0-4", "1-0"]))
    cuolr.save_click_log(imported(changed, days.features), tmp_path / "again")
    report = merge_logs([*paths, tmp_path / "again"], tmp_path / "merged")
    assert (report.sessions, report.repeated, report.differing, report.kept) == (27, 3, 1, 24)
    expected = pl.concat([days.table.filter(~pl.col("session_id").is_in(["0-3", "0-4", "1-0"])), changed])
    assert rows(load_click_log(tmp_path / "merged")).equals(rows(imported(expected, days.features)))


def test_features_of_the_last_log_are_kept_and_counted(tmp_path: Path) -> None:
    days = make_days(2)
    paths = save_days(days, tmp_path)
    shown_twice = days.days[0].join(days.days[1], on=["query_id", "doc_id"], how="semi")
    newer = days.features.with_columns(pl.col("price") + 1).select("query_id", "stock", "doc_id", "price")
    cuolr.save_click_log(imported(days.days[1], newer), tmp_path / "newer")
    report = merge_logs([paths[0], tmp_path / "newer"], tmp_path / "merged")
    assert report.changed == days.days[0].select("query_id", "doc_id").n_unique()
    assert report.changed > shown_twice.select("query_id", "doc_id").n_unique()
    merged = load_click_log(tmp_path / "merged").candidates
    assert merged.feature_names is not None
    price = merged.features[:, merged.feature_names.tolist().index("price")]
    found = pl.DataFrame(
        {"query_id": merged.query_ids[merged.query_of_document], "doc_id": merged.document_ids, "found": price}
    )
    both = found.join(newer, on=["query_id", "doc_id"])
    assert np.allclose(both["found"], both["price"])


def test_a_time_window_counts_from_the_latest_session_of_all_logs(tmp_path: Path) -> None:
    days = make_days(3, days=3)
    # The latest session is at 11:00 on the third day.
    report = merge_logs(save_days(days, tmp_path)[::-1], tmp_path / "merged", TimeWindow("1d"))
    assert (report.outside, report.kept) == (12 + 11, 1 + 12)
    merged = load_click_log(tmp_path / "merged")
    assert str(merged.timestamp.min())[:13] == "2026-11-02T11"  # type: ignore[union-attr]
    with pytest.raises(InputError, match="no session of these logs"):
        merge_logs([tmp_path / "day 0", tmp_path / "day 1"], tmp_path / "x", TimeWindow("2027-01-01"))


def test_queries_whose_sessions_are_all_outside_the_time_window_are_left_out(tmp_path: Path) -> None:
    days = make_days(5, sessions=4, queries=6)
    paths = save_days(days, tmp_path)
    everything = merge_logs(paths, tmp_path / "all")
    report = merge_logs(paths, tmp_path / "merged", TimeWindow("2026-11-02"))
    first, second = (set(day["query_id"]) for day in days.days)
    merged = load_click_log(tmp_path / "merged")
    assert 0 < len(first - second) == report.expired
    assert everything.expired == 0
    assert set(merged.candidates.query_ids) == second
    assert (report.queries, report.documents) == (merged.candidates.n_queries, merged.candidates.n_documents)
    assert rows(merged).equals(rows(imported(days.days[1], days.features)))


def test_columns_that_a_log_lacks_are_left_out_and_ids_are_filled_in(tmp_path: Path) -> None:
    days = make_days(4)
    cuolr.save_click_log(imported(days.days[0], days.features), tmp_path / "a")
    without = days.days[1].drop("timestamp", "user_id")
    cuolr.save_click_log(imported(without, days.features, session_ids=False), tmp_path / "b")
    report = merge_logs([tmp_path / "a", tmp_path / "b"], tmp_path / "merged")
    assert report.left_out == ("timestamp",)
    merged = load_click_log(tmp_path / "merged")
    assert merged.session_id is not None
    assert sorted(merged.session_id)[:13] == [""] * 12 + ["0-0"]
    with pytest.raises(InputError, match="b: the log has no timestamps"):
        merge_logs([tmp_path / "a", tmp_path / "b"], tmp_path / "x", TimeWindow("1d"))


def test_aggregated_logs_merge_to_the_aggregated_whole(tmp_path: Path) -> None:
    days = make_days(5, sessions=60, queries=1)
    whole = aggregate(imported(days.table, days.features))
    for number in (0, 1):
        save_click_log(aggregate(imported(days.days[number], days.features)), tmp_path / str(number))
    report = merge_logs([tmp_path / "0", tmp_path / "1"], tmp_path / "merged")
    merged = load_click_log(tmp_path / "merged")
    assert (merged.sessions, report.kept) == (120, 120)
    assert np.array_equal(merged.ranking, whole.ranking)
    assert np.allclose(merged.clicks, whole.clicks)


def test_logs_without_document_ids_merge_if_their_candidates_are_the_same(tmp_path: Path) -> None:
    save_click_log(small_log(rows=10), tmp_path / "a")
    save_click_log(small_log(rows=20), tmp_path / "b")
    merge_logs([tmp_path / "a", tmp_path / "b"], tmp_path / "merged")
    assert load_click_log(tmp_path / "merged").sessions == 30
    save_click_log(small_log(seed=3), tmp_path / "c")
    with pytest.raises(InputError, match="a: has no document ids"):
        merge_logs([tmp_path / "a", tmp_path / "c"], tmp_path / "x")


def test_what_does_not_fit_together_is_refused(tmp_path: Path) -> None:
    days = make_days(6)
    a, b = save_days(days, tmp_path)
    with pytest.raises(InputError, match="at least 2 different logs"):
        merge_logs([a, a], tmp_path / "x")
    save_click_log(aggregate(load_click_log(b)), tmp_path / "aggregated")
    with pytest.raises(InputError, match=r"day 0 is of sessions, .*aggregated is aggregated; merge logs of one form"):
        merge_logs([a, tmp_path / "aggregated"], tmp_path / "x")
    cuolr.save_click_log(imported(days.days[1], days.features.rename({"price": "cost"})), tmp_path / "cost")
    with pytest.raises(InputError, match=r"cost: feature 'price' is missing, which .*day 0 has\n.*'cost' is not in"):
        merge_logs([a, tmp_path / "cost"], tmp_path / "x")
    key = IdKey(b"0123456789abcdef")
    hashed = imported(days.days[1], days.features, id_key=key)
    save_click_log(hashed, tmp_path / "hashed", {"ids_hashed_with": key.name})
    with pytest.raises(InputError, match="hashed with different keys"):
        merge_logs([a, tmp_path / "hashed"], tmp_path / "x")
    numbers = days.days[1].with_columns(timestamp=pl.lit(1_793_534_400))
    cuolr.save_click_log(imported(numbers, days.features), tmp_path / "numbers")
    with pytest.raises(InputError, match=r"numbers: expected timestamps in the unit of .*day 0 \(dates\), found s"):
        merge_logs([a, tmp_path / "numbers"], tmp_path / "x")
    for weight in (1, 2):
        rewarded = imported(days.days[weight - 1], days.features, reward={"click": weight})
        save_click_log(rewarded, tmp_path / f"times {weight}", {"reward": {"click": weight}})
    with pytest.raises(InputError, match=r"times 1 and .*times 2: rewards have different weights"):
        merge_logs([tmp_path / "times 1", tmp_path / "times 2"], tmp_path / "x")
    assert not (tmp_path / "x").exists()


def test_missing_values_are_no_change_and_recipes_must_agree(tmp_path: Path) -> None:
    days = make_days(8)
    missing = days.features.with_columns(price=pl.when(pl.col("doc_id") == "d1").then(None).otherwise("price"))
    for number, day in enumerate(days.days):
        cuolr.save_click_log(imported(day, missing.reverse() if number else missing), tmp_path / str(number))
    report = merge_logs([tmp_path / "0", tmp_path / "1"], tmp_path / "merged")
    assert (report.changed, report.documents) == (0, 24)
    merged = load_click_log(tmp_path / "merged").candidates
    assert merged.document_ids is not None
    assert merged.recipe == load_click_log(tmp_path / "0").candidates.recipe
    assert np.array_equal(np.isnan(merged.features).any(axis=1), np.asarray(merged.document_ids) == "d1")
    for name, colours in (("a", ["red", "blue"]), ("b", ["red", "green"])):
        coloured = days.features.with_columns(colour=pl.Series(colours * 12))
        cuolr.save_click_log(imported(days.days[0], coloured), tmp_path / name)
    with pytest.raises(InputError, match=r"b: column 'colour' was encoded in another way than in .*a; import it"):
        merge_logs([tmp_path / "a", tmp_path / "b"], tmp_path / "x")


def test_types_of_numbers_may_differ_between_logs(tmp_path: Path) -> None:
    whole, half = small_log(rows=3), small_log(rows=3)
    whole = replace(whole, timestamp=np.array([7, 8, 9]), context={"columns": np.array([1, 2, 3], np.int32)})
    half = replace(half, timestamp=np.array([7.5, 8, 9]), context={"columns": np.array([1.5, 2, 3])})
    save_click_log(whole, tmp_path / "a")
    save_click_log(half, tmp_path / "b")
    merge_logs([tmp_path / "a", tmp_path / "b"], tmp_path / "merged")
    merged = load_click_log(tmp_path / "merged")
    assert merged.timestamp is not None
    assert merged.timestamp.tolist() == [7, 8, 9, 7.5, 8, 9]
    assert merged.context["columns"].tolist() == [1, 2, 3, 1.5, 2, 3]
    save_click_log(replace(whole, context={"columns": np.array(["one", "two", "two"])}), tmp_path / "c")
    with pytest.raises(InputError, match=r"column 'context.columns': .*c has texts, .*a not"):
        merge_logs([tmp_path / "a", tmp_path / "c"], tmp_path / "x")


def test_a_merged_log_knows_where_its_sessions_come_from(tmp_path: Path) -> None:
    a, b, c = save_days(make_days(7, days=3), tmp_path)
    merge_logs([a, b], tmp_path / "ab")
    merge_logs([tmp_path / "ab", c], tmp_path / "abc")
    own = [read_meta(path)["sessions_sha256"] for path in (a, b, c, tmp_path / "ab", tmp_path / "abc")]
    assert len(set(own)) == 5
    assert identities(read_meta(tmp_path / "abc")) == set(own)
    assert identities(read_meta(tmp_path / "ab")) == {own[0], own[1], own[3]}
    assert json.loads((tmp_path / "ab" / "meta.json").read_text())["source"]["merge"]["kept"] == 24


def test_variants_of_documents_stay_apart(tmp_path: Path) -> None:
    """The price of a document differs between weeks and within them."""
    rng = np.random.default_rng(0)
    weeks = [
        pl.DataFrame(
            {
                "query_id": ["q"] * 40,
                "session_id": [f"week {week}, {i // 2}" for i in range(40)],
                "position": [1 + i % 2 for i in range(40)],
                "doc_id": [f"d{i % 2}" for i in range(40)],
                "click": rng.integers(0, 2, 40),
                "price": [[None, 80.0 + week, 90.0][i] for i in rng.integers(0, 3, 40)],
            }
        )
        for week in range(2)
    ]
    features = cuolr.FeatureTables(impression=("price",))
    for number, week in enumerate(weeks):
        cuolr.save_click_log(cuolr.import_log(week, features), tmp_path / str(number))
    report = merge_logs([tmp_path / "0", tmp_path / "1"], tmp_path / "merged")
    assert report.changed == 0
    merged = load_click_log(tmp_path / "merged")
    assert rows(merged).equals(rows(cuolr.import_log(pl.concat(weeks), features)))
    assert merged.candidates.recipe is not None


def test_logs_whose_columns_were_encoded_otherwise_are_refused(tmp_path: Path) -> None:
    table = pl.DataFrame(
        {"query_id": ["q"] * 2, "session_id": ["s"] * 2, "position": [1, 2], "doc_id": ["a", "b"], "click": [0, 1]}
    )
    for name, days in (("first", ["2024-01-01", "2024-01-02"]), ("later", ["2024-01-01", "2024-01-09"])):
        features = table.select("query_id", "doc_id").with_columns(day=pl.Series(days))
        cuolr.save_click_log(cuolr.import_log(table.with_columns(session_id=pl.lit(name)), features), tmp_path / name)
    with pytest.raises(
        InputError, match=r"later: column 'day' was encoded in another way than in .*first; import it with"
    ):
        merge_logs([tmp_path / "first", tmp_path / "later"], tmp_path / "merged")
    recipe = load_click_log(tmp_path / "first").candidates.recipe
    tables = cuolr.FeatureTables(features, recipe=recipe)
    cuolr.save_click_log(cuolr.import_log(table.with_columns(session_id=pl.lit("later")), tables), tmp_path / "again")
    merge_logs([tmp_path / "first", tmp_path / "again"], tmp_path / "merged")
    merged = load_click_log(tmp_path / "merged").candidates
    assert merged.recipe == recipe
    assert merged.features.tolist() == [[1], [-7]]


def test_records_of_where_sessions_come_from_grow_in_length_not_in_depth(tmp_path: Path) -> None:
    """Each merge takes the log that the one before it made."""
    paths = save_days(make_days(1, days=4), tmp_path)
    known = {read_meta(path)["sessions_sha256"] for path in paths}
    latest = paths[0]
    for number, path in enumerate(paths[1:]):
        merge_logs([latest, path], tmp_path / f"merged {number}")
        latest = tmp_path / f"merged {number}"
        known.add(read_meta(latest)["sessions_sha256"])
    source = read_meta(latest)["source"]
    assert identities(read_meta(latest)) == known
    nested = [earlier for record in source["merged"] for earlier in record["source"].get("merged", ())]
    assert nested
    assert all("source" not in earlier for earlier in nested)


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"source": "x"}, "source: expected an object, found 'x'"),
        ({"source": {"merged": 3}}, "source.merged: expected a list, found 3"),
        ({"source": {"counted": []}}, r"source.counted: expected an object, found \[\]"),
        ({"sessions": "many"}, "sessions: expected a whole number, found 'many'"),
        ({"sessions_sha256": [1]}, r"sessions_sha256: expected a text, found \[1\]"),
    ],
)
def test_what_a_log_records_of_itself_has_the_expected_types(
    tmp_path: Path, changed: dict[str, object], problem: str
) -> None:
    paths = save_days(make_days(1), tmp_path)
    meta = {**json.loads((paths[1] / "meta.json").read_bytes()), **changed}
    (paths[1] / "meta.json").write_text(json.dumps(meta))
    with unverified(), pytest.raises(InputError, match=f"1/meta.json: {problem}$"):
        merge_logs(paths, tmp_path / "merged")


def test_records_of_other_types_within_those_of_a_log_are_left_out() -> None:
    odd = {"merged": [3, {"sessions_sha256": [1], "source": []}, {"sessions_sha256": "b", "source": {"merged": "c"}}]}
    assert identities({"sessions_sha256": "a", "source": odd}) == {"a", "b"}
