from dataclasses import replace

import numpy as np
import torch

from cuolr.learners.rankers.targets import TargetSampler
from tests.learners.rankers.small_targets import small_targets

TARGETS = small_targets()


def first_feature(documents: torch.Tensor) -> torch.Tensor:
    return documents[:, 0]


def test_selected_lists_have_the_scores_of_their_documents() -> None:
    rows = np.array([7, 2, 7])
    scores = TARGETS.select(rows).scores(first_feature)
    for i, row in enumerate(rows):
        for j in range(TARGETS.where.shape[1]):
            assert scores[i, j] == TARGETS.features[TARGETS.documents[row, j], 0]
    torch.testing.assert_close(TARGETS.select(rows).target, TARGETS.target[rows])
    torch.testing.assert_close(TARGETS.select(rows).weight, TARGETS.weight[rows])


def test_only_documents_are_scored_and_the_rest_is_0() -> None:
    scored = []

    def one_each(documents: torch.Tensor) -> torch.Tensor:
        scored.append(len(documents))
        return torch.ones(len(documents))

    assert not TARGETS.where.all()
    torch.testing.assert_close(TARGETS.scores(one_each), TARGETS.where.float())
    assert scored == [int(TARGETS.where.sum())]


def test_gradients_of_scores_reach_each_document_once() -> None:
    features = TARGETS.features.clone().requires_grad_()
    replace(TARGETS, features=features).scores(first_feature).sum().backward()  # type: ignore[no-untyped-call]
    assert features.grad is not None
    shown = torch.bincount(TARGETS.documents[TARGETS.where], minlength=len(features)).float()
    torch.testing.assert_close(features.grad[:, 0], shown)


def test_a_sampled_batch_depends_on_seed_stream_and_step_alone() -> None:
    def weights(seed: int, stream: int, step: int) -> list[float]:
        return TargetSampler(TARGETS, np.arange(len(TARGETS)), 16, seed, stream)(step).weight.tolist()

    first = weights(1, 0, 3)
    assert weights(1, 0, 3) == first
    assert first not in (weights(2, 0, 3), weights(1, 1, 3), weights(1, 0, 4))


def test_only_the_given_lists_are_sampled() -> None:
    rows = np.array([4, 9])
    batch = TargetSampler(TARGETS, rows, 50, seed=1)(0)
    assert set(batch.weight.tolist()) == set(TARGETS.weight[rows].tolist())


def test_a_batch_that_could_hold_all_lists_has_each_of_them_once() -> None:
    rows = np.array([4, 9, 2])
    for size in (3, 50):
        torch.testing.assert_close(TargetSampler(TARGETS, rows, size, seed=1)(7).weight, TARGETS.weight[rows])
    assert len(TargetSampler(TARGETS, rows, 2, seed=1)(7).weight) == 2
