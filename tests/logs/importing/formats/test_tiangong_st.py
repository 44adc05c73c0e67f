"""A look-alike of TianGong-ST: a line per query with lists in brackets."""

from pathlib import Path

import pytest

from cuolr.errors import InputError
from cuolr.logs.importing.import_log import import_log_with_report
from cuolr.logs.importing.import_options import ImportOptions
from cuolr.logs.importing.import_report import TooManyDroppedError
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
    files, some = tmp_path / "train.txt", ImportOptions(max_dropped=0.4)
    log, report = import_log_with_report(files, options=some, format="tiangong-st")
    assert log.sessions == 3
    assert isinstance(report.source, SourceCounts)
    assert list(report.source.counts.values()) == [5, 2]
    assert "source_losses" not in report.to_dict()
    reason = "lists without documents, or with another number of clicks"
    with pytest.raises(TooManyDroppedError) as stopped:
        import_log_with_report(files, format="tiangong-st")
    assert stopped.value.problems == [
        f"{files}: 40.0% of the sessions cannot be used, more than max_dropped = 0.05 allows",
        f"dropped: {reason}: 2 sessions",
    ]
    with pytest.raises(InputError) as strict:
        import_log_with_report(files, options=ImportOptions(strict=True, max_dropped=1), format="tiangong-st")
    assert strict.value.problems == [f"{files}: dropped: {reason}: 2 sessions"]


def test_what_the_importer_drops_adds_to_what_is_dropped_of_the_table(tmp_path: Path) -> None:
    """Of 10 lists, one does not fit its clicks, and one has a click of 'x': 20 %."""
    lines = [f"{i}\t30\t[1, 2]\t[1, 1]\t[0, 1]" for i in range(8)]
    lines += ["8\t30\t[1, 2]\t[1, 1]\t[0]", "9\t30\t[1, 2]\t[1, 1]\t[0, x]"]
    (tmp_path / "train.txt").write_text("\n".join(lines))

    def sessions(max_dropped: float) -> int:
        options = ImportOptions(max_dropped=max_dropped)
        return import_log_with_report(tmp_path / "train.txt", options=options, format="tiangong-st")[0].sessions

    assert sessions(0.2) == 8
    with pytest.raises(TooManyDroppedError, match=r"20.0% of the sessions"):
        sessions(0.15)


def test_another_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text("a b c\n")
    with pytest.raises(InputError, match=r"expected lines of session, query, \[documents\]"):
        import_log_with_report(tmp_path / "train.txt", format="tiangong-st")
