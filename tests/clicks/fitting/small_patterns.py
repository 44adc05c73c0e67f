"""Small counts of click patterns for tests."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from cuolr.clicks.click_model import click_model
from cuolr.clicks.simulate import simulate
from cuolr.data.synthetic import generate
from cuolr.logs.click_patterns import ClickPatterns
from cuolr.logs.clicklog import ClickLog
from cuolr.policies.random_policy import UniformLogger
from cuolr.types import Candidates, RankingDataset


def patterns_of(
    documents: Sequence[Sequence[int]], clicks: Sequence[Sequence[int]], count: Sequence[float] | None = None
) -> ClickPatterns:
    """Lists of the documents of one query; −1 = nothing shown."""
    shown = np.array(documents)
    number = int(shown.max()) + 1
    candidates = Candidates(np.zeros((number, 1), np.float32), np.array([0, number]), np.array(["q"]))
    return ClickPatterns(
        candidates=candidates,
        pairs=np.arange(number),
        query=np.zeros(len(shown), np.int64),
        documents=shown,
        clicks=np.array(clicks, np.bool_),
        count=np.ones(len(shown)) if count is None else np.array(count, np.float64),
        fold=np.arange(len(shown)) % 10,
    )


def dataset_of(queries: int = 40, seed: int = 1) -> RankingDataset:
    return generate("tiny", queries, seed=seed)


def random_log(name: str, sessions: int, k: int = 5, queries: int = 40, seed: int = 1, **parameters: Any) -> ClickLog:
    """Sessions of a click model on lists in random order, each session its own."""
    model = click_model(name, **parameters)
    return simulate(dataset_of(queries), UniformLogger(), model, sessions=sessions, k=k, seed=seed)
