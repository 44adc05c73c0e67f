from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from cuolr.clicks.click_model import click_model
from cuolr.clicks.simulate import simulate
from cuolr.data.synthetic import generate_splits
from cuolr.errors import InputError
from cuolr.evaluation.evaluate import score_on
from cuolr.logs.aggregate import aggregate
from cuolr.logs.clicklog import ClickLog
from cuolr.policies.ensemble_policy import BlendPolicy
from cuolr.policies.linear_policy import LinearPolicy
from cuolr.policies.store import load_policy, save_policy
from cuolr.supervised.ranksvm import fit_ranksvm
from cuolr.training.base_learner import Learner
from cuolr.training.batches import held_out_queries
from cuolr.training.fit import fit
from cuolr.training.loop import TrainingResult
from cuolr.training.presets.configure import configure
from cuolr.types import RankingDataset
from tests.learners.lists import build, random_batch
from tests.small_log import small_log

SMALL: dict[str, Any] = {
    "learner.hidden": [8],
    "learner.attractiveness_steps": 20,
    "learner.min_documents_per_leaf": 2,
    "learner.threads": 1,
    "training.validate_every": 2,
}


def trained(log: ClickLog, steps: int = 6, validate: Callable[[Learner], float] | None = None, **kwargs: Any) -> Any:
    settings = {**SMALL, "training.steps": steps, **kwargs.pop("settings", {})}
    return fit(log, configure("factored", settings=settings), validate, **kwargs)


def blend(result: TrainingResult) -> BlendPolicy:
    assert result.best is not None
    assert isinstance(result.best.policy, BlendPolicy)
    return result.best.policy


def simulated(
    model: str, sessions_per_query: int, share: float = 0.01, seed: int = 1, queries: int = 300
) -> tuple[ClickLog, RankingDataset, float]:
    """A log, test queries, and what the logger scores on them."""
    train, _, test = generate_splits("web10k-like", queries, 50, 300, seed)
    logger = fit_ranksvm(train, share, seed)
    log = simulate(train, logger, click_model(model), sessions_per_query * queries, seed=seed)
    return log, test, score_on(test)(logger)


def test_the_same_seed_gives_the_same_policy_and_another_seed_another() -> None:
    log = small_log(300, queries=40)
    first, same = blend(trained(log)), blend(trained(log))
    other = blend(trained(log, settings={"training.seed": 2}))
    scores = first.score(log.candidates)
    np.testing.assert_array_equal(scores, same.score(log.candidates))
    assert (scores != other.score(log.candidates)).any()


def test_a_run_that_is_resumed_ends_as_one_that_was_not_stopped(tmp_path: Path) -> None:
    log = small_log(300, queries=40)
    whole = blend(trained(log, steps=8, settings={"training.keep": "last"}))
    trained(log, steps=4, folder=tmp_path / "run", settings={"training.keep": "last"})
    resumed = blend(trained(log, steps=8, folder=tmp_path / "run", resume=True, settings={"training.keep": "last"}))
    np.testing.assert_array_equal(resumed.score(log.candidates), whole.score(log.candidates))


def test_the_policy_ranks_the_same_after_save_and_load(tmp_path: Path) -> None:
    log = small_log(300, queries=40)
    policy = blend(trained(log))
    save_policy(policy, tmp_path / "model")
    loaded = load_policy(tmp_path / "model")
    np.testing.assert_array_equal(loaded.rank(log.candidates, 5), policy.rank(log.candidates, 5))


def test_the_policy_scores_as_the_learner_does() -> None:
    """In training scores come from the rankers themselves, later from the saved policies."""
    log = small_log(300, queries=40)
    seen: list[tuple[Any, BlendPolicy]] = []

    def validate(learner: Learner) -> float:
        seen.append((learner, learner.policy()))  # type: ignore[arg-type]
        return 0.0

    trained(log, 2, validate)
    learner, policy = seen[-1]
    normaliser = policy.normaliser
    features = torch.from_numpy(normaliser.apply(log.candidates).features)
    expected = sum(weight * ranker.score(features) for ranker, weight in learner._rankers())
    np.testing.assert_allclose(policy.score(log.candidates), expected, rtol=1e-4, atol=1e-5)


def test_nothing_is_learned_from_clicks_on_queries_that_are_held_out() -> None:
    log = small_log(600, queries=40)
    held_out = held_out_queries(log, 0.1, seed=1)
    clicked = np.isin(log.query, held_out)[:, None] & log.where
    other = replace(log, clicks=np.where(clicked, 1, log.clicks).astype(np.uint8))
    settings = {"training.keep": "last", "training.seed": 1}
    first, second = (blend(trained(one, settings=settings)) for one in (log, other))
    np.testing.assert_array_equal(first.score(log.candidates), second.score(log.candidates))


def test_later_steps_do_not_change_a_policy() -> None:
    learner = build("factored", threads=1, min_documents_per_leaf=1)
    learner.update(random_batch())
    policy = learner.policy()
    before = {name: array.copy() for name, array in policy.arrays().items()}
    for _ in range(3):
        learner.update(random_batch())
    for name, array in policy.arrays().items():
        np.testing.assert_array_equal(array, before[name])


@pytest.mark.parametrize("lengths", [(4, 2, 3), (1, 1), (1, 0, 4), (3,)], ids=str)
def test_lists_without_clicks_leave_finite_numbers(lengths: tuple[int, ...]) -> None:
    batch = random_batch(lengths=lengths)
    batch = replace(batch, clicks=0 * batch.clicks)
    learner = build("factored", threads=1)
    for _ in range(2):
        assert all(np.isfinite(value) for value in learner.update(batch).values())
    assert learner.held_out_scores(batch).isfinite().all()


def test_a_log_without_a_click_is_ranked_by_something_finite() -> None:
    log = small_log(60)
    log.clicks[:] = 0
    assert np.isfinite(blend(trained(log)).score(log.candidates)).all()


def test_documents_that_nothing_tells_apart_make_no_weight_large() -> None:
    log = small_log(200, queries=40)
    alike = replace(log.candidates, features=np.full_like(log.candidates.features, 0.3))
    policy = blend(trained(replace(log, candidates=alike)))
    assert max(np.abs(policy.weights)) < 1e3
    assert np.ptp(policy.score(alike)) < 1e-3


def test_an_aggregated_log_is_refused() -> None:
    with pytest.raises(InputError, match="factored"):
        trained(aggregate(small_log(100)))


def test_only_a_sample_of_the_queries_is_learned_from_where_they_are_too_many() -> None:
    log = small_log(4000, queries=600)
    learned_from = []

    def validate(learner: Learner) -> float:
        learned_from.append(int(learner._evidence.where.sum()))  # type: ignore[attr-defined]
        return 0.0

    trained(log, 2, validate, settings={"learner.max_documents": 1000})
    trained(log, 2, validate)
    assert 900 < learned_from[0] <= 1000
    assert learned_from[-1] > 1500


def test_without_the_logged_order_nothing_in_the_policy_is_linear_in_it() -> None:
    log = small_log(300, queries=40)
    with_it, without = blend(trained(log)), blend(trained(log, settings={"learner.logged_order": False}))
    assert sum(isinstance(m, LinearPolicy) for m in with_it.members) == 1
    assert not any(isinstance(m, LinearPolicy) for m in without.members)


@pytest.mark.thorough
def test_where_clicks_say_nothing_the_policy_stays_with_the_logged_order() -> None:
    log, test, logged = simulated("pbm", 3, share=1.0)
    score = score_on(test)
    near = blend(trained(log, 60, settings={"learner.hidden": [64]}))
    far = blend(trained(log, 60, settings={"learner.hidden": [64], "learner.logged_order": False}))
    assert score(near) > score(far) + 0.01
    assert score(near) > logged - 0.02


@pytest.mark.thorough
@pytest.mark.parametrize("model", ["pbm", "cascade", "dcm", "ubm", "ccm"])
def test_it_beats_a_weak_logger_under_every_click_model(model: str) -> None:
    log, test, logged = simulated(model, 100)
    learned = blend(trained(log, 150, settings={"learner.hidden": [64, 64], "training.keep": "last"}))
    assert score_on(test)(learned) > logged + 0.02
