"""Masked softmax and log-sum-exp over the second axis."""

import torch
from torch import Tensor


def log_softmax(scores: Tensor, where: Tensor) -> Tensor:
    """The logarithm of the softmax over the real items of the second axis; 0 for the others.

    If no item is real, all are 0.

    Args:
        scores: [A, N, …] the scores.
        where: [A, N, …] true = real.
    """
    return _least_for_others(scores, where).log_softmax(dim=1).masked_fill(~where, 0)


def logsumexp(scores: Tensor, where: Tensor) -> Tensor:
    """[A, …] log Σ exp(score) over the real items of the second axis; very low if there are none.

    Args:
        scores: [A, N, …] the scores.
        where: [A, N, …] true = real.
    """
    return _least_for_others(scores, where).logsumexp(dim=1)


def _least_for_others(scores: Tensor, where: Tensor) -> Tensor:
    # Not −∞, which would give NaN, and NaN gradients, for a row without real items.
    return scores.masked_fill(~where, torch.finfo(scores.dtype).min)
