import json
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from cuolr.logs import log_info
from cuolr.logs.aggregate import aggregate
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.log_folder import read_click_log, save_click_log
from cuolr.logs.log_info import describe_folder, describe_log
from tests.data.small_data import candidates_of, log_of, random_log


def worked_log() -> ClickLog:
    """Two lists of one query and one of another; a third query is never shown."""
    return log_of(
        candidates_of(3, 1, 4),
        query=[0, 0, 0, 1, 1],
        ranking=[[0, 1], [0, 1], [2, 0], [0, -1], [0, -1]],
        clicks=[[1, 1], [0, 1], [0, 0], [1, 0], [0, 0]],
    )


def test_the_numbers_of_a_log_worked_by_hand() -> None:
    info = describe_log([worked_log()])
    assert info.sessions == 5
    assert info.queries == 2
    assert info.share_of_queries_seen == 2 / 3
    assert info.distinct_lists == 3
    assert info.clicks_per_session == 4 / 5
    # Three of five sessions showed a second document.
    assert info.click_rate == (2 / 5, 2 / 3)
    assert info.share_without_clicks == 2 / 5
    assert info.documents_seen == 4
    # Document 0 of query 0, out of three seen there and one of query 1.
    assert info.share_at_several_positions == 1 / 4


def test_an_aggregated_log_has_the_same_numbers_but_for_sessions_without_clicks() -> None:
    log = worked_log()
    assert describe_log([aggregate(log)]) == replace(describe_log([log]), share_without_clicks=None)


def test_the_numbers_can_be_had_part_by_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = random_log(candidates_of(5, 2, 9), sessions=50, k=4)
    save_click_log(log, tmp_path / "log")
    monkeypatch.setattr(log_info, "read_click_log", partial(read_click_log, rows_at_a_time=7))
    assert describe_folder(tmp_path / "log") == describe_log([log])


def test_positions_where_nothing_was_shown_have_no_click_rate() -> None:
    log = log_of(candidates_of(1), [0], [[0, -1]], [[1, 0]])
    assert describe_log([log]).click_rate == (1.0, None)


def test_json_can_hold_the_numbers() -> None:
    assert json.loads(json.dumps(asdict(describe_log([worked_log()]))))["sessions"] == 5


def test_the_lists_are_counted_without_regard_to_propensities() -> None:
    log = worked_log()
    propensity = np.linspace(0.1, 1, log.clicks.size, dtype=np.float32).reshape(log.clicks.shape)
    log = replace(log, logging_propensity=propensity)
    assert describe_log([log]).distinct_lists == describe_log([aggregate(log)]).distinct_lists == 3


def test_positions_are_those_on_the_page() -> None:
    """One document below an advertisement, or on page 5: a slot each."""
    pages = np.array([[0, 2], [0, 2], [1, 40], [0, -1], [3, -1]], np.int32)
    log = replace(worked_log(), page_position=pages)
    info = describe_log([log.select(slice(0, 2)), log.select(slice(2, 5))])
    assert info.click_rate == (2 / 3, 0, 1, 0, *[None] * 26, 0)
    # A document was at positions 1 and 31 (of 41: only the order is kept so far down), another at 1 and 4.
    assert info.share_at_several_positions == 2 / 4
