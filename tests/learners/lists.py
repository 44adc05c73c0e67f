"""Small learners, and random lists and logs for them."""

from dataclasses import fields
from typing import Any

import numpy as np
import torch

from cuolr.config import from_dict
from cuolr.data.normalise import Normaliser
from cuolr.learners.gradient_learner import GradientLearner
from cuolr.training.base_learner import LEARNERS, Learner
from cuolr.training.batches import SessionBatch

N_FEATURES, K = 6, 4


def new(name: str, **settings: Any) -> Learner:
    """A registered learner with small networks, which has not seen anything."""
    learner = LEARNERS.get(name)
    small = {"hidden": [16, 12], "encoder_learning_rate": 1e-3} if is_sequential(name) else {}
    if settings.get("encoder", "attention") == "attention" and is_sequential(name):
        small["encoder_settings"] = {"heads": 2}
    return learner(from_dict(learner.Config, small | settings, "learner"))


def build(name: str, seed: int = 0, n_features: int = N_FEATURES, k: int = K, **settings: Any) -> GradientLearner:
    """A learner that follows a gradient, with its networks built."""
    learner = new(name, **settings)
    assert isinstance(learner, GradientLearner)
    learner.build(n_features, k, seed, no_scaling())
    return learner


def is_sequential(name: str) -> bool:
    """Whether the learner has a state encoder."""
    return "encoder" in {field.name for field in fields(LEARNERS.get(name).Config)}


def no_scaling() -> Normaliser:
    return Normaliser("none", np.empty(0), np.empty(0))


def random_batch(
    seed: int = 0, lengths: tuple[int, ...] = (K,) * 5, k: int = K, n_features: int = N_FEATURES, n_unshown: int = 0
) -> SessionBatch:
    """Lists of these lengths with a click on every third document or so, and up to so many unshown documents each."""
    generator = torch.Generator().manual_seed(seed)
    batch = len(lengths)
    where = torch.arange(k) < torch.tensor(lengths)[:, None]
    unshown_where = torch.arange(n_unshown) < torch.randint(n_unshown + 1, (batch, 1), generator=generator)
    return SessionBatch(
        features=(2 * torch.rand(batch, k, n_features, generator=generator) - 1) * where[:, :, None],
        rewards=(torch.rand(batch, k, generator=generator) < 0.3).float() * where,
        where=where,
        weight=torch.rand(batch, generator=generator) + 0.5,
        unshown=(2 * torch.rand(batch, n_unshown, n_features, generator=generator) - 1) * unshown_where[:, :, None],
        unshown_where=unshown_where,
    )
