import numpy as np
import torch

from cuolr.learners.rankers.targets import TargetSampler
from tests.learners.rankers.small_targets import small_targets

TARGETS = small_targets()


def test_a_batch_has_the_features_of_the_documents_of_its_lists() -> None:
    rows = np.array([7, 2, 7])
    batch = TARGETS.batch(rows)
    for i, row in enumerate(rows):
        for j in range(TARGETS.where.shape[1]):
            torch.testing.assert_close(batch.features[i, j], TARGETS.features[TARGETS.documents[row, j]])
    torch.testing.assert_close(batch.target, TARGETS.target[rows])
    torch.testing.assert_close(batch.weight, TARGETS.weight[rows])


def test_padding_has_features_and_targets_of_0() -> None:
    batch = TARGETS.batch(np.arange(len(TARGETS)))
    assert not batch.where.all()
    assert (batch.features[~batch.where] == 0).all()
    assert (batch.target[~batch.where] == 0).all()


def test_selected_lists_give_the_same_batches_as_among_all() -> None:
    rows = np.array([5, 1, 8])
    torch.testing.assert_close(TARGETS.select(rows).batch(np.array([2])).features, TARGETS.batch(rows[2:]).features)
    assert len(TARGETS.select(rows)) == 3


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
