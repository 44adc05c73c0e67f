"""Parity of exported models: the largest difference of a score from the policy's, by kind of model and target.

`python -m benchmarks.export_parity` prints the table of docs/export/index.md.
"""

import time
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from benchmarks.table import Row
from cuolr.cli.terminal import say, show_table
from cuolr.data.normalise import Normaliser
from cuolr.export import EXPORTERS
from cuolr.export.check_export import ROUNDING, ExportCheck, check_export
from cuolr.export.exporter import CannotHold, PointwiseModel
from cuolr.networks.layers import DocumentNetwork, seeded
from cuolr.policies.ensemble_policy import EnsemblePolicy
from cuolr.policies.linear_policy import LinearPolicy
from cuolr.policies.network_policy import NetworkPolicy
from cuolr.policies.policy import RankingPolicy
from cuolr.policies.random_policy import RandomPolicy
from cuolr.policies.regression_trees import RegressionTrees
from cuolr.policies.trees_policy import TreesPolicy, grow_ranking_trees
from cuolr.types import Candidates

QUERIES, DOCUMENTS, FEATURES = 100, 40, 136
TREES, LEAVES = 200, 31


def documents(missing: float) -> Candidates:
    """Features of different scale, this share of whose values is missing in every other feature."""
    rng = np.random.default_rng(0)
    n = QUERIES * DOCUMENTS
    features = rng.normal(size=(n, FEATURES)) * 10.0 ** rng.integers(-3, 4, FEATURES)
    features[:, ::4] = rng.integers(0, 20, (n, len(range(0, FEATURES, 4))))
    some = features[:, 1::2]
    some[rng.random(some.shape) < missing] = np.nan
    return Candidates(features.astype(np.float32), DOCUMENTS * np.arange(QUERIES + 1), np.arange(QUERIES).astype(str))


def _grades(candidates: Candidates, seed: int) -> npt.NDArray[np.int8]:
    rng = np.random.default_rng(seed)
    known = np.nan_to_num(candidates.features)
    scores = (known / (np.abs(known).max(axis=0) + 1)) @ rng.normal(size=FEATURES) + 0.3 * rng.normal(size=len(known))
    grades: npt.NDArray[np.int8] = np.digitize(scores, np.quantile(scores, [0.5, 0.7, 0.85, 0.95])).astype(np.int8)
    return grades


def trees(missing: float, seed: int = 0) -> TreesPolicy:
    """LambdaMART by LightGBM."""
    raw = documents(missing)
    scaling = Normaliser.fit("log-min-max", raw)
    features = scaling.natively(scaling.apply(raw).features)
    parameters = {"num_threads": 1, "num_leaves": LEAVES, "learning_rate": 0.1, "min_data_in_leaf": 10, "seed": seed}
    grown = grow_ranking_trees(features, _grades(raw, seed), raw.sizes, parameters, TREES)
    return TreesPolicy(grown, 1, scaling)


def xgboost_trees(missing: float) -> TreesPolicy:
    """LambdaMART by XGBoost."""
    import xgboost

    raw = documents(missing)
    scaling = Normaliser.fit("log-min-max", raw)
    lists = xgboost.DMatrix(scaling.natively(scaling.apply(raw).features), _grades(raw, 1), group=raw.sizes)
    booster = xgboost.train({"objective": "rank:ndcg", "max_depth": 5, "nthread": 1}, lists, TREES // 2)
    return TreesPolicy(RegressionTrees.from_xgboost(bytes(booster.save_raw("json"))), 1, scaling)


def linear(kind: str, missing: float) -> LinearPolicy:
    """A linear ranker."""
    scaling = Normaliser.fit(kind, documents(missing))
    weights = np.random.default_rng(1).normal(size=FEATURES + scaling.n_indicators)
    return LinearPolicy(weights.astype(np.float32), scaling)


def network(kind: str, missing: float) -> NetworkPolicy:
    """A network with two hidden layers."""
    scaling = Normaliser.fit(kind, documents(missing))
    with seeded(1):
        return NetworkPolicy(DocumentNetwork(FEATURES + scaling.n_indicators, (64, 32)), scaling)


MODELS: dict[str, Callable[[], RankingPolicy]] = {
    "trees": lambda: trees(0.0),
    "trees, missing values": lambda: trees(0.2),
    "trees by XGBoost": lambda: xgboost_trees(0.2),
    "ensemble of trees": lambda: EnsemblePolicy([trees(0.2, 0), trees(0.2, 1)], [0.7, 0.3]),
    "linear, min-max": lambda: linear("min-max", 0.2),
    "linear, log-min-max": lambda: linear("log-min-max", 0.2),
    "network, min-max": lambda: network("min-max", 0.2),
    "network, log-min-max": lambda: network("log-min-max", 0.2),
    "trees + linear + network": lambda: EnsemblePolicy(
        [trees(0.2), linear("log-min-max", 0.2), network("log-min-max", 0.2)], [0.5, 0.2, 0.3]
    ),
    "no score per document": lambda: RandomPolicy(1),
}


def parity(policy: RankingPolicy, target: str) -> ExportCheck | None:
    """How close the exported model is; None if the target cannot hold the policy."""
    try:
        model = PointwiseModel.of(policy)
        exported = EXPORTERS.get(target)().export(model, "parity")
    except CannotHold:
        return None
    return check_export(model, exported.score)


def measure() -> dict[tuple[str, str], ExportCheck | None]:
    """All models by all targets."""
    found = {}
    for name, make in MODELS.items():
        policy = make()
        for target in EXPORTERS.names():
            start = time.perf_counter()
            found[name, target] = parity(policy, target)
            say(f"{name}, {target}: {time.perf_counter() - start:.1f} s")
    return found


def relative(check: ExportCheck) -> float:
    """The largest difference, relative to the largest score if that is above 1."""
    return check.max_difference / max(1.0, check.max_score)


def run() -> list[Row]:
    """The worst of each target."""
    found = measure()
    rows = []
    for target in EXPORTERS.names():
        checks = [check for (_, other), check in found.items() if other == target and check is not None]
        worst = max(map(relative, checks))
        same_order = not any(check.reordered_pairs for check in checks)
        name = f"export to {target}: difference of {len(checks)} models, relative"
        rows.append(Row(name, worst, "", f"≤ {10 * ROUNDING:g}, same order", worst <= 10 * ROUNDING and same_order))
    return rows


def main() -> None:
    """Print the table of all models and targets."""
    found, targets = measure(), EXPORTERS.names()

    def cell(check: ExportCheck | None) -> str:
        if check is None:
            return "—"
        return f"{relative(check):.0e}" + (" other order" if check.reordered_pairs else "")

    lines = [[name, *(cell(found[name, target]) for target in targets)] for name in MODELS]
    show_table("largest relative difference of scores", ["model", *targets], lines)
    compared = max(check.random_documents + check.threshold_documents for check in found.values() if check)
    say(f"up to {compared:,} documents each")


if __name__ == "__main__":
    main()
