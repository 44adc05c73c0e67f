"""Regression trees that score documents, as LightGBM grows them."""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from cuolr.data.normalise import Normaliser
from cuolr.errors import InputError
from cuolr.policies.base import POLICIES, ScaledScoringPolicy
from cuolr.types import Floats


def load_lightgbm() -> Any:
    """LightGBM, when it is first needed: it wants the system's OpenMP library, which not every machine has."""
    try:
        import lightgbm
    except OSError as error:
        raise InputError(
            f"LightGBM cannot be loaded ({error}); on Debian or Ubuntu: apt-get install libgomp1"
        ) from None
    return lightgbm


RAW = Normaliser("none", np.empty(0), np.empty(0))


@POLICIES.register("lambdamart")
class LambdaMartPolicy(ScaledScoringPolicy):
    """Scores a document by the sum of the leaves that it falls into.

    Attributes:
        model: The trees, in LightGBM's own text format.
        threads: How many to use for scoring.
        normaliser: How features were scaled when the trees were grown; by default they were not, as trees only compare
            values of one feature.
    """

    def __init__(self, model: str, threads: int = 1, normaliser: Normaliser = RAW) -> None:
        self.model = model
        self.threads = threads
        self.normaliser = normaliser
        lgb = load_lightgbm()
        try:
            self._booster = lgb.Booster(model_str=model)
        except lgb.basic.LightGBMError as error:
            raise ValueError(f"not a LightGBM model: {error}") from None

    @property
    def n_features(self) -> int:
        """Of the trees."""
        return int(self._booster.num_feature())

    def score_scaled(self, features: Floats) -> Floats:
        """[n] the sum over trees."""
        scores: Floats = self._booster.predict(features, num_threads=self.threads).astype(np.float32)
        return scores

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The model's text, as bytes, and the range of each feature."""
        model = np.frombuffer(bytearray(self.model.encode()), np.uint8)
        return {"model": model, **self.normaliser.arrays()}

    def settings(self) -> dict[str, Any]:
        """The number of threads, and how features are normalised."""
        return {"threads": self.threads, **self.normaliser.settings()}

    @classmethod
    def from_parts(cls, arrays: Mapping[str, npt.NDArray[Any]], settings: Mapping[str, Any]) -> Self:
        """The policy with these trees."""
        normaliser = Normaliser.from_parts(arrays, settings)
        return cls(arrays["model"].tobytes().decode(), int(settings["threads"]), normaliser)
