"""How people look at a list, learned from their clicks, with no click model named.

Every click model of definition 3.1 says P(C_k = 1) = χ(R, k) · α(d_k). Given the clicks above, what is left of χ is, in
most of them, a matter of the position k and of the last click above it: ρ_k for PBM, γ of both for UBM, nothing after
the first click for CASCADE, λ of the last click for DCM. So χ is learned as a table of these two, and α as a network
of the document, both together, by likelihood.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import torch
from torch import Tensor, nn

from cuolr.data.aggregate import aggregate
from cuolr.learners.networks import DocumentNetwork, seeded
from cuolr.types import ClickLog, Doubles, Floats, Ints

# Sessions that are counted together, so that memory does not grow with the log.
SESSIONS_AT_A_TIME = 1 << 18
DOCUMENTS_AT_A_TIME = 1 << 15
# The hidden layers of the network.
HIDDEN = (128, 64)
# A probability is kept this far from 0 and 1, so that one impossible click does not decide the likelihood.
LEAST_PROBABILITY = 1e-5


@dataclass(frozen=True)
class CountedLists:
    """The lists of a log, and how often each position was passed, and clicked, after which click above.

    Attributes:
        lists: The log, aggregated: L lists.
        passed: [L, K, K + 1] sessions by the last click above position k: 0 = none, else its position from 1.
        clicked: [L, K, K + 1] those of them that clicked at k.
    """

    lists: ClickLog
    passed: Floats
    clicked: Floats


@dataclass(frozen=True)
class Examination:
    """What was learned.

    Attributes:
        table: [K, K + 1] χ by position and last click above, relative to position 1, which is 1; NaN where the log has
            no such session.
        attractiveness: [n] α of each document, times χ of position 1.
    """

    table: Doubles
    attractiveness: Doubles

    def looked(self, counted: CountedLists) -> Doubles:
        """[L, K] Σ χ over sessions: as how many looks at position 1 the looks at each shown document count."""
        looked: Doubles = (counted.passed * np.nan_to_num(self.table)).sum(axis=2, dtype=np.float64)
        return looked


def last_click_above(clicks: npt.NDArray[Any]) -> Ints:
    """[M, K] the position of the last click above each position, from 1; 0 = none.

    >>> last_click_above(np.array([[0, 1, 0, 1, 0]]))
    array([[0, 0, 2, 2, 4]])
    """
    positions = np.where(clicks > 0, np.arange(1, clicks.shape[1] + 1), 0)
    latest = np.maximum.accumulate(positions, axis=1)
    return np.concatenate([np.zeros((len(clicks), 1), np.int64), latest[:, :-1]], axis=1)


def count_lists(log: ClickLog) -> CountedLists:
    """Count the sessions of a raw log."""
    log = replace(log, logging_propensity=None)  # lists of two loggers are one list
    lists = aggregate(log)
    rows, k = len(lists), log.k
    passed, clicked = np.zeros(rows * k * (k + 1)), np.zeros(rows * k * (k + 1))
    numbered = _lists_as_table(lists).with_row_index("row")
    for start in range(0, len(log), SESSIONS_AT_A_TIME):
        part = log.select(slice(start, start + SESSIONS_AT_A_TIME))
        shown = _lists_as_table(part)
        row = shown.join(numbered, on=shown.columns, how="left", maintain_order="left")["row"].to_numpy()
        cell = (row[:, None].astype(np.int64) * k + np.arange(k)) * (k + 1) + last_click_above(part.clicks)
        where = part.where
        passed += np.bincount(cell[where], minlength=len(passed))
        clicked += np.bincount(cell[where], weights=part.clicks[where], minlength=len(clicked))
    shape = (rows, k, k + 1)
    return CountedLists(lists, *(counts.reshape(shape).astype(np.float32) for counts in (passed, clicked)))


def _lists_as_table(log: ClickLog) -> pl.DataFrame:
    columns = {f"position {k}": log.ranking[:, k].astype(np.int64) for k in range(log.k)}
    return pl.DataFrame({"query": log.query.astype(np.int64), **columns})


def fit_examination(
    counted: CountedLists,
    features: Tensor,
    documents: Ints,
    steps: int,
    learning_rate: float,
    table_learning_rate: float,
    batch_size: int,
    seed: int,
) -> Examination:
    """The most likely table and network: max Σ c log(χ α) + (n − c) log(1 − χ α).

    Only the product is in the log. Documents of one kind are seen at many positions, because it is the others in the
    list that decide where they stand: that tells the two apart. Where the logger ranks by the same features, both can
    explain a good part of the clicks, so the start matters: the table starts with all of the differences between
    positions, as if the logger had no idea, and the network has to earn its part.

    Args:
        counted: The log.
        features: [n, F] of documents, scaled.
        documents: [L, K] the row of `features` of each shown document; any row where nothing was shown.
        steps: Of Adam.
        learning_rate: Of the network.
        table_learning_rate: Of the table.
        batch_size: Lists of a step.
        seed: Of the network and of the batches.
    """
    with seeded(seed):
        network = DocumentNetwork(features.shape[1], HIDDEN)
    logs = nn.Parameter(torch.from_numpy(_click_rates(counted)).log().float())
    learned = torch.ones_like(logs)
    learned[0, 0] = 0.0  # χ of position 1 is 1
    optimiser = torch.optim.Adam(
        [{"params": network.parameters(), "lr": learning_rate}, {"params": [logs], "lr": table_learning_rate}]
    )
    generator = torch.Generator().manual_seed(seed)
    rows, passed, clicked = (torch.from_numpy(a) for a in (documents, counted.passed, counted.clicked))
    for _ in range(steps):
        batch = torch.randint(len(rows), (batch_size,), generator=generator)
        chance = network(features[rows[batch]]).sigmoid().unsqueeze(2) * (logs * learned).exp()
        loss = -_likelihood(chance, passed[batch], clicked[batch])
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    with torch.no_grad():
        attractiveness = torch.cat([network(part).sigmoid() for part in torch.split(features, DOCUMENTS_AT_A_TIME)])
        table = (logs * learned).exp().double().numpy()
    seen = counted.passed.sum(axis=0) > 0
    return Examination(np.where(seen, table, np.nan), attractiveness.double().numpy())


def _click_rates(counted: CountedLists) -> Doubles:
    """[K, K + 1] the share of sessions that clicked, relative to position 1; with one click more, at the mean rate."""
    passed, clicked = (counts.sum(axis=0, dtype=np.float64) for counts in (counted.passed, counted.clicked))
    mean = (clicked.sum() + 1) / (passed.sum() + 2)
    rates = (clicked + 1) / (passed + 1 / mean)
    relative: Doubles = rates / rates[0, 0]
    return relative


def _likelihood(chance: Tensor, passed: Tensor, clicked: Tensor) -> Tensor:
    """[] the mean over sessions."""
    chance = chance.clamp(LEAST_PROBABILITY, 1 - LEAST_PROBABILITY)
    total = (clicked * chance.log() + (passed - clicked) * (1 - chance).log()).sum()
    return total / passed[:, 0].sum().clamp(min=1)
