from math import exp, log

import pytest
import torch

from cuolr.networks.masked import log_softmax, logsumexp


def test_a_softmax_is_over_what_is_real() -> None:
    scores = torch.tensor([[[1.0], [2.0], [50.0]], [[3.0], [4.0], [5.0]]])
    where = torch.tensor([[[True], [True], [False]], [[False], [False], [False]]])
    total = log(exp(1) + exp(2))
    assert log_softmax(scores, where).flatten().tolist() == pytest.approx([1 - total, 2 - total, 0, 0, 0, 0])
    assert logsumexp(scores, where)[0].item() == pytest.approx(total)


def test_where_nothing_is_real_gradients_are_zero_and_not_nan() -> None:
    scores = torch.randn(1, 3, 1, requires_grad=True)
    where = torch.zeros(1, 3, 1, dtype=torch.bool)
    weightless = 0 * logsumexp(scores, where).sum()
    torch.autograd.backward(log_softmax(scores, where).sum() + weightless)
    assert scores.grad is not None
    assert scores.grad.tolist() == [[[0.0], [0.0], [0.0]]]
