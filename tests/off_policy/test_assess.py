import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cuolr.clicks.click_model import click_model
from cuolr.clicks.simulate import simulate
from cuolr.data.normalise import Normaliser
from cuolr.errors import InputError
from cuolr.examination.from_clicks import ExaminationModel
from cuolr.logs.aggregate import aggregate
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.counts import ClickCounts
from cuolr.logs.log_meta import digest_of_clicks
from cuolr.off_policy.assess import (
    EvaluatedQueries,
    assess,
    evaluate_off_policy,
    logging_policy_member,
    logging_policy_share,
    overlap_with_log,
    shown_shares,
)
from cuolr.off_policy.estimate_gain import estimate_gain
from cuolr.off_policy.list_distributions import RankedQueries
from cuolr.policies.ensemble_policy import EnsemblePolicy
from cuolr.policies.linear_policy import LinearPolicy
from cuolr.policies.plackett_luce import StochasticLogger
from cuolr.policies.random_policy import RandomPolicy, UniformLogger
from cuolr.training.hold_out import held_out_queries, held_out_sessions
from cuolr.types import Candidates, FeatureColumn, FeatureRecipe
from tests.off_policy.policies import BETTER, LOGGER, TRAIN, OneAfterTheOther, WorstFirst, cut, log_of
from tests.small_log import linear_policy, small_log


def provenance(log: ClickLog, **validated_by: Any) -> dict[str, Any]:
    """Of a model that was trained on a log."""
    settings = {"validated_by": validated_by, "training": {"held_out": 0.2, "seed": 3}}
    return {"log": {"clicks_sha256": digest_of_clicks(log)}, "settings": settings}


@pytest.mark.thorough
def test_the_logging_policy_itself_gains_nothing_and_shows_nothing_new() -> None:
    evaluation = assess(LOGGER, log_of(LOGGER))
    assert evaluation.never_shown == 0
    assert evaluation.overlap == 1
    assert evaluation.gain == pytest.approx(0, abs=1e-9)
    assert evaluation.recommendation == "keep"


@pytest.mark.thorough
def test_lists_of_any_length_make_no_policy_seem_better() -> None:
    log = log_of(LOGGER)
    ragged = cut(log, np.random.default_rng(1).integers(1, 11, len(log)))
    assert assess(LOGGER, ragged).gain == pytest.approx(0, abs=1e-9)
    assert assess(RandomPolicy(1), ragged).estimates[0].interval[1] < 0
    assert assess(BETTER, ragged).gain > 0


def test_no_more_than_all_clicks_can_be_lost() -> None:
    """None of the policy's documents was ever shown: without the limit, the interval would end below −100 %."""
    log = log_of(LOGGER, sessions=1_500)
    short = cut(log, np.full(len(log), 3))
    short = replace(short, logging_propensity=np.ones(short.ranking.shape, np.float32))
    opposite = replace(LOGGER, weights=-LOGGER.weights)
    evaluation = assess(opposite, short)
    assert evaluation.never_shown > 0.9
    assert evaluation.interval[0] == -1
    assert all(each.bounds[0] >= -1 for each in evaluation.estimates)
    assert evaluation.recommendation == "keep"


@pytest.mark.thorough
def test_a_query_counts_as_often_as_it_has_sessions() -> None:
    """A model that is better on all queries but the one that most sessions ask."""
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
    evaluation = assess(WorstFirst(TRAIN.candidates.query_ids[head]), log)
    assert evaluation.gain < 0
    assert evaluation.recommendation == "keep"


@pytest.mark.thorough
@pytest.mark.parametrize("model", ["pbm", "cascade", "dcm"])
def test_a_better_ranker_gains_and_a_random_order_loses(model: str) -> None:
    log = log_of(LOGGER, model, sessions=30_000)
    better, worse = assess(BETTER, log), assess(RandomPolicy(1), log)
    assert better.gain > 0
    # Under the cascade model the order of a list does not change whether it is clicked.
    assert model == "cascade" or worse.estimates[0].interval[1] < 0


@pytest.mark.thorough
def test_a_weaker_ranker_does_not_seem_better_than_a_strong_logging_policy() -> None:
    assert assess(LOGGER, log_of(BETTER)).recommendation == "keep"


@pytest.mark.thorough
def test_only_the_given_queries_are_evaluated() -> None:
    log = log_of(LOGGER)
    assert evaluate_off_policy(BETTER, log, on=EvaluatedQueries(np.array([3, 5, 8]))).queries == 3
    with pytest.raises(InputError, match="at least one query of the log"):
        evaluate_off_policy(BETTER, log, on=EvaluatedQueries(np.array([], np.int64)))


@pytest.mark.thorough
def test_on_its_own_log_a_model_is_evaluated_on_the_queries_that_training_held_out() -> None:
    log = log_of(LOGGER)
    evaluation = assess(BETTER, log, provenance=provenance(log, held_out_queries=0.2))
    on = EvaluatedQueries(held_out_queries(log, 0.2, 3), held_out=True)
    assert evaluation == evaluate_off_policy(BETTER, log, on=on)
    assert evaluation.queries == 60
    assert evaluation.held_out
    assert not evaluation.trained_on_these_queries


@pytest.mark.thorough
def test_a_model_that_labels_validated_was_trained_on_all_queries_of_its_log() -> None:
    log = log_of(LOGGER)
    evaluation = assess(BETTER, log, provenance=provenance(log, measure="ndcg@10"))
    assert evaluation == replace(assess(BETTER, log), trained_on_these_queries=True)
    assert evaluation.recommendation != "ship"


@pytest.mark.thorough
def test_a_model_that_does_not_say_what_was_held_out_was_trained_on_all_queries_of_its_log() -> None:
    log = log_of(LOGGER)
    of_model = {**provenance(log, held_out_queries=0.2), "settings": {}}
    assert assess(BETTER, log, provenance=of_model).trained_on_these_queries


@pytest.mark.parametrize(("name", "value"), [("held_out", 2.0), ("held_out", np.inf), ("seed", -1)])
def test_a_share_or_seed_that_no_training_had_is_refused(name: str, value: float) -> None:
    log = log_of(LOGGER)
    for unit in ("held_out_queries", "held_out_sessions"):
        of_model = provenance(log, **{unit: 0.2})
        of_model["settings"]["training"][name] = value
        with pytest.raises(InputError, match=f"{name.replace('held_out', 'share')}: expected"):
            assess(BETTER, log, provenance=of_model)


def test_another_log_is_new_to_a_model_and_its_aggregated_own_log_is_not() -> None:
    log, other = log_of(LOGGER, sessions=6_000), log_of(BETTER, sessions=6_000)
    of_model = provenance(log, held_out_queries=0.2)
    assert assess(BETTER, other, provenance=of_model) == assess(BETTER, other)
    assert assess(BETTER, aggregate(log), provenance=of_model).queries == 60


@pytest.mark.thorough
def test_on_its_own_log_the_examination_of_the_model_is_used_where_the_log_does_not_identify_it() -> None:
    log = log_of(LOGGER, sessions=6_000)
    table = 0.9 ** np.arange(10)[:, None] * np.ones(11)
    model = EnsemblePolicy([BETTER], [1.0], examination=table)
    own = assess(model, log, provenance=provenance(log, held_out_queries=0.2))
    np.testing.assert_allclose(np.array([row[0] for row in own.examination], float), 0.9 ** np.arange(10), rtol=0.3)
    new = assess(model, log)
    assert new.examination != own.examination
    estimated = ExaminationModel.fit(log).table[:, 0]
    np.testing.assert_allclose(np.array([row[0] for row in new.examination], float), estimated, rtol=0.3)


@pytest.mark.thorough
def test_the_interval_of_a_log_of_one_query_is_over_its_sessions() -> None:
    one = TRAIN.select(np.array([int(np.argmax(TRAIN.candidates.sizes))]))
    log = simulate(one, UniformLogger(), click_model("pbm"), 6_000, k=5, seed=2)
    evaluation = assess(BETTER, log)
    assert (evaluation.queries, evaluation.session_groups) == (1, 30)
    assert evaluation.recommendation == "ship"
    assert "clicks on this query" in evaluation.reason
    few = assess(BETTER, log.select(np.arange(20)))
    assert few.recommendation == "keep"
    assert "at least 30" in few.reason
    assert assess(WorstFirst(one.candidates.query_ids[0]), log).recommendation == "keep"


def test_of_its_own_log_of_one_query_a_model_is_evaluated_on_the_sessions_that_training_held_out() -> None:
    one = TRAIN.select(np.array([int(np.argmax(TRAIN.candidates.sizes))]))
    log = simulate(one, UniformLogger(), click_model("pbm"), 1_000, k=5, seed=2)
    own = assess(BETTER, log, provenance=provenance(log, held_out_sessions=0.2))
    assert own == replace(assess(BETTER, log.select(held_out_sessions(log, 0.2, 3))), held_out=True)


@pytest.mark.thorough
def test_sessions_that_show_nothing_do_not_change_what_is_evaluated() -> None:
    log = log_of(LOGGER, sessions=6_000)
    ranking = log.ranking.copy()
    ranking[log.query % 7 == 3] = -1
    log = replace(log, ranking=ranking, clicks=log.clicks * (ranking >= 0), examination=None)
    shown = np.unique(log.query[log.where.any(axis=1)])
    assert assess(BETTER, log).queries == len(shown)
    evaluation = assess(BETTER, log, provenance=provenance(log, held_out_queries=0.2))
    assert evaluation.queries == round(0.2 * len(shown))


@pytest.mark.thorough
def test_a_model_that_ranks_lists_is_evaluated_as_one_that_scores_documents() -> None:
    log = simulate(TRAIN, UniformLogger(), click_model("pbm"), 1_500, seed=1)
    ragged = cut(log, np.random.default_rng(1).integers(1, 11, len(log)))
    assert assess(OneAfterTheOther(BETTER), ragged) == assess(BETTER, ragged)


@pytest.mark.thorough
def test_with_propensities_every_estimator_is_in_the_table_and_one_decides() -> None:
    logger = StochasticLogger(LOGGER, float(np.std(LOGGER.score(TRAIN.candidates))))
    log = simulate(TRAIN, logger, click_model("pbm"), 12_000, k=3, seed=1)
    sampled = [e for e in assess(BETTER, log).estimates if e.effective_sample_size is not None]
    assert [(e.estimator, e.requirement) for e in sampled] == [
        ("reward-interaction-ips", "must gain"),
        ("cascade-dr", "must not lose"),
        ("item-position-ips", "none"),
        ("list-ips", "must not lose"),
        ("snips", "must not lose"),
    ]
    for estimate in sampled:
        by_name = estimate_gain(BETTER, log, estimate.estimator)
        assert estimate.interval == pytest.approx(by_name.relative_interval)
        assert estimate.effective_sample_size == pytest.approx(by_name.effective_sample_size)
        position_based = ["right for position-based users only"] if estimate.requirement == "none" else []
        assert estimate.doubts == (*position_based, *by_name.doubts)
    without = assess(BETTER, replace(log, logging_propensity=None))
    assert all(e.effective_sample_size is None for e in without.estimates)


@pytest.mark.thorough
def test_clicks_that_no_click_model_explains_are_a_doubt() -> None:
    """A rate of its own for each document at each position."""
    log = simulate(TRAIN, UniformLogger(), click_model("pbm"), 60_000, k=3, seed=1)
    rng = np.random.default_rng(2)
    rates = rng.random((log.candidates.n_documents, 3))
    documents = log.candidates.offsets[log.query][:, None] + log.ranking
    clicks = rng.random(log.ranking.shape) < rates[documents, np.arange(3)]
    found = assess(BETTER, replace(log, clicks=clicks.astype(log.clicks.dtype), examination=None))
    assert found.better_click_rates == ("ctr-document-position",)
    assert assess(BETTER, log).better_click_rates == ()


@pytest.mark.parametrize("wrong", [0.0, 1.5, np.nan])
def test_a_propensity_that_is_none_is_one_line(wrong: float) -> None:
    log = log_of(LOGGER, sessions=100)
    propensity = np.ones(log.ranking.shape, np.float32)
    propensity[[3, 7], 2] = wrong
    message = f"logging_propensity: expected above 0 and at most 1, found {wrong:g} in session 4, position 3 (1 more)"
    with pytest.raises(InputError, match=re.escape(message)):
        assess(BETTER, replace(log, logging_propensity=propensity))


@pytest.mark.thorough
def test_an_aggregated_log_can_be_used() -> None:
    log = log_of(LOGGER)
    raw, aggregated = assess(BETTER, log), assess(BETTER, aggregate(log))
    assert aggregated.never_shown == raw.never_shown
    assert aggregated.gain == pytest.approx(raw.gain, abs=0.05)


def test_an_aggregated_log_is_no_evidence_to_ship() -> None:
    """Users of the cascade model seem position-based where nobody knows which clicks were of one session."""
    logger = StochasticLogger(LOGGER, float(np.std(LOGGER.score(TRAIN.candidates))))
    log = simulate(TRAIN, logger, click_model("cascade"), 12_000, k=5, seed=1)
    evaluation = assess(BETTER, aggregate(log))
    assert [found.estimator for found in evaluation.estimates if found.calibration is not None] == ["pbm"]
    assert evaluation.recommendation == "test"
    assert "an aggregated log cannot tell click models apart" in evaluation.reason


@pytest.mark.thorough
def test_positions_on_the_page_do_not_change_how_many_documents_are_evaluated() -> None:
    logger = StochasticLogger(LOGGER, float(np.std(LOGGER.score(TRAIN.candidates))))
    log = simulate(TRAIN, logger, click_model("pbm"), 6_000, k=4, seed=1)
    spread = np.broadcast_to(2 * np.arange(4), log.ranking.shape).astype(np.int32)
    with_gaps = replace(log, page_position=spread, examination=None)
    assert assess(BETTER, with_gaps, k=2).gain == pytest.approx(assess(BETTER, log, k=2).gain, abs=0.02)


@pytest.mark.thorough
@pytest.mark.parametrize("sessions", [1, 3, 20])
def test_a_log_of_few_sessions_supports_nothing(sessions: int) -> None:
    log = log_of(LOGGER, sessions=sessions)
    assert assess(BETTER, log).recommendation == "keep"


def test_a_log_without_clicks_supports_nothing() -> None:
    log = log_of(LOGGER, sessions=3_000)
    evaluation = assess(BETTER, replace(log, clicks=np.zeros_like(log.clicks)))
    assert evaluation.recommendation == "keep"


def test_a_log_that_shows_nothing_is_refused() -> None:
    log = log_of(LOGGER, sessions=100)
    nothing = replace(log, ranking=np.full_like(log.ranking, -1), clicks=np.zeros_like(log.clicks), examination=None)
    with pytest.raises(InputError, match="expected a log that shows documents, found none"):
        assess(BETTER, nothing)


@pytest.mark.parametrize("wrong", ["MODEL", StochasticLogger(LOGGER, 1.0)])
def test_what_is_no_policy_is_refused_with_its_name(wrong: Any) -> None:
    log = log_of(LOGGER)
    found = f"expected a RankingPolicy, found a {type(wrong).__name__}"
    with pytest.raises(InputError, match=f"^policy: {found}"):
        assess(wrong, log)
    with pytest.raises(InputError, match=f"^against: {found}"):
        assess(LOGGER, log, against=wrong)
    with pytest.raises(InputError, match=r"^policy: expected a RankingPolicy, found a str"):
        estimate_gain("MODEL", log)  # type: ignore[arg-type]


@pytest.mark.thorough
def test_k_is_10_or_the_length_of_the_lists_or_as_given() -> None:
    log = log_of(LOGGER, sessions=3_000)
    short = cut(log, np.full(len(log), 4))
    assert [assess(BETTER, log).k, assess(BETTER, short).k, assess(BETTER, log, k=3).k] == [10, 4, 3]


@pytest.mark.thorough
def test_a_length_or_a_discount_that_is_none_is_refused_before_users_are_fitted() -> None:
    log = small_log(40)
    policy = linear_policy(log)
    for k in (0, -1):
        with pytest.raises(InputError, match=f"^k: expected a whole number >= 1, found {k}$"):
            assess(policy, log, k)
    with pytest.raises(InputError, match=r"^discount: expected .dcg. or 5 weights"):
        assess(policy, log, discount=(1.0, 0.5))


def test_a_level_of_context_that_is_rare_does_not_matter() -> None:
    """It has fewer than ten queries, where the other has many."""
    log = small_log(1_000, queries=20)
    alone = assess(linear_policy(log), log)
    device = np.where(np.isin(np.arange(len(log)), np.flatnonzero(log.query < 3)[:20]), "tablet", "desktop")
    found = assess(linear_policy(log), replace(log, context={"device": device}))
    assert found.gain == pytest.approx(alone.gain, abs=0.02)
    assert np.isfinite(found.interval).all()


def test_the_share_and_the_overlap_of_the_logging_policy_are_reported() -> None:
    log = log_of(LOGGER, sessions=3_000)
    evaluation = assess(EnsemblePolicy([LOGGER], [2.0], logging_policy_members=[0]), log)
    assert evaluation.logging_policy_share == pytest.approx(1.0)
    assert evaluation.logging_policy_overlap == 1.0
    without = assess(LOGGER, log)
    assert without.logging_policy_share is without.logging_policy_overlap is None


LOG = small_log(rows=300)
NORMALISER = Normaliser.fit("min-max", LOG.candidates)


def by_feature(number: int) -> LinearPolicy:
    weights = np.zeros(4, np.float32)
    weights[number] = 1.0
    return LinearPolicy(weights, NORMALISER)


def test_overlap_is_counted_document_by_document() -> None:
    policy, queries = by_feature(0), np.unique(LOG.query).astype(np.int64)
    ranking = policy.rank(LOG.candidates, 3)
    shares = []
    for query in queries:
        lists = LOG.ranking[LOG.query == query]
        shares += [(lists == index).any(axis=1).mean() for index in ranking[query] if index >= 0]
    ranked = RankedQueries.of(policy, LOG.candidates, queries, 3)
    never_shown, overlap = overlap_with_log(ranked, LOG.candidates, shown_shares(ClickCounts.of(LOG).lists))
    assert never_shown == pytest.approx(np.mean([share == 0 for share in shares]))
    assert overlap == pytest.approx(np.mean(shares))


def test_a_variant_counts_as_shown_if_its_document_was() -> None:
    recipe = FeatureRecipe((FeatureColumn("price"),), impression=("price",))
    ids = np.array(["a#000000000000", "a#111111111111", "b"])
    prices = np.array([[1.0], [3.0], [2.0]], np.float32)
    candidates = Candidates(prices, np.array([0, 3]), np.array(["q"]), ids, recipe=recipe)
    ranking = np.array([[0], [0], [1], [0]])  # a four times, at two prices; b never
    log = ClickLog(candidates, np.zeros(4, np.int32), ranking, np.zeros((4, 1), np.uint8), np.ones(4, np.int64))
    policy = LinearPolicy(np.ones(1, np.float32), Normaliser.fit("min-max", candidates))
    assert policy.rank(candidates, 3).tolist() == [[1, 2, 0]]
    ranked = RankedQueries.of(policy, candidates, np.array([0]), 3)
    never_shown, overlap = overlap_with_log(ranked, candidates, shown_shares(log))
    assert never_shown == pytest.approx(1 / 3)
    assert overlap == pytest.approx((4 / 4 + 0 + 4 / 4) / 3)


def test_the_share_of_the_logging_policy_is_that_of_its_standard_deviation() -> None:
    first, second = by_feature(0), by_feature(1)
    spread = [policy.score(LOG.candidates).std() for policy in (first, second)]
    ensemble = EnsemblePolicy([first, second], [2.0, 0.5], logging_policy_members=[1])
    expected = 0.5 * spread[1] / (2.0 * spread[0] + 0.5 * spread[1])
    assert logging_policy_share(ensemble, LOG.candidates) == pytest.approx(expected, rel=1e-5)
    alone = EnsemblePolicy([first], [2.0], logging_policy_members=[0])
    assert logging_policy_share(alone, LOG.candidates) == pytest.approx(1.0)


@pytest.mark.parametrize("policy", [by_feature(0), EnsemblePolicy([by_feature(0)], [1.0])])
def test_a_policy_without_a_logging_policy_member_has_no_share(policy: LinearPolicy | EnsemblePolicy) -> None:
    assert logging_policy_share(policy, LOG.candidates) is None
    assert logging_policy_member(policy) is None


def test_the_logging_policy_members_rank_as_one_policy() -> None:
    ensemble = EnsemblePolicy([by_feature(0), by_feature(1), by_feature(1)], [2.0, 0.1, 0.1], [1, 2])
    member = logging_policy_member(ensemble)
    assert member is not None
    np.testing.assert_array_equal(member.rank(LOG.candidates, 5), by_feature(1).rank(LOG.candidates, 5))
