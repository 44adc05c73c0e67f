"""SHAP values of regression trees, computed by LightGBM."""

import numpy as np

from cuolr.policies.trees_policy import TreesPolicy, load_lightgbm
from cuolr.types import Doubles, Floats, Ints


class TreeContributions:
    """Shapley values of the features of a document, by TreeSHAP (Lundberg et al. 2018, path-dependent).

    They depend on how many documents reach each leaf. A saved model does not have these numbers: they are counted
    again, on documents of the log, and 1 is added to each.
    """

    def __init__(self, policy: TreesPolicy, background: Floats) -> None:
        """Count the leaves.

        Args:
            policy: The trees.
            background: [n, F + M] scaled documents, one or more.
        """
        self._natively = policy.normaliser.natively
        self._threads = policy.threads
        lgb, trees = load_lightgbm(), policy.trees
        plain = lgb.Booster(model_str=trees.lightgbm_text)
        reached = np.asarray(plain.predict(self._natively(background), pred_leaf=True), np.int64)
        reached = reached.reshape(len(background), -1)
        first = np.cumsum(trees.leaves) - trees.leaves
        leaf_count: Ints = 1 + np.bincount((reached + first).ravel(), minlength=len(trees.value))
        self._booster = lgb.Booster(model_str=trees.to_lightgbm(leaf_count))

    def explain(self, scaled: Floats) -> Doubles:
        """[n, F] the part of each feature in the score of scaled documents [n, F + M], relative to the mean score."""
        values = self._booster.predict(self._natively(scaled), pred_contrib=True, num_threads=self._threads)
        contributions: Doubles = np.asarray(values, np.float64)[:, :-1]
        return contributions
