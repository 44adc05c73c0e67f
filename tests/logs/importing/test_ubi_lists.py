import gzip
import json
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cuolr.errors import InputError
from cuolr.logs.importing import ubi_records
from cuolr.logs.importing import ubi_report as why
from cuolr.logs.importing.import_log import import_log_with_report
from cuolr.logs.importing.import_options import ImportOptions
from cuolr.logs.importing.seen_documents import seen_documents
from cuolr.logs.importing.table import read_log_table
from cuolr.logs.importing.ubi_lists import read_ubi
from cuolr.logs.importing.ubi_report import UbiReport

Record = dict[str, Any]


def query(list_id: str | None = "L1", text: str | None = "red shoes", **fields: Any) -> Record:
    return {"query_id": list_id, "user_query": text, "timestamp": "2024-12-10T00:00:00Z", **fields}


def event(action: str, document: str | None, ordinal: Any = None, list_id: str | None = "L1", **fields: Any) -> Record:
    position = {} if ordinal is None else {"position": {"ordinal": ordinal}}
    attributes = {"object": {"object_id": document, "object_id_field": "sku"}, **position}
    time = {"timestamp": "2024-12-10T00:00:01Z"}
    return {"action_name": action, "query_id": list_id, "event_attributes": attributes, **time, **fields}


def impressions(documents: str, first: int = 1, list_id: str = "L1", **fields: Any) -> list[Record]:
    """An impression of each letter, one position after the other."""
    return [event("impression", d, i, list_id, **fields) for i, d in enumerate(documents, start=first)]


def write(path: Path, records: Sequence[Record]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def read(folder: Path, *records: Record) -> tuple[dict[str, str], UbiReport]:
    """The lists by session, a letter by position, in capitals where clicked, a dot in a gap; and the report."""
    table, report = read_ubi([write(folder / "ubi.ndjson", records)])
    lists: dict[str, str] = {}
    for row in table.sort("session_id", "position").iter_rows(named=True):
        shown = lists.get(row["session_id"], "")
        shown += "." * (row["position"] - 1 - len(shown))
        lists[row["session_id"]] = shown + (row["doc_id"].upper() if row["click"] else row["doc_id"])
    return lists, report


def test_the_client_is_the_user_of_the_query_or_else_of_its_events(tmp_path: Path) -> None:
    records = [
        query(client_id="ann"),
        *impressions("ab", client_id="not ann"),
        query("L2"),
        *impressions("a", list_id="L2", client_id="bob"),
        query("L3"),
        *impressions("a", list_id="L3"),
    ]
    table, _ = read_ubi([write(tmp_path / "ubi.ndjson", records)])
    assert table.select("session_id", "user_id").rows() == [("L1", "ann"), ("L1", "ann"), ("L2", "bob"), ("L3", None)]
    log, _ = read_log_table(table, seen_documents(table))
    assert log.user_id is not None
    assert log.user_id.tolist() == ["ann", "bob", ""]
    table, _ = read_ubi([write(tmp_path / "without.ndjson", [query(), *impressions("a")])])
    assert "user_id" not in table.columns


def test_a_list_is_what_was_shown_and_clicked_under_one_query_id(tmp_path: Path) -> None:
    records = [query(text="  red shoes "), *impressions("abc"), event("click", "b", 2), event("add_to_cart", "b", 2)]
    table, report = read_ubi([write(tmp_path / "ubi.ndjson", records)])
    assert table.drop("timestamp").rows() == [
        ("red shoes", "L1", 1, "a", 0, 0),
        ("red shoes", "L1", 2, "b", 1, 1),
        ("red shoes", "L1", 3, "c", 0, 0),
    ]
    assert table.columns[-1] == "add_to_cart"
    assert {str(time) for time in table["timestamp"]} == {"2024-12-10 00:00:00"}
    assert (report.queries, report.events, report.lists, report.complete) == (1, 5, 1, 1)
    assert (report.from_0, report.from_1, report.assumed) == (0, 1, 0)
    assert report.other_events == {"add_to_cart": 1}
    assert report.impressions == why.Tally(3, 3, {})
    assert report.clicks == why.Tally(1, 1, {})


@pytest.mark.parametrize(
    "ordinal",
    [
        lambda i: {"ordinal": i},
        lambda i: {"ordinal": {"index": i}},
        lambda i: {"ordinal": float(i)},
        lambda i: {"ordinal": str(i)},
        lambda i: {"ordinal": i if i % 2 else {"index": i}},
        lambda i: {"ordinal.index": i},
    ],
)
@pytest.mark.parametrize("first", [0, 1])
def test_positions_of_all_schemas_from_0_or_1(tmp_path: Path, ordinal: Any, first: int) -> None:
    shown = impressions("abc", first)
    for i, record in enumerate(shown, start=first):
        record["event_attributes"]["position"] = ordinal(i)
    lists, report = read(tmp_path, query(), *shown, event("click", "c"))
    assert lists == {"L1": "abC"}
    assert (report.from_0, report.from_1) == ((1, 0) if first == 0 else (0, 1))


def test_an_application_that_mixes_both_is_told_list_by_list(tmp_path: Path) -> None:
    lists, report = read(tmp_path, query("L1"), *impressions("ab", 0, "L1"), query("L2"), *impressions("ba", 1, "L2"))
    assert lists == {"L1": "ab", "L2": "ba"}
    assert (report.from_0, report.from_1, report.complete) == (1, 1, 2)


def test_a_rare_list_from_1_among_lists_from_0_has_lost_its_first_impression(tmp_path: Path) -> None:
    usual = [record for i in range(9) for record in (query(f"Z{i}"), *impressions("ab", 0, f"Z{i}"))]
    lists, report = read(tmp_path, *usual, query("odd"), *impressions("bc", 1, "odd"))
    assert lists["odd"] == ".bc"
    assert report.impressions == why.Tally(20, 20, {})
    # Another application numbers as it likes.
    lists, _ = read(tmp_path, *usual, query("odd"), *impressions("bc", 1, "odd", application="other"))
    assert lists["odd"] == "bc"


@pytest.mark.parametrize("field", ["query_response_hit_ids", "query_response_object_ids"])
def test_without_impressions_the_response_is_assumed_to_be_shown(tmp_path: Path, field: str) -> None:
    lists, report = read(tmp_path, query() | {field: ["a", "b", "c"]}, event("click", "b", 7), event("click", "x"))
    assert lists == {"L1": "aBc"}
    assert (report.assumed, report.assumed_impressions, report.from_0, report.from_1) == (1, 3, 0, 0)
    assert report.impressions == why.Tally(3, 3, {})
    assert report.clicks == why.Tally(2, 1, {why.NOT_SHOWN: 1})
    assert (report.complete, report.repaired, report.repairs) == (0, 1, {why.NOT_SHOWN: 1})


def test_impressions_go_before_the_response(tmp_path: Path) -> None:
    lists, report = read(tmp_path, query(query_response_hit_ids=list("abcdef")), *impressions("ab"))
    assert lists == {"L1": "ab"}
    assert (report.assumed, report.assumed_impressions) == (0, 0)


def test_repeated_events_count_once(tmp_path: Path) -> None:
    shown, click = impressions("ab"), event("click", "b", 2)
    later = click | {"timestamp": "2024-12-10T01:00:00Z", "action_name": "click_through"}
    lists, report = read(tmp_path, query(), *shown, *shown, click, click, later)
    assert lists == {"L1": "aB"}
    assert report.impressions == why.Tally(4, 2, {why.REPEATED_IMPRESSION: 2})
    assert report.clicks == why.Tally(3, 1, {why.REPEATED_CLICK: 2})
    assert (report.complete, report.repaired) == (0, 1)


def test_a_list_with_a_gap_keeps_its_positions(tmp_path: Path) -> None:
    shown = [event("impression", "a", 1), event("impression", "b", 2), event("impression", "d", 4)]
    lists, report = read(tmp_path, query(), *shown, event("click", "d", 4), event("click", "a", 1))
    assert lists == {"L1": "Ab.D"}
    assert report.impressions == why.Tally(3, 3, {})
    assert report.clicks == why.Tally(2, 2, {})
    log, of_import = import_log_with_report(tmp_path / "ubi.ndjson", format="ubi")
    assert log.page_position is not None
    assert log.page_position.tolist() == [[0, 1, 3]]
    assert [found.reason for found in of_import.repaired] == ["gap in the positions"]


def test_a_document_at_several_positions_is_kept_at_the_first(tmp_path: Path) -> None:
    lists, report = read(tmp_path, query(), *impressions("aba"), event("click", "a", 3))
    assert lists == {"L1": "Ab"}
    assert report.impressions == why.Tally(3, 2, {why.SEVERAL_POSITIONS: 1})


def test_a_list_with_two_documents_at_one_position_is_dropped(tmp_path: Path) -> None:
    lists, report = read(tmp_path, query(), *impressions("ab"), event("impression", "c", 2), event("click", "a", 1))
    assert lists == {}
    assert report.dropped == report.clicks.dropped == {why.TWO_DOCUMENTS: 1}
    assert report.impressions == why.Tally(3, 0, {why.TWO_DOCUMENTS: 3})


def test_a_second_page_keeps_its_positions(tmp_path: Path) -> None:
    lists, report = read(tmp_path, query(), *impressions("ab", 11))
    assert lists == {"L1": "..........ab"}
    assert report.complete == 1


def test_other_actions_can_be_a_reward(tmp_path: Path) -> None:
    bought = [event("click", "b", 2), event("add_to_cart", "b", 2), event("purchase", "b"), event("purchase", "z")]
    write(tmp_path / "ubi.ndjson", [query(), *impressions("ab"), *bought])
    options = ImportOptions(reward="click=1,add_to_cart=3,purchase=10")
    log, report = import_log_with_report(tmp_path / "ubi.ndjson", options=options, format="ubi")
    assert log.reward is not None
    assert log.reward.tolist() == [[0, 14]]
    assert report.source is not None
    with pytest.raises(InputError, match="column 'wish' of the reward is missing"):
        import_log_with_report(tmp_path / "ubi.ndjson", options=ImportOptions(reward="wish"), format="ubi")


@pytest.mark.parametrize(
    ("records", "reason"),
    [
        ([*impressions("ab")], why.UNKNOWN_QUERY),
        ([query(text=" "), *impressions("ab")], why.NO_TEXT),
        ([query(), query(text="blue shoes"), *impressions("ab")], why.SEVERAL_TEXTS),
        ([query()], why.NO_IMPRESSIONS),
        ([query(), event("click", "a", 1)], why.NO_IMPRESSIONS),
        (
            [query(query_response_hit_ids=["a"]), query(query_response_hit_ids=["b"])],
            why.SEVERAL_RESPONSES,
        ),
    ],
)
def test_a_list_that_cannot_be_used_is_dropped_with_its_reason(
    tmp_path: Path, records: list[Record], reason: str
) -> None:
    lists, report = read(tmp_path, *records)
    assert lists == {}
    assert report.dropped == {reason: 1}
    assert (report.complete, report.repaired) == (0, 0)


def test_a_query_that_is_missing_gets_its_text_from_its_events(tmp_path: Path) -> None:
    records = impressions("ab", user_query="red shoes ")
    table, report = read_ubi([write(tmp_path / "ubi.ndjson", records)])
    assert table["query_id"].to_list() == ["red shoes"] * 2
    assert (report.repaired, report.repairs) == (1, {why.TEXT_FROM_EVENTS: 1})


def test_events_that_lack_a_field_are_counted_by_reason(tmp_path: Path) -> None:
    lists, report = read(
        tmp_path,
        query(),
        *impressions("ab"),
        event("impression", "c", -1),
        event("view", "d"),
        event("view", None, 4),
        event("click", "a", 1, list_id=None),
        event("click", None, 1),
        {"neither": 1},
        query(list_id=None),
    )
    assert lists == {"L1": "ab"}
    assert report.impressions == why.Tally(5, 2, {why.NO_POSITION: 2, why.NO_DOCUMENT: 1})
    assert report.clicks == why.Tally(2, 0, {why.NO_DOCUMENT: 1, why.NO_QUERY_ID: 1})
    assert (report.other_records, report.queries, report.queries_without_id) == (1, 2, 1)


def test_without_the_time_of_a_list_the_log_has_no_timestamps(tmp_path: Path) -> None:
    untimed = [record | {"timestamp": "yesterday"} for record in (query("L2"), *impressions("ab", list_id="L2"))]
    table, report = read_ubi([write(tmp_path / "ubi.ndjson", [query(), *impressions("ab"), *untimed])])
    assert "timestamp" not in table.columns
    assert report.without_time == 1


RECORDS = [query(query_attributes={}), *impressions("abc", 0), event("click", "c", 2)]
LIST = {"L1": "abC"}


def test_bulk_requests_exported_hits_and_gzip_are_read(tmp_path: Path) -> None:
    bulk = [line for r in RECORDS for line in ({"index": {"_index": "ubi", "_id": "1"}}, r)]
    assert read(tmp_path, *bulk)[0] == LIST
    assert read(tmp_path, *({"_index": "ubi", "_id": "1", "_source": r} for r in RECORDS))[0] == LIST
    packed = tmp_path / "ubi.ndjson.gz"
    packed.write_bytes(gzip.compress(write(tmp_path / "plain.ndjson", RECORDS).read_bytes()))
    assert read_ubi([packed])[0].equals(read_ubi([tmp_path / "plain.ndjson"])[0])


@pytest.mark.parametrize("as_json", [False, True])
def test_separate_files_and_parquet_give_the_same(tmp_path: Path, as_json: bool) -> None:
    expected, report = read_ubi([write(tmp_path / "both.ndjson", RECORDS)])
    queries, events = write(tmp_path / "q.jsonl", RECORDS[:1]), write(tmp_path / "e.json", RECORDS[1:])
    assert read_ubi([events, queries])[0].equals(expected)
    flat = (
        [r | {"event_attributes": json.dumps(r["event_attributes"])} for r in RECORDS[1:]] if as_json else RECORDS[1:]
    )
    frame = pl.DataFrame(flat).with_columns(pl.col("timestamp").str.to_datetime(time_zone="UTC"))
    frame.write_parquet(tmp_path / "e.parquet")
    table, found = read_ubi([tmp_path / "e.parquet", queries])
    assert table.equals(expected)
    assert found == report


def test_bad_files_are_refused_with_the_line(tmp_path: Path) -> None:
    bad = tmp_path / "bad.ndjson"
    bad.write_text('{"query_id": "a"}\n\n[1]\n')
    with pytest.raises(InputError, match=r"bad\.ndjson:3: expected a JSON object in UTF-8, found '\[1\]'"):
        read_ubi([bad])
    (tmp_path / "x.csv").write_text("a")
    with pytest.raises(InputError, match=r"expected UBI records in a file whose name ends in \.ndjson"):
        read_ubi([tmp_path / "x.csv"])
    with pytest.raises(InputError, match="file not found"):
        read_ubi([tmp_path / "none.ndjson"])
    (tmp_path / "cut.ndjson.gz").write_bytes(gzip.compress(b'{"a": 1}\n' * 99)[:-12])
    with pytest.raises(InputError, match="cannot be read"):
        read_ubi([tmp_path / "cut.ndjson.gz"])
    with pytest.raises(InputError, match="found none"):
        read_ubi([])


IDS = st.sampled_from([None, "", "L1", "L2", "L3", 4, "nul\0"])
ORDINALS = st.one_of(
    st.none(), st.integers(-1, 6), st.sampled_from(["2", "x", 1.5, True, [1], {}, {"index": 2}, {"index": None}])
)
EVENTS = st.builds(
    event,
    st.sampled_from(["impression", "impression", "view", "click", "CLICK", "click_through", "purchase"]),
    st.sampled_from([None, "a", "b", "c", "d", 7]),
    ORDINALS,
    IDS,
    user_query=st.sampled_from([None, "red", "blue"]),
    application=st.sampled_from([None, "shop", "app"]),
    timestamp=st.sampled_from([None, "bad", "2024-12-10T00:00:01Z", 1733788800000, "2024-12-10T00:00:02"]),
)
QUERIES = st.builds(
    query,
    IDS,
    st.sampled_from([None, " ", "red", "blue"]),
    query_response_hit_ids=st.one_of(st.none(), st.lists(st.sampled_from(["a", "b", "c", None]), max_size=4)),
)
GOOD = st.tuples(st.sampled_from(["G1", "G2"]), st.permutations("abcd"), st.integers(0, 1), st.integers(1, 4)).map(
    lambda made: [query(made[0], "green"), *impressions("".join(made[1][: made[3]]), made[2], made[0])]
)


@pytest.mark.thorough
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(good=st.lists(GOOD, max_size=3), bad=st.lists(EVENTS | QUERIES, max_size=25), seed=st.randoms())
def test_impressions_clicks_and_lists_in_are_kept_or_dropped_with_a_reason(
    good: list[list[Record]], bad: list[Record], seed: Any, tmp_path: Path
) -> None:
    records = [record for lists in good for record in lists] + bad
    seed.shuffle(records)
    table, report = read_ubi([write(tmp_path / "ubi.ndjson", records)])
    actions = Counter(str(record.get("action_name", "")).lower() for record in records)
    assert report.impressions.found == actions["impression"] + actions["view"] + report.assumed_impressions
    assert report.clicks.found == actions["click"] + actions["click_through"]
    for tally, kept in ((report.impressions, len(table)), (report.clicks, int(table["click"].sum()))):
        assert tally.kept == kept
        assert tally.found == kept + sum(tally.dropped.values())
    ids = {str(record.get("query_id") or "").strip() for record in records} - {"", "nul\0"}
    assert report.lists == len(ids) == report.complete + report.repaired + sum(report.dropped.values())
    assert table["session_id"].n_unique() == report.complete + report.repaired
    assert report.from_0 + report.from_1 + report.assumed == report.complete + report.repaired
    assert sum(actions.values()) == report.queries + report.events + report.other_records
    if len(table):  # of which the importer of logs loses nothing
        log, _ = read_log_table(table, seen_documents(table), ImportOptions(max_dropped=0, first_position=1))
        assert (log.sessions, int(log.where.sum())) == (table["session_id"].n_unique(), len(table))
        assert int(log.clicks.sum()) == report.clicks.kept


def test_the_documents_of_a_log_have_a_feature_that_says_nothing(tmp_path: Path) -> None:
    records = [query(), *impressions("ba"), query("L2", "hats"), *impressions("cab", list_id="L2")]
    table, _ = read_ubi([write(tmp_path / "ubi.ndjson", records)])
    candidates = seen_documents(table)
    assert candidates.query_ids.tolist() == ["hats", "red shoes"]
    assert candidates.document_ids is not None
    assert candidates.document_ids.tolist() == ["a", "b", "c", "a", "b"]
    assert candidates.offsets.tolist() == [0, 3, 5]
    assert candidates.features.tolist() == [[0.0]] * 5


def test_a_real_sample_comes_in_complete(shared_data: Path) -> None:
    table, report = read_ubi([shared_data / "ubi" / "ubi_queries_events.ndjson"])
    assert (report.queries, report.events, report.lists) == (200, 1060, 200)
    assert (report.complete, report.repaired, report.dropped) == (200, 0, {})
    assert (report.from_0, report.from_1, report.assumed) == (200, 0, 0)
    assert report.impressions == why.Tally(1000, 1000, {})
    assert report.clicks == why.Tally(60, 60, {})
    assert table["query_id"].n_unique() == 119
    assert table.group_by("position").agg(pl.col("click").sum()).sort("position")["click"].to_list() == [
        22,
        10,
        13,
        9,
        6,
    ]


@pytest.mark.parametrize("name", ["ubi.ndjson", "ubi.ndjson.gz", "ubi.parquet"])
def test_reading_is_told_by_the_bytes_of_the_files(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ubi_records, "LINES_AT_A_TIME", 2)
    monkeypatch.setattr(ubi_records, "RECORDS_AT_A_TIME", 2)
    path = tmp_path / name
    # Python reads 128 KB of a compressed file at once; these are 200 KB, as digits drawn at random do not compress.
    digits = random.Random(1)
    queries = [query(f"L{i}", f"shoes of kind {digits.randbytes(100).hex()}") for i in range(2_000)]
    records = [*queries, event("impression", "a", 1)]
    text = "".join(json.dumps(record) + "\n" for record in records).encode()
    if name.endswith("parquet"):
        pl.DataFrame(
            [{**row, "event_attributes": json.dumps(row.get("event_attributes"))} for row in records]
        ).write_parquet(path)
    else:
        path.write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    done: list[int] = []
    read_ubi([path], done.append)
    assert sum(done) == path.stat().st_size
    assert sum(amount > 0 for amount in done) > 1
