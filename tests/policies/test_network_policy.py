from pathlib import Path

import numpy as np
import pytest
import torch

from cuolr.data import normalise
from cuolr.data.normalise import Normaliser
from cuolr.errors import InputError
from cuolr.networks.layers import DocumentNetwork, seeded
from cuolr.policies import network_policy
from cuolr.policies.model_folder import load_policy, save_policy
from cuolr.policies.network_policy import NetworkPolicy
from cuolr.types import Candidates
from tests.data.small_data import candidates_of


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
