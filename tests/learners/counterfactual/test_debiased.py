from dataclasses import fields
from typing import Any

import numpy as np
import pytest

import cuolr
from cuolr.clicks.pbm import PositionBasedModel
from cuolr.clicks.simulate import Simulation
from cuolr.errors import InputError
from cuolr.examination.propensities import Estimate, Propensities
from cuolr.learners.counterfactual.ipw import IPW
from cuolr.learners.rankers.lambdamart import QueryGroups
from cuolr.learners.rankers.targets import Targets
from cuolr.logs.aggregate import aggregate
from cuolr.logs.log_folder import concatenate
from cuolr.policies.ensemble_policy import EnsemblePolicy
from cuolr.policies.network_policy import NetworkPolicy
from cuolr.policies.random_policy import UniformLogger
from cuolr.policies.trees_policy import TreesPolicy
from cuolr.training import distributed
from cuolr.training.base_learner import LEARNERS
from cuolr.training.fit import FitRequest, fit
from cuolr.training.log_form import TrainingLog
from cuolr.training.presets.configure import configure
from cuolr.training.warm_start import WarmStart
from cuolr.types import Doubles
from tests.data.small_data import dataset_of
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
