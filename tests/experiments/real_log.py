"""A look-alike of a real log: simulated sessions, a part of them with the same documents in random order."""

from dataclasses import replace
from typing import Any

import numpy as np

from cuolr.clicks.click_model import click_model
from cuolr.clicks.simulate import simulate
from cuolr.data.synthetic import generate_splits
from cuolr.logs.clicklog import ClickLog
from cuolr.policies.policy import RankingPolicy
from cuolr.policies.random_policy import UniformLogger
from cuolr.supervised.ranksvm import fit_ranksvm
from cuolr.supervised.skyline import only_shown
from cuolr.types import RankingDataset


def real_log(
    queries: int = 60, sessions: int = 6_000, model: str = "pbm", k: int = 5, seed: int = 1
) -> tuple[ClickLog, RankingDataset, RankingPolicy]:
    """A log half of whose lists are in random order, the documents with their relevance, and the production ranker.

    The production ranker shows the same k documents of a query to all users, in its order or in random order.
    """
    train, _, _ = generate_splits("tiny", queries, 1, 1, seed)
    production = fit_ranksvm(train, 0.05, seed)
    shown = only_shown(train, production.rank(train.candidates, k))
    names = np.array([f"d{i}" for i in range(shown.candidates.n_documents)])
    shown = replace(shown, candidates=replace(shown.candidates, document_ids=names))
    clicks = click_model(model)
    parts = [
        simulate(shown, production, clicks, sessions, k, seed),
        simulate(shown, UniformLogger(), clicks, sessions, k, seed + 1),
    ]
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in ("query", "ranking", "clicks", "count")
    }
    columns["randomised"] = np.repeat([False, True], [len(part) for part in parts])
    return ClickLog.from_columns(shown.candidates, columns, aggregated=False), shown, production
