"""Any table made from a good one by random damage is repaired, dropped with a count, or refused with a line."""

import json
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cuolr.errors import InputError
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.columns import check_rows
from cuolr.logs.importing.import_options import ImportOptions
from cuolr.logs.importing.import_report import ImportReport
from cuolr.logs.importing.table import read_log_table
from cuolr.logs.time_window import TimeWindow
from tests.data.small_data import assert_same_log, candidates_of, random_log

Row: TypeAlias = dict[str, Any]
COLUMNS = ("query_id", "session_id", "position", "doc_id", "click")
VALUES = (None, "", 0, 1, 2, 5, -1, 1.5, 40, True, "true", "two", "q1", "d3", "d99", "s0", "a\0", 2**40)


def delete(rows: list[Row], rng: np.random.Generator) -> None:
    del rows[rng.integers(len(rows))]


def duplicate(rows: list[Row], rng: np.random.Generator) -> None:
    rows.insert(int(rng.integers(len(rows) + 1)), dict(rows[rng.integers(len(rows))]))


def move(rows: list[Row], rng: np.random.Generator) -> None:
    rows[rng.integers(len(rows))]["position"] = int(rng.integers(0, 30))


def move_page(rows: list[Row], rng: np.random.Generator) -> None:
    session = rows[rng.integers(len(rows))]["session_id"]
    for row in rows:
        if row["session_id"] == session and type(row["position"]) is int:
            row["position"] += 10


def shift_all(rows: list[Row], rng: np.random.Generator) -> None:
    for row in rows:
        if type(row["position"]) is int:
            row["position"] -= 1


def replace_cell(rows: list[Row], rng: np.random.Generator) -> None:
    rows[rng.integers(len(rows))][str(rng.choice(COLUMNS))] = VALUES[rng.integers(len(VALUES))]


def swap(rows: list[Row], rng: np.random.Generator) -> None:
    one, other = rows[rng.integers(len(rows))], rows[rng.integers(len(rows))]
    name = str(rng.choice(COLUMNS))
    one[name], other[name] = other[name], one[name]


def repeat_document(rows: list[Row], rng: np.random.Generator) -> None:
    row = rows[rng.integers(len(rows))]
    row["doc_id"] = next(other["doc_id"] for other in rows if other["session_id"] == row["session_id"])


DAMAGES: list[Callable[[list[Row], np.random.Generator], None]] = [
    delete, duplicate, move, move_page, shift_all, replace_cell, swap, repeat_document,
]  # fmt: skip


def rows_of(log: ClickLog) -> list[Row]:
    frame = log.to_frame().with_columns(session_id=pl.format("s{}", "session_id"))
    return frame.select(COLUMNS).to_dicts()


def write_json(rows: list[Row], folder: Path) -> list[Path]:
    (folder / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return [folder / "log.jsonl"]


def write_csv(rows: list[Row], folder: Path) -> list[Path]:
    frame = pl.DataFrame([{name: as_text(value) for name, value in row.items()} for row in rows])
    frame.write_csv(folder / "log.csv", null_value="")
    return [folder / "log.csv"]


def write_parts(rows: list[Row], folder: Path) -> list[Path]:
    middle = len(rows) // 2
    parts = [("one.jsonl", rows[:middle]), ("two.jsonl", rows[middle:])]
    for name, part in parts:
        (folder / name).write_text("".join(json.dumps(row) + "\n" for row in part))
    return [folder / name for name, part in parts if part]


def as_text(value: Any) -> str | None:
    return None if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def number(value: Any) -> float | None:
    """A cell as a number, by Python's own rules."""
    try:
        return float({"true": 1, "false": 0}.get(str(value).lower(), value))
    except (TypeError, ValueError):
        return None


def click(value: Any) -> float | None:
    """A cell as a click: a count is one."""
    clicks = number(value)
    return 1 if clicks is not None and 1 <= clicks < np.inf and clicks == int(clicks) else clicks


def known_documents(rows: list[Row], log: ClickLog) -> Counter[frozenset[tuple[str, float | None, str, float | None]]]:
    """The list of each session of the table, documents without features left out."""
    candidates, lists = log.candidates, defaultdict(set)
    assert candidates.document_ids is not None
    known = set(zip(candidates.query_ids[candidates.query_of_document], candidates.document_ids, strict=True))
    for row in rows:
        if (row["query_id"], row["doc_id"]) in known:
            cells = (row["query_id"], number(row["position"]), row["doc_id"], click(row["click"]))
            lists[as_text(row["session_id"])].add(cells)
    return Counter(map(frozenset, lists.values()))


def imported_lists(log: ClickLog, first: int) -> Counter[frozenset[tuple[str, float | None, str, float | None]]]:
    """The list of each session of the log, with positions as the table counts them."""
    frame = log.to_frame()
    page = frame["page_position" if log.page_position is not None else "position"]
    frame = frame.with_columns(at=page + first - 1)
    return Counter(
        frozenset(session.select("query_id", "at", "doc_id", "click").iter_rows())
        for session in frame.partition_by("session_id")
    )


def check_counts(rows: list[Row], log: ClickLog, report: ImportReport) -> None:
    check_rows(Path("log"), log, 0)
    assert report.read.impressions == len(rows)
    assert report.read.clicks == sum(click(row["click"]) == 1 for row in rows)
    assert report.kept.sessions == len(log)
    assert report.kept.impressions == log.where.sum()
    assert report.kept.clicks == log.clicks.sum()
    for unit in ("sessions", "impressions", "clicks"):
        lost = sum(getattr(found.amounts, unit) for found in report.dropped)
        assert getattr(report.read, unit) == getattr(report.kept, unit) + lost, unit
    assert all(1 <= len(found.examples) <= 3 for found in (*report.repaired, *report.dropped))


@pytest.mark.thorough
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    damages=st.lists(st.sampled_from(DAMAGES), max_size=8),
    write=st.sampled_from([write_json, write_csv, write_parts]),
    seed=st.integers(0, 2**32),
)
def test_damage_is_repaired_or_dropped_with_a_count_or_refused_with_a_line(
    damages: list[Callable[[list[Row], np.random.Generator], None]],
    write: Callable[[list[Row], Path], list[Path]],
    seed: int,
    tmp_path: Path,
) -> None:
    good = random_log(candidates_of(4, 3, 5), sessions=12, k=4, seed=seed)
    rows, rng = rows_of(good), np.random.default_rng(seed)
    for damage in damages:
        damage(rows, rng)
    if write is write_csv:  # which cannot tell an empty text from none
        rows = [{name: None if value == "" else value for name, value in row.items()} for row in rows]
    refused: list[str] = []
    try:
        log, report = read_log_table(write(rows, tmp_path), good.candidates, ImportOptions(max_dropped=1))
    except InputError as error:
        refused = error.problems
    if refused:
        assert damages
        assert not any("\n" in problem for problem in refused)
        return
    check_counts(rows, log, report)
    assert imported_lists(log, report.first_position) <= known_documents(rows, good)


EXTRA_VALUES: dict[str, tuple[Any, ...]] = {
    "timestamp": (None, "", "yesterday", "2026-11-09T10:00Z", "2026-11-09T12:00+02:00", "2026-11-01"),
    "cart": (None, 0, 1, 2, -1, 1.5, "x", True, "true"),
    "device": (None, "phone", "desktop"),
    "click": (0, 1, 2, True, "false"),
}


def replace_extra(rows: list[Row], rng: np.random.Generator) -> None:
    name = str(rng.choice(list(EXTRA_VALUES)))
    rows[rng.integers(len(rows))][name] = EXTRA_VALUES[name][rng.integers(len(EXTRA_VALUES[name]))]


def expected_outcomes(rows: list[Row], session: str) -> dict[str, tuple[float, float]]:
    """Of each document of a session, whether it was clicked, and 1 for a click and 3 for a cart, but at least 0."""
    outcomes = {}
    for row in rows:
        if row["session_id"] == session:
            clicks, carts = number(row["click"]) or 0, number(row["cart"]) or 0
            reward = max(0, clicks + 3 * carts)
            outcomes[row["doc_id"]] = (float(clicks > 0 or reward > 0), reward)
    return outcomes


@pytest.mark.thorough
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    damages=st.lists(st.sampled_from([replace_extra, replace_extra, delete, move, move_page]), max_size=8),
    write=st.sampled_from([write_json, write_csv]),
    window=st.sampled_from([TimeWindow(), TimeWindow("2026-11-05"), TimeWindow("3d"), TimeWindow(None, "2026-11-06")]),
    seed=st.integers(0, 2**32),
)
def test_rewards_contexts_and_times_of_damaged_tables_are_those_of_their_rows_or_counted_as_dropped(
    damages: list[Callable[[list[Row], np.random.Generator], None]],
    write: Callable[[list[Row], Path], list[Path]],
    window: TimeWindow,
    seed: int,
    tmp_path: Path,
) -> None:
    good = random_log(candidates_of(4, 3, 5), sessions=12, k=4, seed=seed)
    rows, rng = rows_of(good), np.random.default_rng(seed)
    for row in rows:
        day = int(row["session_id"][1:]) % 10 + 1
        row |= {"timestamp": f"2026-11-{day:02}T10:00:00Z", "cart": int(rng.random() < 0.2), "device": "phone"}
    for damage in damages:
        damage(rows, rng)
    options = ImportOptions(max_dropped=1, reward="click=1,cart=3", context=("device",), window=window)
    refused: list[str] = []
    try:
        log, report = read_log_table(write(rows, tmp_path), good.candidates, options)
    except InputError as error:
        refused = error.problems
    if refused:
        assert damages or window
        assert not any("\n" in problem for problem in refused)
        return
    assert report.read.impressions == len(rows)
    assert (report.kept.sessions, report.kept.impressions) == (len(log), log.where.sum())
    assert report.kept.clicks == log.clicks.sum()
    for unit in ("sessions", "impressions", "clicks"):
        lost = sum(getattr(found.amounts, unit) for found in report.dropped)
        assert getattr(report.read, unit) == getattr(report.kept, unit) + lost, unit
    assert log.session_id is not None
    assert log.reward is not None
    frame = log.to_frame()
    for session, device in zip(log.session_id.tolist(), log.context["device"].tolist(), strict=True):
        found = frame.filter(session_id=session).select("doc_id", "click", "reward").iter_rows()
        assert {document: outcome for document, *outcome in found} == {
            document: [*outcome] for document, outcome in expected_outcomes(rows, session).items()
        }
        assert device == next(row["device"] or "(missing)" for row in rows if row["session_id"] == session)


@settings(max_examples=40, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 6), min_size=1, max_size=4),
    sessions=st.integers(1, 30),
    k=st.integers(1, 8),
    cut=st.integers(1, 8) | st.none(),
    seed=st.integers(0, 2**32),
)
def test_an_undamaged_table_gives_the_same_log_as_strict_to_the_bit(
    sizes: list[int], sessions: int, k: int, cut: int | None, seed: int
) -> None:
    good = random_log(candidates_of(*sizes), sessions, k, seed=seed)
    table = good.to_frame().sample(fraction=1, shuffle=True, seed=seed)
    strict, of_strict = read_log_table(table, good.candidates, ImportOptions(k=cut, strict=True))
    tolerant, of_tolerant = read_log_table(table, good.candidates, ImportOptions(k=cut, max_dropped=0))
    assert_same_log(tolerant, strict)
    assert tolerant.page_position is None
    assert of_tolerant == of_strict
    assert not of_tolerant.repaired


def test_most_damage_leaves_most_of_the_log(tmp_path: Path) -> None:
    good = random_log(candidates_of(4, 3, 5), sessions=300, k=4)
    rows, rng = rows_of(good), np.random.default_rng(1)
    for damage in (delete, duplicate, move, move_page, replace_cell, swap):
        damage(rows, rng)
    log, report = read_log_table(write_json(rows, tmp_path), good.candidates)
    check_counts(rows, log, report)
    assert 290 <= len(log) < 300
    assert report.repaired


@pytest.mark.parametrize("damage", [duplicate, replace_cell])
def test_what_is_refused_by_strict_is_counted_otherwise(
    damage: Callable[[list[Row], np.random.Generator], None], tmp_path: Path
) -> None:
    good = random_log(candidates_of(4, 3, 5), sessions=300, k=4)
    rows = rows_of(good)
    damage(rows, np.random.default_rng(2))
    with pytest.raises(InputError):
        read_log_table(write_json(rows, tmp_path), good.candidates, ImportOptions(strict=True))
    _, report = read_log_table(write_json(rows, tmp_path), good.candidates)
    assert report.repaired or report.dropped
