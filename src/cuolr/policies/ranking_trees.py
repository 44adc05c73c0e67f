"""LightGBM, imported on first use, and LambdaMART grown by it."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from cuolr.errors import InputError
from cuolr.policies.regression_trees import RegressionTrees
from cuolr.progress import Progress, unseen
from cuolr.types import Floats, Ints

# LightGBM's limit on the number of documents of a query.
MAX_DOCUMENTS = 10_000
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


def grow_ranking_trees(
    features: Floats,
    grades: npt.NDArray[Any],
    sizes: Ints,
    parameters: Mapping[str, Any],
    trees: int,
    progress: Progress = unseen,
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
    dataset = lgb.Dataset(features, grades, group=sizes[sizes > 0], params=parameters)
    booster = lgb.train(parameters, dataset, trees, callbacks=[lambda _: progress(1)])
    return RegressionTrees.from_lightgbm(booster.model_to_string())
