from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuolr.data.normalise import Normaliser
from cuolr.errors import InputError
from cuolr.export.check_export import check_export, compare_scores, reorders
from cuolr.export.exporter import CannotHold, PointwiseModel
from cuolr.export.raw_trees import folded, highest_raw, raw_trees
from cuolr.policies.regression_trees import MISSING_LEFT, MISSING_RIGHT, NO_MISSING, RegressionTrees
from cuolr.policies.trees_policy import TreesPolicy
from cuolr.types import Candidates, Doubles, Floats
from tests.export.example_models import FEATURES, documents, linear, tree_ensemble, trees

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


# Zero to four: scaled to −1 … 1.
FOUR = Normaliser("min-max", np.array([0.0]), np.array([4.0]))
FINITE = st.floats(-(2.0**120), 2.0**120, width=32)


def above(value: float) -> float:
    return float(np.nextafter(np.float32(value), np.float32(np.inf)))


def stump(threshold: float, kind: int = NO_MISSING) -> RegressionTrees:
    """−1 up to the threshold, 1 above."""
    one = np.array([0])
    values = np.array([-1.0, 1.0])
    return RegressionTrees(1, np.array([2]), one, np.array([threshold]), np.array([kind]), one - 1, one - 2, values)


def test_a_threshold_is_moved_to_the_raw_value_that_is_scaled_to_it() -> None:
    zero = np.zeros(1, np.int64)
    # (1 − 2) / 2 = −0.5, and the next float32 number above 1 is scaled to more.
    assert highest_raw(FOUR, zero, np.array([-0.5])).tolist() == [1.0]
    # All values are clipped to at most 1, none to below −1.
    assert highest_raw(FOUR, zero, np.array([1.0])).tolist() == [np.inf]
    assert highest_raw(FOUR, zero, np.array([-1.5])).tolist() == [-np.inf]
    # (2⁻²⁴ − 2) / 2 = −1 + 2⁻²⁵ is half way between two float32 numbers, and rounded to −1, which is even.
    assert highest_raw(FOUR, zero, np.array([-1.0])).tolist() == [2.0**-24]


def test_a_logarithm_is_undone() -> None:
    log = Normaliser("log-min-max", np.array([0.0]), np.array([2 * np.log(4.0)]))
    # scaled(x) = log(1 + x) / log 4 − 1 ≤ 0 up to x = 3.
    (found,) = highest_raw(log, np.zeros(1, np.int64), np.array([0.0]))
    assert found == pytest.approx(3, abs=1e-6)


@given(st.floats(-1.2, 1.2), st.sampled_from(["min-max", "log-min-max"]), FINITE, FINITE, FINITE)
def test_every_raw_value_goes_where_its_scaled_value_goes(
    threshold: float, kind: str, one: float, two: float, value: float
) -> None:
    candidates = Candidates(np.array([[one], [two]], np.float32), np.array([0, 2]), np.array(["q"]))
    scaling = Normaliser.fit(kind, candidates)
    (highest,) = highest_raw(scaling, np.zeros(1, np.int64), np.array([threshold]))
    values = [one, two, value, 0.0]
    if np.isfinite(highest):
        # The thresholds of LightGBM around 0 are ±1e-35, below which it takes a number for 0.
        values += [highest, min(above(highest), 3.4e38)]
    raw = np.array(values, np.float32)
    scaled = scaling.transform(raw[:, None])[:, 0].astype(np.float64)
    scaled = np.where(np.abs(scaled) <= 1e-35, 0, scaled)
    assert (raw <= highest).tolist() == (scaled <= threshold).tolist()


def test_where_no_value_goes_left_the_sides_are_exchanged() -> None:
    found = folded(TreesPolicy(stump(-2.0, MISSING_LEFT), 1, FOUR))
    assert found.threshold.tolist() == [np.inf]
    assert (found.left.tolist(), found.right.tolist()) == ([-2], [-1])
    assert found.kind.tolist() == [MISSING_RIGHT]


def test_a_missing_value_goes_where_the_median_goes_if_none_was_missing_in_training() -> None:
    full = Candidates(np.array([[0.0], [3.0], [4.0]], np.float32), np.array([0, 3]), np.array(["q"]))
    scaling = Normaliser.fit("min-max", full)  # the median 3 is scaled to 0.5
    assert folded(TreesPolicy(stump(0.4, MISSING_LEFT), 1, scaling)).kind.tolist() == [MISSING_RIGHT]
    assert folded(TreesPolicy(stump(0.6, MISSING_RIGHT), 1, scaling)).kind.tolist() == [MISSING_LEFT]


def test_a_missing_value_follows_the_split_if_some_were_missing_in_training() -> None:
    some = Candidates(np.array([[0.0], [np.nan], [4.0]], np.float32), np.array([0, 3]), np.array(["q"]))
    scaling = Normaliser.fit("min-max", some)
    for kind in (MISSING_LEFT, MISSING_RIGHT):
        assert folded(TreesPolicy(stump(0.4, kind), 1, scaling)).kind.tolist() == [kind]
    # A split that knows no missing values takes them for 0.
    assert folded(TreesPolicy(stump(0.4, NO_MISSING), 1, scaling)).kind.tolist() == [MISSING_LEFT]
    assert folded(TreesPolicy(stump(-0.4, NO_MISSING), 1, scaling)).kind.tolist() == [MISSING_RIGHT]


def test_trees_of_an_ensemble_have_its_weights() -> None:
    joined = raw_trees(PointwiseModel.of(tree_ensemble()))
    one, two = trees(seed=0).trees, trees(seed=1).trees
    expected = [*(one.value * np.float32(0.3)), *(two.value * np.float64(np.float32(-1.7)))]
    assert sorted(joined.value.tolist()) == pytest.approx(sorted(expected))
    assert sorted(joined.leaves.tolist()) == sorted([*one.leaves, *two.leaves])


def test_trees_with_small_values_come_first() -> None:
    joined = raw_trees(PointwiseModel.of(tree_ensemble()))
    ends = np.cumsum(joined.leaves)
    largest = [np.abs(joined.value[end - n : end]).max() for end, n in zip(ends, joined.leaves, strict=True)]
    assert largest == sorted(largest)
    raw = documents(missing=True).features
    found = TreesPolicy(joined).score_scaled(raw)
    assert found.tolist() == pytest.approx(tree_ensemble().score(documents(missing=True)).tolist(), abs=1e-5)


def test_only_trees_become_trees() -> None:
    with pytest.raises(CannotHold, match="trees only, and the model has a linear model"):
        raw_trees(PointwiseModel.of(linear()))
