"""Ranking with a sequential policy, compared with its matrix products alone."""

import time

import numpy as np
import torch
from torch import Tensor

from benchmarks.table import Row, torch_threads
from cuolr.data.normalise import Normaliser
from cuolr.learners.rl.sac import SAC
from cuolr.types import Candidates

QUERIES, DOCUMENTS, TOP = 2_000, 125, 10
FEATURES, STATE, HIDDEN = 136, 2 * 136, 256
REPEATS = 3
THREADS = 2


def run() -> list[Row]:
    """Measure SAC's policy with the attention encoder and 256-256 networks."""
    with torch_threads(THREADS):
        return _measure()


def _measure() -> list[Row]:
    features = np.random.default_rng(1).uniform(-1, 1, (QUERIES * DOCUMENTS, FEATURES)).astype(np.float32)
    query_ids = np.arange(QUERIES).astype(str)
    candidates = Candidates(features, DOCUMENTS * np.arange(QUERIES + 1), query_ids)
    learner = SAC(SAC.Config())
    learner.build(FEATURES, TOP, 0, Normaliser.fit("min-max", candidates))
    policy = learner.policy()
    products = _products()
    seconds, product_seconds = float("inf"), float("inf")
    for _ in range(REPEATS):
        start = time.perf_counter()
        policy.rank(candidates, TOP)
        ranked = time.perf_counter()
        for left, right in products:
            torch.mm(left, right)
        product_seconds = min(product_seconds, time.perf_counter() - ranked)
        seconds = min(seconds, ranked - start)
    ratio = seconds / product_seconds
    return [
        Row("rank: 2,000 queries × 125 candidates, top 10", seconds, "s", "", True),
        Row("rank: its matrix products alone", product_seconds, "s", "", True),
        Row("rank: ranking over its products", ratio, "×", "≤ 3", ratio <= 3),
    ]


def _products() -> list[tuple[Tensor, Tensor]]:
    """Each document and each token is projected once; at each position the remaining documents are scored."""
    tokens = QUERIES * TOP
    shapes = [
        (QUERIES * DOCUMENTS, FEATURES, HIDDEN),
        (tokens, STATE, 3 * STATE),
        (tokens, STATE, STATE),
        (tokens, STATE, HIDDEN),
    ]
    for position in range(TOP):
        pairs = QUERIES * (DOCUMENTS - position)
        shapes += [(pairs, HIDDEN, HIDDEN), (pairs, HIDDEN, 1)]
    # Products of one shape share their memory, which saves 4 GB.
    rows = {inputs: max(shape[0] for shape in shapes if shape[1] == inputs) for _, inputs, _ in shapes}
    left = {inputs: torch.randn(count, inputs) for inputs, count in rows.items()}
    return [(left[inputs][:count], torch.randn(inputs, outputs)) for count, inputs, outputs in shapes]
