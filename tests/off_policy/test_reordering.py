from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest
import torch

from cuolr.clicks.click_model import click_model
from cuolr.clicks.simulate import simulate
from cuolr.data.normalise import Normaliser
from cuolr.examination.from_clicks import ExaminationModel
from cuolr.logs.aggregate import aggregate
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.contexts import ContextCurves
from cuolr.logs.counts import ClickCounts
from cuolr.networks.encoder import build_encoder
from cuolr.networks.layers import PairNetwork
from cuolr.off_policy.reordering import model_order, rewards_by_query
from cuolr.policies.linear_policy import LinearPolicy
from cuolr.policies.policy import RankingPolicy
from cuolr.policies.random_policy import UniformLogger
from cuolr.policies.sequential_policy import SequentialPolicy
from cuolr.types import Candidates, Floats
from tests.off_policy.policies import BETTER, TRAIN, OneAfterTheOther, cut
from tests.small_log import small_log


def test_expected_clicks_are_those_of_a_loop_over_lists() -> None:
    log = small_log(rows=300)
    policy = LinearPolicy(np.array([1.0, 0, 0, 0], np.float32), Normaliser.fit("min-max", log.candidates))
    counts = ClickCounts.of(log)
    lists, exposure = counts.lists, ExaminationModel.fit(counts).expected_examinations(counts)
    queries = np.unique(log.query)[1:].astype(np.int64)
    logged, reordered = rewards_by_query(policy, counts, exposure, queries)

    examination = [exposure[:, k].sum() / lists.count[lists.where[:, k]].sum() for k in range(lists.k)]
    clicks: dict[tuple[int, int], float] = defaultdict(float)
    examined: dict[tuple[int, int], float] = defaultdict(float)
    for row, ranking in enumerate(lists.ranking):
        for k, index in enumerate(ranking):
            if index >= 0:
                clicks[int(lists.query[row]), index] += lists.clicks[row, k] * lists.count[row]
                examined[int(lists.query[row]), index] += exposure[row, k]
    mean = {
        q: sum(v for key, v in clicks.items() if key[0] == q) / sum(v for key, v in examined.items() if key[0] == q)
        for q in set(lists.query.tolist())
    }
    rate = {key: (clicks[key] + mean[key[0]]) / (examined[key] + 1) for key in examined}
    expected = np.zeros((2, log.candidates.n_queries))
    for row, ranking in enumerate(lists.ranking):
        query = int(lists.query[row])
        positions = [k for k, index in enumerate(ranking) if index >= 0]
        features = log.candidates.features[log.candidates.offsets[query] :, 0]
        better = sorted((ranking[k] for k in positions), key=lambda index: (-features[index], index))
        for number, order in enumerate(([ranking[k] for k in positions], better)):
            clicks_of_session = sum(rate[query, d] * examination[k] for k, d in zip(positions, order, strict=True))
            expected[number, query] += lists.count[row] * clicks_of_session
    np.testing.assert_allclose(logged, expected[0, queries])
    np.testing.assert_allclose(reordered, expected[1, queries])


def test_expected_rewards_are_those_of_the_position_based_model() -> None:
    """With many sessions: Σ θ_k·α·v of the logged and of the model's order, α·v the reward of an examination."""
    log = aggregate(small_log(rows=300))
    rng = np.random.default_rng(0)
    examination, (attractiveness, value) = 1 / np.arange(1, log.k + 1), rng.random((2, log.candidates.n_documents))
    clicks = examination * attractiveness[log.documents] * log.where
    count = np.full(len(log), 10**9)
    expected_log = replace(log, clicks=clicks, reward=clicks * value[log.documents], count=count)
    policy = LinearPolicy(np.array([1.0, 0, 0, 0], np.float32), Normaliser.fit("min-max", log.candidates))
    counts = ClickCounts.of(expected_log)
    model = ExaminationModel(np.repeat(examination[:, None], log.k + 1, axis=1))
    queries = np.arange(log.candidates.n_queries)
    logged, reordered = rewards_by_query(policy, counts, model.expected_examinations(counts), queries)
    scores = np.where(log.where, -log.candidates.features[log.documents, 0], np.inf)
    rate = (attractiveness * value)[log.documents] * log.where
    better = np.take_along_axis(rate, np.argsort(scores, axis=1, kind="stable"), axis=1)
    for ours, rates in ((logged, rate), (reordered, better)):
        of_query = np.bincount(log.query, weights=(rates * examination).sum(axis=1) * count, minlength=len(queries))
        np.testing.assert_allclose(ours, of_query, rtol=1e-6)


def test_expected_clicks_are_those_of_the_examination_of_each_context() -> None:
    """With many sessions: Σ θ_k·α with the θ of the list's context, in both orders."""
    log = aggregate(small_log(rows=300))
    rng = np.random.default_rng(0)
    attractiveness, count = rng.random(log.candidates.n_documents), 10**9
    level = rng.integers(0, 2, len(log))
    tables = np.stack([1 / np.arange(1, log.k + 1), 1 / np.arange(1, log.k + 1) ** 2])
    scale = np.array([1.25, 0.5])
    theta = (scale[:, None] * tables)[level]
    clicks = theta * attractiveness[log.documents] * log.where
    context = {"device": np.array(["desktop", "mobile"])[level]}
    counts = ClickCounts.of(replace(log, clicks=clicks, count=np.full(len(log), count), context=context))
    curves = ContextCurves(("desktop", "mobile"), np.repeat(tables[:, :, None], log.k + 1, axis=2), scale)
    model = ExaminationModel(curves.tables[0], by_context=curves)
    policy = LinearPolicy(np.array([1.0, 0, 0, 0], np.float32), Normaliser.fit("min-max", log.candidates))
    queries = np.arange(log.candidates.n_queries)
    logged, reordered = rewards_by_query(policy, counts, model.expected_examinations(counts), queries)
    scores = np.where(log.where, -log.candidates.features[log.documents, 0], np.inf)
    rate = attractiveness[log.documents] * log.where
    better = np.take_along_axis(rate, np.argsort(scores, axis=1, kind="stable"), axis=1)
    for ours, rates in ((logged, rate), (reordered, better)):
        expected = np.bincount(log.query, weights=(rates * theta).sum(axis=1) * count, minlength=len(queries))
        np.testing.assert_allclose(ours, expected, rtol=1e-6)


def test_a_policy_that_ranks_lists_is_applied_to_each_list_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    log = simulate(TRAIN, UniformLogger(), click_model("pbm"), 1_500, seed=1)
    lists = ClickCounts.of(cut(log, np.random.default_rng(1).integers(1, 11, len(log)))).lists
    monkeypatch.setattr("cuolr.off_policy.reordering.LISTS_AT_A_TIME", 64)
    queries, positions = np.unique(lists.query).astype(np.int64), np.argsort(~lists.where, axis=1, kind="stable")
    by_list, by_score = (model_order(p, lists, queries, positions) for p in (OneAfterTheOther(BETTER), BETTER))
    where = np.take_along_axis(lists.where, positions, axis=1)
    np.testing.assert_array_equal(by_list[where], by_score[where])


def test_the_order_of_a_list_with_a_gap_fills_the_positions_that_it_has() -> None:
    log = small_log(rows=60, k=3)
    ranking = np.insert(log.ranking, 1, -1, axis=1)
    log = replace(log, ranking=ranking, clicks=(ranking >= 0).astype(np.uint8))
    policy = LinearPolicy(np.array([1.0, 0, 0, 0], np.float32), Normaliser.fit("min-max", log.candidates))
    positions = np.argsort(~log.where, axis=1, kind="stable")
    order = model_order(policy, log, np.unique(log.query).astype(np.int64), positions)
    assert (np.take_along_axis(log.where, order, axis=1) == np.take_along_axis(log.where, positions, axis=1)).all()


@pytest.mark.parametrize("sequential", [False, True])
def test_features_are_scaled_with_all_documents_of_a_query_not_with_those_of_a_list(sequential: bool) -> None:
    """The shown ones have 0 and 1 of 10, and 5 and 0 of 5: by x1 + x2 / 2 the first wins."""
    features = np.array([[0, 5], [1, 0], [10, 0]], np.float32)
    candidates = Candidates(features, np.array([0, 3]), np.array(["q"]))
    ranking = np.array([[1, 0]], np.int32)
    lists = ClickLog(candidates, np.zeros(1, np.int32), ranking, np.zeros((1, 2), np.uint8), np.ones(1, np.int64))
    scaling = Normaliser.fit("query-min-max", candidates)
    weights = np.array([1.0, 0.5], np.float32)
    policy: RankingPolicy = LinearPolicy(weights, scaling)
    if sequential:
        encoder = build_encoder("position", {}, 2, k=2)
        policy = SequentialPolicy(encoder, _ByWeights(weights, encoder.n_states), scaling)
    assert policy.rank(candidates, 3).tolist() == [[2, 0, 1]]
    assert model_order(policy, lists, np.array([0]), np.array([[0, 1]])).tolist() == [[1, 0]]


class _ByWeights(PairNetwork):
    """Scores a document by a weighted sum of its features, whatever the state."""

    def __init__(self, weights: Floats, n_states: int) -> None:
        super().__init__(n_states, len(weights), (4, 4))
        self.by_feature = torch.from_numpy(weights)

    def project_documents(self, documents: torch.Tensor) -> torch.Tensor:
        return documents @ self.by_feature[:, None]

    def project_states(self, states: torch.Tensor) -> torch.Tensor:
        return torch.zeros(*states.shape[:-1], 1)

    def score(self, states: torch.Tensor, documents: torch.Tensor) -> torch.Tensor:
        return (states + documents).squeeze(-1)
