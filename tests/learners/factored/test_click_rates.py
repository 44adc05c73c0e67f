from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

from cuolr.data.normalise import Normaliser
from cuolr.examination.from_clicks import ExaminationModel
from cuolr.learners.factored.click_rate_prior import PriorFit, fit_click_rate_prior, fit_reward_prior
from cuolr.learners.factored.click_rates import ClickRates, sums_of_documents
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.counts import ClickCounts
from cuolr.logs.reward_scale import on_click_scale
from cuolr.logs.scaled_documents import ScaledDocuments
from cuolr.types import Doubles, Ints
from tests.learners.test_rewards import SHOP
from tests.small_log import small_log

MODULE = "cuolr.learners.factored.click_rates"
LOG = small_log(rows=200)
COUNTS = ClickCounts.of(LOG)
NORMALISER = Normaliser.fit("min-max", LOG.candidates)
SHOWN = ScaledDocuments.of(COUNTS.lists, NORMALISER)
IMPRESSIONS = COUNTS.by_position(COUNTS.impressions)


def rates_of(exposure: Doubles = IMPRESSIONS, prior: Doubles | float = 0.0, strength: float = 1.0) -> ClickRates:
    of_documents = COUNTS.by_document(exposure)[SHOWN.rows]
    return ClickRates.of(COUNTS, SHOWN, of_documents, np.broadcast_to(prior, len(SHOWN.rows)), strength)


def test_clicks_and_examinations_of_a_document_are_pooled_over_the_lists_of_its_query() -> None:
    rng = np.random.default_rng(0)
    exposure = rng.uniform(0, 3, COUNTS.lists.where.shape) * COUNTS.lists.where
    prior = rng.uniform(size=len(SHOWN.rows))
    rates = rates_of(exposure, prior, strength=4.0)

    clicks, examined = (np.zeros(LOG.candidates.n_documents) for _ in range(2))
    for row, position in zip(*np.nonzero(COUNTS.lists.where), strict=True):
        document = LOG.candidates.offsets[COUNTS.lists.query[row]] + COUNTS.lists.ranking[row, position]
        clicks[document] += COUNTS.lists.clicks[row, position] * COUNTS.lists.count[row]
        examined[document] += exposure[row, position]
    assert rates.query.tolist() == sorted(set(LOG.query.tolist()))
    assert rates.sessions.tolist() == [int((LOG.query == query).sum()) for query in rates.query]
    for row, query in enumerate(rates.query):
        documents = SHOWN.rows[rates.documents[row][rates.where[row]]]
        of_query = LOG.query == query
        assert sorted(documents) == sorted(set(LOG.documents[of_query][LOG.where[of_query]].tolist()))
        prior_of = prior[np.searchsorted(SHOWN.rows, documents)]
        expected = (clicks[documents] + 4 * prior_of) / (examined[documents] + 4)
        np.testing.assert_allclose(rates.rate[row][rates.where[row]], np.minimum(expected, 1))
        np.testing.assert_allclose(rates.rewards[row][rates.where[row]], clicks[documents])
        exposure_of_row = rates.expected_examinations[row][rates.where[row]]
        np.testing.assert_allclose(exposure_of_row, examined[documents])
        assert (np.diff(exposure_of_row) <= 0).all()


def test_sums_of_documents_do_not_depend_on_the_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    examination = ExaminationModel(np.random.default_rng(0).uniform(size=(LOG.k, LOG.k + 1)))
    expected = COUNTS.by_document(examination.expected_examinations(COUNTS))
    for cells in (1 << 18, 20):
        monkeypatch.setattr("cuolr.logs.counts.CELLS_AT_A_TIME", cells)
        sums = sums_of_documents(COUNTS, examination.examinations_of_cells(COUNTS))
        np.testing.assert_array_equal(sums, expected)
    assert len(list(COUNTS.parts())) > 1


def test_of_too_many_documents_the_most_examined_ones_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    exposure = np.random.default_rng(0).uniform(0, 3, COUNTS.lists.where.shape)
    whole = rates_of(exposure)
    monkeypatch.setattr(f"{MODULE}.MAX_DOCUMENTS_OF_A_QUERY", 2)
    part = rates_of(exposure)
    np.testing.assert_array_equal(part.documents, whole.documents[:, :2])
    np.testing.assert_array_equal(part.expected_examinations, whole.expected_examinations[:, :2])


def test_with_very_many_queries_fewer_documents_are_kept_but_a_whole_list(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = rates_of()
    monkeypatch.setattr(f"{MODULE}.MAX_TABLE_CELLS", 6 * len(whole))
    part = rates_of()
    assert whole.documents.shape[1] > part.documents.shape[1] == 6
    np.testing.assert_array_equal(part.documents, whole.documents[:, :6])
    monkeypatch.setattr(f"{MODULE}.MAX_TABLE_CELLS", 1)
    assert rates_of().documents.shape[1] == LOG.k


def test_a_document_that_was_never_examined_has_the_rate_of_the_prior() -> None:
    never = ClickCounts(COUNTS.lists, COUNTS.cells, COUNTS.impressions, np.zeros_like(COUNTS.clicks))
    exposure, prior = np.zeros(len(SHOWN.rows)), np.full(len(SHOWN.rows), 0.3)
    rates = ClickRates.of(never, SHOWN, exposure, prior, 5.0)
    np.testing.assert_allclose(rates.rate[rates.where], 0.3)
    assert (ClickRates.of(never, SHOWN, exposure, prior, 0.0).rate == 0).all()


def test_targets_are_the_rates_with_the_scaled_features_of_each_document() -> None:
    rows = np.array([4, 1])
    rates = rates_of().select(rows)
    targets = rates.targets()
    scaled = NORMALISER.apply(LOG.candidates).features
    assert len(rates) == len(targets) == 2
    for i in range(2):
        where = rates.where[i]
        documents = SHOWN.rows[rates.documents[i][where]]
        np.testing.assert_array_equal(targets.features[targets.documents[i][targets.where[i]]], scaled[documents])
        np.testing.assert_allclose(targets.target[i], rates.rate[i] * where, rtol=1e-6)
    assert (targets.features[targets.documents[~targets.where]] == 0).all()
    expected = torch.from_numpy(rates.sessions / rates.sessions.mean()).float()
    torch.testing.assert_close(targets.weight, expected)


def test_a_sample_has_whole_queries_and_no_more_documents_than_allowed() -> None:
    rates = rates_of()
    documents = int(rates.where.sum())
    assert rates.sample(documents, seed=1) is rates
    sample = rates.sample(documents // 2, seed=1)
    assert 0 < sample.where.sum() <= documents // 2
    assert set(sample.query) < set(rates.query)
    for row, query in enumerate(sample.query):
        np.testing.assert_array_equal(sample.documents[row], rates.documents[rates.query == query][0])


def fitted(
    log: ClickLog, steps: int, seed: int = 1, lists: Ints | None = None, examination: ExaminationModel | None = None
) -> Doubles:
    counts = ClickCounts.of(log)
    shown = ScaledDocuments.of(counts.lists, Normaliser.fit("log-min-max", log.candidates))
    return fit_click_rate_prior(
        counts,
        shown,
        examination or ExaminationModel.full(log.k),
        np.zeros(len(shown.features)),
        np.arange(len(counts.lists)) if lists is None else lists,
        PriorFit(steps, learning_rate=1e-2, batch_size=64, seed=seed),
    )


def test_the_click_rate_is_predicted_from_features() -> None:
    log = small_log(rows=3_000, queries=60)  # clicked by the first feature
    shown = np.unique(log.candidates.offsets[log.query, None] + log.ranking)
    assert np.corrcoef(fitted(log, steps=150), log.candidates.features[shown, 0])[0, 1] > 0.8


def test_without_a_step_it_is_about_the_click_rate_of_position_1() -> None:
    log = small_log(rows=3_000, queries=60)
    rate = log.clicks[:, 0].mean()
    assert fitted(log, steps=0).mean() == pytest.approx(rate, abs=0.1)


def test_clicks_are_explained_with_the_examination_of_their_position() -> None:
    """Only position 1 is examined always, the others half of the time: the same clicks mean a higher rate."""
    log = small_log(rows=3_000, queries=60)
    seldom = ExaminationModel(np.where(np.arange(log.k) == 0, 1.0, 0.5)[:, None] * np.ones(log.k + 1))
    assert fitted(log, 150, examination=seldom).mean() > fitted(log, 150).mean() + 0.05


def test_the_same_seed_gives_the_same_prior_and_another_seed_another() -> None:
    log = small_log(rows=300)
    first = fitted(log, steps=5)
    np.testing.assert_array_equal(fitted(log, steps=5), first)
    assert (fitted(log, steps=5, seed=2) != first).any()


def test_clicks_on_lists_that_are_left_out_are_not_used() -> None:
    log = small_log(rows=300, queries=20)
    clicked = (log.query[:, None] < 5) & log.where
    other = replace(log, clicks=np.where(clicked, 1, log.clicks).astype(np.uint8))
    lists = np.flatnonzero(ClickCounts.of(log).lists.query >= 5)
    first, second = (fitted(one, steps=5, lists=lists) for one in (log, other))
    np.testing.assert_array_equal(first, second)
    assert (fitted(log, steps=5) != fitted(other, steps=5)).any()


NONE = np.empty(0, np.int64)
FIT = PriorFit(steps=300, learning_rate=1e-2, batch_size=16, seed=1)


def prior(reward: npt.NDArray[Any] | None) -> tuple[Doubles, Doubles]:
    """The fitted mean reward of a click by kind of document, and that of the log."""
    log, _ = on_click_scale(replace(SHOP, reward=None if reward is None else reward.astype(np.float32)), NONE)
    counts = ClickCounts.of(log)
    shown = ScaledDocuments.of(counts.lists, Normaliser.fit("min-max", log.candidates))
    fitted = fit_reward_prior(counts, shown, np.arange(len(counts.lists)), FIT)
    mean = [log.rewards[log.ranking == kind].sum() / log.clicks[log.ranking == kind].sum() for kind in range(3)]
    return fitted.reshape(-1, 3).mean(axis=0), np.array(mean)


def test_the_mean_reward_of_a_click_is_learned_from_features() -> None:
    fitted, mean = prior(SHOP.clicks * (1.0 + 2 * SHOP.ranking))
    np.testing.assert_allclose(fitted, mean, rtol=0.02)


def test_a_constant_reward_needs_no_network() -> None:
    for reward in (None, 3.0 * SHOP.clicks):
        np.testing.assert_array_equal(prior(reward)[0], [1, 1, 1])


def test_without_lists_to_learn_from_no_step_is_taken() -> None:
    log, _ = on_click_scale(SHOP, NONE)
    counts = ClickCounts.of(log)
    shown = ScaledDocuments.of(counts.lists, Normaliser.fit("min-max", log.candidates))
    untrained = fit_reward_prior(counts, shown, NONE, FIT)
    np.testing.assert_allclose(untrained, 1, atol=0.7)
    assert (untrained == fit_reward_prior(counts, shown, np.arange(len(counts.lists)), replace(FIT, steps=0))).all()
