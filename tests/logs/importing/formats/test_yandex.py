"""A look-alike of the Yandex relevance prediction log: actions Q and C, separated by tabs."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cuolr.errors import InputError
from cuolr.logs.importing.import_log import import_log_with_report
from cuolr.logs.importing.import_options import ImportOptions
from cuolr.logs.importing.import_report import TooManyDroppedError
from cuolr.logs.importing.importer import SourceCounts


def query(session: int, time: int, query_id: int, *urls: int) -> str:
    return "\t".join(map(str, (session, time, "Q", query_id, 0, *urls)))


def click(session: int, time: int, url: int) -> str:
    return "\t".join(map(str, (session, time, "C", url)))


ANY = ImportOptions(max_dropped=1)
TEN = range(11, 21)
ACTIONS = [
    query(0, 0, 8, *TEN),
    click(0, 5, 13),
    click(0, 9, 13),  # again
    query(0, 20, 9, 31, 13),  # shorter; shows 13, too
    click(0, 25, 13),  # on the second list
    click(0, 26, 11),  # back on the first
    click(1, 3, 11),  # before any list of its session
    query(1, 4, 8, *reversed(TEN)),
]


def test_clicks_belong_to_the_latest_list_that_shows_the_url(tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_text("\n".join(ACTIONS) + "\n")
    log, report = import_log_with_report(tmp_path / "log.txt", options=ANY, format="yandex")
    assert log.sessions == 3
    assert log.clicks[:, :3].tolist() == [[1, 0, 1], [0, 1, 0], [0, 0, 0]]
    assert int(log.clicks.sum()) == 3
    assert log.where.sum(axis=1).tolist() == [10, 2, 10]
    assert log.query.tolist() == [0, 1, 0]
    assert isinstance(report.source, SourceCounts)
    assert list(report.source.counts.values()) == [3, 5, 1, 1, 0]


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    actions=st.lists(
        st.tuples(st.integers(0, 2), st.lists(st.integers(1, 6), min_size=1, max_size=4, unique=True), st.booleans()),
        min_size=1,
        max_size=25,
    )
)
def test_clicks_are_where_a_plain_search_finds_them(actions: list[tuple[int, list[int], bool]], tmp_path: Path) -> None:
    actions = [(0, [1, 2], True), *actions]
    lines, lists, expected = [], [], set()
    for time, (session, urls, is_query) in enumerate(actions):
        if is_query:
            lines.append(query(session, time, 7, *urls))
            lists.append((session, urls))
            continue
        lines.append(click(session, time, urls[0]))
        shown = [i for i, (other, there) in enumerate(lists) if other == session and urls[0] in there]
        if shown:
            expected.add((shown[-1], lists[shown[-1]][1].index(urls[0])))
    (tmp_path / "log.txt").write_text("\n".join(lines))
    log, _ = import_log_with_report(tmp_path / "log.txt", options=ANY, format="yandex")
    rows, positions = log.clicks.nonzero()
    assert set(zip(rows.tolist(), positions.tolist(), strict=True)) == expected


def test_lines_that_are_no_action_are_counted(tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_text("\n".join([*ACTIONS, "1\t2\tX\t3", "nothing"]))
    _, report = import_log_with_report(tmp_path / "log.txt", options=ANY, format="yandex")
    assert isinstance(report.source, SourceCounts)
    assert report.source.counts["lines that are no action: dropped"] == 2
    # 2 of 10 lines; 1 of 4 clicks, as the one that repeats another is not counted.
    with pytest.raises(TooManyDroppedError, match=r"25.0% of the clicks cannot be used"):
        import_log_with_report(tmp_path / "log.txt", options=ImportOptions(max_dropped=0.24), format="yandex")
    with pytest.raises(InputError, match="dropped: lines that are no action: 2 lines"):
        import_log_with_report(tmp_path / "log.txt", options=ImportOptions(strict=True), format="yandex")


def test_a_file_without_lists_is_refused(tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_text(click(1, 3, 11))
    with pytest.raises(InputError, match="expected query actions 'Q'"):
        import_log_with_report(tmp_path / "log.txt", options=ANY, format="yandex")
