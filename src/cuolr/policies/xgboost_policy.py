"""Regression trees grown by XGBoost; needs the extra `cuolr[xgboost]`."""

from typing import Any, Self

from cuolr.data.normalise import Normaliser
from cuolr.errors import InputError
from cuolr.policies.policy import POLICIES
from cuolr.policies.trees_policy import TreesPolicy
from cuolr.types import Floats


def load_xgboost() -> Any:
    """Import XGBoost; raises `InputError` with instructions if it is not installed."""
    try:
        import xgboost
    except ModuleNotFoundError:
        raise InputError("XGBoost is not installed; install it with: pip install 'cuolr[xgboost]'") from None
    return xgboost


@POLICIES.register("xgboost")
class XGBoostPolicy(TreesPolicy):
    """Scores a document by the sum of its leaf values.

    Attributes:
        model: The trees, in XGBoost's binary JSON format.
        threads: Number of threads for scoring.
        normaliser: How the training features were scaled.
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
        """The number of features of the trees."""
        return int(self._booster.num_features())

    def score_scaled(self, features: Floats) -> Floats:
        """[n] the sum of the trees' outputs."""
        documents = self._xgboost.DMatrix(self.normaliser.natively(features), nthread=self.threads)
        scores: Floats = self._booster.predict(documents)
        return scores

    def as_bytes(self) -> bytes:
        """The model."""
        return self.model

    @classmethod
    def of_bytes(cls, model: bytes, threads: int, normaliser: Normaliser) -> Self:
        """The policy with these trees."""
        return cls(model, threads, normaliser)
