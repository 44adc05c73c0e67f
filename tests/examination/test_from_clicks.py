"""Examination and satisfaction recovered from the clicks of users who have them, and not found in those of others."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cuolr.clicks.click_model import click_model, relevance_of
from cuolr.clicks.simulate import simulate
from cuolr.data.synthetic import generate
from cuolr.examination.from_clicks import ExaminationModel
from cuolr.examination.satisfaction import with_satisfaction
from cuolr.logs.aggregate import aggregate
from cuolr.logs.click_patterns import ClickPatterns
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.counts import ClickCounts
from cuolr.logs.session_files import one_each
from cuolr.policies.plackett_luce import StochasticLogger
from cuolr.supervised.ranksvm import fit_ranksvm
from cuolr.types import Candidates, Doubles
from tests.small_log import small_log


def estimated(name: str, share: float = 0.01, sessions_per_query: int = 200) -> ExaminationModel:
    """From simulated clicks on lists of a ranker that was trained on a share of the labels."""
    train = generate("web10k-like", 600, seed=3)
    log = simulate(train, fit_ranksvm(train, share, 1), click_model(name), 600 * sessions_per_query, seed=1)
    return ExaminationModel.fit(log)


loggers = pytest.mark.parametrize("share", [0.01, 1.0], ids=["weak logger", "strong logger"])


@pytest.mark.thorough
@loggers
@pytest.mark.parametrize("sessions_per_query", [10, 200])
def test_under_pbm_examination_does_not_depend_on_the_last_click(share: float, sessions_per_query: int) -> None:
    table = estimated("pbm", share, sessions_per_query).table
    truth = np.array(click_model("pbm").examination)  # type: ignore[attr-defined]
    truth = (truth / truth[0])[:8]
    np.testing.assert_allclose(table[:8, 0], truth, atol=0.1 if sessions_per_query == 200 else 0.15)
    after_click = np.array([table[k, k] for k in range(1, 8)])
    np.testing.assert_allclose(after_click, truth[1:], atol=0.1 if sessions_per_query == 200 else 0.25)


@pytest.mark.thorough
@loggers
def test_under_the_cascade_model_nothing_is_examined_after_a_click(share: float) -> None:
    table = estimated("cascade", share).table
    assert (table[:, 0] > 0.75).all(), "before the first click"
    assert all(table[k, j] < 0.02 for k in range(1, 10) for j in range(1, k + 1)), "after a click"


@pytest.mark.thorough
@loggers
def test_under_dcm_examination_right_below_a_click_is_the_continuation(share: float) -> None:
    table = estimated("dcm", share).table
    truth = np.array(click_model("dcm").continuation)  # type: ignore[attr-defined]
    just_below = np.array([table[k, k] / table[k, 0] for k in range(1, 8)])  # the last click is right above
    np.testing.assert_allclose(just_below, truth[:7], atol=0.1)
    np.testing.assert_allclose(table[:8, 0], 1.0, atol=0.25)


def test_the_effect_of_a_click_above_is_the_ratio_of_click_rates_on_the_same_document() -> None:
    """One list: half of the users who clicked at position 1 examine nothing more."""
    log = small_log(rows=1)
    log = log.select(np.zeros(20_000, np.int64))
    rng = np.random.default_rng(0)
    first = rng.random(len(log)) < 0.4
    examines = ~first | (rng.random(len(log)) < 0.5)
    log.clicks[:] = 0
    log.clicks[:, 0], log.clicks[:, 1] = first, examines & (rng.random(len(log)) < 0.3)
    table = ExaminationModel.from_counts(ClickCounts.of(log), np.zeros((1, log.k))).table
    assert table[1, 1] / table[1, 0] == pytest.approx(0.5, abs=0.03)


def test_before_a_click_no_position_is_examined_more_than_the_first() -> None:
    """One list whose second document is clicked three times as often as its first."""
    log = small_log(rows=1).select(np.zeros(400, np.int64))
    log.clicks[:] = 0
    log.clicks[:100, 0] = log.clicks[100:400, 1] = 1
    table = ExaminationModel.from_counts(ClickCounts.of(log), np.zeros((1, log.k))).table
    assert table[0, 0] == table[1, 0] == 1
    table = ExaminationModel.from_counts(ClickCounts.of(log), np.zeros((1, log.k)), cap_at_first_position=False).table
    assert table[1, 0] > 2 * table[0, 0] == 2, "unless the cap is off"


def test_cells_that_do_not_occur_are_nan_and_add_no_examination() -> None:
    log = small_log(rows=50)
    log.clicks[:] = 0
    counts, model = ClickCounts.of(log), ExaminationModel.fit(log)
    assert np.isnan(model.table[:, 1:]).all()
    assert model.table[0, 0] == 1.0
    expected = counts.lists.count[:, None] * model.table[:, 0] * counts.lists.where
    np.testing.assert_allclose(model.expected_examinations(counts), expected, rtol=1e-6)


def test_expected_examinations_are_the_sum_of_probabilities_over_sessions() -> None:
    log = small_log(rows=200)
    counts, model = ClickCounts.of(log), ExaminationModel.fit(log)
    expected = np.zeros(counts.lists.where.shape)
    impressions, _ = counts.dense(np.arange(len(counts.lists)))
    for row, position, last in zip(*np.nonzero(impressions), strict=True):
        expected[row, position] += impressions[row, position, last] * model.probabilities()[position, last]
    np.testing.assert_allclose(model.expected_examinations(counts), expected, rtol=1e-6)


def from_drawn_lists(name: str) -> ExaminationModel:
    """From lists that are drawn anew in each session, so that hardly two are the same."""
    train = generate("tiny", 200, seed=3)
    logger = StochasticLogger(fit_ranksvm(train, 0.05, 1), 0.5)
    return ExaminationModel.fit(simulate(train, logger, click_model(name), 40_000, seed=1))


def test_documents_at_several_positions_identify_examination_under_pbm() -> None:
    table = from_drawn_lists("pbm").table
    truth = np.array(click_model("pbm").examination)  # type: ignore[attr-defined]
    np.testing.assert_allclose(table[:, 0], truth / truth[0], atol=0.06)
    after_click = np.array([table[k, k] for k in range(1, 10)])
    np.testing.assert_allclose(after_click, truth[1:] / truth[0], atol=0.12)


def test_documents_at_several_positions_identify_examination_under_the_cascade_model() -> None:
    table = from_drawn_lists("cascade").table
    assert (table[:, 0] > 0.85).all()
    assert all(table[k, j] < 0.02 for k in range(1, 10) for j in range(1, k + 1))


def test_documents_at_several_positions_identify_examination_under_dcm() -> None:
    table = from_drawn_lists("dcm").table
    truth = np.array(click_model("dcm").continuation)  # type: ignore[attr-defined]
    just_below = np.array([table[k, k] / table[k, 0] for k in range(1, 8)])
    np.testing.assert_allclose(just_below, truth[:7], atol=0.1)
    assert (table[:8, 0] > 0.85).all()


def with_a_long_list(log: ClickLog, length: int) -> ClickLog:
    """The log with one session more, of one query with very many documents."""
    candidates = log.candidates
    first = int(np.argmax(candidates.sizes))
    taken = candidates.offsets[first] + np.arange(length) % candidates.sizes[first]
    longer = Candidates(
        np.concatenate([candidates.features, candidates.features[taken]]),
        np.append(candidates.offsets, candidates.n_documents + length),
        np.append(candidates.query_ids, "long"),
    )
    ranking = np.full((len(log) + 1, length), -1, np.int32)
    ranking[:-1, : log.k], ranking[-1] = log.ranking, np.arange(length)
    clicks = np.zeros((len(log) + 1, length), np.uint8)
    clicks[:-1, : log.k] = log.clicks
    query = np.append(log.query, candidates.n_queries)
    return ClickLog(longer, query, ranking, clicks, one_each(len(query)))


def test_one_very_long_list_changes_nothing_for_the_others() -> None:
    train = generate("tiny", 200, seed=3)
    log = simulate(train, fit_ranksvm(train, 0.05, 1), click_model("pbm"), 20_000, seed=1)
    log = replace(log, examination=None, timestamp=None)
    model = ExaminationModel.fit(with_a_long_list(log, 300))
    assert model.table.shape == (300, 301)
    np.testing.assert_allclose(model.table[:10, 0], ExaminationModel.fit(log).table[:, 0], atol=0.03)
    assert (model.table[30:, 0] == model.table[29, 0]).all()


def test_a_few_shuffled_sessions_do_not_change_the_estimate_from_the_others() -> None:
    """Ten sessions of five queries with shuffled lists, among 20,000."""
    train = generate("tiny", 200, seed=3)
    logger = fit_ranksvm(train, 0.05, 1)
    log = simulate(train, logger, click_model("pbm"), 20_000, seed=1)
    shuffled = simulate(train, StochasticLogger(logger, 5.0), click_model("pbm"), 2_000, seed=2)
    odd = shuffled.select(np.flatnonzero(shuffled.query < 5))
    assert 20 < len(odd) < 200
    both = ClickLog(
        log.candidates,
        np.concatenate([log.query, odd.query]),
        np.concatenate([log.ranking, odd.ranking]),
        np.concatenate([log.clicks, odd.clicks]),
        one_each(len(log) + len(odd)),
    )
    np.testing.assert_allclose(
        np.log(ExaminationModel.fit(both).table[:, 0]), np.log(ExaminationModel.fit(log).table[:, 0]), atol=0.06
    )


def test_a_model_is_the_same_after_json(tmp_path: Path) -> None:
    model = ExaminationModel.fit(small_log(rows=200))
    assert np.isnan(model.table).any()
    (tmp_path / "examination.json").write_text(json.dumps(model.as_dict(), allow_nan=False))
    loaded = ExaminationModel.from_dict(json.loads((tmp_path / "examination.json").read_text()))
    np.testing.assert_array_equal(loaded.probabilities(), model.probabilities())
    assert loaded.slope == model.slope


def test_full_examination_counts_every_impression() -> None:
    counts = ClickCounts.of(small_log(rows=100))
    np.testing.assert_array_equal(
        ExaminationModel.full(counts.lists.k).expected_examinations(counts), counts.by_position(counts.impressions)
    )


def test_lists_that_are_left_out_do_not_change_the_estimate() -> None:
    log = small_log(rows=600, queries=20)
    left_out = (log.query[:, None] < 5) & log.where
    other = replace(log, clicks=np.where(left_out, 1, log.clicks).astype(np.uint8))
    counts = [ClickCounts.of(one) for one in (log, other)]
    lists = np.flatnonzero(counts[0].lists.query >= 5)
    zeros = np.zeros(counts[0].lists.where.shape)
    first, second = (ExaminationModel.from_counts(each, zeros, lists).table for each in counts)
    both = np.isfinite(first) & np.isfinite(second)
    np.testing.assert_array_equal(first[both], second[both])


def test_from_an_aggregated_log_examination_depends_on_the_position_alone() -> None:
    table = ExaminationModel.fit(aggregate(small_log(rows=300))).probabilities()
    assert np.isfinite(table[:, 0]).all()
    assert np.isnan(table[:, 1:]).all()


K = 6
DATA = generate("tiny", 200, seed=5)
WEAK = fit_ranksvm(DATA, 0.02, 1)
LOGGER = StochasticLogger(WEAK, float(np.std(WEAK.score(DATA.candidates))))


def estimated_satisfaction(name: str) -> tuple[float, Doubles, Doubles]:
    model = click_model(name)
    log = simulate(DATA, LOGGER, model, 30_000, k=K, seed=1)
    examination = ExaminationModel.fit(log).table
    attractiveness = model.attractiveness(relevance_of(DATA.relevance, DATA.max_grade)).astype(np.float64)
    patterns = ClickPatterns.of(log).with_every_document()
    return *with_satisfaction(patterns, attractiveness, examination), examination


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "truth"), [("dbn", 0.9), ("sdbn", 0.9), ("ccm", 0.5)])
def test_satisfaction_is_recovered(name: str, truth: float) -> None:
    """DBN: 1 − 0.9 · relevance; CCM: continuing falls from 0.5 to 0.25 with relevance, half of it."""
    satisfaction, table, examination = estimated_satisfaction(name)
    assert satisfaction == pytest.approx(truth, abs=0.08)
    assert (table[2, 1:3] > examination[2, 1:3]).all()  # the mean user is less than fully satisfied
    np.testing.assert_array_equal(table[:, 0], examination[:, 0])


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["pbm", "cascade", "dcm", "ubm"])
def test_users_who_do_not_depend_on_the_clicked_document_have_none(name: str) -> None:
    satisfaction, table, examination = estimated_satisfaction(name)
    assert satisfaction == 0
    np.testing.assert_array_equal(table, examination)


def test_a_log_without_clicks_says_nothing() -> None:
    log = simulate(DATA, LOGGER, click_model("pbm"), 100, k=K, seed=1)
    patterns = ClickPatterns.of(log).with_every_document()
    silent = patterns.select(patterns.clicks.sum(axis=1) == 0)
    table = np.ones((K, K + 1))
    assert with_satisfaction(silent, np.full(DATA.candidates.n_documents, 0.5), table) == (0.0, table)
