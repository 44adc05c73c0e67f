"""A look-alike of TianGong-ST: a line per query with lists in brackets."""

from pathlib import Path

import pytest

from cuolr.errors import InputError
from cuolr.logs.importing.import_log import import_log_with_report
from cuolr.logs.importing.importer import SourceCounts

LINES = [
    "5\t30\t[101, 102, 103]\t[1, 1, 19]\t[0, 1, 0]",
    "5\t31\t[201, 101]\t[1, 1]\t[0, 0]",  # the same session asks again
    "6\t30\t[103, 101, 102]\t[1, 1, 1]\t[1, 1, 0]",
]


def test_each_line_is_a_list(tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text("\n".join(LINES))
    log, report = import_log_with_report(tmp_path / "train.txt", format="tiangong-st")
    assert log.candidates.query_ids.tolist() == ["30", "31"]
    assert log.query.tolist() == [0, 1, 0]
    assert log.ranking.tolist() == [[0, 1, 2], [1, 0, -1], [2, 0, 1]]
    assert log.clicks.tolist() == [[0, 1, 0], [0, 0, 0], [1, 1, 0]]
    assert (report.repaired, report.dropped) == ((), ())


def test_lists_that_do_not_fit_their_clicks_are_counted(tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text("\n".join([*LINES, "7\t30\t[1, 2]\t[1, 1]\t[0]", "8\t30"]))
    log, report = import_log_with_report(tmp_path / "train.txt", format="tiangong-st")
    assert log.sessions == 3
    assert isinstance(report.source, SourceCounts)
    assert list(report.source.counts.values()) == [5, 2]


def test_another_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text("a b c\n")
    with pytest.raises(InputError, match=r"expected lines of session, query, \[documents\]"):
        import_log_with_report(tmp_path / "train.txt", format="tiangong-st")
