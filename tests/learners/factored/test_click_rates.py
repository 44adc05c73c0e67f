import numpy as np
import pytest
import torch

from cuolr.data.normalise import Normaliser
from cuolr.learners.factored.click_rates import Evidence, pooled
from cuolr.logs.counts import count_lists
from tests.learners.lists import no_scaling, random_batch
from tests.small_log import small_log


def test_documents_of_a_query_are_pooled_over_its_lists() -> None:
    log = small_log(rows=200)
    counted = count_lists(log)
    rng = np.random.default_rng(0)
    looked = rng.uniform(0, 3, counted.lists.where.shape) * counted.lists.where
    prior = rng.uniform(size=log.candidates.n_documents)
    found, looks = pooled(counted, looked, prior, prior_looks=4.0)

    clicks_on, looks_at = (np.zeros(log.candidates.n_documents) for _ in range(2))
    for row, position in zip(*np.nonzero(counted.lists.where), strict=True):
        document = log.candidates.offsets[counted.lists.query[row]] + counted.lists.ranking[row, position]
        clicks_on[document] += counted.lists.clicks[row, position] * counted.lists.count[row]
        looks_at[document] += looked[row, position]
    assert found.query.tolist() == sorted(set(log.query.tolist()))
    assert found.count.tolist() == [int((log.query == query).sum()) for query in found.query]
    for row, query in enumerate(found.query):
        slots = found.ranking[row][found.where[row]]
        assert sorted(slots) == sorted(set(log.ranking[log.query == query][log.where[log.query == query]].tolist()))
        documents = log.candidates.offsets[query] + slots
        expected = (clicks_on[documents] + 4 * prior[documents]) / (looks_at[documents] + 4)
        np.testing.assert_allclose(found.clicks[row][found.where[row]], np.minimum(expected, 1))
        np.testing.assert_allclose(looks.clicked[row][found.where[row]], clicks_on[documents])
        np.testing.assert_allclose(looks.looked[row][found.where[row]], looks_at[documents])
        assert (np.diff(looks.looked[row][found.where[row]]) <= 0).all()


def test_of_too_many_documents_those_looked_at_most_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = count_lists(small_log(rows=200))
    looked = np.random.default_rng(0).uniform(0, 3, counted.lists.where.shape)
    prior = np.zeros(counted.lists.candidates.n_documents)
    every, all_looks = pooled(counted, looked, prior, 1.0)
    monkeypatch.setattr("cuolr.learners.factored.click_rates.MAX_DOCUMENTS_OF_A_QUERY", 2)
    some, looks = pooled(counted, looked, prior, 1.0)
    np.testing.assert_array_equal(some.ranking, every.ranking[:, :2])
    np.testing.assert_array_equal(looks.looked, all_looks.looked[:, :2])


def test_a_document_that_nobody_looked_at_has_what_the_prior_says() -> None:
    counted = count_lists(small_log(rows=50))
    prior = np.full(counted.lists.candidates.n_documents, 0.3)
    counted.clicked[:] = 0
    found, _ = pooled(counted, np.zeros(counted.lists.where.shape), prior, 5.0)
    np.testing.assert_allclose(found.clicks[found.where], 0.3)
    without_prior, _ = pooled(counted, np.zeros(counted.lists.where.shape), prior, 0.0)
    assert (without_prior.clicks == 0).all()


def test_evidence_has_the_scaled_features_of_each_document() -> None:
    counted = count_lists(small_log(rows=100))
    log, looks = pooled(counted, counted.by_position(counted.passed), np.zeros(99), 1.0)
    normaliser = Normaliser.fit("min-max", log.candidates)
    rows = np.array([4, 1])
    evidence = Evidence.of_log(log, rows, looks, normaliser)
    scaled = normaliser.apply(log.candidates).features
    assert len(evidence) == 2
    for i, row in enumerate(rows):
        documents = log.candidates.offsets[log.query[row]] + log.ranking[row][log.where[row]]
        found = evidence.features[evidence.documents[i][evidence.where[i]]]
        np.testing.assert_array_equal(found, scaled[documents])
        np.testing.assert_allclose(evidence.attractiveness[i], log.clicks[row] * log.where[row], rtol=1e-6)
    assert (evidence.features[evidence.documents[~evidence.where]] == 0).all()
    np.testing.assert_allclose(evidence.weight, log.count[rows] / log.count[rows].mean(), rtol=1e-6)


def test_evidence_of_a_batch_is_what_stands_in_it() -> None:
    batch = random_batch(lengths=(3, 0, 2))
    evidence = Evidence.of_batch(batch)
    torch.testing.assert_close(evidence.features[evidence.documents], batch.features)
    assert evidence.looked.sum() == pytest.approx(float((batch.where * batch.weight[:, None]).sum()))


def test_without_looks_every_session_looked_at_all() -> None:
    counted = count_lists(small_log(rows=100))
    log, _ = pooled(counted, np.zeros(counted.lists.where.shape), np.zeros(99), 1.0)
    evidence = Evidence.of_log(log, np.arange(len(log)), None, no_scaling())
    np.testing.assert_array_equal(evidence.looked, log.where * log.count[:, None])


def test_with_very_many_queries_the_documents_looked_at_most_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = count_lists(small_log(rows=200, k=3))
    looked = counted.by_position(counted.passed)
    prior = np.zeros(counted.lists.candidates.n_documents)
    whole, all_looks = pooled(counted, looked, prior, 1.0)
    monkeypatch.setattr("cuolr.learners.factored.click_rates.MAX_PLACES", 4 * len(whole))
    part, looks = pooled(counted, looked, prior, 1.0)
    assert whole.k > part.k == 4
    np.testing.assert_array_equal(part.ranking, whole.ranking[:, :4])
    np.testing.assert_array_equal(looks.looked, all_looks.looked[:, :4])
    monkeypatch.setattr("cuolr.learners.factored.click_rates.MAX_PLACES", 1)
    assert pooled(counted, looked, prior, 1.0)[0].k == 3, "never fewer than a list shows"
