"""Features of documents that are known by their index alone."""

from dataclasses import dataclass

import numpy as np

from cuolr.types import Doubles, Floats, Ints


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
