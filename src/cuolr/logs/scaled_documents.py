"""The documents that a log shows, with scaled features."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from cuolr.data.normalise import Normaliser
from cuolr.errors import InputError
from cuolr.logs.clicklog import ClickLog
from cuolr.types import Bools, Candidates, Floats, Ints


@dataclass(frozen=True)
class ScaledDocuments:
    """The n documents that a log shows.

    Attributes:
        rows: [n] their rows among the candidates, ascending.
        features: [n + 1, F + M] scaled, with M indicators of missing values; the last row, for padding, is 0.
        documents: [M, K] the row in `features` at each position of each row of the log; n where nothing was shown.
        normaliser: The normaliser that scaled the features.
    """

    rows: Ints
    features: Floats
    documents: Ints
    normaliser: Normaliser

    @classmethod
    def of(cls, log: ClickLog, normaliser: Normaliser) -> Self:
        """Scale the shown documents of a log, raw or aggregated.

        Args:
            log: Shows at least one document.
            normaliser: Fitted.
        """
        candidates, where, documents = log.candidates, log.where, log.documents
        used = np.zeros(candidates.n_documents, np.bool_)
        used[documents[where]] = True
        if not used.any():
            raise InputError("the log shows no documents in any session")
        features = scaled_features(candidates, normaliser, used)
        index = np.where(where, (np.cumsum(used) - 1)[documents], len(features) - 1)
        return cls(np.flatnonzero(used), features, index, normaliser)


def scaled_features(candidates: Candidates, normaliser: Normaliser, used: Bools) -> Floats:
    """[number used + 1, F + M] the scaled features of the used documents, then a row of zeros.

    Args:
        candidates: All documents.
        normaliser: A fitted normaliser.
        used: [n_documents] the documents to scale.
    """
    features = np.zeros((int(used.sum()) + 1, candidates.n_features + normaliser.n_indicators), np.float32)
    end = 0
    for _, scaled in normaliser.in_parts(candidates, used):
        features[end : end + len(scaled)] = scaled
        end += len(scaled)
    return features
