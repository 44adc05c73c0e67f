import pytest
import torch

from cuolr.learners.rl.mdp import Episodes
from cuolr.training.batches import SessionBatch

# A list of three documents and one of two, padded; the first query has one unshown document, the second two.
BATCH = SessionBatch(
    features=torch.tensor([[[1.0], [2.0], [4.0]], [[5.0], [6.0], [0.0]]]),
    rewards=torch.tensor([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]),
    where=torch.tensor([[True, True, True], [True, True, False]]),
    weight=torch.tensor([1.0, 3.0]),
    unshown=torch.tensor([[[8.0], [0.0]], [[9.0], [10.0]]]),
    unshown_where=torch.tensor([[True, False], [True, True]]),
)


def test_at_each_step_what_is_not_placed_can_be_placed() -> None:
    episodes = Episodes.of(BATCH, with_unshown=False)
    first_list = [[True, True, True], [False, True, True], [False, False, True]]
    second_list = [[True, True, False], [False, True, False], [False, False, False]]
    assert episodes.actions[:, :, 0].tolist() == first_list
    assert episodes.actions[:, :, 1].tolist() == second_list
    assert episodes.documents[:, :, 0].T.tolist() == [[1, 2, 4], [5, 6, 0]]


def test_unshown_documents_can_be_placed_at_every_step_of_the_list() -> None:
    episodes = Episodes.of(BATCH, with_unshown=True)
    assert episodes.documents[:, :, 0].T.tolist() == [[1, 2, 4, 8, 0], [5, 6, 0, 9, 10]]
    assert episodes.actions[:, 3:, 0].tolist() == [[True, False]] * 3
    assert episodes.actions[:, 3:, 1].tolist() == [[True, True], [True, True], [False, False]]


def test_the_log_takes_its_documents_in_order_and_is_rewarded_by_clicks() -> None:
    episodes = Episodes.of(BATCH, with_unshown=True)
    assert episodes.logged_documents[:, :, 0].T.tolist() == [[1, 2, 4], [5, 6, 0]]
    assert episodes.rewards.T.tolist() == [[0, 1, 0], [1, 0, 0]]
    assert episodes.steps.T.tolist() == BATCH.where.tolist()
    pairs = torch.arange(3 * 5 * 2).view(3, 5, 2)
    assert torch.equal(episodes.logged(pairs), torch.stack([pairs[0, 0], pairs[1, 1], pairs[2, 2]]))


def test_there_is_nothing_after_the_last_document() -> None:
    episodes = Episodes.of(BATCH, with_unshown=False)
    values_after_the_first = torch.tensor([[10.0, 20.0], [30.0, 40.0]])
    assert episodes.next(values_after_the_first).tolist() == [[10, 20], [30, 0], [0, 0]]


def test_means_are_over_the_documents_shown_weighted_by_sessions() -> None:
    episodes = Episodes.of(BATCH, with_unshown=False)
    values = torch.tensor([[1.0, 10.0], [2.0, 20.0], [3.0, torch.nan]])
    assert episodes.mean(values).item() == pytest.approx((1 * (1 + 2 + 3) + 3 * (10 + 20)) / 5)
    assert episodes.mean_per_list(values).tolist() == pytest.approx([(1 + 2 + 3) / 3, (10 + 20) / 2])


def test_the_mean_of_what_is_left_counts_real_documents_alone() -> None:
    left = Episodes.of(BATCH, with_unshown=False).mean_left()[:, :, 0]
    assert left.T.tolist() == [pytest.approx([(1 + 2 + 4) / 3, (2 + 4) / 2, 4]), pytest.approx([(5 + 6) / 2, 6, 0])]
    left = Episodes.of(BATCH, with_unshown=True).mean_left()[:, :, 0]
    assert left[:, 0].tolist() == pytest.approx([(1 + 2 + 4 + 8) / 4, (2 + 4 + 8) / 3, (4 + 8) / 2])
    assert left[:2, 1].tolist() == pytest.approx([(5 + 6 + 9 + 10) / 4, (6 + 9 + 10) / 3])
