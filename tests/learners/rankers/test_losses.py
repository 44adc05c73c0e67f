import torch

from cuolr.learners.rankers.losses import softmax_loss


def test_lists_without_a_document_have_no_loss_and_no_nan_in_the_gradient() -> None:
    scores = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    where = torch.tensor([[True, True], [False, False]])
    losses = softmax_loss(scores, torch.tensor([[1.0, 0.0], [0.0, 0.0]]), where)
    losses.sum().backward()  # type: ignore[no-untyped-call]
    assert losses[1] == 0
    assert scores.grad is not None
    assert scores.grad.isfinite().all()


def test_the_loss_is_linear_in_the_targets() -> None:
    generator = torch.Generator().manual_seed(0)
    scores, first, second = (torch.rand(3, 4, generator=generator) for _ in range(3))
    where = torch.ones(3, 4, dtype=torch.bool)
    mean = softmax_loss(scores, (first + second) / 2, where)
    torch.testing.assert_close(mean, (softmax_loss(scores, first, where) + softmax_loss(scores, second, where)) / 2)
