from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

import cuolr
from cuolr.clicks.pbm import PositionBasedModel
from cuolr.clicks.simulate import Simulation
from cuolr.errors import InputError
from cuolr.examination.conditional_likelihood import log_likelihood
from cuolr.examination.propensities import Estimate, Propensities
from cuolr.learners.counterfactual.ipw import IPW
from cuolr.learners.counterfactual.naive import Naive
from cuolr.learners.counterfactual.pooled_clicks import PooledClicks, largest_reward
from cuolr.learners.counterfactual.stacked_ensemble import EnsembleSteps, StackedEnsemble
from cuolr.learners.rankers.ensemble import EnsembleConfig
from cuolr.learners.rankers.lambdamart import QueryGroups
from cuolr.learners.rankers.targets import Targets
from cuolr.logs.aggregate import aggregate
from cuolr.logs.log_folder import concatenate
from cuolr.policies.ensemble_policy import EnsemblePolicy
from cuolr.policies.logging_policy_model import LoggingPolicyModel
from cuolr.policies.network_policy import NetworkPolicy
from cuolr.policies.random_policy import UniformLogger
from cuolr.policies.trees_policy import TreesPolicy
from cuolr.training import distributed
from cuolr.training.base_learner import LEARNERS
from cuolr.training.batches import WeightedLists
from cuolr.training.fit import FitRequest, fit
from cuolr.training.log_form import TrainingLog
from cuolr.training.presets.configure import configure
from cuolr.training.warm_start import WarmStart
from cuolr.types import Doubles
from tests.data.small_data import assert_same_log, candidates_of, dataset_of, log_of, random_log
from tests.learners.lists import no_scaling
from tests.small_log import small_log
from tests.training.tasks import fit_log, task_of

# All but pairwise debiasing, which has LambdaMART only.
DEBIASED = [
    name
    for name in LEARNERS.names()
    if "ranker" in {field.name for field in fields(LEARNERS.get(name).Config)} and name != "unbiased-lambdamart"
]
LOG = small_log(rows=300, queries=12)


def settings_of(ranker: str, **others: Any) -> dict[str, Any]:
    return {
        "learner.ranker": ranker,
        "learner.threads": 1,
        "learner.rankers.hidden": [8],
        "learner.rankers.min_documents_per_leaf": 3,
        "training.steps": 4,
        "training.validate_every": 2,
        **others,
    }


@pytest.mark.parametrize(
    ("ranker", "policy"), [("network", NetworkPolicy), ("lambdamart", TreesPolicy), ("ensemble", EnsemblePolicy)]
)
def test_the_ranker_is_a_setting(ranker: str, policy: type) -> None:
    fitted = cuolr.Ranker("naive", settings=settings_of(ranker)).fit(LOG)
    assert type(fitted.policy_) is policy


@pytest.mark.parametrize("name", DEBIASED)
def test_every_debiasing_takes_every_ranker(name: str) -> None:
    for ranker in ("network", "lambdamart", "ensemble"):
        assert configure(name, settings={"learner.ranker": ranker}).learner_config.ranker == ranker
    with pytest.raises(InputError, match=r"learner.ranker': expected one of 'network', 'lambdamart', 'ensemble'"):
        configure(name, settings={"learner.ranker": "forest"})


@pytest.mark.parametrize("name", DEBIASED)
def test_settings_of_other_rankers_are_recorded_only_where_they_have_an_effect(name: str) -> None:
    """So the fingerprints of results that were made before there was a choice are still valid."""
    others = {"ranker", "rankers", "include_logging_policy", "threads"}
    assert not others & configure(name).as_dict()["learner"].keys()
    assert others <= configure(name, settings={"learner.ranker": "ensemble"}).as_dict()["learner"].keys()


def test_lambdamart_learns_from_the_whole_log(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[QueryGroups] = []
    original = QueryGroups.of

    def of(targets: Targets, highest: float) -> QueryGroups:
        taken.append(original(targets, highest))
        return taken[-1]

    monkeypatch.setattr(QueryGroups, "of", of)
    fit_log(LOG, configure("naive", settings=settings_of("lambdamart")), score=lambda _: 0.0)
    shown = {(int(q), int(d)) for q, row in zip(LOG.query, LOG.ranking, strict=True) for d in row if d >= 0}
    assert len(taken[0].grades) == len(shown)
    assert taken[0].sizes.sum() == len(shown)
    assert taken[0].weight is not None
    np.testing.assert_allclose(
        np.unique(taken[0].weight), np.unique(np.bincount(LOG.query) / np.bincount(LOG.query).mean()), rtol=1e-6
    )


def test_the_logging_policy_is_a_member_of_the_ensemble_if_asked_for() -> None:
    for include in (False, True):
        settings = settings_of("ensemble", **{"learner.include_logging_policy": include})
        best = fit_log(LOG, configure("naive", settings=settings)).best
        assert best is not None
        assert isinstance(best.policy, EnsemblePolicy)
        assert bool(best.policy.logging_policy_members) == include
        assert min(best.policy.weights) >= 0


def pooled_and_true_rates(queries: int, k: int, policy_aware: bool) -> tuple[Doubles, Doubles]:
    """The corrected rates of the first query in lists of random order, and its true ones."""
    dataset, model = dataset_of(queries, max_grade=2), PositionBasedModel()
    log = aggregate(concatenate(Simulation(dataset, UniformLogger(), model, 200_000, k=k).blocks(), 200_000))
    learner = IPW(IPW.Config(policy_aware=policy_aware))
    task = task_of(log, Propensities(Estimate(model.examination)))
    rates = learner.pooled_clicks(task, learner.weighted_lists(task)).rates(np.arange(len(log)), no_scaling())
    attractiveness = 0.1 + 0.9 * (2.0**dataset.relevance - 1) / (2**2 - 1)
    return rates.rate[0], model.examination[0] * attractiveness[rates.documents[0]]


def test_pooled_by_policy_aware_weights_clicks_are_divided_by_the_sum_of_examination() -> None:
    """A document that is shown in few lists is not thought better for it, as the weights of lists would have it."""
    found, expected = pooled_and_true_rates(6, 3, policy_aware=True)
    np.testing.assert_allclose(found, expected, rtol=0.05, atol=0.005)


@pytest.mark.parametrize("policy_aware", [False, True])
def test_pooled_weighted_clicks_are_in_the_ratio_of_attractiveness(policy_aware: bool) -> None:
    found, expected = pooled_and_true_rates(4, 4, policy_aware)
    np.testing.assert_allclose(found, expected, rtol=0.05, atol=0.005)


def test_trees_go_on_from_a_model_of_trees_and_an_ensemble_starts_anew() -> None:
    config = configure("naive", settings=settings_of("lambdamart"))
    best = fit_log(LOG, config).best
    assert best is not None
    start = WarmStart(best.policy)
    again = fit_log(LOG, config, warm_start=start).best
    assert again is not None
    with pytest.raises(InputError, match="an ensemble always starts anew"):
        fit_log(LOG, configure("naive", settings=settings_of("ensemble")), warm_start=start)


def test_several_processes_share_a_network_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distributed, "processes", lambda: 2)
    request = FitRequest(TrainingLog.of(LOG), configure("naive", settings=settings_of("lambdamart")))
    with pytest.raises(InputError, match=r"learner\.ranker: lambdamart cannot be trained by several processes"):
        fit(request)


@pytest.mark.parametrize("name", ["naive", "dla", "unbiased-lambdamart"])
def test_a_ranker_that_a_cluster_cannot_train_is_refused(name: str) -> None:
    task = replace(task_of(LOG), ray=object())
    with pytest.raises(InputError, match=r"^ray: .* by one process; .*train without ray$"):
        LEARNERS.get(name)(LEARNERS.get(name).Config()).fit(task)


def test_its_targets_are_the_clicks_as_they_are() -> None:
    log = aggregate(random_log(candidates_of(4, 2, 7), sessions=20, k=4))
    lists = Naive(Naive.Config()).weighted_lists(task_of(log))
    assert lists.targets is log.clicks
    assert (lists.query is log.query, lists.ranking is log.ranking, lists.count is log.count) == (True, True, True)


def test_it_learns_from_aggregated_lists() -> None:
    log = random_log(candidates_of(4, 2, 7), sessions=20, k=4)
    assert_same_log(TrainingLog.of(log).read_for(Naive, "naive"), aggregate(log))
    with pytest.raises(InputError, match="aggregate: naive always learns from aggregated lists"):
        TrainingLog.of(log).read_for(Naive, "naive", "no")


def test_the_learned_scores_are_the_logarithm_of_clicks() -> None:
    """At its least, softmax(s) is each document's share in the clicks of its list: here 6, 3 and 1 of 10."""
    clicks = [[1, 0, 0]] * 6 + [[0, 1, 0]] * 3 + [[0, 0, 1]]
    log = log_of(candidates_of(3), [0] * 10, [[0, 1, 2]] * 10, clicks)
    settings = {"learner.learning_rate": 0.01, "training.steps": 300, "training.patience": 0}
    config = configure("naive", settings={**settings, "training.keep": "last", "learner.hidden": [16]})
    best = fit_log(log, config, lambda _: 0.0).best
    assert best is not None
    assert isinstance(best.policy, NetworkPolicy)
    scores = np.exp(best.policy.score(log.candidates))
    assert (scores / scores.sum()).tolist() == pytest.approx([0.6, 0.3, 0.1], abs=0.01)


CANDIDATES = candidates_of(3, 2)
# Query 0 in three sessions with two lists, query 1 in one.
POOLED_LOG = log_of(CANDIDATES, [0, 0, 0, 1], [[0, 1], [0, 1], [2, 0], [1, -1]], [[1, 0], [1, 1], [1, 0], [0, 0]])
LISTS = WeightedLists.of(aggregate(POOLED_LOG))
EVERY_LIST = np.arange(3)


def test_clicks_of_a_document_are_pooled_over_the_lists_of_its_query() -> None:
    rates = PooledClicks.of(LISTS).rates(EVERY_LIST, no_scaling())
    assert rates.query.tolist() == [0, 1]
    assert rates.sessions.tolist() == [3, 1]
    # The most shown first: document 0 of query 0 in three sessions, 1 in two, 2 in one.
    assert rates.expected_examinations.tolist() == [[3, 2, 1], [1, 0, 0]]
    np.testing.assert_allclose(rates.rate, [[2 / 3, 1 / 2, 1.0], [0.0, 0.0, 0.0]])
    np.testing.assert_allclose(rates.rewards, [[2.0, 1.0, 1.0], [0.0, 0.0, 0.0]])
    np.testing.assert_array_equal(rates.features[rates.documents[0]], CANDIDATES.features[:3])
    np.testing.assert_array_equal(rates.features[rates.documents[1, 0]], CANDIDATES.features[4])


def test_the_rate_is_the_ratio_of_the_sums_and_not_the_mean_of_ratios() -> None:
    clicks, exposure = np.array([[2, 1], [0.5, 1], [0, 0]]), np.array([[4, 2], [1, 1], [1, 1]])
    pooled = PooledClicks(LISTS, clicks, exposure)
    # By document 0, 1 and 2 of query 0: lists [0, 1] and [2, 0].
    expected = {0: (2 + 1) / (4 + 1), 1: 1 / 2, 2: 0.5 / 1}
    rates = pooled.rates(EVERY_LIST, no_scaling())
    np.testing.assert_allclose(rates.rate[0], [expected[document] for document in rates.documents[0].tolist()])


@pytest.mark.parametrize(("max_rate", "expected"), [(1.0, [1.0, 0.25, 0.0]), (5.0, [4.0, 0.25, 0.0])])
def test_rates_are_from_0_to_the_largest(max_rate: float, expected: list[float]) -> None:
    lists = WeightedLists.of(aggregate(log_of(candidates_of(3), [0], [[0, 1, 2]], [[0, 0, 0]])))
    pooled = PooledClicks(lists, np.array([[4, 0.25, -2]]), np.ones((1, 3)), max_rate)
    rates = pooled.rates(np.array([0]), no_scaling())
    assert rates.rate.tolist() == rates.rewards.tolist() == [expected]


def test_only_the_given_lists_count() -> None:
    rates = PooledClicks.of(LISTS).rates(np.array([0]), no_scaling())
    assert (rates.query.tolist(), rates.sessions.tolist(), rates.rate.tolist()) == ([0], [2], [[1, 0.5]])


def test_documents_without_exposure_have_the_rate_0() -> None:
    pooled = PooledClicks(LISTS, np.ones((3, 2)), np.zeros((3, 2)))
    assert not pooled.rates(EVERY_LIST, no_scaling()).rate.any()


def test_pooled_sessions_and_pooled_lists_are_the_same() -> None:
    log = random_log(candidates_of(5, 4, 6), sessions=80, k=4)
    by_session, by_list = (
        PooledClicks.of(WeightedLists.of(rows)).rates(np.arange(len(rows)), no_scaling())
        for rows in (log, aggregate(log))
    )
    np.testing.assert_array_equal(by_session.documents, by_list.documents)
    np.testing.assert_allclose(by_session.rate, by_list.rate)


def test_the_largest_reward_is_that_of_a_click_on_a_query_that_is_not_held_out() -> None:
    assert largest_reward(POOLED_LOG, np.empty(0, np.int64)) == 1
    log = replace(POOLED_LOG, reward=(POOLED_LOG.clicks * [[2], [3], [5], [7]]).astype(np.float32))
    assert largest_reward(log, np.empty(0, np.int64)) == 5
    assert largest_reward(log, np.array([0])) == 1


ENSEMBLE_LOG = small_log(rows=400, queries=12)
RATES = PooledClicks.of(WeightedLists.of(ENSEMBLE_LOG)).rates(np.arange(len(ENSEMBLE_LOG)), no_scaling())


def new_ensemble(logging_policy: LoggingPolicyModel | None = None, **settings: Any) -> StackedEnsemble:
    small = {"hidden": (8,), "lists_per_step": 8, "min_documents_per_leaf": 3, "learning_rate": 0.01}
    config = EnsembleConfig(**{**small, **settings})
    return StackedEnsemble(RATES, config, logging_policy or LoggingPolicyModel(), 1, 1, no_scaling())


def stepped(ensemble: StackedEnsemble, steps: int) -> StackedEnsemble:
    for _ in range(steps):
        ensemble.step()
    return ensemble


def test_it_scores_as_its_policy_does() -> None:
    ensemble = stepped(new_ensemble(), 4)
    scores = ensemble.score(RATES.features)
    assert np.ptp(scores) > 0
    np.testing.assert_allclose(ensemble.policy().score_scaled(RATES.features), scores, rtol=1e-4, atol=1e-5)


def test_weights_are_computed_anew_after_a_step() -> None:
    ensemble = stepped(new_ensemble(), 2)
    before = ensemble.members()
    assert ensemble.members() == before
    ensemble.step()
    assert ensemble.members() != before


def test_it_is_validated_by_the_clicks_of_all_queries() -> None:
    """Out of fold where it was trained; clicks on held-out queries count as much."""
    held_out, ensemble = RATES.select(np.arange(5)), stepped(new_ensemble(), 4)
    none, some = (EnsembleSteps(ensemble, rates) for rates in (RATES.select(np.arange(0)), held_out))
    scores = np.zeros(held_out.where.shape)
    scores[held_out.where] = ensemble.score(held_out.features[held_out.documents[held_out.where]])
    extra = log_likelihood(scores, held_out.rewards, held_out.expected_examinations)
    clicks = [rates.rewards.sum() for rates in (RATES, held_out)]
    expected = (none.held_out_score() * clicks[0] + extra) / sum(clicks)
    assert some.held_out_score() == pytest.approx(expected, rel=1e-6)


def test_a_resumed_ensemble_ends_as_one_that_was_not_stopped() -> None:
    whole, resumed = stepped(new_ensemble(), 4), new_ensemble()
    resumed.load_state(stepped(new_ensemble(), 2).state())
    np.testing.assert_array_equal(stepped(resumed, 2).score(RATES.features), whole.score(RATES.features))


@pytest.mark.parametrize("include", [False, True])
def test_the_logging_policy_is_one_more_kind_of_member(include: bool) -> None:
    logging_policy = LoggingPolicyModel.fit(ENSEMBLE_LOG, no_scaling(), 1, 3) if include else LoggingPolicyModel()
    members = stepped(new_ensemble(logging_policy), 2).members()
    assert len(members) == 9 + len(set(logging_policy.rankers))


def test_documents_with_a_higher_rate_are_scored_higher() -> None:
    """The first feature of `small_log` is what is clicked."""
    ensemble = stepped(new_ensemble(), 40)
    good, bad = np.zeros((2, 1, RATES.features.shape[1]), np.float32)
    good[0, 0], bad[0, 0] = 1.5, -1.5
    assert ensemble.score(good)[0] > ensemble.score(bad)[0]
