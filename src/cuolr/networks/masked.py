"""Softmax over what is real: the second axis, masked."""

import torch
from torch import Tensor


def log_softmax(scores: Tensor, where: Tensor) -> Tensor:
    """[A, N, …] scores → the logarithm of their softmax over the real ones of N; 0 for the others.

    Where none is real, all are 0.

    Args:
        scores: [A, N, …].
        where: [A, N, …] true = real.
    """
    return _least_for_others(scores, where).log_softmax(dim=1).masked_fill(~where, 0)


def logsumexp(scores: Tensor, where: Tensor) -> Tensor:
    """[A, N, …] scores → [A, …] log Σ exp(score) over the real ones of N; very low where none is.

    Args:
        scores: [A, N, …].
        where: [A, N, …] true = real.
    """
    return _least_for_others(scores, where).logsumexp(dim=1)


def _least_for_others(scores: Tensor, where: Tensor) -> Tensor:
    # Not −∞: a row where none is real would give NaN, and so would its gradient.
    return scores.masked_fill(~where, torch.finfo(scores.dtype).min)
