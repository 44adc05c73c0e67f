"""Position bias by regression-based EM: relevance is predicted from features, so each document may be shown once.

Wang et al. 2018, "Position bias estimation for unbiased learning to rank in personal search".
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from cuolr.logs.clicklog import ClickLog
from cuolr.logs.scaled_documents import ScaledDocuments
from cuolr.networks.layers import DocumentNetwork, seeded
from cuolr.types import Doubles, Floats, Ints

# Documents in a step of the regression.
DOCUMENTS_PER_STEP = 1 << 13
# Sizes of the regression's hidden layers.
HIDDEN = (64, 32)
# Probabilities are at least this far from 0 and 1.
MIN_PROBABILITY = 1e-4
# Examination and relevance before the first round.
START = 0.5


@dataclass(frozen=True)
class EmSettings:
    """Settings of regression-based EM.

    Attributes:
        rounds: Number of rounds, each an E-step, the M-step of examination, and steps of the regression.
        steps_per_round: Number of gradient steps of the regression in a round.
        learning_rate: Learning rate of the regression.
        seed: Seed of its initial weights and batches.
    """

    rounds: int
    steps_per_round: int
    learning_rate: float
    seed: int


@dataclass(frozen=True)
class ShownCells:
    """Impressions and clicks of each shown (document, position) that occurs.

    Attributes:
        document: [n] the row of the document in the scaled features.
        position: [n] from 0.
        impressions: [n] the number of sessions.
        clicks: [n] the number of these sessions with a click.
    """

    document: Ints
    position: Ints
    impressions: Doubles
    clicks: Doubles

    @classmethod
    def of(cls, log: ClickLog, shown: ScaledDocuments, rows: Ints) -> "ShownCells":
        """The cells of some rows of a log, raw or aggregated, by position in the list."""
        where = log.where[rows]
        count = np.broadcast_to(log.count[rows, None], where.shape)[where].astype(np.float64)
        number = (shown.documents[rows].astype(np.int64) * log.k + np.arange(log.k))[where]
        cells, place = np.unique(number, return_inverse=True)
        impressions, clicks = (
            np.bincount(place, weights=values, minlength=len(cells)).astype(np.float64)
            for values in (count, count * log.clicks[rows][where])
        )
        return cls(*np.divmod(cells, log.k), impressions, clicks)

    @cached_property
    def documents(self) -> Ints:
        """[D] the documents, each once, ascending."""
        return np.unique(self.document)

    @cached_property
    def place(self) -> Ints:
        """[n] the place in `documents` of the document of each cell."""
        return np.searchsorted(self.documents, self.document)

    def by_document(self, values: Doubles) -> Doubles:
        """[D] the sums of values [n] of the cells."""
        return np.bincount(self.place, weights=values, minlength=len(self.documents)).astype(np.float64)


def posteriors(examination: Doubles, relevance: Doubles) -> tuple[Doubles, Doubles]:
    """P(E = 1 | C = 0) and P(R = 1 | C = 0) under the position-based model, in which C = 1 needs both.

    θ(1 − γ) / (1 − θγ) and γ(1 − θ) / (1 − θγ); both are 1 given a click (Wang et al. 2018, the E-step).

    >>> [round(float(p), 4) for p in posteriors(np.float64(0.5), np.float64(0.2))]  # 0.4 / 0.9 and 0.1 / 0.9
    [0.4444, 0.1111]

    Args:
        examination: θ.
        relevance: γ.
    """
    neither_click = 1 - examination * relevance
    return examination * (1 - relevance) / neither_click, relevance * (1 - examination) / neither_click


def fit_examination(log: ClickLog, shown: ScaledDocuments, rows: Ints, em: EmSettings) -> Doubles:
    """[K] θ relative to the first position, by EM with γ = σ(f(x)), f a network of the document's features.

    E-step: `posteriors`. M-step: θ_k = Σ (C + (1 − C)·P(E = 1 | C = 0)) / n over the impressions at k; f is fitted to
    P(R = 1 | C) by cross-entropy. Positions that no row fills have the examination of the last filled one.

    Deviation: the paper samples R and grows a GBDT anew in each round. Here f is fitted to the probability itself, and
    goes on from the round before, which is generalised EM.

    Args:
        log: Raw or aggregated, by position on the page.
        shown: The scaled documents of all rows.
        rows: The rows to learn from.
        em: Settings.
    """
    cells = ShownCells.of(log, shown, rows)
    regression = RelevanceRegression(shown.features, em)
    examination = np.full(log.k, START)
    skips = cells.impressions - cells.clicks
    of_position = np.bincount(cells.position, weights=cells.impressions, minlength=log.k)
    weight = cells.by_document(cells.impressions)
    for _ in range(em.rounds if len(rows) else 0):
        relevance = regression.predict(cells.documents)[cells.place]
        examined, relevant = posteriors(examination[cells.position], relevance)
        total = np.bincount(cells.position, weights=cells.clicks + skips * examined, minlength=log.k)
        examination = np.where(of_position > 0, total / np.maximum(of_position, 1), examination)
        examination = np.clip(examination, MIN_PROBABILITY, 1 - MIN_PROBABILITY)
        regression.fit(cells.documents, cells.by_document(cells.clicks + skips * relevant) / weight, weight)
    last = int(np.max(np.flatnonzero(of_position), initial=0))
    examination[last + 1 :] = examination[last]
    relative: Doubles = examination / examination[0]
    return relative


class RelevanceRegression:
    """A network that predicts the probability of relevance from a document's features."""

    def __init__(self, features: Floats, em: EmSettings) -> None:
        """A network whose predictions are about `START`.

        Args:
            features: [n, F] the scaled features of all documents.
            em: Settings; a call of `fit` takes the steps of one round.
        """
        self._features = torch.from_numpy(features)
        with seeded(em.seed):
            self._network = DocumentNetwork(self._features.shape[1], HIDDEN)
        self._optimiser = torch.optim.Adam(self._network.parameters(), lr=em.learning_rate, foreach=True)
        self._generator = torch.Generator().manual_seed(em.seed)
        self._steps = em.steps_per_round

    @torch.no_grad()
    def predict(self, documents: Ints) -> Doubles:
        """[n] the probability of relevance of documents."""
        parts = [
            self._network(self._features[part]) for part in torch.split(torch.from_numpy(documents), DOCUMENTS_PER_STEP)
        ]
        relevance: Tensor = torch.cat(parts).double().sigmoid()
        values: Doubles = relevance.clamp(MIN_PROBABILITY, 1 - MIN_PROBABILITY).numpy()
        return values

    def fit(self, documents: Ints, label: Doubles, weight: Doubles) -> None:
        """Take some steps towards these probabilities.

        Args:
            documents: [n] rows of the features.
            label: [n] the probability that each is relevant.
            weight: [n] the number of impressions.
        """
        rows, labels, weights = (torch.from_numpy(values) for values in (documents, label, weight / weight.mean()))
        for _ in range(self._steps):
            batch = torch.arange(len(rows))
            if len(rows) > DOCUMENTS_PER_STEP:
                batch = torch.randint(len(rows), (DOCUMENTS_PER_STEP,), generator=self._generator)
            logits = self._network(self._features[rows[batch]])
            loss = binary_cross_entropy_with_logits(logits, labels[batch].float(), weights[batch].float())
            self._optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            self._optimiser.step()
