"""Integrated gradients of a network that scores each document by itself."""

from dataclasses import dataclass

import numpy as np
import torch

from cuolr.policies.network_policy import NetworkPolicy
from cuolr.types import Doubles, Floats

# Points of the path from the mean document to a document.
POINTS = 128


@dataclass(frozen=True)
class NetworkContributions:
    """(x_j − x̄_j) · mean of ∂s/∂x_j on the way from the mean document x̄ to x (Sundararajan et al. 2017).

    They add up to s(x) − s(x̄), but for the error of the mean over `POINTS` midpoints.

    Attributes:
        policy: The network.
    """

    policy: NetworkPolicy

    def explain(self, scaled: Floats) -> Doubles:
        """[n, F] what each feature of scaled documents [n, F + M] adds, relative to the mean of these."""
        documents = torch.from_numpy(np.ascontiguousarray(scaled))
        mean = documents.mean(dim=0)
        step = documents - mean
        shares = (torch.arange(POINTS, dtype=documents.dtype) + 0.5) / POINTS
        points = (mean + shares[:, None, None] * step).flatten(0, 1).requires_grad_()
        (slopes,) = torch.autograd.grad(self.policy.network(points).sum(), points)
        parts = (slopes.reshape(POINTS, *step.shape).mean(dim=0) * step).numpy().astype(np.float64)
        contributions: Doubles = parts[:, : self.policy.n_features]
        missing = self.policy.normaliser.missing
        if missing is not None:
            contributions[:, missing.indicated] += parts[:, self.policy.n_features :]
        return contributions
