"""Regression trees that score documents, as XGBoost grows them; needs the extra `cuolr[xgboost]`."""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from cuolr.data.normalise import Normaliser
from cuolr.errors import InputError
from cuolr.policies.base import POLICIES, ScoringPolicy
from cuolr.types import Candidates, Floats


def load_xgboost() -> Any:
    """The library, or how to get it."""
    try:
        import xgboost
    except ModuleNotFoundError:
        raise InputError("XGBoost is not installed; install it with: pip install 'cuolr[xgboost]'") from None
    return xgboost


@POLICIES.register("xgboost")
class XGBoostPolicy(ScoringPolicy):
    """Scores a document by the sum of the leaves that it falls into.

    Attributes:
        model: The trees, in XGBoost's binary JSON.
        threads: How many to use for scoring.
        normaliser: How features were scaled when the trees were grown.
    """

    def __init__(self, model: bytes, threads: int, normaliser: Normaliser) -> None:
        self.model = model
        self.threads = threads
        self.normaliser = normaliser
        self._xgboost = load_xgboost()
        try:
            self._booster = self._xgboost.Booster({"nthread": threads}, model_file=bytearray(model))
        except self._xgboost.core.XGBoostError as error:
            raise ValueError(f"not an XGBoost model: {error}") from None

    @property
    def n_features(self) -> int:
        """Of the trees."""
        return int(self._booster.num_features())

    def score(self, candidates: Candidates) -> Floats:
        """[n_documents] the sum over trees."""
        candidates = self.normaliser.as_fitted(candidates, self.n_features)
        scores = np.empty(candidates.n_documents, np.float32)
        for rows, scaled in self.normaliser.in_parts(candidates):
            if len(scaled):
                scores[rows] = self._booster.predict(self._xgboost.DMatrix(scaled, nthread=self.threads))
        return scores

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The model's bytes, and the range of each feature."""
        model = np.frombuffer(self.model, np.uint8)
        return {"model": model, **self.normaliser.arrays()}

    def settings(self) -> dict[str, Any]:
        """The number of threads, and how features are normalised."""
        return {"threads": self.threads, **self.normaliser.settings()}

    @classmethod
    def from_parts(cls, arrays: Mapping[str, npt.NDArray[Any]], settings: Mapping[str, Any]) -> Self:
        """The policy with these trees."""
        normaliser = Normaliser.from_parts(arrays, settings)
        return cls(arrays["model"].tobytes(), int(settings["threads"]), normaliser)
