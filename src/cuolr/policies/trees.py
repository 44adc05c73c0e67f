"""Regression trees that score documents, as LightGBM grows them, on raw features."""

from collections.abc import Mapping
from typing import Any, Self

import lightgbm as lgb
import numpy as np
import numpy.typing as npt

from cuolr.errors import InputError
from cuolr.policies.base import POLICIES, ScoringPolicy
from cuolr.types import Candidates, Floats


@POLICIES.register("lambdamart")
class LambdaMartPolicy(ScoringPolicy):
    """Scores a document by the sum of the leaves that it falls into.

    Trees only compare values of one feature, so there is nothing to normalise.

    Attributes:
        model: The trees, in LightGBM's own text format.
        threads: How many to use for scoring.
    """

    def __init__(self, model: str, threads: int = 1) -> None:
        self.model = model
        self.threads = threads
        try:
            self._booster = lgb.Booster(model_str=model)
        except lgb.basic.LightGBMError as error:
            raise ValueError(f"not a LightGBM model: {error}") from None

    def score(self, candidates: Candidates) -> Floats:
        """[n_documents] the sum over trees."""
        expected = self._booster.num_feature()
        if candidates.n_features != expected:
            raise InputError(f"this model ranks documents of {expected} features, found {candidates.n_features}")
        if not candidates.n_documents:
            return np.empty(0, np.float32)
        scores: npt.NDArray[np.float64] = self._booster.predict(candidates.features, num_threads=self.threads)
        return scores.astype(np.float32)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The model's text, as bytes."""
        return {"model": np.frombuffer(self.model.encode(), np.uint8)}

    def settings(self) -> dict[str, Any]:
        """The number of threads."""
        return {"threads": self.threads}

    @classmethod
    def from_parts(cls, arrays: Mapping[str, npt.NDArray[Any]], settings: Mapping[str, Any]) -> Self:
        """The policy with these trees."""
        return cls(arrays["model"].tobytes().decode(), int(settings["threads"]))
