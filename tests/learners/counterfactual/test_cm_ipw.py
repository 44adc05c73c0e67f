import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from cuolr.clicks.cascade import CascadeModel
from cuolr.clicks.click_model import ClickModel
from cuolr.clicks.dcm import DependentClickModel
from cuolr.clicks.randomisation import randomise
from cuolr.clicks.simulate import simulate
from cuolr.errors import InputError
from cuolr.examination.propensities import save_propensities
from cuolr.learners.counterfactual.cm_ipw import click_weights
from cuolr.logs.aggregate import aggregate
from cuolr.logs.clicklog import ClickLog
from cuolr.policies.plackett_luce import StochasticLogger
from cuolr.policies.random_policy import RandomPolicy
from cuolr.training.fit import fit
from cuolr.training.presets.configure import configure
from cuolr.types import Floats
from tests.data.small_data import assert_same_log, candidates_of, dataset_of, log_of, random_log
from tests.learners.lists import build

DATASET = dataset_of(*[8] * 20)


def own_file(tmp_path: Path, content: Mapping[str, object]) -> str:
    (tmp_path / "own.json").write_text(json.dumps(content))
    return str(tmp_path / "own.json")


def simulated(model: ClickModel, sessions: int = 5_000, stochastic: bool = False) -> ClickLog:
    """Lists in one order, or drawn around it: some of them again and again, some once."""
    logger = StochasticLogger(RandomPolicy(), 0.05) if stochastic else RandomPolicy()
    return simulate(DATASET, logger, model, sessions, k=6)


def trained(learner: str, log: ClickLog, **settings: object) -> dict[str, Floats]:
    named = {f"learner.{name}": value for name, value in settings.items()}
    config = configure(
        learner, settings={"training.steps": 30, "training.batch_size": 8, "learner.hidden": [16], **named}
    )
    result = fit(log, config)
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


def test_each_sessions_clicks_are_weighted_before_sessions_are_aggregated(tmp_path: Path) -> None:
    log = log_of(candidates_of(3), [0, 0], [[0, 1, 2]] * 2, [[1, 1, 0], [0, 1, 1]])
    prepared = build("cm-ipw", propensities=own_file(tmp_path, {"continuation": [0.5, 0.25]})).prepare(log)
    assert prepared.clicks.tolist() == [[1 / 2, (1 / 0.5 + 1) / 2, (1 / 0.25) / 2]]
    assert prepared.count.tolist() == [2]


def test_an_aggregated_log_is_refused() -> None:
    log = aggregate(random_log(candidates_of(4), sessions=5, k=4))
    with pytest.raises(InputError, match="cm-ipw needs the clicks of each session"):
        build("cm-ipw").prepare(log)


def test_weighted_clicks_are_the_clicks_of_users_who_read_to_the_end(tmp_path: Path) -> None:
    """E[C_k / Π_{i<k} λ_i^C_i] = α(d_k): each way to a click is weighted by the inverse of its chances to go on."""
    model = DependentClickModel()
    log = simulated(model, sessions=400_000)
    file = own_file(tmp_path, {"continuation": model.continuation})
    prepared = build("cm-ipw", propensities=file, max_weight=1e9).prepare(log)
    rows = DATASET.candidates.offsets[prepared.query, None] + prepared.ranking
    attractiveness = 0.1 + 0.9 * (2.0 ** DATASET.relevance[rows] - 1) / (2**4 - 1)
    np.testing.assert_allclose(prepared.clicks.mean(axis=0), attractiveness.mean(axis=0), rtol=0.05)
    naive = aggregate(log).clicks.mean(axis=0)
    assert (naive[3:] < 0.8 * attractiveness.mean(axis=0)[3:]).all()


@pytest.mark.parametrize("stochastic", [False, True])
@pytest.mark.parametrize("estimate", ["mle", "paper"])
def test_under_the_cascade_model_it_equals_naive_number_for_number(
    tmp_path: Path, estimate: str, stochastic: bool
) -> None:
    model = CascadeModel()
    save_propensities(randomise(DATASET, model, 10_000, k=6), tmp_path / "propensity.json")
    log, file = simulated(model, stochastic=stochastic), str(tmp_path / "propensity.json")
    assert (log.logging_propensity is not None) == stochastic
    assert len(aggregate(log)) < len(log)
    assert_same_log(build("cm-ipw", k=6, propensities=file, estimate=estimate).prepare(log), aggregate(log))
    naive, weighted = trained("naive", log), trained("cm-ipw", log, propensities=file, estimate=estimate)
    assert naive.keys() == weighted.keys()
    for name, values in naive.items():
        np.testing.assert_array_equal(weighted[name], values)


def test_under_the_dependent_click_model_it_does_not_equal_naive(tmp_path: Path) -> None:
    model = DependentClickModel()
    save_propensities(randomise(DATASET, model, 10_000, k=6), tmp_path / "propensity.json")
    log = simulated(model)
    naive, weighted = trained("naive", log), trained("cm-ipw", log, propensities=str(tmp_path / "propensity.json"))
    assert any((weighted[name] != values).any() for name, values in naive.items())


def test_the_estimate_is_chosen_by_name_and_a_given_one_is_taken_as_it_is(tmp_path: Path) -> None:
    both = {"mle": {"values": [0.5, None]}, "paper": {"values": [0.25, None]}}
    log = log_of(candidates_of(2), [0], [[0, 1]], [[1, 1]])
    for estimate, expected in (("mle", 2), ("paper", 4)):
        learner = build("cm-ipw", propensities=own_file(tmp_path, {"continuation": both}), estimate=estimate)
        assert learner.prepare(log).clicks.tolist() == [[1, expected]]
    given = build("cm-ipw", propensities=own_file(tmp_path, {"continuation": [0.2]}))
    assert given.prepare(log).clicks.tolist() == [[1, 5]]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ({"examination": [1, 0.5]}, "expected 'continuation' by 'mle', found none"),
        ({"continuation": {"paper": [0.5, 0.5, 0.5]}}, "expected 'continuation' by 'mle', found paper"),
        ({"continuation": [0.5]}, "continuation is needed for 3 positions, but not known for position 2, 3"),
    ],
)
def test_a_file_that_does_not_say_enough_is_refused(
    tmp_path: Path, content: Mapping[str, object], problem: str
) -> None:
    learner = build("cm-ipw", propensities=own_file(tmp_path, content))
    with pytest.raises(InputError, match=problem):
        learner.prepare(random_log(candidates_of(4), sessions=5, k=4))


def test_without_a_file_it_says_how_to_get_one() -> None:
    with pytest.raises(InputError) as raised:
        build("cm-ipw").prepare(random_log(candidates_of(4), sessions=5, k=4))
    (problem,) = raised.value.problems
    assert "--randomised-lists" in problem
    assert "--propensities" in problem
    assert "settings={'learner.propensities': FILE}" in problem


def test_a_file_that_is_not_there_is_said_to_be_of_continuation(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected examination or continuation by position"):
        build("cm-ipw", propensities=str(tmp_path / "none.json")).prepare(random_log(candidates_of(4), 5, 4))


def test_it_does_not_mind_that_examination_is_not_known(tmp_path: Path) -> None:
    file = own_file(tmp_path, {"examination": [None, None], "continuation": [0.5]})
    log = log_of(candidates_of(2), [0], [[0, 1]], [[1, 1]])
    assert build("cm-ipw", propensities=file).prepare(log).clicks.tolist() == [[1, 1 / 0.5]]
