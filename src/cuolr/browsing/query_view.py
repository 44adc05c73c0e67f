"""What is shown for a query: production's list and the model's, and the evidence for each document."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from cuolr.browsing.document_evidence import CorrectedRate
from cuolr.browsing.feature_contributions import FeatureContributions
from cuolr.browsing.moves import Direction, Justification, RateDifference
from cuolr.types import Floats

# Features that are shown by name; the sum of all others is one more.
NAMED_FEATURES = 10


@dataclass(frozen=True)
class DocumentView:
    """A document of one of the lists, or of both.

    Attributes:
        document_id: As in the log.
        title: For people; "" = none.
        picture: A data URI; "" = none.
        production: Its rank in production's list, from 1; None = not in the list.
        model: Its rank in the model's list.
        direction: Where it goes.
        justification: What clicks say about the move.
        reason: The same as a sentence.
        passed: Ids of the documents that it overtakes, or that overtake it.
        difference: Its rate minus that of the passed documents together; None = not known.
        impressions: Number of sessions that show it.
        positions: (position, impressions), from 1.
        clicks: Number of clicks.
        reward: Sum of rewards; None if the log has none.
        rate: Clicks, or reward, per expected examination.
        score: The model's score minus the mean of the documents here; None if it has none.
        contributions: What each feature of `QueryView.features` adds to the score.
        other_features: What all other features add together.
        unexplained: The rest of the score.
        values: The values of these features; None = missing.
    """

    document_id: str
    title: str
    picture: str
    production: int | None
    model: int | None
    direction: Direction
    justification: Justification
    reason: str
    passed: tuple[str, ...]
    difference: RateDifference | None
    impressions: int
    positions: tuple[tuple[int, int], ...]
    clicks: float
    reward: float | None
    rate: CorrectedRate
    score: float | None = None
    contributions: tuple[float, ...] = ()
    other_features: float = 0.0
    unexplained: float = 0.0
    values: tuple[float | None, ...] = ()


@dataclass(frozen=True)
class QueryView:
    """A query.

    Attributes:
        query_id: As in the log.
        sessions: Number of sessions.
        lists: Number of different lists that these saw.
        outcome: What rates and changes count: clicks or reward.
        change: Estimated change of all its sessions' clicks or reward; None = not estimated.
        interval: Its 95 % interval.
        baseline: Expected clicks or reward of the logged lists.
        features: The features that differ most in what they add to the scores of these documents.
        documents: Those of the model's list in its order, then those that leave production's.
    """

    query_id: str
    sessions: int
    lists: int
    outcome: str
    change: float | None
    interval: tuple[float, float] | None
    baseline: float | None
    features: tuple[str, ...]
    documents: tuple[DocumentView, ...]

    def as_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self)


@dataclass(frozen=True)
class NamedContributions:
    """The contributions of the features that matter most for some documents.

    Attributes:
        names: Of these features.
        contributions: [n, number of names].
        other: [n] all other features together.
        found: Scores and all contributions.
        values: [n, number of names] the features themselves.
    """

    names: tuple[str, ...]
    contributions: np.ndarray[Any, np.dtype[np.float64]]
    other: np.ndarray[Any, np.dtype[np.float64]]
    found: FeatureContributions
    values: Floats

    @classmethod
    def of(cls, found: FeatureContributions, names: list[str], values: Floats) -> "NamedContributions":
        """Choose the features by the mean size of what they add.

        Args:
            found: The contributions.
            names: [F] of all features.
            values: [n, F] of all features.
        """
        size = np.abs(found.by_feature).mean(axis=0)
        chosen = np.argsort(-size, kind="stable")[:NAMED_FEATURES]
        chosen = chosen[size[chosen] > 0]
        named = found.by_feature[:, chosen]
        other = found.by_feature.sum(axis=1) - named.sum(axis=1)
        return cls(tuple(names[j] for j in chosen), named, other, found, values[:, chosen])

    def of_document(self, number: int) -> dict[str, Any]:
        """The fields of the document's view."""
        values = self.values[number].tolist()
        return {
            "score": float(self.found.score[number]),
            "contributions": tuple(self.contributions[number].tolist()),
            "other_features": float(self.other[number]),
            "unexplained": float(self.found.unexplained[number]),
            "values": tuple(None if np.isnan(value) else value for value in values),
        }
