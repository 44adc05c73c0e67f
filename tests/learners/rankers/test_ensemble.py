import threading
import warnings
from dataclasses import replace
from typing import Any

import lightgbm as lgb
import numpy as np
import pytest
import torch

from cuolr.config import SettingError
from cuolr.data.normalise import Normaliser
from cuolr.learners.rankers.base_ranker import at_once, scores_of
from cuolr.learners.rankers.ensemble import CrossFittedEnsemble, EnsembleConfig
from cuolr.learners.rankers.lambdamart import DOCUMENTS_PER_THREAD, LEVELS, LambdaMartRanker, QueryGroups
from cuolr.learners.rankers.linear import LinearRanker
from cuolr.learners.rankers.network import NetworkRanker
from cuolr.learners.rankers.targets import Targets
from cuolr.policies.regression_trees import RegressionTrees
from cuolr.policies.trees_policy import RANKING_TREES
from cuolr.types import Candidates
from tests.learners.rankers.small_targets import NORMALISER, small_targets

TARGETS = small_targets(lists=80)
FEATURES = TARGETS.features.numpy()
PARAMETERS: dict[str, Any] = {"num_leaves": 7, "learning_rate": 0.1, "min_data_in_leaf": 5, "num_threads": 1, "seed": 1}


def new_ranker(lists: QueryGroups | None = None, **parameters: Any) -> LambdaMartRanker:
    lists = QueryGroups.of(TARGETS, float(TARGETS.target.max())) if lists is None else lists
    return LambdaMartRanker(lists, {**PARAMETERS, **parameters}, NORMALISER)


def test_targets_become_grades_with_linear_gain() -> None:
    lists = QueryGroups.of(TARGETS, highest=1.0)
    expected = [
        round(LEVELS * float(TARGETS.target[row, place]))
        for row, place in zip(*np.nonzero(TARGETS.where.numpy()), strict=True)
    ]
    assert lists.grades.tolist() == expected
    assert lists.gain == tuple(range(LEVELS + 1))
    assert lists.sizes.tolist() == TARGETS.where.sum(dim=1).tolist()
    np.testing.assert_array_equal(lists.weight, np.repeat(TARGETS.weight.numpy(), lists.sizes))
    assert lists.rows is not None
    np.testing.assert_array_equal(
        lists.features[lists.rows], TARGETS.features[TARGETS.documents[TARGETS.where]].numpy()
    )


def test_scores_follow_the_targets() -> None:
    ranker = new_ranker()
    for _ in range(40):
        ranker.step()
    assert np.corrcoef(ranker.score(FEATURES), FEATURES[:, 0])[0, 1] > 0.9


def test_a_step_is_one_more_tree() -> None:
    ranker = new_ranker()
    assert [ranker.step()["trees"] for _ in range(3)] == [1, 2, 3]
    assert len(ranker.policy().trees.leaves) == 3


def test_a_step_without_a_split_adds_no_tree_to_the_count() -> None:
    lists = QueryGroups(np.ones((40, 1), np.float32), np.tile([1, 0], 20).astype(np.int8), np.full(20, 2))
    ranker = new_ranker(lists)
    reported = [ranker.step()["trees"] for _ in range(3)]
    assert reported[-1] == len(ranker.policy().trees.leaves) < 3


def test_a_resumed_ranker_takes_the_steps_that_grew_no_tree_as_well() -> None:
    lists = QueryGroups(np.ones((40, 1), np.float32), np.tile([1, 0], 20).astype(np.int8), np.full(20, 2))
    stopped, resumed = new_ranker(lists), new_ranker(lists)
    for _ in range(3):
        stopped.step()
    resumed.load_state(stopped.state())
    assert resumed.state() == stopped.state()


def test_an_earlier_state_is_refused_because_trees_cannot_be_removed() -> None:
    ranker = new_ranker()
    ranker.step()
    earlier = ranker.state()
    ranker.step()
    with pytest.raises(AssertionError, match="trees cannot be removed"):
        ranker.load_state(earlier)


def test_later_steps_do_not_change_a_policy() -> None:
    ranker = new_ranker()
    ranker.step()
    policy = ranker.policy()
    before = policy.score_scaled(FEATURES)
    np.testing.assert_allclose(before, ranker.score(FEATURES), rtol=1e-6)
    ranker.step()
    np.testing.assert_array_equal(policy.score_scaled(FEATURES), before)
    assert (ranker.score(FEATURES) != before).any()


def test_a_ranker_that_is_resumed_ends_as_one_that_was_not_stopped() -> None:
    whole, stopped, resumed = new_ranker(), new_ranker(), new_ranker()
    for _ in range(5):
        whole.step()
    for _ in range(3):
        stopped.step()
    resumed.load_state(stopped.state())
    for _ in range(2):
        resumed.step()
    np.testing.assert_array_equal(resumed.score(FEATURES), whole.score(FEATURES))


def test_grades_may_be_given_with_the_position_of_each_document() -> None:
    """Every document is clicked at position 1 and none at 2; only the offset of the position explains that."""
    rng = np.random.default_rng(0)
    features = rng.uniform(-1, 1, (400, 4)).astype(np.float32)
    clicks, position = np.tile([1, 0], 200).astype(np.int8), np.tile([0, 1], 200).astype(np.int32)
    features[:, 0] = np.where(position == 0, 0.5, -0.5)
    sizes = np.full(200, 2)
    spread = {}
    for name, where in (("with", position), ("without", None)):
        ranker = new_ranker(QueryGroups(features, clicks, sizes, position=where))
        for _ in range(20):
            ranker.step()
        spread[name] = np.ptp(ranker.score(features))
    assert spread["with"] < spread["without"]


def test_features_that_are_binned_in_parts_give_the_same_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    """With constant and sparse features, and with missing values, which become NaN again."""
    rng = np.random.default_rng(0)
    raw = rng.uniform(-1, 1, (600, 20)).astype(np.float32)
    raw[:, 3:12] *= rng.random((600, 9)) < 0.1
    raw[:, 12:15] = 1.0
    raw[rng.random(600) < 0.3, 7] = np.nan
    candidates = Candidates(raw, np.array([0, 600]), np.array(["q"]))
    normaliser = Normaliser.fit("min-max", candidates)
    grades = np.clip(10 * raw[:, 0] + 9 * raw[:, 19] + rng.normal(size=600), 0, 30).astype(np.int64)
    lists = QueryGroups(
        normaliser.transform(raw), grades[::-1], np.full(60, 10), gain=tuple(range(31)), rows=np.arange(600)[::-1]
    )
    trees = []
    for values in (1 << 20, 1):
        monkeypatch.setattr("cuolr.policies.trees_policy.VALUES_AT_A_TIME", values)
        ranker = LambdaMartRanker(lists, PARAMETERS, normaliser)
        for _ in range(10):
            ranker.step()
        trees.append(ranker.booster.model_to_string())
    assert trees[0] == trees[1]
    by_row = LambdaMartRanker(lists, PARAMETERS, normaliser)
    parameters = {**RANKING_TREES, "label_gain": list(range(31)), **PARAMETERS}
    whole = lgb.Dataset(normaliser.natively(lists.features[::-1]), lists.grades, group=lists.sizes, params=parameters)
    booster = lgb.Booster(parameters, whole)
    for _ in range(10):
        booster.update()
        by_row.step()
    of_ranker, of_booster = (
        RegressionTrees.from_lightgbm(each.model_to_string()) for each in (by_row.booster, booster)
    )
    for name, array in of_booster.arrays().items():
        np.testing.assert_array_equal(of_ranker.arrays()[name], array)


@pytest.mark.parametrize(("documents", "threads"), [(100, 1), (DOCUMENTS_PER_THREAD, 2), (9 * DOCUMENTS_PER_THREAD, 4)])
def test_a_thread_is_used_for_so_many_documents(documents: int, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cuolr.learners.rankers.lambdamart.DOCUMENTS_PER_THREAD", DOCUMENTS_PER_THREAD // 100)
    n = documents // 100
    lists = QueryGroups(np.ones((n, 1), np.float32), np.zeros(n, np.int8), np.ones(n, np.int64))
    assert new_ranker(lists, num_threads=4).policy().threads == threads


ENSEMBLE_TARGETS = small_targets(lists=60)
FOLD = np.arange(60) % 3


def new_ensemble(
    targets: Targets = ENSEMBLE_TARGETS, seed: int = 1, threads: int = 1, **settings: Any
) -> CrossFittedEnsemble:
    config = EnsembleConfig(**{"hidden": (8,), "lists_per_step": 16, "min_documents_per_leaf": 3, **settings})
    return CrossFittedEnsemble(targets, FOLD[: len(targets)], config, seed, threads, NORMALISER)


def scores(ensemble: CrossFittedEnsemble) -> list[list[np.ndarray[Any, Any]]]:
    return [[ranker.score(FEATURES) for ranker in kind] for kind in ensemble.kinds]


def test_rankers_on_several_threads_are_those_of_one_to_the_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    one, several = new_ensemble(), new_ensemble(threads=3)
    for _ in range(5):
        one.step()
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    monkeypatch.setattr("cuolr.policies.trees_policy.MIN_FEATURES_AT_A_TIME", 1)
    monkeypatch.setattr("cuolr.policies.trees_policy.VALUES_AT_A_TIME", 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(5):
            several.step()
    np.testing.assert_array_equal(scores(several), scores(one))
    np.testing.assert_array_equal(scores_of(several.kinds[0], FEATURES), scores(one)[0])


@pytest.mark.parametrize(("limit", "of_torch", "used"), [(3, 8, 3), (8, 2, 2), (1, 8, 1), (8, 1, 1)])
def test_as_many_rankers_at_once_as_there_are_threads(
    limit: int, of_torch: int, used: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch, "get_num_threads", lambda: of_torch)
    everyone = threading.Barrier(used, timeout=10)
    assert at_once([everyone.wait] * 2 * used, limit) != []  # it would time out with fewer threads


def test_there_is_a_ranker_of_each_kind_and_fold() -> None:
    ensemble = new_ensemble(kinds=("lambdamart", "network", "linear"), folds=3)
    assert [len(kind) for kind in ensemble.kinds] == [3, 3, 3]
    for kind, expected in zip(ensemble.kinds, (LambdaMartRanker, NetworkRanker, LinearRanker), strict=True):
        assert all(type(ranker) is expected for ranker in kind)


def test_a_ranker_is_not_fitted_to_its_own_fold() -> None:
    """Other targets in fold 1 change the rankers of the other folds, and not its own."""
    target = ENSEMBLE_TARGETS.target.clone()
    target[0, 0] = 1.0  # the highest, so that grades are of the same scale
    changed = torch.where(torch.from_numpy(FOLD == 1)[:, None] & ENSEMBLE_TARGETS.where, 1 - target, target)
    first, second = (new_ensemble(replace(ENSEMBLE_TARGETS, target=each)) for each in (target, changed))
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
    ensemble = new_ensemble(ENSEMBLE_TARGETS.select(np.array([0])))
    ensemble.step()
    assert np.isfinite(scores(ensemble)).all()


@pytest.mark.parametrize("kinds", [(), ("linear", "linear")])
def test_each_kind_is_named_once(kinds: tuple[Any, ...]) -> None:
    with pytest.raises(SettingError, match="'kinds': expected one or more kinds, each once"):
        EnsembleConfig(kinds=kinds)
