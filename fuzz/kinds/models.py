"""Models of every kind: damaged, and crafted by somebody who makes the hash anew; and the text of trees."""

import json
from dataclasses import replace
from pathlib import Path

import lightgbm
import numpy as np

from cuolr.data.normalise import Normaliser
from cuolr.errors import InputError
from cuolr.estimator import Ranker
from cuolr.logs.contexts import ContextCurves
from cuolr.networks.encoder import ENCODERS, build_encoder
from cuolr.networks.layers import PairNetwork, seeded
from cuolr.policies.ensemble_policy import EnsemblePolicy
from cuolr.policies.model_folder import load_policy, save_policy
from cuolr.policies.policy import RankingPolicy
from cuolr.policies.regression_trees import RegressionTrees
from cuolr.policies.sequential_policy import SequentialPolicy
from cuolr.policies.trees_policy import TreesPolicy
from cuolr.training.warm_start import WarmStart
from cuolr.types import Candidates
from fuzz.damage.arrays import SAFETENSORS
from fuzz.damage.bytes import BYTES
from fuzz.damage.models import craft_model, craft_trees
from fuzz.damage.text import TEXT
from fuzz.damage.trees_of_values import JSON
from fuzz.kinds.kind import Kind, hash_of
from tests.policies.test_conformance import EXAMPLES
from tests.small_log import small_candidates, with_missing_values

CANDIDATES = small_candidates(queries=4, n_features=4, least=1, most=8)
MISSING = with_missing_values(CANDIDATES)
K = 5
PROVENANCE = {
    "preset": "default",
    "log": {"folder": "LOG", "sessions": 9, "clicks_sha256": "a", "last": "2026-11-02T11:00:00Z"},
    "settings": {
        "learner": {"name": "naive", "hidden": [4]},
        "training": {"steps": 2, "seed": 1, "held_out": 0.1},
        "validated_by": {"held_out_queries": 0.1},
    },
    "training": {"step": 2, "validation": 0.5, "steps": 2, "finished": True},
    "warm_start": {"model": "M", "sha256": "b", "last": "2026-11-01T11:00:00Z", "overlaps": False},
}


def make_models(folder: Path) -> None:
    """A model of each kind, with each encoder, with indicators of missing values, and by context."""
    for name, example in EXAMPLES.items():
        save_policy(example(), folder / name, PROVENANCE)
    normaliser = Normaliser.fit("log-min-max", MISSING)
    with seeded(1):
        for name in ENCODERS.names():
            width = 4 + normaliser.n_indicators
            encoder = build_encoder(name, {}, width, K)
            scorers = [PairNetwork(encoder.n_states, width, (6, 5)) for _ in range(2)]
            save_policy(SequentialPolicy(encoder, scorers[0], normaliser, scorers[1], 0.1, 3), folder / name)
    save_policy(_by_context(), folder / "by context")


def make_trees(folder: Path) -> None:
    """Trees, and more and larger ones."""
    trees = EXAMPLES["trees"]()
    save_policy(trees, folder / "small")
    rng = np.random.default_rng(0)
    features = rng.random((400, 4)).astype(np.float32)
    features[rng.random(features.shape) < 0.1] = np.nan
    grown = lightgbm.train(
        {"objective": "regression", "num_leaves": 15, "min_data_in_leaf": 3, "verbosity": -1, "num_threads": 1},
        lightgbm.Dataset(features, np.nan_to_num(features).sum(axis=1)),
        8,
    )
    larger = RegressionTrees.from_lightgbm(grown.model_to_string())
    save_policy(TreesPolicy(larger, 1, Normaliser.fit("none", MISSING)), folder / "larger")
    save_policy(EnsemblePolicy([trees, trees], [0.5, 0.25]), folder / "ensemble")  # type: ignore[list-item]


def read_model(folder: Path) -> str:
    """The arrays and settings of a model, and how it ranks documents; training is begun from it."""
    policy = load_policy(folder)
    Ranker.load(folder)
    start = WarmStart(policy, folder)
    json.dumps([start.text, start.described("2026-11-03T00:00:00Z")])
    rankings = [policy.rank(candidates, K) for candidates in (CANDIDATES, MISSING, _as_named(policy))]
    for ranking in rankings:
        check_rankings(ranking, CANDIDATES)
    arrays = sorted(policy.arrays().items())
    return hash_of(*rankings, policy.settings(), *(part for item in arrays for part in item))


def check_rankings(ranking: np.ndarray, candidates: Candidates) -> None:
    """Raise if it does not rank each document once."""
    for row, size in zip(ranking.tolist(), candidates.sizes.tolist(), strict=True):
        shown = row[: min(size, K)]
        assert len(set(shown)) == len(shown), f"no ranking: {row}"
        assert all(0 <= index < size for index in shown), f"no ranking: {row}"


def _as_named(policy: RankingPolicy) -> Candidates:
    """The documents with the names that the policy expects, if that is possible."""
    normaliser = getattr(policy, "normaliser", None)
    names = getattr(normaliser, "feature_names", None)
    return CANDIDATES if names is None or len(names) != 4 else replace(CANDIDATES, feature_names=names)


def _by_context() -> EnsemblePolicy:
    examination = np.linspace(1, 0.2, 6).reshape(2, 3)
    curves = ContextCurves(("mobile", "desktop"), np.stack([examination] * 2), np.array([1.0, 0.9]))
    return EnsemblePolicy([EXAMPLES["trees"](), EXAMPLES["ranksvm"]()], [1.0, 0.0], [1], examination, curves)  # type: ignore[list-item]


def make_tree_text(folder: Path) -> None:
    """Trees as the libraries that grow them write them."""
    rng = np.random.default_rng(0)
    features = rng.random((200, 4)).astype(np.float32)
    (folder / "lightgbm").mkdir()
    parameters = {"num_leaves": 7, "min_data_in_leaf": 3, "verbosity": -1, "num_threads": 1}
    grown = lightgbm.train(parameters, lightgbm.Dataset(features, features.sum(axis=1)), 3)
    (folder / "lightgbm" / "trees.txt").write_text(grown.model_to_string())
    import xgboost

    (folder / "xgboost").mkdir()
    booster = xgboost.train({"max_depth": 3, "nthread": 1}, xgboost.DMatrix(features, features.sum(axis=1)), 3)
    (folder / "xgboost" / "trees.json").write_bytes(bytes(booster.save_raw("json")))


def read_tree_text(folder: Path) -> str:
    """The scores of the trees."""
    file = next(folder.glob("trees.*"))
    try:
        if file.suffix == ".json":
            trees = RegressionTrees.from_xgboost(file.read_bytes())
        else:
            trees = RegressionTrees.from_lightgbm(file.read_text(errors="replace"))
    except ValueError as error:  # no command reads such a file: it comes from the library
        raise InputError(str(error)) from None
    if trees.n_features == 4:
        TreesPolicy(trees).score(CANDIDATES)
    return hash_of(*(part for item in sorted(trees.arrays().items()) for part in item))


DESCRIPTION = (*JSON, *JSON, *BYTES)
KINDS = (
    Kind(
        "model, damaged",
        make_models,
        read_model,
        {"model.json": DESCRIPTION, "*.safetensors": (*SAFETENSORS, *BYTES)},
        checksum=True,
    ),
    Kind("model, hash made anew", make_models, read_model, craft=craft_model),
    Kind("trees, hash made anew", make_trees, read_model, craft=craft_trees),
    Kind(
        "tree text", make_tree_text, read_tree_text, {"*.txt": (*TEXT, *TEXT, *BYTES), "*.json": (*JSON, *JSON, *BYTES)}
    ),
)
