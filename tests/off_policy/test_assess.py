import dataclasses
from collections import defaultdict
from dataclasses import replace
from typing import Any, Self

import numpy as np
import pytest
import torch

from cuolr.clicks.click_model import click_model
from cuolr.clicks.simulate import simulate
from cuolr.data.normalise import Normaliser
from cuolr.data.synthetic import generate
from cuolr.errors import InputError
from cuolr.examination.from_clicks import fit_examination
from cuolr.learners.factored.click_rates import ShownLists, pooled
from cuolr.logs.aggregate import aggregate
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.counts import count_lists
from cuolr.networks.encoder import build_encoder
from cuolr.networks.layers import PairNetwork
from cuolr.off_policy.assess import Readiness, _gain, _models_order, assess, assess_on_own_log
from cuolr.policies.ensemble_policy import BlendPolicy
from cuolr.policies.linear_policy import LinearPolicy
from cuolr.policies.logging_policy import imitate_logger
from cuolr.policies.policy import RankingPolicy, ScoringPolicy
from cuolr.policies.random_policy import RandomPolicy, UniformLogger
from cuolr.policies.sequential_policy import SequentialPolicy
from cuolr.supervised.ranksvm import fit_ranksvm
from cuolr.training.batches import held_out_queries, split_by_query
from cuolr.types import Candidates, Floats, Ints
from tests.small_log import small_log

READY = Readiness(100, 10, False, 0.1, 0.8, 0.05, (0.02, 0.08), None, None, True)
TRAIN = generate("tiny", 300, seed=3)
LOGGER, BETTER = fit_ranksvm(TRAIN, 0.01, 1), fit_ranksvm(TRAIN, 1.0, 1)


def log_of(logger: RankingPolicy, model: str = "pbm", sessions: int = 60_000) -> ClickLog:
    return simulate(TRAIN, logger, click_model(model), sessions, seed=1)


@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        ({}, "ship"),
        ({"never_shown": 0.3}, "test"),
        ({"interval": (-0.01, 0.08)}, "keep"),
        ({"interval": (-0.01, 0.08), "never_shown": 0.3}, "keep"),
        ({"interval": (-np.inf, np.inf)}, "keep"),
        ({"interval": (1e-9, 1e-8)}, "keep"),
        ({"queries": 29}, "keep"),
        ({"learned": True}, "test"),
        ({"learned": True, "never_shown": 0.3}, "test"),
        ({"positions_told": False}, "test"),
        ({"positions_told": False, "queries": 29}, "keep"),
    ],
)
def test_the_verdict_follows_from_gain_and_familiarity(change: dict[str, object], verdict: str) -> None:
    found = dataclasses.replace(READY, **change)  # type: ignore[arg-type]
    assert found.verdict == verdict
    assert ("never shows" in found.reason) == (verdict == "test" and found.never_shown == 0.3)
    assert ("learned from these" in found.reason) == found.learned


def test_the_logger_itself_gains_nothing_and_shows_nothing_new() -> None:
    found = assess(LOGGER, log_of(LOGGER))
    assert found.never_shown == 0
    assert found.overlap == 1
    assert found.gain == pytest.approx(0, abs=1e-9)
    assert found.verdict == "keep"


def cut(log: ClickLog, lengths: Ints) -> ClickLog:
    """The same sessions, each with so many positions."""
    shown = np.arange(log.k) < lengths[:, None]
    ranking = np.where(shown, log.ranking, -1).astype(log.ranking.dtype)
    return replace(log, ranking=ranking, clicks=log.clicks * shown, examination=None)


def test_lists_of_any_length_make_nobody_seem_better() -> None:
    log = log_of(LOGGER)
    ragged = cut(log, np.random.default_rng(1).integers(1, 11, len(log)))
    assert assess(LOGGER, ragged).gain == pytest.approx(0, abs=1e-9)
    assert assess(RandomPolicy(1), ragged).interval[1] < 0
    assert assess(BETTER, ragged).gain > 0


def test_the_gain_is_that_of_each_list_in_the_models_order() -> None:
    log = small_log(rows=300)
    policy = LinearPolicy(np.array([1.0, 0, 0, 0], np.float32), Normaliser.fit("min-max", log.candidates))
    found = assess(policy, log)

    shown = ShownLists.of(log, Normaliser.fit("log-min-max", log.candidates))
    counted = shown.counted
    scores = imitate_logger(log, Normaliser.fit("log-min-max", log.candidates), 0, 2).scores(shown.features)
    looked = fit_examination(counted, scores[shown.documents]).looked(counted)
    lists = counted.lists
    looks_at = [looked[:, k].sum() / lists.count[lists.where[:, k]].sum() for k in range(lists.k)]
    clicks: dict[tuple[int, int], float] = defaultdict(float)
    looks: dict[tuple[int, int], float] = defaultdict(float)
    for row, slots in enumerate(lists.ranking):
        for k, slot in enumerate(slots):
            if slot >= 0:
                clicks[int(lists.query[row]), slot] += lists.clicks[row, k] * lists.count[row]
                looks[int(lists.query[row]), slot] += looked[row, k]
    mean = {
        q: sum(v for key, v in clicks.items() if key[0] == q) / sum(v for key, v in looks.items() if key[0] == q)
        for q in set(lists.query.tolist())
    }
    liked = {key: (clicks[key] + mean[key[0]]) / (looks[key] + 1) for key in looks}
    logged = by_model = 0.0
    for row, slots in enumerate(lists.ranking):
        query = int(lists.query[row])
        positions = [k for k, slot in enumerate(slots) if slot >= 0]
        features = log.candidates.features[log.candidates.offsets[query] :, 0]
        better = sorted((slots[k] for k in positions), key=lambda slot: (-features[slot], slot))
        logged += lists.count[row] * sum(liked[query, slots[k]] * looks_at[k] for k in positions)
        by_model += lists.count[row] * sum(
            liked[query, s] * looks_at[k] for k, s in zip(positions, better, strict=True)
        )
    assert found.gain == pytest.approx(by_model / logged - 1)


def test_a_query_counts_as_often_as_it_has_sessions() -> None:
    """A model that is better on all queries but the one that nearly everybody asks."""
    log, many = log_of(LOGGER, sessions=3_000), 20_000
    head = int(np.argmax(TRAIN.candidates.sizes))
    asked = simulate(TRAIN.select(np.array([head])), LOGGER, click_model("pbm"), many, seed=2)
    log = replace(
        log,
        query=np.concatenate([log.query, np.full(many, head, np.int32)]),
        ranking=np.concatenate([log.ranking, asked.ranking.astype(log.ranking.dtype)]),
        clicks=np.concatenate([log.clicks, asked.clicks]),
        count=np.ones(len(log) + many, np.int64),
        examination=None,
    )
    found = assess(WorstFirst(TRAIN.candidates.query_ids[head]), log)
    assert found.gain < 0
    assert found.verdict == "keep"


class NeverSaved(RankingPolicy):
    """For models of a test alone."""

    def arrays(self) -> dict[str, Any]:
        raise NotImplementedError

    def settings(self) -> dict[str, Any]:
        raise NotImplementedError

    @classmethod
    def from_parts(cls, arrays: object, settings: object) -> Self:
        raise NotImplementedError


class WorstFirst(NeverSaved, ScoringPolicy):
    """Ranks well, but the query of one id the wrong way round."""

    n_features = BETTER.n_features

    def __init__(self, query_id: str) -> None:
        self.query_id = query_id

    def score(self, candidates: Candidates) -> Floats:
        sign = np.where(candidates.query_ids[candidates.query_of_document] == self.query_id, -1, 1)
        return (sign * BETTER.score(candidates)).astype(np.float32)


def test_few_queries_give_a_wide_interval() -> None:
    """Three like queries: a mean of .1 and a standard deviation of .1 over 10 clicks each, t(2) = 4.303."""
    gain, (low, high) = _gain(np.array([0.0, 1.0, 2.0]), np.array([10.0, 10.0, 10.0]))
    assert gain == pytest.approx(0.1)
    assert (low, high) == pytest.approx((0.1 - 4.303 * 0.1 / 3**0.5, 0.1 + 4.303 * 0.1 / 3**0.5), rel=1e-3)
    assert _gain(np.array([1.0]), np.array([10.0])) == (0.1, (-np.inf, np.inf))
    assert _gain(np.array([0.0, 0.0]), np.array([0.0, 0.0])) == (0.0, (-np.inf, np.inf))


@pytest.mark.parametrize("model", ["pbm", "cascade", "dcm"])
def test_a_better_ranker_gains_and_a_random_order_loses(model: str) -> None:
    log = log_of(LOGGER, model)
    better, worse = assess(BETTER, log), assess(RandomPolicy(1), log)
    assert better.gain > 0
    assert worse.interval[1] < 0


def test_a_weaker_ranker_does_not_seem_better_than_a_strong_logger() -> None:
    assert assess(LOGGER, log_of(BETTER)).verdict == "keep"


def test_familiarity_is_counted_document_by_document() -> None:
    log = small_log(rows=300)
    policy = LinearPolicy(np.array([1.0, 0, 0, 0], np.float32), Normaliser.fit("min-max", log.candidates))
    found = assess(policy, log, k=3)
    ranking = policy.rank(log.candidates, 3)
    shares = []
    for query in np.unique(log.query):
        lists = log.ranking[log.query == query]
        shares += [(lists == slot).any(axis=1).mean() for slot in ranking[query] if slot >= 0]
    assert found.never_shown == pytest.approx(np.mean([share == 0 for share in shares]))
    assert found.overlap == pytest.approx(np.mean(shares))


def test_just_some_queries_are_looked_at_if_asked_for() -> None:
    log = log_of(LOGGER)
    assert assess(BETTER, log, queries=np.array([3, 5, 8])).queries == 3
    with pytest.raises(InputError, match="at least one query of the log"):
        assess(BETTER, log, queries=np.array([], np.int64))


def test_on_its_own_log_a_model_is_looked_at_where_it_did_not_learn() -> None:
    log = log_of(LOGGER)
    settings: dict[str, Any] = {"validated_by": {"held_out_queries": 0.2}, "training": {"held_out": 0.2, "seed": 3}}
    _, held_out = split_by_query(log, held_out_queries(log, 0.2, 3))
    found = assess_on_own_log(BETTER, log, settings)
    assert found == assess(BETTER, log, queries=np.unique(log.query[held_out]))
    assert found.queries == 60
    by_labels = assess_on_own_log(BETTER, log, {**settings, "validated_by": {"measure": "ndcg@10"}})
    assert by_labels == replace(assess(BETTER, log), learned=True)


def test_sessions_that_show_nothing_do_not_change_what_was_held_out() -> None:
    """`factored` has no query of which nothing was shown, and so held out some of the others."""
    log = log_of(LOGGER, sessions=6_000)
    ranking = log.ranking.copy()
    ranking[log.query % 7 == 3] = -1
    log = replace(log, ranking=ranking, clicks=log.clicks * (ranking >= 0), examination=None)
    counted = count_lists(log)
    pool, _ = pooled(counted, counted.lists.where.astype(np.float64), np.zeros(TRAIN.candidates.n_documents), 1.0)
    _, held_out = split_by_query(log, held_out_queries(log, 0.2, 3))
    _, held_out_of_pool = split_by_query(pool, held_out_queries(pool, 0.2, 3))
    np.testing.assert_array_equal(np.unique(log.query[held_out]), pool.query[held_out_of_pool])


@dataclasses.dataclass(frozen=True)
class OneAfterTheOther(NeverSaved):
    """Ranks as another does, but has no more positions than the lists that it learned from."""

    policy: RankingPolicy

    def rank(self, candidates: Candidates, k: int) -> Ints:
        assert k <= 10
        return self.policy.rank(candidates, k)


def test_a_model_that_ranks_lists_is_asked_for_each_list_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    log = simulate(TRAIN, UniformLogger(), click_model("pbm"), 1_500, seed=1)
    ragged = cut(log, np.random.default_rng(1).integers(1, 11, len(log)))
    monkeypatch.setattr("cuolr.off_policy.assess.LISTS_AT_A_TIME", 64)
    assert assess(OneAfterTheOther(BETTER), ragged) == assess(BETTER, ragged)


def test_documents_that_the_pool_has_no_room_for_keep_their_place_in_the_list(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lists with a gap in them, of which one document alone is known: the others stand before what is not there."""
    log = small_log(rows=60, k=3)
    ranking = np.insert(log.ranking, 1, -1, axis=1)
    log = replace(log, ranking=ranking, clicks=(ranking >= 0).astype(np.uint8))
    monkeypatch.setattr("cuolr.learners.factored.click_rates.MAX_DOCUMENTS_OF_A_QUERY", 1)
    policy = LinearPolicy(np.array([1.0, 0, 0, 0], np.float32), Normaliser.fit("min-max", log.candidates))
    lists = count_lists(log).lists
    pool, _ = pooled(count_lists(log), lists.where.astype(np.float64), np.zeros(log.candidates.n_documents), 1.0)
    positions = np.argsort(~lists.where, axis=1, kind="stable")
    order = _models_order(policy, lists, pool, positions)
    assert pool.k == 1
    assert (np.take_along_axis(lists.where, order, axis=1) == np.take_along_axis(lists.where, positions, axis=1)).all()


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
    pool = replace(lists, ranking=np.array([[0, 1]], np.int32))
    assert _models_order(policy, lists, pool, np.array([[0, 1]])).tolist() == [[1, 0]]


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


def test_an_aggregated_log_will_do() -> None:
    log = log_of(LOGGER)
    raw, aggregated = assess(BETTER, log), assess(BETTER, aggregate(log))
    assert aggregated.never_shown == raw.never_shown
    assert aggregated.gain == pytest.approx(raw.gain, abs=0.05)


def test_a_log_without_clicks_supports_nothing() -> None:
    log = log_of(LOGGER, sessions=3_000)
    found = assess(BETTER, replace(log, clicks=np.zeros_like(log.clicks)))
    assert found.verdict == "keep"


def test_a_log_that_shows_nothing_is_refused() -> None:
    log = log_of(LOGGER, sessions=100)
    nothing = replace(log, ranking=np.full_like(log.ranking, -1), clicks=np.zeros_like(log.clicks), examination=None)
    with pytest.raises(InputError, match="expected a log that shows documents, found none"):
        assess(BETTER, nothing)


def test_it_is_said_how_much_of_a_score_is_the_logged_order() -> None:
    log = log_of(LOGGER, sessions=3_000)
    alone = BlendPolicy([LOGGER], [2.0], imitations=[0])
    assert assess(alone, log).logged_order == pytest.approx(1.0)
    assert assess(LOGGER, log).logged_order is None
