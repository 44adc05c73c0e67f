from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cuolr.clicks.cascade import CascadeModel
from cuolr.clicks.click_model import ClickModel
from cuolr.clicks.dcm import DependentClickModel
from cuolr.clicks.randomisation import randomise
from cuolr.clicks.simulate import simulate
from cuolr.errors import InputError
from cuolr.examination.propensities import Estimate, Propensities
from cuolr.learners.counterfactual.cm_ipw import CMIPW, click_weights
from cuolr.logs.aggregate import aggregate
from cuolr.logs.clicklog import ClickLog
from cuolr.policies.plackett_luce import StochasticLogger
from cuolr.policies.random_policy import RandomPolicy
from cuolr.training.batches import WeightedLists
from cuolr.training.presets.configure import configure
from cuolr.types import Floats
from tests.data.small_data import candidates_of, dataset_of, log_of, random_log
from tests.training.tasks import fit_log, task_of

DATASET = dataset_of(*[8] * 20)


def continuing(**estimates: tuple[float | None, ...]) -> Propensities:
    return Propensities(continuation={method: Estimate(values) for method, values in estimates.items()})


def prepare(log: ClickLog, propensities: Propensities | None, **settings: Any) -> WeightedLists:
    """The lists of a log with weighted clicks."""
    learner = CMIPW(CMIPW.Config(**settings))
    return learner.weighted_lists(task_of(log, propensities))


def simulated(model: ClickModel, sessions: int = 5_000, stochastic: bool = False) -> ClickLog:
    """Lists in one order, or drawn around it: some of them again and again, some once."""
    logger = StochasticLogger(RandomPolicy(), 0.05) if stochastic else RandomPolicy()
    return simulate(DATASET, logger, model, sessions, k=6)


def trained(
    learner: str, log: ClickLog, propensities: Propensities | None = None, **settings: object
) -> dict[str, Floats]:
    named = {f"learner.{name}": value for name, value in settings.items()}
    config = configure(
        learner, settings={"training.steps": 30, "training.batch_size": 8, "learner.hidden": [16], **named}
    )
    result = fit_log(log, config, propensities=propensities)
    assert result.best is not None
    return result.best.policy.arrays()


def test_a_click_counts_for_all_who_would_have_gone_on_to_it() -> None:
    clicks = np.array([[1, 0, 1, 1], [0, 0, 1, 0], [1, 1, 1, 1]])
    weights = click_weights(clicks, np.array([0.5, 0.8, 0.25]), max_weight=1_000)
    expected = [
        [1, 1 / 0.5, 1 / 0.5, 1 / (0.5 * 0.25)],
        [1, 1, 1, 1 / 0.25],
        [1, 1 / 0.5, 1 / (0.5 * 0.8), 1 / (0.5 * 0.8 * 0.25)],
    ]
    np.testing.assert_allclose(weights, expected)


def test_no_weight_is_larger_than_the_bound() -> None:
    clicks = np.array([[1, 1, 1]])
    assert click_weights(clicks, np.array([0.5, 0.0]), max_weight=9).tolist() == [[1, 2, 9]]
    assert click_weights(clicks, np.array([0.5, 0.0]), max_weight=1.5).tolist() == [[1, 1.5, 1.5]]


def test_each_sessions_clicks_are_weighted_before_sessions_are_aggregated() -> None:
    log = log_of(candidates_of(3), [0, 0], [[0, 1, 2]] * 2, [[1, 1, 0], [0, 1, 1]])
    prepared = prepare(log, continuing(given=(0.5, 0.25)))
    assert prepared.targets.tolist() == [[1 / 2, (1 / 0.5 + 1) / 2, (1 / 0.25) / 2]]
    assert prepared.count.tolist() == [2]


def test_an_aggregated_log_is_refused() -> None:
    log = aggregate(random_log(candidates_of(4), sessions=5, k=4))
    with pytest.raises(InputError, match="cm-ipw needs the clicks of each session"):
        fit_log(log, configure("cm-ipw"))


def test_weighted_clicks_are_the_clicks_of_users_who_read_to_the_end() -> None:
    """E[C_k / Π_{i<k} λ_i^C_i] = α(d_k): each way to a click is weighted by the inverse of its chances to go on."""
    model = DependentClickModel()
    log = simulated(model, sessions=400_000)
    prepared = prepare(log, continuing(given=model.continuation), max_weight=1e9)
    rows = DATASET.candidates.offsets[prepared.query, None] + prepared.ranking
    attractiveness = 0.1 + 0.9 * (2.0 ** DATASET.relevance[rows] - 1) / (2**4 - 1)
    np.testing.assert_allclose(prepared.targets.mean(axis=0), attractiveness.mean(axis=0), rtol=0.05)
    naive = aggregate(log).clicks.mean(axis=0)
    assert (naive[3:] < 0.8 * attractiveness.mean(axis=0)[3:]).all()


@pytest.mark.parametrize("stochastic", [False, True])
@pytest.mark.parametrize("estimate", ["mle", "paper"])
def test_under_the_cascade_model_it_equals_naive_number_for_number(estimate: str, stochastic: bool) -> None:
    model = CascadeModel()
    propensities = randomise(DATASET, model, 10_000, k=6)
    log = simulated(model, stochastic=stochastic)
    assert (log.logging_propensity is not None) == stochastic
    assert len(aggregate(log)) < len(log)
    prepared, lists = prepare(log, propensities, estimate=estimate), aggregate(log)
    for ours, expected in ((prepared.ranking, lists.ranking), (prepared.targets, lists.clicks)):
        np.testing.assert_array_equal(ours, expected)
    naive, weighted = trained("naive", log), trained("cm-ipw", log, propensities, estimate=estimate)
    assert naive.keys() == weighted.keys()
    for name, values in naive.items():
        np.testing.assert_array_equal(weighted[name], values)


def test_under_the_dependent_click_model_it_does_not_equal_naive() -> None:
    model = DependentClickModel()
    log = simulated(model)
    naive, weighted = trained("naive", log), trained("cm-ipw", log, randomise(DATASET, model, 10_000, k=6))
    assert any((weighted[name] != values).any() for name, values in naive.items())


def test_the_estimate_is_chosen_by_name_and_a_given_one_is_taken_as_it_is() -> None:
    both = continuing(mle=(0.5, None), paper=(0.25, None))
    log = log_of(candidates_of(2), [0], [[0, 1]], [[1, 1]])
    for estimate, expected in (("mle", 2), ("paper", 4)):
        assert prepare(log, both, estimate=estimate).targets.tolist() == [[1, expected]]
    assert prepare(log, continuing(given=(0.2,))).targets.tolist() == [[1, 5]]


@pytest.mark.parametrize(
    ("propensities", "problem"),
    [
        (Propensities(Estimate((1, 0.5))), "expected 'continuation' by 'mle', found none"),
        (continuing(paper=(0.5, 0.5, 0.5)), "expected 'continuation' by 'mle', found paper"),
        (continuing(given=(0.5,)), "continuation is needed for 3 positions, but unknown for position 2, 3"),
        (None, "cm-ipw needs the probability of continuing after a click: give propensities. `cuolr propensity`"),
    ],
)
def test_propensities_that_do_not_say_enough_are_refused(propensities: Propensities | None, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        prepare(random_log(candidates_of(4), sessions=5, k=4), propensities)


def test_it_does_not_mind_that_examination_is_not_known() -> None:
    propensities = replace(continuing(given=(0.5,)), examination=Estimate((None, None)))
    log = log_of(candidates_of(2), [0], [[0, 1]], [[1, 1]])
    assert prepare(log, propensities).targets.tolist() == [[1, 1 / 0.5]]
