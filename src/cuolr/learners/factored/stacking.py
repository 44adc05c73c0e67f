"""How much each ranker of `factored` counts: as its scores explain clicks on queries that it did not learn from."""

from collections.abc import Sequence

import numpy as np
from torch import Tensor

from cuolr.examination.conditional import fit_weights
from cuolr.learners.factored.click_rates import Evidence
from cuolr.learners.rankers.rankers_ import FittedRanker
from cuolr.types import Doubles, Ints

# Documents by which the scores of a ranker are brought to a standard deviation of 1.
SCALE_DOCUMENTS = 5_000
# Of the size of a ranker's scores: differences up to this are none.
ROUNDING = 1e-6
# The weight of the logged order against all that was learned, at most, where little was.
MOST_TRUST = 100.0
# Of a query; more of them on the queries that everybody asks do not make the others better known.
ENOUGH_CLICKS = 1_000.0
# Half the inverse variance of the weights of rankers before a click is seen.
PRIOR = 0.5


def weigh(
    learned: Sequence[Sequence[FittedRanker]],
    imitations: Sequence[FittedRanker],
    trust: float,
    evidence: Evidence,
    held_out: Sequence[Ints],
    seed: int,
) -> list[tuple[FittedRanker, float]]:
    """Every ranker with its weight.

    Rankers of a kind share the kind's weight, each in units of the standard deviation of its own scores.

    Args:
        learned: Kinds of rankers; in each a ranker for each part of the queries, learned from the other parts.
        imitations: Of the logged order, a kind by itself, or none; one may stand for several parts.
        trust: The least weight of the logged order, against that of all that was learned.
        evidence: The queries.
        held_out: The queries of each part.
        seed: Of the documents that give the scale.
    """
    parts = len(held_out)
    kinds = [*learned, imitations] if imitations else [*learned]
    drawn = np.random.default_rng(seed).permutation(len(evidence.features))[:SCALE_DOCUMENTS]
    some_scores, scale = _scores_and_scale(kinds, evidence.features[drawn])
    weights = fit_weights(_held_out_scores(kinds, scale, evidence, held_out), evidence.clicked, evidence.looked, PRIOR)
    if imitations:
        all_learned = np.einsum("k,kp,kpn->n", weights[:-1], scale[:-1], some_scores[:-1]) / parts
        weights[-1] = max(weights[-1], trust * all_learned.std())
    shares = weights[:, None] * scale / parts
    weighed: dict[FittedRanker, float] = {}
    for ranker, share in zip((ranker for kind in kinds for ranker in kind), shares.ravel(), strict=True):
        weighed[ranker] = weighed.get(ranker, 0.0) + float(share)
    return list(weighed.items())


def least_trust(evidence: Evidence, steps_made: int, trust_steps: float, trust_clicks: float) -> float:
    """The least weight of the logged order: much after few steps, and where queries have few clicks."""
    clicks_per_query = float(np.minimum(evidence.clicked.sum(axis=1), ENOUGH_CLICKS).mean())
    few_steps = trust_steps / max(steps_made, 1)
    few_clicks = trust_clicks / max(clicks_per_query, 1e-9)
    return min(max(few_steps, few_clicks), MOST_TRUST)


def _scores_and_scale(kinds: Sequence[Sequence[FittedRanker]], features: Tensor) -> tuple[Doubles, Doubles]:
    """[kinds, parts, n] scores of some documents, and [kinds, parts] the inverse of their standard deviation."""
    scores = np.array([[ranker.score(features) for ranker in kind] for kind in kinds])
    spread, size = scores.std(axis=2), np.abs(scores).max(axis=2)
    # A ranker that knows no difference has nothing but errors of rounding, which no scale should make large.
    scale = np.divide(1, spread, out=np.zeros_like(spread), where=spread > ROUNDING * size)
    return scores, scale


def _held_out_scores(
    kinds: Sequence[Sequence[FittedRanker]], scale: Doubles, evidence: Evidence, held_out: Sequence[Ints]
) -> Doubles:
    """[kinds, R, N] of each query by the rankers that did not learn from it."""
    scores = np.zeros((len(kinds), *evidence.where.shape))
    for part, rows in enumerate(held_out):
        where = evidence.where[rows]
        documents = evidence.features[evidence.documents[rows][where]]
        for number, kind in enumerate(kinds):
            scored = np.zeros(where.shape)
            scored[where.numpy()] = kind[part].score(documents) * scale[number, part] if len(documents) else 0.0
            scores[number, rows] = scored
    return scores
