"""Regression trees, whichever library grew them, and LambdaMART grown by LightGBM, which is imported on first use."""

import os
import threading
import warnings
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from cuolr.config import Range, check_arguments
from cuolr.data.normalise import UNSCALED, Normaliser
from cuolr.errors import InputError
from cuolr.policies.bit_vector_trees import BitVectorTrees
from cuolr.policies.policy import POLICIES, ScaledScoringPolicy
from cuolr.policies.regression_trees import RegressionTrees
from cuolr.progress import Progress, no_progress
from cuolr.types import Floats, Ints

# LightGBM's limit on the number of documents of a query.
MAX_DOCUMENTS = 10_000
# Values that LightGBM bins at a time, of at least so many features: it takes several times their memory.
VALUES_AT_A_TIME, MIN_FEATURES_AT_A_TIME = 1 << 20, 8
ONE_AT_A_TIME = threading.Lock()
# LightGBM's parameters for LambdaMART; the same seed gives the same trees.
RANKING_TREES = {"objective": "lambdarank", "deterministic": True, "force_row_wise": True, "verbosity": -1}


def load_lightgbm() -> Any:
    """Import LightGBM: it needs the system's OpenMP library, which not every machine has."""
    try:
        import lightgbm
    except OSError as error:
        raise InputError(
            f"LightGBM cannot be loaded ({error}); on Debian or Ubuntu, run: apt-get install libgomp1"
        ) from None
    return lightgbm


def binned(
    values: Callable[[slice], Floats],
    n_features: int,
    grades: npt.NDArray[Any],
    parameters: Mapping[str, Any],
    **of_documents: Any,
) -> Any:
    """LightGBM's data set of n documents: the same as if it binned all features at once, in a fraction of the memory.

    Args:
        values: Returns [n, number of columns] the values of some features.
        n_features: The number of features.
        grades: [n].
        parameters: LightGBM's parameters.
        of_documents: Further arguments of `lightgbm.Dataset`, such as `group`.
    """
    lgb = load_lightgbm()

    def part(columns: slice, **documents: Any) -> Any:
        features = np.ascontiguousarray(values(columns))
        names = [f"Column_{feature}" for feature in range(columns.start, columns.stop)]
        return lgb.Dataset(features, feature_name=names, params=parameters, **documents).construct()

    width = max(VALUES_AT_A_TIME // max(len(grades), 1), MIN_FEATURES_AT_A_TIME)
    # One ranker at a time, for the sake of memory, and because filters of warnings are those of all threads.
    with ONE_AT_A_TIME, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that the values themselves are not kept
        whole = part(slice(0, min(width, n_features)), label=grades, **of_documents)
        for start in range(width, n_features, width):
            whole.add_features_from(part(slice(start, min(start + width, n_features))))
        return whole


def grow_ranking_trees(
    features: Floats,
    grades: npt.NDArray[Any],
    sizes: Ints,
    parameters: Mapping[str, Any],
    trees: int,
    progress: Progress = no_progress,
) -> RegressionTrees:
    """LambdaMART with linear gain; very long lists are cut to the highest grades.

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
    dataset = binned(lambda part: features[:, part], features.shape[1], grades, parameters, group=sizes[sizes > 0])
    booster = lgb.train(parameters, dataset, trees, callbacks=[lambda _: progress(1)])
    return RegressionTrees.from_lightgbm(booster.model_to_string())


# More than any machine has; OpenMP ends the process if it cannot start as many as it is told to.
MAX_THREADS = 4_096
# LightGBM needs more threads than this to be faster than bit vectors, which have one.
BIT_VECTOR_THREADS = 4


@POLICIES.register("trees")
class TreesPolicy(ScaledScoringPolicy):
    """Scores a document by the sum of its leaf values: small trees by bit vectors, others by LightGBM; the same bits.

    Attributes:
        trees: The trees.
        threads: Number of threads for scoring.
        normaliser: How the training features were scaled; not scaled by default, because trees only compare values of
            one feature.
    """

    def __init__(self, trees: RegressionTrees, threads: int = 1, normaliser: Normaliser = UNSCALED) -> None:
        self.trees = trees
        self.threads = threads
        self.normaliser = normaliser

    @cached_property
    def _bit_vectors(self) -> BitVectorTrees | None:
        return BitVectorTrees.of(self.trees) if self.threads <= BIT_VECTOR_THREADS else None

    @cached_property
    def _booster(self) -> Any:
        return load_lightgbm().Booster(model_str=self.trees.lightgbm_text)

    @property
    def n_features(self) -> int:
        """The number of features of the trees."""
        return self.trees.n_features

    def score_scaled(self, features: Floats) -> Floats:
        """[n] the sum of the trees' outputs."""
        return self._sums(self.normaliser.natively(features))

    def score_raw(self, features: Floats) -> Floats:
        """[n] the sums for the documents of one query; features that are not scaled are not copied, either."""
        return self._sums(self.normaliser.transform_natively(features))

    def _sums(self, features: Floats) -> Floats:
        if self._bit_vectors is not None:
            return self._bit_vectors.sums(features).astype(np.float32)
        scores: npt.NDArray[np.float64] = self._booster.predict(
            features, num_threads=min(self.threads, os.cpu_count() or 1)
        )
        return scores.astype(np.float32)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The trees, and the range of each feature."""
        return {**self.trees.arrays(), **self.normaliser.arrays()}

    def settings(self) -> dict[str, Any]:
        """The number of threads, and how features are normalised."""
        return {"threads": self.threads, **self.normaliser.settings()}

    @classmethod
    def from_parts(cls, arrays: Mapping[str, npt.NDArray[Any]], settings: Mapping[str, Any]) -> Self:
        """The policy with these trees; raises if they are none."""
        check_arguments(threads=(settings["threads"], Range(1, MAX_THREADS)))
        trees, normaliser = RegressionTrees.from_arrays(arrays), Normaliser.from_parts(arrays, settings)
        return cls(trees, int(settings["threads"]), normaliser)
