from pathlib import Path

import numpy as np
import pytest
import torch

from cuolr.data import normalise
from cuolr.data.normalise import Normaliser
from cuolr.errors import InputError
from cuolr.logs.contexts import ContextCurves
from cuolr.networks.layers import DocumentNetwork, seeded
from cuolr.policies import network_policy
from cuolr.policies.ensemble_policy import EnsemblePolicy
from cuolr.policies.linear_policy import LinearPolicy
from cuolr.policies.model_folder import load_policy, save_policy
from cuolr.policies.network_policy import NetworkPolicy
from cuolr.policies.random_policy import RandomPolicy
from cuolr.types import Candidates
from tests.data.small_data import candidates_of
from tests.small_log import small_candidates


def policy_of(candidates: Candidates, hidden: tuple[int, ...] = (256, 256), kind: str = "min-max") -> NetworkPolicy:
    with seeded(1):
        network = DocumentNetwork(candidates.n_features, hidden)
    return NetworkPolicy(network, Normaliser.fit(kind, candidates))


def test_the_score_is_worked_by_hand() -> None:
    candidates = Candidates(np.array([[0.0, 4.0], [2.0, 0.0]], np.float32), np.array([0, 2]), np.array(["q"]))
    network = DocumentNetwork(2, (2,))
    network.load_state_dict(
        {
            "layers.0.weight": torch.tensor([[1.0, 2.0], [-1.0, 1.0]]),
            "layers.0.bias": torch.tensor([0.5, 0.0]),
            "output.weight": torch.tensor([[2.0, 3.0]]),
            "output.bias": torch.tensor([0.25]),
        }
    )
    # Scaled to [−1, 1], the documents are (−1, 1) and (1, −1).
    expected = [2 * (-1 + 2 + 0.5) + 3 * (1 + 1) + 0.25, 2 * max(1 - 2 + 0.5, 0) + 3 * max(-1 - 1, 0) + 0.25]
    assert NetworkPolicy(network, Normaliser.fit("min-max", candidates)).score(candidates).tolist() == expected


@pytest.mark.parametrize("hidden", [(256, 256), (8,), ()])
def test_a_policy_scores_the_same_to_the_bit_after_save_and_load(tmp_path: Path, hidden: tuple[int, ...]) -> None:
    candidates = candidates_of(30, 7, 1, n_features=20)
    policy = policy_of(candidates, hidden)
    save_policy(policy, tmp_path / "model")
    loaded = load_policy(tmp_path / "model")
    assert isinstance(loaded, NetworkPolicy)
    np.testing.assert_array_equal(loaded.score(candidates), policy.score(candidates))
    for name, values in policy.arrays().items():
        np.testing.assert_array_equal(loaded.arrays()[name], values)


@pytest.mark.parametrize("kind", ["min-max", "log-min-max", "query-min-max", "none"])
def test_the_score_of_a_document_does_not_depend_on_the_documents_around_it(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = np.random.default_rng(0).integers(1, 60, 100).tolist()
    candidates = candidates_of(*sizes, n_features=46)
    policy = policy_of(candidates, kind=kind)
    scores = policy.score(candidates)
    monkeypatch.setattr(normalise, "QUERIES_AT_A_TIME", 7)
    np.testing.assert_array_equal(policy.score(candidates), scores)
    some = np.array([41, 3, 3, 17])
    np.testing.assert_array_equal(policy.score(candidates.select(some)), scores[candidates.rows_of(some)])


def test_documents_are_scored_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    candidates = candidates_of(30, 7, 1)
    scores = policy_of(candidates).score(candidates)
    monkeypatch.setattr(network_policy, "DOCUMENTS_AT_A_TIME", 8)
    np.testing.assert_allclose(policy_of(candidates).score(candidates), scores, rtol=1e-5, atol=1e-6)


def test_no_documents_are_no_problem() -> None:
    policy = policy_of(candidates_of(3))
    nothing = Candidates(np.empty((0, 3), np.float32), np.array([0, 0]), np.array(["q"]))
    assert policy.rank(nothing, 2).tolist() == [[-1, -1]]


def test_documents_of_another_width_are_refused() -> None:
    with pytest.raises(InputError, match="documents with 3 features, as in training, found 4"):
        policy_of(candidates_of(3)).score(candidates_of(3, n_features=4))


def test_weights_that_do_not_fit_are_refused() -> None:
    policy = policy_of(candidates_of(3), (8, 4))
    with pytest.raises(ValueError, match=r"network.layers.1.bias: expected float32 \[5\], found float32 \[4\]"):
        NetworkPolicy.from_parts(policy.arrays(), {**policy.settings(), "hidden": [8, 5]})


def test_a_snapshot_shares_nothing() -> None:
    policy = policy_of(candidates_of(3))
    copy = policy.snapshot()
    with torch.no_grad():
        policy.network.output.bias.add_(1)
    assert (policy.score(candidates_of(3)) != copy.score(candidates_of(3))).all()


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
