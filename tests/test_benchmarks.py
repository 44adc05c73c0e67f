"""What benchmarks measure with: logs written in blocks, limits of memory, slopes."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks import mapped_features, training_cost
from benchmarks.table import Row, as_measured, in_process
from cuolr.logs.log_folder import load_click_log


def test_a_log_over_many_documents_is_written_block_by_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mapped_features, "QUERIES_AT_A_TIME", 7)
    size = mapped_features.write_log(tmp_path / "LOG", 2_000)
    log = load_click_log(tmp_path / "LOG")
    candidates = log.candidates
    assert candidates.features.nbytes == size
    assert 1_000 < candidates.n_documents <= 2_000
    assert (candidates.features != 0).any(axis=1).all()
    assert candidates.n_queries > 2 * 7
    assert log.query.max() == candidates.n_queries - 1
    assert len(log) == mapped_features.SESSIONS_PER_QUERY * candidates.n_queries
    lists = np.unique(np.column_stack([log.query, log.ranking]), axis=0)
    assert len(lists) == len(np.unique(log.query))
    assert [path.name for path in tmp_path.iterdir()] == ["LOG"]


def take_memory(place: Path, steps: int) -> None:
    np.ones(steps, np.uint8)


@pytest.mark.thorough
def test_a_process_that_needs_more_than_its_limit_ends_with_an_error(tmp_path: Path) -> None:
    limit = 3.0
    in_process(mapped_features._limited, take_memory, tmp_path, 1_000, limit)
    with pytest.raises(MemoryError):
        in_process(mapped_features._limited, take_memory, tmp_path, 4_000_000_000, limit)


def test_what_costs_by_rows_must_not_grow_with_sessions() -> None:
    def costs(seconds: float) -> training_cost.Costs:
        cost = training_cost.Cost(seconds, 1_000, 0, 1_000, 10, 10)
        return {"count": cost, "train": cost}

    rows = list(training_cost._slopes("10 times", costs(2.0), costs(4.0)))
    assert [(row.name, row.value, row.met) for row in rows] == [
        ("10 times: count, time", 2, True),
        ("10 times: count, peak memory", 1, True),
        ("10 times: train, time", 2, False),
        ("10 times: train, peak memory", 1, True),
    ]


def test_rows_are_said_as_they_are_measured(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [Row("a step", 1.25, "ms", "", True)]
    assert as_measured(iter(rows)) == rows
    assert "a step: 1.25 ms" in capsys.readouterr().err
