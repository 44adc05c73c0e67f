"""LambdaMART: regression trees grown by LightGBM."""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from cuolr.data.normalise import UNSCALED, Normaliser
from cuolr.errors import InputError
from cuolr.policies.policy import POLICIES
from cuolr.policies.trees_policy import TreesPolicy
from cuolr.progress import Progress, unseen
from cuolr.types import Floats, Ints

# LightGBM's limit on the number of documents of a query.
MAX_DOCUMENTS = 10_000
# LightGBM's parameters for LambdaMART; the same seed gives the same trees.
RANKING_TREES = {"objective": "lambdarank", "deterministic": True, "force_row_wise": True, "verbosity": -1}


def load_lightgbm() -> Any:
    """Import LightGBM on first use: it needs the system's OpenMP library, which not every machine has."""
    try:
        import lightgbm
    except OSError as error:
        raise InputError(
            f"LightGBM cannot be loaded ({error}); on Debian or Ubuntu, run: apt-get install libgomp1"
        ) from None
    return lightgbm


def grow_ranking_trees(
    features: Floats,
    grades: npt.NDArray[Any],
    sizes: Ints,
    parameters: Mapping[str, Any],
    trees: int,
    progress: Progress = unseen,
) -> str:
    """LambdaMART with linear gain, in LightGBM's text format; very long lists are cut to the highest grades.

    Args:
        features: [n, F] the features, list after list.
        grades: [n] integers from 0.
        sizes: The number of documents in each list.
        parameters: LightGBM's parameters.
        trees: The number of trees.
        progress: Called with 1 after each tree.
    """
    lgb = load_lightgbm()
    if sizes.max(initial=0) > MAX_DOCUMENTS:
        of_list = np.repeat(np.arange(len(sizes)), sizes)
        place = np.arange(len(grades)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        kept = np.sort(np.lexsort((-grades, of_list))[place < MAX_DOCUMENTS])
        features, grades, sizes = features[kept], grades[kept], np.minimum(sizes, MAX_DOCUMENTS)
    parameters = {**RANKING_TREES, "label_gain": list(range(int(grades.max(initial=0)) + 1)), **parameters}
    dataset = lgb.Dataset(features, grades, group=sizes[sizes > 0], params=parameters)
    return str(lgb.train(parameters, dataset, trees, callbacks=[lambda _: progress(1)]).model_to_string())


@POLICIES.register("lambdamart")
class LambdaMartPolicy(TreesPolicy):
    """Scores a document by the sum of its leaf values.

    Attributes:
        model: The trees, in LightGBM's text format.
        threads: Number of threads for scoring.
        normaliser: How the training features were scaled; not scaled by default, because trees only compare values of
            one feature.
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
        """The number of features of the trees."""
        return int(self._booster.num_feature())

    def score_scaled(self, features: Floats) -> Floats:
        """[n] the sum of the trees' outputs."""
        scores: Floats = self._booster.predict(self.normaliser.natively(features), num_threads=self.threads).astype(
            np.float32
        )
        return scores

    def as_bytes(self) -> bytes:
        """The model's text, encoded."""
        return self.model.encode()

    @classmethod
    def of_bytes(cls, model: bytes, threads: int, normaliser: Normaliser) -> Self:
        """The policy with these trees."""
        return cls(model.decode(), threads, normaliser)
