"""A log as learners take it: lists with gaps and later pages, levels of context, scaled documents, session groups."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuolr.clicks.pbm import EYE_TRACKING, PositionBasedModel
from cuolr.clicks.simulate import simulate
from cuolr.data.normalise import Normaliser
from cuolr.data.synthetic import generate
from cuolr.errors import InputError
from cuolr.examination.from_clicks import ExaminationModel
from cuolr.examination.propensities import Estimate, Propensities
from cuolr.learners.counterfactual.ipw import IPW
from cuolr.learners.counterfactual.two_tower import TwoTower
from cuolr.logs.changed_candidates import in_groups
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.contexts import MAX_LEVELS, ContextCurves, context_levels
from cuolr.logs.page_positions import DISTINCT_POSITIONS, at_page_positions
from cuolr.logs.scaled_documents import ScaledDocuments
from cuolr.off_policy.assess import assess
from cuolr.policies.random_policy import UniformLogger
from cuolr.supervised.ranksvm import fit_ranksvm
from tests.data.small_data import candidates_of, log_of, random_log
from tests.small_log import small_log
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


@pytest.mark.thorough
def test_examination_of_a_log_with_gaps_is_that_of_the_page(pbm_log: ClickLog) -> None:
    truth = np.array(EYE_TRACKING) / EYE_TRACKING[0]
    gaps = with_gaps(pbm_log, share=0.4)
    by_page, by_index = (
        ExaminationModel.fit(log).probabilities()[:, 0] for log in (gaps, replace(gaps, page_position=None))
    )
    np.testing.assert_allclose(by_page[:8], truth[:8], atol=0.06)
    assert np.abs(by_index[:8] - truth[:8]).max() > 0.15, "by the index in the list it is wrong"


@pytest.mark.thorough
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


LOG = small_log(rows=4)


def test_a_log_without_context_has_one_level() -> None:
    levels, level = context_levels(LOG)
    assert levels == ("",)
    assert level.tolist() == [0, 0, 0, 0]


def test_the_values_of_one_column_are_levels() -> None:
    levels, level = context_levels(replace(LOG, context={"device": np.array(["b", "a", "b", "c"])}))
    assert levels == ("a", "b", "c")
    assert level.tolist() == [1, 0, 1, 2]


def test_combinations_that_occur_are_levels() -> None:
    context = {"layout": np.array(["grid", "list", "grid", "grid"]), "columns": np.array([1, 1, 2, 1])}
    levels, level = context_levels(replace(LOG, context=context))
    assert levels == ("columns=1,layout=grid", "columns=1,layout=list", "columns=2,layout=grid")
    assert level.tolist() == [0, 1, 2, 0]


def test_too_many_levels_are_refused() -> None:
    log = small_log(rows=MAX_LEVELS + 1)
    with pytest.raises(InputError, match=r"expected at most 20 different values.* found 21 \(user has 21\)"):
        context_levels(replace(log, context={"user": np.arange(MAX_LEVELS + 1)}))
    levels, _ = context_levels(replace(log, context={"user": np.arange(MAX_LEVELS + 1) % MAX_LEVELS}))
    assert len(levels) == MAX_LEVELS


def test_a_level_that_is_unknown_has_the_curve_of_all() -> None:
    tables = np.stack([np.full((2, 3), value) for value in (1.0, 0.5)])
    curves = ContextCurves(("a", "b"), tables, np.array([2.0, 0.5]))
    of_all = np.full((2, 3), 0.8)
    relative = curves.relative(("b", "c", "a"), of_all)
    np.testing.assert_array_equal(relative[:, 0, 0], [0.5 * 0.5, 0.8, 2 * 1.0])


@pytest.mark.parametrize("kind", ["min-max", "query-min-max"])
def test_each_position_points_to_the_scaled_features_of_its_document(kind: str) -> None:
    log = small_log(rows=12)
    normaliser = Normaliser.fit(kind, log.candidates)
    shown = ScaledDocuments.of(log, normaliser)
    scaled = normaliser.apply(log.candidates).features
    for row, position in zip(*np.nonzero(log.where), strict=True):
        document = log.candidates.offsets[log.query[row]] + log.ranking[row, position]
        np.testing.assert_array_equal(shown.features[shown.documents[row, position]], scaled[document])


def test_documents_that_were_never_shown_are_not_scaled() -> None:
    log = small_log(rows=2)
    shown = ScaledDocuments.of(log, Normaliser.fit("min-max", log.candidates))
    assert shown.rows.tolist() == sorted(set(log.documents[log.where].tolist()))
    assert len(shown.features) == len(shown.rows) + 1 < log.candidates.n_documents


def test_padding_points_to_a_row_of_zeros() -> None:
    log = small_log(rows=40)
    assert not log.where.all()
    shown = ScaledDocuments.of(log, Normaliser.fit("min-max", log.candidates))
    assert (shown.features[shown.documents[~log.where]] == 0).all()


def test_a_log_that_shows_nothing_is_refused() -> None:
    log = small_log(rows=3)
    nothing = replace(log, ranking=np.full_like(log.ranking, -1), clicks=np.zeros_like(log.clicks))
    with pytest.raises(InputError, match="the log shows no documents"):
        ScaledDocuments.of(nothing, Normaliser.fit("min-max", log.candidates))


@given(sizes=st.lists(st.integers(1, 4), min_size=1, max_size=3), groups=st.integers(1, 4), seed=st.integers(0, 99))
def test_each_group_has_its_own_copy_of_the_queries(sizes: list[int], groups: int, seed: int) -> None:
    log = random_log(candidates_of(*sizes), sessions=12, k=3, seed=seed)
    group = np.random.default_rng(seed).integers(0, groups, len(log))
    grouped = in_groups(log, group, groups)
    n = log.candidates.n_queries
    assert grouped.candidates.n_queries == groups * n
    np.testing.assert_array_equal(grouped.query, group * n + log.query)
    np.testing.assert_array_equal(grouped.ranking, log.ranking)
    np.testing.assert_array_equal(grouped.clicks, log.clicks)
    shown = log.where
    np.testing.assert_array_equal(
        grouped.candidates.features[grouped.documents[shown]], log.candidates.features[log.documents[shown]]
    )
    assert len(np.intersect1d(grouped.documents[group == 0], grouped.documents[group == 1])) <= 1  # padding
