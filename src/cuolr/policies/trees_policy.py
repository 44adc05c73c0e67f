"""What policies of regression trees share: how they are saved."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from cuolr.data.normalise import Normaliser
from cuolr.policies.policy import ScaledScoringPolicy


class TreesPolicy(ScaledScoringPolicy):
    """Scores a document by regression trees, in the format of the library that grew them.

    Attributes:
        threads: Number of threads for scoring.
    """

    threads: int

    @abstractmethod
    def as_bytes(self) -> bytes:
        """The trees."""

    @classmethod
    @abstractmethod
    def of_bytes(cls, model: bytes, threads: int, normaliser: Normaliser) -> Self:
        """The policy with the trees that `as_bytes` returned."""

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The trees as bytes, and the range of each feature."""
        return {"model": np.frombuffer(bytearray(self.as_bytes()), np.uint8), **self.normaliser.arrays()}

    def settings(self) -> dict[str, Any]:
        """The number of threads, and how features are normalised."""
        return {"threads": self.threads, **self.normaliser.settings()}

    @classmethod
    def from_parts(cls, arrays: Mapping[str, npt.NDArray[Any]], settings: Mapping[str, Any]) -> Self:
        """The policy with these trees."""
        normaliser = Normaliser.from_parts(arrays, settings)
        return cls.of_bytes(arrays["model"].tobytes(), int(settings["threads"]), normaliser)
