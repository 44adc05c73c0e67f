"""Regression trees that score documents, as LightGBM grows them."""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from cuolr.data.normalise import UNSCALED, Normaliser
from cuolr.errors import InputError
from cuolr.policies.policy import POLICIES, ScaledScoringPolicy
from cuolr.types import Floats, Ints

# Of LightGBM: LambdaMART, and the same seed gives the same trees.
# Documents of a query that it takes at most.
MAX_DOCUMENTS = 10_000
RANKING_TREES = {"objective": "lambdarank", "deterministic": True, "force_row_wise": True, "verbosity": -1}


def load_lightgbm() -> Any:
    """LightGBM, when it is first needed: it wants the system's OpenMP library, which not every machine has."""
    try:
        import lightgbm
    except OSError as error:
        raise InputError(
            f"LightGBM cannot be loaded ({error}); on Debian or Ubuntu: apt-get install libgomp1"
        ) from None
    return lightgbm


def grow_ranking_trees(
    features: Floats, grades: npt.NDArray[Any], sizes: Ints, parameters: Mapping[str, Any], trees: int
) -> str:
    """LambdaMART with linear gain, in LightGBM's text format; of a very long list, from the documents of high grades.

    Args:
        features: [n, F].
        grades: [n] whole numbers from 0.
        sizes: Documents of each list, one after the other.
        parameters: Of LightGBM.
        trees: How many.
    """
    lgb = load_lightgbm()
    if sizes.max(initial=0) > MAX_DOCUMENTS:
        of_list = np.repeat(np.arange(len(sizes)), sizes)
        place = np.arange(len(grades)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        kept = np.sort(np.lexsort((-grades, of_list))[place < MAX_DOCUMENTS])
        features, grades, sizes = features[kept], grades[kept], np.minimum(sizes, MAX_DOCUMENTS)
    parameters = {**RANKING_TREES, "label_gain": list(range(int(grades.max(initial=0)) + 1)), **parameters}
    dataset = lgb.Dataset(features, grades, group=sizes[sizes > 0], params=parameters)
    return str(lgb.train(parameters, dataset, trees).model_to_string())


@POLICIES.register("lambdamart")
class LambdaMartPolicy(ScaledScoringPolicy):
    """Scores a document by the sum of the leaves that it falls into.

    Attributes:
        model: The trees, in LightGBM's own text format.
        threads: How many to use for scoring.
        normaliser: How features were scaled when the trees were grown; by default they were not, as trees only compare
            values of one feature.
    """

    def __init__(self, model: str, threads: int = 1, normaliser: Normaliser = UNSCALED) -> None:
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
