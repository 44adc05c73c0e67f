"""How people look at a list, learned from their clicks, with no click model named.

Every click model of definition 3.1 says P(C_k = 1) = χ(R, k) · α(d_k). Given the clicks above, what is left of χ is, in
most of them, a matter of the position k and of the last click above it: ρ_k for PBM, γ of both for UBM, nothing after
the first click for CASCADE, λ of the last click for DCM. So χ is learned as a table of these two, by likelihood, and
then, with χ known, α as a network of the document.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import torch
from torch import Tensor

from cuolr.data.aggregate import aggregate
from cuolr.learners.conditional import fit_effects
from cuolr.learners.networks import DocumentNetwork, seeded
from cuolr.types import ClickLog, Doubles, Floats, Ints

# Sessions that are counted together, so that memory does not grow with the log.
SESSIONS_AT_A_TIME = 1 << 18
DOCUMENTS_AT_A_TIME = 1 << 15
# The hidden layers of the network.
HIDDEN = (128, 64)
# A probability is kept this far from 0 and 1, so that one impossible click does not decide the likelihood.
LEAST_PROBABILITY = 1e-5
# Lists that the table is computed from, at most.
MAX_LISTS = 20_000
# Half the inverse variance of the logarithms of χ before a click is seen.
PRIOR = 0.5


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
    """How people look.

    Attributes:
        table: [K, K + 1] χ by position and last click above, relative to position 1, which is 1; NaN where the log has
            no such session.
        slope: β, by how much the logarithm of α grows with the logger's score.
    """

    table: Doubles
    slope: float

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
    """Count the sessions of a log; in an aggregated one all count as if there were no click above."""
    log = replace(log, logging_propensity=None)  # lists of two loggers are one list
    lists = aggregate(log)
    rows, k = len(lists), log.k
    if log.aggregated:
        counts = np.zeros((2, rows, k, k + 1), np.float32)
        counts[0, :, :, 0] = lists.where * lists.count[:, None]
        counts[1, :, :, 0] = lists.clicks * counts[0, :, :, 0]
        return CountedLists(lists, *counts)
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


def fit_examination(counted: CountedLists, logged_order: Doubles) -> Examination:
    """The most likely table, by `conditional`, in two steps that nothing but the log decides: no step size and no seed.

    1. How χ depends on the last click above: by the clicks on one document in one list, which differ by nothing else.
    2. How it depends on the position: by the clicks in one list, of users who look as in step 1. Its documents differ,
       and the logger put the better ones above, as far as it knew. Its score l explains that with one weight β; what
       tells β from χ is that a document far ahead of the next and one just ahead of it stand at the same position.
       Nobody who has not clicked yet looks at a position more than at the first. That has to be said: users who stop at
       a click leave lists with a good first document out of the comparison, and the first position would seem worse.

    Documents are explained by l alone in step 2. A network in its place explains more, and the table is worse for it:
    what the network learns before the table has settled, it takes from the table (docs/learners/factored.md has both).

    Args:
        counted: The log.
        logged_order: [L, K] l, or zeros.
    """
    k = counted.passed.shape[1]
    some = np.flatnonzero(counted.clicked.any(axis=(1, 2)))
    some = np.random.default_rng(0).permutation(some)[:MAX_LISTS]
    passed, clicked = (counts[some].astype(np.float64) for counts in (counted.passed, counted.clicked))
    after = np.ones((k, k + 1))
    for position in range(1, k):
        ours = passed[:, position]
        effects, _ = fit_effects(clicked[:, position], ours, np.zeros(ours.shape), PRIOR)
        after[position] = np.exp(effects - effects[0])
    looked = (passed * after).sum(axis=2)
    effects, slope = fit_effects(clicked.sum(axis=2), looked, logged_order[some], PRIOR)
    table = after * np.exp(np.minimum(effects - effects[0], 0.0))[:, None]
    seen = counted.passed.sum(axis=0) > 0
    return Examination(np.where(seen, table, np.nan), slope)


def everything(counted: CountedLists) -> Examination:
    """Of users who look at all that they are shown."""
    return Examination(np.ones(counted.passed.shape[1:]), 0.0)


def fit_attractiveness(
    counted: CountedLists,
    examination: Examination,
    features: Tensor,
    logged_order: Doubles,
    documents: Ints,
    steps: int,
    learning_rate: float,
    batch_size: int,
    seed: int,
) -> Doubles:
    """What the features say of documents: max Σ c log(χ α) + (n − c) log(1 − χ α), α = σ(a network + β·l), χ known.

    Args:
        counted: The log.
        examination: χ and β.
        features: [n, F] of documents, scaled.
        logged_order: [n] l, the logger's score of each, or zeros.
        documents: [L, K] the row of `features` of each shown document; any row where nothing was shown.
        steps: Of Adam.
        learning_rate: Of it.
        batch_size: Lists of a step.
        seed: Of the network and of the batches.

    Returns:
        [n] α of each document, times χ of position 1.
    """
    with seeded(seed):
        network = DocumentNetwork(features.shape[1], HIDDEN)
    optimiser = torch.optim.Adam(network.parameters(), lr=learning_rate, foreach=True)
    generator = torch.Generator().manual_seed(seed)
    rows, passed, clicked = (torch.from_numpy(a) for a in (documents, counted.passed, counted.clicked))
    known = torch.from_numpy(_mean_logit(counted, documents, logged_order, examination.slope)).float()
    looks = torch.from_numpy(np.nan_to_num(examination.table)).float()

    def attractiveness(some: Tensor) -> Tensor:
        logits: Tensor = known[some] + network(features[some])
        return logits.sigmoid()

    for _ in range(steps):
        batch = torch.randint(len(rows), (batch_size,), generator=generator)
        chance = attractiveness(rows[batch]).unsqueeze(2) * looks
        loss = -_likelihood(chance, passed[batch], clicked[batch])
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    with torch.no_grad():
        parts = torch.split(torch.arange(len(features)), DOCUMENTS_AT_A_TIME)
        found: Doubles = torch.cat([attractiveness(part) for part in parts]).double().numpy()
    return found


def _mean_logit(counted: CountedLists, documents: Ints, logged_order: Doubles, slope: float) -> Doubles:
    """[n] where the network starts: β·l, and at position 1 the mean click rate."""
    first = counted.passed[:, 0, 0].astype(np.float64)
    rate = (counted.clicked[:, 0, 0].sum() + 1) / (first.sum() + 2)
    mean = float(logged_order[documents[:, 0]] @ first / max(first.sum(), 1))
    logits: Doubles = np.log(rate / (1 - rate)) + slope * (logged_order - mean)
    return logits


def _likelihood(chance: Tensor, passed: Tensor, clicked: Tensor) -> Tensor:
    """[] the mean over sessions."""
    chance = chance.clamp(LEAST_PROBABILITY, 1 - LEAST_PROBABILITY)
    total = (clicked * chance.log() + (passed - clicked) * (1 - chance).log()).sum()
    return total / passed[:, 0].sum().clamp(min=1)
