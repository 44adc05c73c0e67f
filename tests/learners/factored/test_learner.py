import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

from cuolr.clicks.click_model import click_model
from cuolr.clicks.simulate import simulate
from cuolr.data.normalise import Normaliser
from cuolr.data.synthetic import generate_splits
from cuolr.errors import InputError
from cuolr.evaluation.evaluate import score_on
from cuolr.examination.from_clicks import ExaminationModel
from cuolr.learners.factored.click_rates import ClickRates
from cuolr.learners.factored.learner import Factored, FactoredSteps
from cuolr.logs.aggregate import aggregate
from cuolr.logs.clicklog import ClickLog
from cuolr.policies.ensemble_policy import EnsemblePolicy
from cuolr.policies.linear_policy import LinearPolicy
from cuolr.policies.model_folder import load_policy, save_policy
from cuolr.policies.policy import RankingPolicy
from cuolr.supervised.ranksvm import fit_ranksvm
from cuolr.training.base_learner import FitTask
from cuolr.training.fit import FitRequest, ModelFolder, fit
from cuolr.training.hold_out import held_out_queries
from cuolr.training.log_form import TrainingLog
from cuolr.training.loop import Loop
from cuolr.training.presets.configure import configure
from cuolr.training.steps import Steps
from cuolr.types import Doubles, RankingDataset
from tests.small_log import small_log

SMALL: dict[str, Any] = {
    "learner.rankers.hidden": [8],
    "learner.rankers.min_documents_per_leaf": 2,
    "learner.click_rates.prior_steps": 20,
    "learner.threads": 1,
    "training.validate_every": 2,
}


Settings = Mapping[str, Any]


def trained(
    log: ClickLog, settings: Settings = MappingProxyType({}), steps: int = 6, folder: ModelFolder | None = None
) -> EnsemblePolicy:
    config = configure("factored", settings={**SMALL, "training.steps": steps, **settings})
    result = fit(FitRequest(TrainingLog.of(log), config, folder=folder))
    assert result.best is not None
    assert isinstance(result.best.policy, EnsemblePolicy)
    return result.best.policy


class KeepsSteps(Loop):
    """A loop that makes no step."""

    def run(self, steps: Steps) -> RankingPolicy:
        self.steps = steps
        return steps.policy()


def steps_of(log: ClickLog, held_out: Sequence[int] = (), settings: Settings = MappingProxyType({})) -> FactoredSteps:
    """What the loop is given to train."""
    config = configure("factored", settings={**SMALL, **settings})
    loop = KeepsSteps(config.training)
    normaliser = Normaliser.fit("log-min-max", log.candidates)
    task = FitTask(log, normaliser, np.array(held_out, np.int64), config.training, loop)
    Factored(config.learner_config).fit(task)
    assert isinstance(loop.steps, FactoredSteps)
    return loop.steps


def simulated(
    model: str, sessions_per_query: int, share: float = 0.01, seed: int = 1, queries: int = 300
) -> tuple[ClickLog, RankingDataset, float]:
    """A log, test queries, and the score of the logging policy on them."""
    train, _, test = generate_splits("web10k-like", queries, 50, 300, seed)
    logger = fit_ranksvm(train, share, seed)
    log = simulate(train, logger, click_model(model), sessions_per_query * queries, seed=seed)
    return log, test, score_on(test)(logger)


def test_the_same_seed_gives_the_same_policy_and_another_seed_another() -> None:
    log = small_log(300, queries=40)
    first, same, other = trained(log), trained(log), trained(log, {"training.seed": 2})
    scores = first.score(log.candidates)
    np.testing.assert_array_equal(scores, same.score(log.candidates))
    assert (scores != other.score(log.candidates)).any()


def test_a_run_that_is_resumed_ends_as_one_that_was_not_stopped(tmp_path: Path) -> None:
    log, last = small_log(300, queries=40), {"training.keep": "last"}
    whole = trained(log, last, steps=8)
    trained(log, last, steps=4, folder=ModelFolder(tmp_path / "run"))
    resumed = trained(log, last, steps=8, folder=ModelFolder(tmp_path / "run", resume=True))
    np.testing.assert_array_equal(resumed.score(log.candidates), whole.score(log.candidates))


@pytest.mark.slow
def test_rankers_on_a_cluster_are_the_same_to_the_bit_and_the_loss_of_a_node_loses_nothing(
    cluster: Any, tmp_path: Path
) -> None:
    log, place = small_log(300, queries=40), ModelFolder(tmp_path / "run")
    few = {"learner.rankers.kinds": ["network", "lambdamart"], "learner.rankers.folds": 2}
    config = configure("factored", settings={**SMALL, **few, "training.steps": 8, "training.keep": "last"})
    whole = fit(FitRequest(TrainingLog.of(log), config, folder=ModelFolder(tmp_path / "whole")))

    def lose_a_node(step: int, values: Mapping[str, float]) -> None:
        if step == 3:
            lost = next(node for node in cluster.list_all_nodes() if node is not cluster.head_node)
            cluster.remove_node(lost, allow_graceful=False)

    some = replace(config, training=replace(config.training, steps=5))
    fit(FitRequest(TrainingLog.of(log), some, folder=place, ray=cluster.address), lose_a_node)
    cluster.add_node(num_cpus=1)
    there = fit(FitRequest(TrainingLog.of(log), config, folder=replace(place, resume=True), ray=cluster.address))
    assert there.validations == {step: whole.validations[step] for step in there.validations}
    assert len(there.validations) >= 4
    lines = ((tmp_path / name / "metrics.jsonl").read_text().splitlines() for name in ("whole", "run"))
    here, cluster_s = ([[json.loads(line)[name] for name in ("step", "loss", "trees")] for line in of] for of in lines)
    assert here == cluster_s
    assert len(here) == 8
    expected, found = (result.best.policy.arrays() for result in (whole, there) if result.best is not None)
    assert expected.keys() == found.keys()
    for name, values in expected.items():
        np.testing.assert_array_equal(found[name], values)


def test_the_policy_ranks_the_same_after_save_and_load(tmp_path: Path) -> None:
    log = small_log(300, queries=40)
    policy = trained(log)
    save_policy(policy, tmp_path / "model")
    loaded = load_policy(tmp_path / "model")
    np.testing.assert_array_equal(loaded.rank(log.candidates, 5), policy.rank(log.candidates, 5))


def test_the_policy_scores_as_its_members_do_in_training() -> None:
    """In training scores come from the rankers themselves, later from the saved policies."""
    log = small_log(300, queries=40)
    steps = steps_of(log)
    steps.step()
    policy = steps.policy()
    features = policy.normaliser.apply(log.candidates).features
    expected = sum(weight * ranker.score(features) for ranker, weight in steps.members())
    np.testing.assert_allclose(policy.score(log.candidates), expected, rtol=1e-4, atol=1e-5)


def test_nothing_is_learned_from_clicks_on_held_out_queries() -> None:
    log = small_log(600, queries=40)
    held_out = held_out_queries(log, 0.1, seed=1)
    clicked = np.isin(log.query, held_out)[:, None] & log.where
    other = replace(log, clicks=np.where(clicked, 1, log.clicks).astype(np.uint8))
    settings = {"training.keep": "last", "training.seed": 1}
    first, second = (trained(one, settings) for one in (log, other))
    np.testing.assert_array_equal(first.score(log.candidates), second.score(log.candidates))


def test_the_held_out_score_is_the_mean_log_likelihood_of_where_clicks_fall() -> None:
    """Query by query: training queries by the rankers of other folds, held-out queries by the policy."""
    log, held_out = small_log(600, queries=40), [3, 17, 25, 31]
    steps = steps_of(log, held_out)
    steps.step()
    by_policy = steps.policy().score(log.candidates).astype(np.float64)
    stacked, shown = steps.stacked(), np.unique(log.documents[log.where])

    def scores_of(rates: ClickRates, row: int) -> Doubles:
        documents = rates.documents[row][rates.where[row]]
        fold = None if rates.query[row] in held_out else steps.fold[row]
        if fold is None:
            scores: Doubles = by_policy[shown[documents]]
        else:
            by_kind = [kind[fold].score(rates.features[documents]) for kind in stacked.kinds]
            scores = (stacked.weights * stacked.scale[:, fold]) @ np.array(by_kind)
        return scores

    total = clicks = 0.0
    for rates in (steps.rates, steps._held_out):
        for row in range(len(rates)):
            where = rates.where[row]
            odds = rates.expected_examinations[row][where] * np.exp(scores_of(rates, row))
            total += float(rates.rewards[row][where] @ np.log(odds / odds.sum()))
            clicks += float(rates.rewards[row].sum())
    assert steps._held_out.query.tolist() == held_out
    assert clicks == (log.clicks * log.where).sum()
    assert steps.held_out_score() == pytest.approx(total / clicks, rel=1e-4)


def test_a_loaded_state_has_weights_of_its_own() -> None:
    """Networks only: their state can be loaded at the same step, with other weights."""
    log = small_log(300, queries=40)
    networks = {"learner.rankers.kinds": ["network"], "learner.logging_policy.include": False}
    trained_steps, other = (steps_of(log, settings={**networks, "training.seed": seed}) for seed in (1, 2))
    for steps in (trained_steps, other):
        steps.step()
        steps.members()
    before = [weight for _, weight in other.members()]
    other.load_state(trained_steps.state())
    assert [weight for _, weight in other.members()] != before


def test_held_out_queries_are_not_among_those_learned_from() -> None:
    log = small_log(600, queries=40)
    assert not set(steps_of(log, [3, 17]).rates.query) & {3, 17}


def test_later_steps_do_not_change_a_policy() -> None:
    steps = steps_of(small_log(300, queries=40))
    steps.step()
    policy = steps.policy()
    before = {name: array.copy() for name, array in policy.arrays().items()}
    for _ in range(3):
        steps.step()
    for name, array in policy.arrays().items():
        np.testing.assert_array_equal(array, before[name])


def test_the_policy_holds_the_examination_of_the_log(tmp_path: Path) -> None:
    log = small_log(300, queries=40)
    policy = trained(log)
    assert policy.examination is not None
    assert policy.examination.shape == (log.k, log.k + 1)
    assert policy.examination[0, 0] == 1
    save_policy(policy, tmp_path / "model")
    loaded = load_policy(tmp_path / "model")
    assert isinstance(loaded, EnsemblePolicy)
    np.testing.assert_array_equal(loaded.examination, policy.examination)
    unknown = trained(log, {"learner.examination.estimate": False})
    assert unknown.examination is None, "all ones would not be an estimate"


def test_its_examination_is_that_of_the_public_model_where_nothing_is_held_out() -> None:
    """But for the seed of the logging-policy model, which is linear here."""
    train = generate_splits("tiny", 100, 10, 10, 1)[0]
    log = simulate(train, fit_ranksvm(train, 0.1, 1), click_model("pbm"), 10_000, seed=1)
    table = steps_of(log).policy().examination
    assert table is not None
    np.testing.assert_allclose(table, ExaminationModel.fit(log).probabilities(), rtol=0.05)


def test_lists_without_clicks_leave_finite_numbers() -> None:
    log = small_log(60)
    log.clicks[:] = 0
    steps = steps_of(log, [1])
    for _ in range(2):
        assert all(np.isfinite(value) for value in steps.step().values())
    assert np.isfinite(steps.held_out_score())
    assert np.isfinite(trained(log).score(log.candidates)).all()


def test_documents_with_equal_features_make_no_weight_large() -> None:
    log = small_log(200, queries=40)
    alike = replace(log.candidates, features=np.full_like(log.candidates.features, 0.3))
    policy = trained(replace(log, candidates=alike))
    assert max(np.abs(policy.weights)) < 1e3
    assert np.ptp(policy.score(alike)) < 1e-3


def test_an_aggregated_log_is_refused() -> None:
    with pytest.raises(InputError, match="factored"):
        trained(aggregate(small_log(100)))


def test_a_sample_of_the_queries_is_learned_from_where_there_are_too_many_documents() -> None:
    log = small_log(4000, queries=600)
    sample, whole = (steps_of(log, settings=each) for each in ({"learner.max_documents": 1000}, {}))
    assert 900 < sample.rates.where.sum() <= 1000
    assert whole.rates.where.sum() > 1500


def test_the_logging_policy_is_a_member_unless_it_is_left_out() -> None:
    log = small_log(300, queries=40)
    with_it, without = trained(log), trained(log, {"learner.logging_policy.include": False})
    linear = [i for i, member in enumerate(with_it.members) if isinstance(member, LinearPolicy)]
    assert with_it.logging_policy_members == tuple(linear)
    assert len(linear) == 1
    assert without.logging_policy_members == ()


def test_a_setting_out_of_range_is_named_with_its_stage() -> None:
    with pytest.raises(InputError, match=r"setting 'learner\.rankers\.folds': expected 2 to 100, found 1"):
        configure("factored", settings={"learner.rankers.folds": 1})


@pytest.mark.thorough
def test_where_clicks_say_little_the_policy_stays_close_to_the_logging_policy() -> None:
    log, test, logged = simulated("pbm", 3, share=1.0)
    score, wide = score_on(test), {"learner.rankers.hidden": [64]}
    near = trained(log, wide, 60)
    far = trained(log, {**wide, "learner.logging_policy.include": False}, 60)
    assert score(near) > score(far) + 0.01
    assert score(near) > logged - 0.02


@pytest.mark.thorough
@pytest.mark.parametrize("model", ["pbm", "cascade", "dcm", "ubm", "ccm"])
def test_it_beats_a_weak_logging_policy_under_every_click_model(model: str) -> None:
    log, test, logged = simulated(model, 100)
    learned = trained(log, {"learner.rankers.hidden": [64, 64], "training.keep": "last"}, 150)
    assert score_on(test)(learned) > logged + 0.02
