"""Small targets for rankers."""

import numpy as np
import torch

from cuolr.data.normalise import UNSCALED
from cuolr.learners.rankers.targets import Targets

N_FEATURES = 4
NORMALISER = UNSCALED


def small_targets(lists: int = 40, longest: int = 6, seed: int = 0) -> Targets:
    """Lists of 1 to `longest` documents; the target grows with the first feature."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, longest + 1, lists)
    features = np.concatenate([rng.uniform(-1, 1, (sizes.sum(), N_FEATURES)), np.zeros((1, N_FEATURES))])
    where = np.arange(longest) < sizes[:, None]
    documents = np.full(where.shape, sizes.sum())
    documents[where] = np.arange(sizes.sum())
    target = where / (1 + np.exp(-3 * features[documents, 0]))
    return Targets(
        features=torch.from_numpy(features.astype(np.float32)),
        documents=torch.from_numpy(documents),
        where=torch.from_numpy(where),
        target=torch.from_numpy(target.astype(np.float32)),
        weight=torch.from_numpy(rng.uniform(0.5, 1.5, lists).astype(np.float32)),
    )
