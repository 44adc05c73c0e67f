from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from cuolr.config import SettingError
from cuolr.learners.rankers.ensemble import CrossFittedEnsemble, EnsembleConfig
from cuolr.learners.rankers.lambdamart import LambdaMartRanker
from cuolr.learners.rankers.linear import LinearRanker
from cuolr.learners.rankers.network import NetworkRanker
from cuolr.learners.rankers.targets import Targets
from tests.learners.rankers.small_targets import NORMALISER, small_targets

TARGETS = small_targets(lists=60)
FEATURES = TARGETS.features.numpy()
FOLD = np.arange(60) % 3


def new_ensemble(targets: Targets = TARGETS, seed: int = 1, **settings: Any) -> CrossFittedEnsemble:
    config = EnsembleConfig(**{"hidden": (8,), "lists_per_step": 16, "min_documents_per_leaf": 3, **settings})
    return CrossFittedEnsemble(targets, FOLD[: len(targets)], config, seed, 1, NORMALISER)


def scores(ensemble: CrossFittedEnsemble) -> list[list[np.ndarray[Any, Any]]]:
    return [[ranker.score(FEATURES) for ranker in kind] for kind in ensemble.kinds]


def test_there_is_a_ranker_of_each_kind_and_fold() -> None:
    ensemble = new_ensemble(kinds=("lambdamart", "network", "linear"), folds=3)
    assert [len(kind) for kind in ensemble.kinds] == [3, 3, 3]
    for kind, expected in zip(ensemble.kinds, (LambdaMartRanker, NetworkRanker, LinearRanker), strict=True):
        assert all(type(ranker) is expected for ranker in kind)


def test_a_ranker_is_not_fitted_to_its_own_fold() -> None:
    """Other targets in fold 1 change the rankers of the other folds, and not its own."""
    target = TARGETS.target.clone()
    target[0, 0] = 1.0  # the highest, so that grades are of the same scale
    changed = torch.where(torch.from_numpy(FOLD == 1)[:, None] & TARGETS.where, 1 - target, target)
    first, second = (new_ensemble(replace(TARGETS, target=each)) for each in (target, changed))
    for _ in range(3):
        first.step()
        second.step()
    for mine, theirs in zip(scores(first), scores(second), strict=True):
        np.testing.assert_array_equal(mine[1], theirs[1])
        assert (mine[0] != theirs[0]).any()
        assert (mine[2] != theirs[2]).any()


def test_a_step_logs_the_mean_loss_and_all_trees() -> None:
    ensemble = new_ensemble()
    ensemble.step()
    values = ensemble.step()
    assert values["trees"] == 3 * 2
    assert np.isfinite(values["loss"])
    assert new_ensemble(kinds=("linear",)).step().keys() == {"loss"}
    assert new_ensemble(kinds=("lambdamart",)).step().keys() == {"trees"}


def test_an_ensemble_that_is_resumed_ends_as_one_that_was_not_stopped() -> None:
    whole, stopped, resumed = new_ensemble(), new_ensemble(), new_ensemble()
    for _ in range(4):
        whole.step()
    for _ in range(2):
        stopped.step()
    resumed.load_state(stopped.state())
    for _ in range(2):
        resumed.step()
    np.testing.assert_array_equal(scores(resumed), scores(whole))


def test_another_seed_gives_other_rankers() -> None:
    first, other = (new_ensemble(seed=seed, kinds=("network", "linear")) for seed in (1, 2))
    first.step()
    other.step()
    assert all(
        (a != b).any()
        for mine, theirs in zip(scores(first), scores(other), strict=True)
        for a, b in zip(mine, theirs, strict=True)
    )


def test_with_one_list_alone_all_rankers_are_fitted_to_it() -> None:
    ensemble = new_ensemble(TARGETS.select(np.array([0])))
    ensemble.step()
    assert np.isfinite(scores(ensemble)).all()


@pytest.mark.parametrize("kinds", [(), ("linear", "linear")])
def test_each_kind_is_named_once(kinds: tuple[Any, ...]) -> None:
    with pytest.raises(SettingError, match="'kinds': expected one or more kinds, each once"):
        EnsembleConfig(kinds=kinds)
