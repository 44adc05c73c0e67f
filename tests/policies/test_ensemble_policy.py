from pathlib import Path

import numpy as np
import pytest

from cuolr.data.normalise import Normaliser
from cuolr.logs.contexts import ContextCurves
from cuolr.networks.layers import DocumentNetwork, seeded
from cuolr.policies.ensemble_policy import EnsemblePolicy
from cuolr.policies.linear_policy import LinearPolicy
from cuolr.policies.model_folder import load_policy, save_policy
from cuolr.policies.network_policy import NetworkPolicy
from cuolr.policies.random_policy import RandomPolicy
from tests.small_log import small_candidates

CANDIDATES = small_candidates()
NORMALISER = Normaliser.fit("log-min-max", CANDIDATES)


def members() -> tuple[LinearPolicy, NetworkPolicy]:
    with seeded(1):
        network = DocumentNetwork(4, (5,))
    return LinearPolicy(np.array([1.0, 2.0, -1.0, 0.5], np.float32), NORMALISER), NetworkPolicy(network, NORMALISER)


def test_the_score_is_the_weighted_sum() -> None:
    linear, network = members()
    expected = 0.3 * linear.score(CANDIDATES) + 2 * network.score(CANDIDATES)
    np.testing.assert_allclose(EnsemblePolicy([linear, network], [0.3, 2]).score(CANDIDATES), expected, rtol=1e-5)


def test_a_member_of_weight_0_is_not_evaluated(monkeypatch: pytest.MonkeyPatch) -> None:
    linear, network = members()
    monkeypatch.setattr(NetworkPolicy, "score_scaled", lambda *_: pytest.fail("was evaluated"))
    scores = EnsemblePolicy([linear, network], [1, 0]).score(CANDIDATES)
    np.testing.assert_array_equal(scores, linear.score(CANDIDATES))


@pytest.mark.parametrize(
    ("weights", "expected"), [((0.0, 2.0), True), ((0.1, 2.0), False), ((0.1, 0.0), False), ((0.0, 0.0), False)]
)
def test_it_is_the_logging_policy_if_no_other_member_has_a_weight(weights: tuple[float, float], expected: bool) -> None:
    assert EnsemblePolicy(members(), weights, logging_policy_members=[1]).is_logging_policy == expected


def test_it_ranks_the_same_after_save_and_load(tmp_path: Path) -> None:
    policy = EnsemblePolicy([*members(), members()[0]], [0.3, 2, 0.1], logging_policy_members=[2])
    save_policy(policy, tmp_path / "model")
    loaded = load_policy(tmp_path / "model")
    assert isinstance(loaded, EnsemblePolicy)
    assert loaded.weights == policy.weights
    assert loaded.logging_policy_members == (2,)
    assert loaded.examination is None
    np.testing.assert_array_equal(loaded.rank(CANDIDATES, 5), policy.rank(CANDIDATES, 5))


@pytest.mark.parametrize("weights", [[], [1.0]])
def test_a_weight_for_each_member_is_needed(weights: list[float]) -> None:
    with pytest.raises(ValueError, match="one or more members, each with a weight"):
        EnsemblePolicy(list(members()) if weights else [], weights)


def test_a_saved_member_that_scores_no_documents_is_refused() -> None:
    settings = {"weights": [1.0], "members": [{"policy": "random", "settings": RandomPolicy(1).settings()}]}
    with pytest.raises(ValueError, match="member 1: expected a policy that scores documents, found random"):
        EnsemblePolicy.from_parts({}, settings)


def test_the_examination_of_the_training_log_is_saved_with_it_and_does_not_affect_scores(tmp_path: Path) -> None:
    table = np.array([[1.0, np.nan, np.nan], [0.6, 0.3, np.nan]])
    policy = EnsemblePolicy(members(), [0.3, 2], examination=table)
    save_policy(policy, tmp_path / "model")
    loaded = load_policy(tmp_path / "model")
    assert isinstance(loaded, EnsemblePolicy)
    np.testing.assert_array_equal(loaded.examination, table)
    np.testing.assert_array_equal(loaded.score(CANDIDATES), EnsemblePolicy(members(), [0.3, 2]).score(CANDIDATES))


def test_the_examination_by_context_is_saved_with_it(tmp_path: Path) -> None:
    nothing = np.nan
    tables = np.array([[[1.0, nothing, nothing], [0.6, 0.3, nothing]], [[1.0, nothing, nothing], [0.4, 0.1, nothing]]])
    curves = ContextCurves(("desktop", "mobile / tablet"), tables, np.array([1.2, 0.7]))
    save_policy(EnsemblePolicy(members(), [0.3, 2], examination=tables[0], by_context=curves), tmp_path / "model")
    loaded = load_policy(tmp_path / "model")
    assert isinstance(loaded, EnsemblePolicy)
    assert loaded.by_context is not None
    assert loaded.by_context.levels == curves.levels
    np.testing.assert_array_equal(loaded.by_context.tables, tables)
    np.testing.assert_array_equal(loaded.by_context.scale, curves.scale)
