import json
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from cuolr.clicks.pbm import PositionBasedModel
from cuolr.clicks.simulate import simulate
from cuolr.logs import diagnosis
from cuolr.logs.aggregate import aggregate
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.diagnosis import describe_folder, diagnose
from cuolr.logs.log_folder import read_click_log, save_click_log
from cuolr.policies.plackett_luce import StochasticLogger
from cuolr.policies.random_policy import RandomPolicy
from tests.data.small_data import candidates_of, dataset_of, log_of, random_log


def worked_log() -> ClickLog:
    """Two lists of one query and one of another; a third query is never shown."""
    return log_of(
        candidates_of(3, 1, 4),
        query=[0, 0, 0, 1, 1],
        ranking=[[0, 1], [0, 1], [2, 0], [0, -1], [0, -1]],
        clicks=[[1, 1], [0, 1], [0, 0], [1, 0], [0, 0]],
    )


def test_the_numbers_of_a_log_worked_by_hand() -> None:
    info = diagnose([worked_log()])
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
    assert info.groups_of_positions == 1


def test_an_aggregated_log_has_the_same_numbers_but_for_sessions_without_clicks() -> None:
    log = worked_log()
    assert diagnose([aggregate(log)]) == replace(diagnose([log]), share_without_clicks=None)


def test_the_numbers_can_be_had_part_by_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = random_log(candidates_of(5, 2, 9), sessions=50, k=4)
    save_click_log(log, tmp_path / "log")
    monkeypatch.setattr(diagnosis, "read_click_log", partial(read_click_log, rows_at_a_time=7))
    assert describe_folder(tmp_path / "log") == diagnose([log])


def test_positions_where_nothing_was_shown_have_no_click_rate() -> None:
    log = log_of(candidates_of(1), [0], [[0, -1]], [[1, 0]])
    assert diagnose([log]).click_rate == (1.0, None)


def test_json_can_hold_the_numbers() -> None:
    assert json.loads(json.dumps(asdict(diagnose([worked_log()]))))["sessions"] == 5


def test_a_logger_that_never_moves_a_document_leaves_it_to_the_features() -> None:
    info = diagnose([simulate(dataset_of(12, 30, 7), RandomPolicy(), PositionBasedModel(), 500)])
    assert info.share_at_several_positions == 0
    assert info.groups_of_positions == 10
    assert info.identifiable.startswith("no, each document was always shown at the same position")
    assert not info.position_bias_identifiable


def test_a_logger_that_moves_documents_everywhere_tells_examination_and_relevance_apart() -> None:
    logger = StochasticLogger(RandomPolicy(), temperature=1)
    info = diagnose([simulate(dataset_of(12, 30, 7), logger, PositionBasedModel(), 500)])
    assert info.share_at_several_positions > 0.5
    assert info.groups_of_positions == 1
    assert info.identifiable.startswith("yes, ")
    assert info.position_bias_identifiable
    assert "of the documents were shown at more than one position" in info.identifiable


def test_documents_that_move_within_the_top_only_join_only_the_top() -> None:
    log = log_of(candidates_of(4), [0, 0], [[0, 1, 2, 3], [1, 0, 2, 3]], np.zeros((2, 4), int).tolist())
    info = diagnose([log])
    assert info.share_at_several_positions == 2 / 4
    assert info.groups_of_positions == 3
    assert info.identifiable.startswith("in part, 50.0% of the documents were shown at more than one position, but ")
    assert "3 groups" in info.identifiable
    assert not info.position_bias_identifiable


def test_positions_are_joined_by_way_of_others() -> None:
    log = log_of(candidates_of(3, 3), [0, 0, 1, 1], [[0, 1, 2], [1, 0, 2], [0, 1, 2], [0, 2, 1]], [[0] * 3] * 4)
    assert diagnose([log]).groups_of_positions == 1


def test_one_position_leaves_nothing_to_tell_apart() -> None:
    log = log_of(candidates_of(2), [0, 0], [[0], [1]], [[1], [0]])
    assert diagnose([log]).identifiable.startswith("not applicable")
    assert not diagnose([log]).position_bias_identifiable


def test_the_lists_are_counted_without_regard_to_propensities() -> None:
    log = worked_log()
    propensity = np.linspace(0.1, 1, log.clicks.size, dtype=np.float32).reshape(log.clicks.shape)
    log = replace(log, logging_propensity=propensity)
    assert diagnose([log]).distinct_lists == diagnose([aggregate(log)]).distinct_lists == 3


def test_positions_are_those_on_the_page() -> None:
    """One document below an advertisement, or on page 5: a slot each."""
    pages = np.array([[0, 2], [0, 2], [1, 40], [0, -1], [3, -1]], np.int32)
    log = replace(worked_log(), page_position=pages)
    info = diagnose([log.select(slice(0, 2)), log.select(slice(2, 5))])
    assert info.click_rate == (2 / 3, 0, 1, 0, *[None] * 26, 0)
    # A document was at positions 1 and 31 (of 41: only the order is kept so far down), another at 1 and 4.
    assert info.share_at_several_positions == 2 / 4
