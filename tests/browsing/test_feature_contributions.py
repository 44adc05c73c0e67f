from collections.abc import Sequence
from itertools import permutations

import numpy as np
import pytest

from cuolr.browsing.feature_contributions import (
    FeatureExplainer,
    LinearContributions,
    NetworkContributions,
    TreeContributions,
)
from cuolr.data.normalise import UNSCALED, Normaliser
from cuolr.networks.layers import DocumentNetwork, seeded
from cuolr.policies.ensemble_policy import EnsemblePolicy
from cuolr.policies.linear_policy import LinearPolicy
from cuolr.policies.network_policy import NetworkPolicy
from cuolr.policies.policy import ScaledScoringPolicy
from cuolr.policies.random_policy import RandomPolicy
from cuolr.policies.regression_trees import RegressionTrees
from cuolr.policies.trees_policy import TreesPolicy
from cuolr.types import Doubles, Floats
from tests.small_log import small_candidates, with_missing_values

# Tree 1 splits on feature 0, then on feature 1; tree 2 on feature 2.
TREES = RegressionTrees(
    n_features=4,
    leaves=np.array([3, 2]),
    feature=np.array([0, 1, 2]),
    threshold=np.array([0.0, 0.5, -1.0]),
    kind=np.array([0, 0, 0]),
    left=np.array([-1, -2, -1]),
    right=np.array([1, -3, -2]),
    value=np.array([1.0, 2.0, 5.0, 10.0, 30.0]),
)
CANDIDATES = small_candidates(queries=8, seed=3)


def expected_score(known: set[int], document: Floats, counts: Sequence[float]) -> float:
    """The mean over leaves, by their counts, of the trees where only some features are known."""
    low, middle, high, left, right = counts

    def share(feature: int, threshold: float, one: float, other: float) -> float:
        return float(document[feature] <= threshold) if feature in known else one / (one + other)

    first = share(0, 0.0, low, middle + high)
    second = share(1, 0.5, middle, high)
    third = share(2, -1.0, left, right)
    of_first_tree = first * 1.0 + (1 - first) * (second * 2.0 + (1 - second) * 5.0)
    return of_first_tree + third * 10.0 + (1 - third) * 30.0


def shapley_values(document: Floats, counts: Sequence[float]) -> Doubles:
    """By all orders in which features can become known."""
    values = np.zeros(4)
    orders = list(permutations(range(4)))
    for order in orders:
        for place, feature in enumerate(order):
            before = set(order[:place])
            change = expected_score(before | {feature}, document, counts) - expected_score(before, document, counts)
            values[feature] += change / len(orders)
    return values


def test_trees_have_the_shapley_values_of_all_orders_of_features() -> None:
    background = CANDIDATES.features
    right = background[:, 0] > 0
    counts = [1.0 + np.count_nonzero(found) for found in (~right, right & (background[:, 1] <= 0.5))]
    counts += [1.0 + np.count_nonzero(right & (background[:, 1] > 0.5))]
    counts += [1.0 + np.count_nonzero(found) for found in (background[:, 2] <= -1, background[:, 2] > -1)]
    found = TreeContributions(TreesPolicy(TREES), background).explain(background[:6])
    expected = [shapley_values(document, counts) for document in background[:6]]
    assert found == pytest.approx(np.array(expected), abs=1e-6)


def test_a_linear_score_is_weights_times_scaled_features_and_indicators_belong_to_their_feature() -> None:
    candidates = with_missing_values(CANDIDATES)
    normaliser = Normaliser.fit("min-max", candidates)
    policy = LinearPolicy(np.array([1.0, -2.0, 0.5, 3.0, 7.0, 11.0], np.float32), normaliser)
    scaled = normaliser.transform(candidates.features)
    found = LinearContributions(policy).explain(scaled)
    assert found.shape == candidates.features.shape
    assert found[:, 1] == pytest.approx(-2 * scaled[:, 1])
    assert found[:, 3] == pytest.approx(3 * scaled[:, 3] + 11 * scaled[:, 5])
    assert found.sum(axis=1) == pytest.approx(policy.score_scaled(scaled), abs=1e-5)


def network(normaliser: Normaliser) -> NetworkPolicy:
    with seeded(1):
        return NetworkPolicy(DocumentNetwork(4, (8,)), normaliser)


def test_integrated_gradients_of_a_network_add_up_to_the_difference_of_scores() -> None:
    normaliser = Normaliser.fit("min-max", CANDIDATES)
    policy, scaled = network(normaliser), normaliser.transform(CANDIDATES.features)
    found = NetworkContributions(policy).explain(scaled)
    at_mean = policy.score_scaled(scaled.mean(axis=0, keepdims=True))
    assert found.sum(axis=1) == pytest.approx(policy.score_scaled(scaled) - at_mean, abs=2e-3)


def test_an_ensemble_is_the_weighted_sum_of_its_members_and_nothing_is_left_unexplained() -> None:
    normaliser = Normaliser.fit("min-max", CANDIDATES)
    linear = LinearPolicy(np.array([1.0, -2.0, 0.5, 3.0], np.float32), normaliser)
    trees = TreesPolicy(TREES, 1, normaliser)
    inner = EnsemblePolicy([trees, network(normaliser)], [0.5, 2.0])
    policy = EnsemblePolicy([linear, inner, linear], [0.25, 3.0, 0.0])
    explainer = FeatureExplainer.of(policy, CANDIDATES)
    assert [weight for weight, _ in explainer.parts] == [0.25, 1.5, 6.0]
    of_query = CANDIDATES.select(np.array([2]))
    documents = [2, 0, 1]
    found = explainer.explain(of_query, documents)
    assert found is not None
    score = policy.score(of_query)[documents]
    assert found.score == pytest.approx(score - score.mean(), abs=1e-5)
    assert found.unexplained == pytest.approx(np.zeros(3), abs=0.01 * float(np.abs(score).max()))
    assert found.by_feature.mean(axis=0) == pytest.approx(np.zeros(4), abs=1e-9)


def chain(leaves: int) -> RegressionTrees:
    """A tree each of whose splits has a leaf on its left."""
    split = np.arange(leaves - 1)
    right = np.where(split < leaves - 2, split + 1, -leaves)
    values = np.linspace(0, 1, leaves)
    return RegressionTrees(4, np.array([leaves]), split % 4, values[1:], np.full(leaves - 1, 10), ~split, right, values)


def test_the_depths_of_leaves_are_those_of_their_paths() -> None:
    assert TREES.paths(2) == (1**2 + 2**2 + 2**2) + (1**2 + 1**2)
    assert TREES.paths(1) == np.inf
    assert chain(5).paths(4) == 1**2 + 2**2 + 3**2 + 4**2 + 4**2


def test_trees_that_are_too_deep_are_not_explained() -> None:
    """Their SHAP values would take hours, or end the process."""
    for leaves, opaque in ((201, ()), (202, ("TreesPolicy",)), (200_000, ("TreesPolicy",))):
        explainer = FeatureExplainer.of(TreesPolicy(chain(leaves)), CANDIDATES)
        assert explainer.opaque == opaque
        assert explainer.explain(CANDIDATES.select(np.array([0])), [0, 1]) is not None


def test_what_is_not_a_sum_over_features_is_left_over_and_named() -> None:
    normaliser = Normaliser.fit("min-max", CANDIDATES)
    linear = LinearPolicy(np.array([1.0, 0.0, 0.0, 0.0], np.float32), normaliser)
    plug_in = PlugIn(linear)
    explainer = FeatureExplainer.of(EnsemblePolicy([linear, plug_in], [1.0, 2.0]), CANDIDATES)
    assert explainer.opaque == ("PlugIn",)
    found = explainer.explain(CANDIDATES.select(np.array([0])), [0, 1, 2])
    assert found is not None
    own = linear.score(CANDIDATES.select(np.array([0])))[:3]
    assert found.unexplained == pytest.approx(2 * (own**2 - (own**2).mean()), abs=1e-5)


class PlugIn(ScaledScoringPolicy):
    """A policy of a kind that nobody knows: the square of another."""

    def __init__(self, inner: LinearPolicy) -> None:
        self.inner, self.normaliser = inner, inner.normaliser

    @property
    def n_features(self) -> int:
        return self.inner.n_features

    def score_scaled(self, features: Floats) -> Floats:
        squared: Floats = self.inner.score_scaled(features) ** 2
        return squared

    def arrays(self) -> dict[str, Floats]:
        return {}

    def settings(self) -> dict[str, str]:
        return {}

    @classmethod
    def from_parts(cls, arrays: object, settings: object) -> "PlugIn":
        raise NotImplementedError


def test_a_policy_without_scores_is_not_explained() -> None:
    explainer = FeatureExplainer.of(RandomPolicy(1), CANDIDATES)
    assert explainer.explain(CANDIDATES.select(np.array([0])), [0]) is None


def test_features_without_names_are_numbered() -> None:
    policy = TreesPolicy(TREES, 1, UNSCALED)
    explainer = FeatureExplainer.of(policy, CANDIDATES)
    assert explainer.feature_names(CANDIDATES) == ["feature 1", "feature 2", "feature 3", "feature 4"]
    assert explainer.values(CANDIDATES.select(np.array([1])), [1, 0]).tolist() == (
        CANDIDATES.features[CANDIDATES.offsets[1] : CANDIDATES.offsets[1] + 2][::-1].tolist()
    )
