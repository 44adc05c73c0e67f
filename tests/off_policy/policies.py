"""Logs, policies and features of documents for off-policy evaluation."""

import dataclasses
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from cuolr.clicks.click_model import click_model
from cuolr.clicks.simulate import simulate
from cuolr.data.synthetic import generate
from cuolr.logs.clicklog import ClickLog
from cuolr.policies.policy import RankingPolicy, ScoringPolicy
from cuolr.supervised.ranksvm import fit_ranksvm
from cuolr.types import Candidates, Doubles, Floats, Ints

TRAIN = generate("tiny", 300, seed=3)
LOGGER, BETTER = fit_ranksvm(TRAIN, 0.01, 1), fit_ranksvm(TRAIN, 1.0, 1)


def log_of(logger: RankingPolicy, model: str = "pbm", sessions: int = 12_000) -> ClickLog:
    return simulate(TRAIN, logger, click_model(model), sessions, seed=1)


def cut(log: ClickLog, lengths: Ints) -> ClickLog:
    """The same sessions, each with so many positions."""
    shown = np.arange(log.k) < lengths[:, None]
    ranking = np.where(shown, log.ranking, -1).astype(log.ranking.dtype)
    return replace(log, ranking=ranking, clicks=log.clicks * shown, examination=None)


class NeverSaved(RankingPolicy):
    """For policies of a test alone."""

    def arrays(self) -> dict[str, Any]:
        raise NotImplementedError

    def settings(self) -> dict[str, Any]:
        raise NotImplementedError

    @classmethod
    def from_parts(cls, arrays: object, settings: object) -> Self:
        raise NotImplementedError


class WorstFirst(NeverSaved, ScoringPolicy):
    """Ranks well, but one query in the reverse order."""

    n_features = BETTER.n_features

    def __init__(self, query_id: str) -> None:
        self.query_id = query_id

    def score(self, candidates: Candidates) -> Floats:
        sign = np.where(candidates.query_ids[candidates.query_of_document] == self.query_id, -1, 1)
        return (sign * BETTER.score(candidates)).astype(np.float32)


@dataclasses.dataclass(frozen=True)
class OneAfterTheOther(NeverSaved):
    """Ranks as another policy does, but has no more positions than the lists that it was trained on."""

    policy: RankingPolicy

    def rank(self, candidates: Candidates, k: int) -> Ints:
        assert k <= 10
        return self.policy.rank(candidates, k)


@dataclass(frozen=True)
class OneHot:
    """A column per document; the target policy draws from those left, in proportion to fixed rates.

    Attributes:
        rankings: [M, K] the documents shown.
        rates: [A] the target policy's rate of each document, or [M, A] for each list.
    """

    rankings: Ints
    rates: Doubles

    def shown(self, position: int, rows: Ints) -> tuple[Floats, Floats]:
        one_hot = np.eye(self.rates.shape[-1], dtype=np.float32)
        above = one_hot[self.rankings[rows, :position]].sum(axis=1)
        return one_hot[self.rankings[rows, position]], above / np.float32(max(position, 1))

    def projected(self, position: int, of_document: Doubles, of_above: Doubles) -> tuple[Doubles, Doubles]:
        document, above = self.shown(position, np.arange(len(self.rankings)))
        left = self.rates * (above == 0)
        expected = left / left.sum(axis=1, keepdims=True)
        return document @ of_document + above @ of_above, expected @ of_document + above @ of_above
