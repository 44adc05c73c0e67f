"""The list-wise loss of rankers trained by gradient descent."""

from torch import Tensor

from cuolr.networks.masked import log_softmax


def softmax_loss(scores: Tensor, target: Tensor, where: Tensor) -> Tensor:
    """−Σ_k y_k log softmax(s)_k over the documents of each list (ListNet's top-1 cross-entropy, not normalised).

    Targets are not normalised to sum to 1, so the loss is linear in them: the mean loss over sessions with the same
    list is the loss of their mean (weighted) clicks.

    >>> import torch
    >>> scores, target, where = torch.tensor([[0.0, 0.0, 9.0]]), torch.tensor([[1.0, 0.0, 0.0]]), torch.ones(1, 3) > 0
    >>> where[0, 2] = False
    >>> softmax_loss(scores, target, where)  # log 2
    tensor([0.6931])

    Args:
        scores: [B, K] s.
        target: [B, K] y, such as clicks or weighted clicks; 0 where there is no document.
        where: [B, K] true = a document.

    Returns:
        [B] the loss of each list.
    """
    return -(target * log_softmax(scores, where)).sum(dim=1)
