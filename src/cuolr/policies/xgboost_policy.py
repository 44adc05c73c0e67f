"""Regression trees that score documents, as XGBoost grows them; needs the extra `cuolr[xgboost]`."""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from cuolr.data.normalise import Normaliser
from cuolr.errors import InputError
from cuolr.policies.policy import POLICIES, ScaledScoringPolicy
from cuolr.types import Floats


def load_xgboost() -> Any:
    """The library, or how to get it."""
    try:
        import xgboost
    except ModuleNotFoundError:
        raise InputError("XGBoost is not installed; install it with: pip install 'cuolr[xgboost]'") from None
    return xgboost


@POLICIES.register("xgboost")
class XGBoostPolicy(ScaledScoringPolicy):
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

    def score_scaled(self, features: Floats) -> Floats:
        """[n] the sum over trees."""
        scores: Floats = self._booster.predict(self._xgboost.DMatrix(features, nthread=self.threads))
        return scores

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The model's bytes, and the range of each feature."""
        model = np.frombuffer(bytearray(self.model), np.uint8)
        return {"model": model, **self.normaliser.arrays()}

    def settings(self) -> dict[str, Any]:
        """The number of threads, and how features are normalised."""
        return {"threads": self.threads, **self.normaliser.settings()}

    @classmethod
    def from_parts(cls, arrays: Mapping[str, npt.NDArray[Any]], settings: Mapping[str, Any]) -> Self:
        """The policy with these trees."""
        normaliser = Normaliser.from_parts(arrays, settings)
        return cls(arrays["model"].tobytes(), int(settings["threads"]), normaliser)
