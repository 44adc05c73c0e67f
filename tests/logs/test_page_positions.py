"""Lists with gaps and later pages: examination goes by the position that the user saw."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuolr.clicks.pbm import EYE_TRACKING, PositionBasedModel
from cuolr.clicks.simulate import simulate
from cuolr.data.synthetic import generate
from cuolr.examination.from_clicks import ExaminationModel
from cuolr.examination.propensities import Estimate, Propensities
from cuolr.learners.counterfactual.ipw import IPW
from cuolr.learners.counterfactual.two_tower import TwoTower
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.page_positions import DISTINCT_POSITIONS, at_page_positions
from cuolr.off_policy.assess import assess
from cuolr.policies.random_policy import UniformLogger
from cuolr.supervised.ranksvm import fit_ranksvm
from tests.data.small_data import candidates_of, log_of
from tests.training.tasks import task_of


def paged(positions: list[list[int]], clicks: list[list[int]]) -> ClickLog:
    """Lists of one query at these positions on the page; −1 = nothing."""
    ranking = [[i if position >= 0 else -1 for i, position in enumerate(row)] for row in positions]
    log = log_of(candidates_of(len(positions[0])), [0] * len(positions), ranking, clicks)
    return replace(log, page_position=np.array(positions, np.int32))


def with_gaps(log: ClickLog, share: float, seed: int = 0) -> ClickLog:
    """The log as if this share of the documents had not been logged: the others stay where they were on the page."""
    kept = log.where & (np.random.default_rng(seed).random(log.ranking.shape) >= share)
    kept[:, 0] |= ~kept.any(axis=1)
    order = np.argsort(~kept, axis=1, kind="stable")
    where = np.take_along_axis(kept, order, axis=1)
    return replace(
        log,
        ranking=np.where(where, np.take_along_axis(log.ranking, order, axis=1), -1),
        clicks=np.where(where, np.take_along_axis(log.clicks, order, axis=1), 0).astype(np.uint8),
        page_position=np.where(where, order, -1).astype(np.int32),
    )


def test_each_document_stands_where_the_user_saw_it() -> None:
    wide = at_page_positions(paged([[0, 2, 3], [1, 4, -1]], [[1, 0, 1], [0, 1, 0]]))
    assert wide.ranking.tolist() == [[0, -1, 1, 2, -1], [-1, 0, -1, -1, 1]]
    assert wide.clicks.tolist() == [[1, 0, 0, 1, 0], [0, 0, 0, 0, 1]]
    assert wide.page_position is None


def test_a_log_without_page_positions_is_returned_as_it_is() -> None:
    log = replace(paged([[0, 1]], [[0, 1]]), page_position=None)
    assert at_page_positions(log) is log


def test_far_down_only_the_order_is_kept() -> None:
    wide = at_page_positions(paged([[DISTINCT_POSITIONS - 1, 70, 5_000_000]], [[0, 1, 1]]))
    assert wide.ranking[0, DISTINCT_POSITIONS - 1 :].tolist() == [0, 1, 2]
    assert wide.k == DISTINCT_POSITIONS + 2


@given(st.lists(st.lists(st.integers(0, 60), min_size=4, max_size=4, unique=True), min_size=1, max_size=6))
def test_nothing_is_lost_and_the_order_is_kept(positions: list[list[int]]) -> None:
    positions = [sorted(row) for row in positions]
    clicks = [[int(p % 3 == 0) for p in row] for row in positions]
    log = paged(positions, clicks)
    wide = at_page_positions(log)
    for row in range(len(log)):
        shown = wide.where[row]
        assert wide.ranking[row, shown].tolist() == log.ranking[row].tolist()
        assert wide.clicks[row, shown].tolist() == clicks[row]
        near = [p for p in positions[row] if p < DISTINCT_POSITIONS]
        assert np.flatnonzero(shown)[: len(near)].tolist() == near


@pytest.fixture(scope="module")
def pbm_log() -> ClickLog:
    """Random lists, so that examination is identifiable."""
    return simulate(generate("tiny", 60, seed=1), UniformLogger(), PositionBasedModel(), 60_000, k=10, seed=1)


def test_examination_of_a_log_with_gaps_is_that_of_the_page(pbm_log: ClickLog) -> None:
    truth = np.array(EYE_TRACKING) / EYE_TRACKING[0]
    gaps = with_gaps(pbm_log, share=0.4)
    by_page, by_index = (
        ExaminationModel.fit(log).probabilities()[:, 0] for log in (gaps, replace(gaps, page_position=None))
    )
    np.testing.assert_allclose(by_page[:8], truth[:8], atol=0.06)
    assert np.abs(by_index[:8] - truth[:8]).max() > 0.15, "by the index in the list it is wrong"


def test_assess_compares_lists_with_gaps(pbm_log: ClickLog) -> None:
    dataset = generate("tiny", 60, seed=1)
    good = fit_ranksvm(dataset, 1.0)
    evaluation = assess(good, with_gaps(pbm_log, share=0.3))
    assert evaluation.identifiable
    assert evaluation.interval[0] > 0, "the lists were in random order, and this ranker knows the labels"


def test_ipw_weights_by_the_position_on_the_page() -> None:
    log = paged([[0, 2], [1, 3]], [[1, 1], [1, 1]])
    propensities = Propensities(Estimate((1.0, 0.5, 0.25, 0.125)))
    lists = IPW(IPW.Config()).weighted_lists(task_of(log, propensities))
    weights = [row[row > 0].tolist() for row in lists.targets]
    assert sorted(weights) == [[1.0, 4.0], [2.0, 8.0]]


def test_position_bias_is_learned_for_positions_on_the_page() -> None:
    learner = TwoTower(TwoTower.Config(hidden=(4,)))
    learner.fit(task_of(paged([[0, 5], [1, 3]], [[1, 0], [0, 1]]), steps=2))
    assert len(learner.position["logits"]) == 6
