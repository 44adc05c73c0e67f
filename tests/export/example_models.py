"""Small models of every kind that can be exported, on features of different scale, with and without missing values."""

from functools import cache

import numpy as np

from cuolr.data.normalise import UNSCALED, Normaliser
from cuolr.networks.layers import DocumentNetwork, seeded
from cuolr.policies.ensemble_policy import EnsemblePolicy
from cuolr.policies.linear_policy import LinearPolicy
from cuolr.policies.network_policy import NetworkPolicy
from cuolr.policies.policy import ScaledScoringPolicy
from cuolr.policies.regression_trees import RegressionTrees
from cuolr.policies.trees_policy import TreesPolicy, grow_ranking_trees
from cuolr.types import Candidates, Floats

QUERIES, DOCUMENTS, FEATURES = 40, 20, 8


@cache
def documents(missing: bool) -> Candidates:
    """Normal, tiny, exponential, count and constant features; the first and the fifth are never missing."""
    rng = np.random.default_rng(0)
    n = QUERIES * DOCUMENTS
    features = np.empty((n, FEATURES), np.float32)
    features[:, :3] = rng.normal(size=(n, 3))
    features[:, 2] *= 1e-7
    features[:, 3:5] = rng.exponential(1000, (n, 2))
    features[:, 5:7] = rng.integers(0, 6, (n, 2))
    features[:, 7] = 3
    if missing:
        gone = rng.random(features.shape) < 0.15
        gone[:, [0, 4]] = False
        features[gone] = np.nan
    names = np.array([f"f{j}" for j in range(FEATURES)])
    offsets = np.arange(0, n + 1, DOCUMENTS)
    return Candidates(features, offsets, np.arange(QUERIES).astype(str), feature_names=names)


def normaliser(kind: str, missing: bool) -> Normaliser:
    return UNSCALED if kind == "unscaled" else Normaliser.fit(kind, documents(missing))


@cache
def trees(kind: str = "log-min-max", missing: bool = True, seed: int = 0) -> TreesPolicy:
    raw, scaling = documents(missing), normaliser(kind, missing)
    scaled: Floats = scaling.natively(scaling.transform(raw.features, raw.offsets))
    known = np.nan_to_num(raw.features)
    noise = np.random.default_rng(seed).normal(size=len(known))
    wanted = known[:, 0] + known[:, 2] * 1e7 + known[:, 3] / 1000 + np.isnan(raw.features[:, 1]) + noise
    grades = np.digitize(wanted, [0, 1, 2, 3]).astype(np.int8)
    parameters = {"num_threads": 1, "num_leaves": 12, "min_data_in_leaf": 5, "seed": seed, "learning_rate": 0.2}
    return TreesPolicy(grow_ranking_trees(scaled, grades, raw.sizes, parameters, 20), 1, scaling)


@cache
def xgboost_trees() -> TreesPolicy:
    """Trees that XGBoost grew, on features with missing values."""
    import xgboost

    raw, scaling = documents(missing=True), normaliser("log-min-max", missing=True)
    scaled = scaling.natively(scaling.transform(raw.features, raw.offsets))
    grades = np.digitize(np.nan_to_num(raw.features[:, 0]) + np.isnan(raw.features[:, 3]), [-1, 0, 1])
    lists = xgboost.DMatrix(scaled, grades, group=raw.sizes)
    booster = xgboost.train({"objective": "rank:ndcg", "max_depth": 4, "nthread": 1, "seed": 0}, lists, 15)
    return TreesPolicy(RegressionTrees.from_xgboost(bytes(booster.save_raw("json"))), 1, scaling)


def linear(kind: str = "log-min-max", missing: bool = True) -> LinearPolicy:
    scaling = normaliser(kind, missing)
    weights = np.random.default_rng(1).normal(size=FEATURES + scaling.n_indicators)
    return LinearPolicy(weights.astype(np.float32), scaling)


def network(kind: str = "log-min-max", missing: bool = True) -> NetworkPolicy:
    scaling = normaliser(kind, missing)
    with seeded(1):
        return NetworkPolicy(DocumentNetwork(FEATURES + scaling.n_indicators, (12, 6)), scaling)


def tree_ensemble() -> EnsemblePolicy:
    return EnsemblePolicy([trees(seed=0), trees(seed=1), trees(seed=2)], [0.3, -1.7, 0.0])


def mixed_ensemble() -> EnsemblePolicy:
    return EnsemblePolicy([trees(), linear(), network()], [0.5, 0.25, 2.0])


@cache
def examples() -> dict[str, ScaledScoringPolicy]:
    """All of them by name."""
    made: dict[str, ScaledScoringPolicy] = {}
    for missing in (False, True):
        values = "missing values" if missing else "all values"
        for kind in ("min-max", "log-min-max", "none", "unscaled"):
            made[f"trees, {kind}, {values}"] = trees(kind, missing)
        for kind in ("min-max", "log-min-max", "none"):
            made[f"linear, {kind}, {values}"] = linear(kind, missing)
            made[f"network, {kind}, {values}"] = network(kind, missing)
    made["trees of XGBoost"] = xgboost_trees()
    return {**made, "ensemble of trees": tree_ensemble(), "mixed ensemble": mixed_ensemble()}
