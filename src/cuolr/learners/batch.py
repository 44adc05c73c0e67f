"""What a learner gets to see of a click log at a time."""

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class SessionBatch:
    """Lists that were shown, with their clicks. It has no field for labels.

    Attributes:
        features: [B, K, F] the shown documents, normalised; 0 where nothing was shown.
        clicks: [B, K] 0 or 1, or the mean click of the sessions that a row stands for; 0 where nothing was shown.
        where: [B, K] true = a document was shown; real documents come first.
        weight: [B] the number of sessions that a row stands for, relative to the log's mean.
        unshown: [B, M, F] other candidates of the query, where a learner asks for them.
        unshown_where: [B, M] true = a real document.
    """

    features: Tensor
    clicks: Tensor
    where: Tensor
    weight: Tensor
    unshown: Tensor | None = None
    unshown_where: Tensor | None = None
