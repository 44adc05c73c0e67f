from dataclasses import replace

import numpy as np
import pytest

from cuolr.errors import InputError
from cuolr.export.check_export import check_export, compare_scores, reorders
from cuolr.export.exporter import PointwiseModel
from cuolr.export.raw_trees import raw_trees
from cuolr.policies.regression_trees import MISSING_LEFT, MISSING_RIGHT, RegressionTrees
from cuolr.policies.trees_policy import TreesPolicy
from cuolr.types import Doubles, Floats
from tests.export.example_models import FEATURES, trees

MODEL = PointwiseModel.of(trees())


def score_of(changed: RegressionTrees):  # type: ignore[no-untyped-def]
    policy = TreesPolicy(changed)

    def score(features: Floats) -> Doubles:
        return policy.score_scaled(features).astype(np.float64)

    return score


def test_the_same_trees_pass() -> None:
    check = check_export(MODEL, score_of(raw_trees(MODEL)), number=100)
    splits = len(MODEL.members[0].trees.feature)  # type: ignore[union-attr]
    assert (check.random_documents, check.threshold_documents) == (100, 4 * splits)
    assert check.max_difference < 1e-6
    check.require()


@pytest.mark.parametrize("direction", [-np.inf, np.inf])
def test_any_single_threshold_that_is_off_by_one_ulp_is_noticed(direction: float) -> None:
    correct = raw_trees(MODEL)
    for split in np.flatnonzero(np.isfinite(correct.threshold))[::17]:
        threshold = correct.threshold.copy()
        threshold[split] = np.nextafter(np.float32(threshold[split]), np.float32(direction))
        check = check_export(MODEL, score_of(replace(correct, threshold=threshold)), number=1)
        assert check.max_difference > 1e-6, split


def test_any_missing_direction_of_a_root_that_is_wrong_is_noticed() -> None:
    correct = raw_trees(MODEL)
    for root in (np.cumsum(correct.leaves - 1) - (correct.leaves - 1))[::3]:
        kind = correct.kind.copy()
        kind[root] = MISSING_LEFT + MISSING_RIGHT - kind[root]
        check = check_export(MODEL, score_of(replace(correct, kind=kind)), number=1)
        assert check.max_difference > 1e-6, root


def test_scores_that_rank_otherwise_are_refused() -> None:
    with pytest.raises(InputError, match="in another order"):
        compare_scores(np.array([1.0, 2.0]), np.array([2.0, 1.0]), 2).require()
    with pytest.raises(InputError, match="in another order"):
        compare_scores(np.array([1.0, 2.0]), np.array([1.0, np.nan]), 2).require()
    with pytest.raises(InputError, match="not finite numbers"):
        compare_scores(np.array([1.0, np.nan]), np.array([1.0, np.nan]), 2).require()
    compare_scores(np.array([1.0, 2.0]), np.array([10.0, 20.0]), 2).require()


def test_pairs_within_rounding_may_change_places() -> None:
    rng = np.random.default_rng(0)
    expected = rng.normal(size=300)
    for noise in (1e-9, 1e-3):
        found = expected + noise * rng.normal(size=300)
        first, second = np.meshgrid(np.arange(300), np.arange(300))
        pairs = (expected[first] - expected[second] > 1e-6) & (found[first] <= found[second])
        assert reorders(expected, found, 1e-6) == pairs.any()
    assert pairs.any()


def test_random_documents_have_all_features() -> None:
    seen = []
    check_export(MODEL, lambda features: seen.append(features) or MODEL.score(features), number=500)  # type: ignore[func-returns-value]
    assert all(documents.shape[1] == FEATURES for documents in seen)
    assert np.isnan(seen[0]).any(axis=0).all()
    assert not np.isinf(np.concatenate(seen)).any()
