"""Distributions of the features of generated data, modelled on web search: counts, scores, ranks, flags.

Each function maps a standard normal signal [n, F] to feature values, with a level and a width in [0, 1) for each
feature [F].
"""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import scipy

from cuolr.types import Floats

Family: TypeAlias = Callable[[Floats, Floats, Floats], Floats]


def _count(signal: Floats, level: Floats, width: Floats) -> Floats:
    """How often a word occurs: whole numbers, mostly small."""
    return np.floor(np.exp(3 * level + (0.6 + 0.6 * width) * signal))


def _heavy_tail(signal: Floats, level: Floats, width: Floats) -> Floats:
    """Links to a page or clicks on it: whole numbers, often zero, rarely up to 10⁸."""
    return np.minimum(np.floor(np.exp(2 + 3 * level + (2.5 + 0.7 * width) * signal)), np.float32(2.5e8))


def _ratio(signal: Floats, level: Floats, width: Floats) -> Floats:
    """Share of the query's words that occur: between 0 and 1, with many values at both ends."""
    return np.clip(0.2 + 0.5 * level + (0.3 + 0.2 * width) * signal, 0, 1)


def _log_probability(signal: Floats, level: Floats, width: Floats) -> Floats:
    """Logarithm of the query's probability in a language model of the page: negative, −80 at least."""
    return -np.minimum(np.exp(2 + level - (0.3 + 0.4 * width) * signal), 80)


def _score(signal: Floats, level: Floats, width: Floats) -> Floats:
    """Score of a retrieval function: 0 where nothing matches."""
    return np.maximum((5 + 10 * level) * (1 + (0.7 + 0.6 * width) * signal), 0)


def _flag(signal: Floats, level: Floats, width: Floats) -> Floats:
    """0 or 1."""
    return (signal > 1.5 * level).astype(np.float32)


def _rank(signal: Floats, level: Floats, width: Floats) -> Floats:
    """Rank among all pages, as a 16-bit number."""
    place: Floats = np.round(65_535 * scipy.special.ndtr(signal))
    return place


def _sparse_rank(signal: Floats, level: Floats, width: Floats) -> Floats:
    """Rank among the pages that have a property, between 0 and 1; 0 for the others, which are 30 to 90 %."""
    without = 0.3 + 0.6 * level
    place: Floats = np.maximum(scipy.special.ndtr(signal) - without, 0) / (1 - without)
    return place


FAMILIES: dict[str, Family] = {
    "count": _count,
    "heavy-tail": _heavy_tail,
    "ratio": _ratio,
    "log-probability": _log_probability,
    "score": _score,
    "flag": _flag,
    "rank": _rank,
    "sparse-rank": _sparse_rank,
}
