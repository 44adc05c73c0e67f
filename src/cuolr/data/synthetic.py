"""Generated data sets that resemble the public ones, for trials, tests and benchmarks without a download.

How the data is generated:

1. A document has hidden factors z, standard normal, in part shared by the documents of its query.
2. Its relevance, before it is cut into grades, is √linear · w·z + √interaction · h(z) + √noise · ε + b. The three
   shares sum to 1. A linear ranker can learn w·z; only a nonlinear one can learn h(z) (squares and products of factors,
   uncorrelated with w·z); ε is noise. b shifts all documents of a query, so that the number of relevant documents
   varies between queries.
3. Fixed thresholds on relevance give grades in the wanted proportions.
4. A feature is an increasing function of one factor plus noise, distributed like a word count or a probability:
   discrete, heavy-tailed, or zero for many documents.

The weights, thresholds and features form the *world*, which depends on the preset and the seed only, so that
training, validation and test queries share it.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from cuolr.config import Range, check_arguments
from cuolr.data.feature_families import FAMILIES
from cuolr.progress import Progress, no_progress
from cuolr.registry import unknown_name
from cuolr.types import Bools, Candidates, Doubles, Floats, Ints, RankingDataset

Split = Literal["train", "vali", "test"]

# Queries that are drawn together from one random stream. Changing it changes all generated data.
QUERIES_PER_BLOCK = 64
# First query id of each split, so that no id is in two splits.
FIRST_QUERY_ID: dict[Split, int] = {"train": 1, "vali": 100_000_001, "test": 200_000_001}
STREAMS: dict[str, int] = {"world": 0, "train": 1, "vali": 2, "test": 3}
# Queries that the thresholds between grades are estimated from.
THRESHOLD_QUERIES = 4_000


@dataclass(frozen=True)
class Preset:
    """Parameters of a generated data set.

    Attributes:
        features: F, the number of features.
        query_features: Number of features that are the same for all documents of a query, such as a word's rarity.
        families: Distributions of the features, see `FAMILIES`; assigned in turn.
        grades: Share of documents of each grade, starting at grade 0.
        documents: Mean number of documents of a query.
        documents_spread: Standard deviation of the logarithm of that number.
        max_documents: Maximum number of documents of a query.
        factors: Number of hidden factors of a document.
        shared: Share of the variance of a factor that the documents of a query have in common.
        linear: Share of the variance of relevance that is linear in the factors.
        interaction: Share that is not; the rest is noise.
        query_effect: Standard deviation of b, on a scale where the shares above sum to 1.
        barren: Share of queries without a relevant document.
        clearest: Correlation of a factor with its most informative feature.
        dimmest: Correlation of a factor with its least informative feature.
    """

    features: int
    query_features: int
    families: tuple[str, ...]
    grades: tuple[float, ...]
    documents: float
    documents_spread: float
    max_documents: int
    factors: int
    shared: float
    linear: float
    interaction: float
    query_effect: float
    barren: float
    clearest: float
    dimmest: float


PRESETS: dict[str, Preset] = {
    "web10k-like": Preset(
        features=136,
        query_features=5,
        families=("count", "heavy-tail", "ratio", "log-probability", "score", "flag", "rank"),
        grades=(0.52, 0.32, 0.13, 0.02, 0.01),
        documents=120,
        documents_spread=0.58,
        max_documents=1_000,
        factors=12,
        shared=0.2,
        linear=0.15,
        interaction=0.13,
        query_effect=0.6,
        barren=0.03,
        clearest=0.95,
        dimmest=0.3,
    ),
    "yahoo-like": Preset(
        features=700,
        query_features=10,
        families=("sparse-rank",),
        grades=(0.26, 0.36, 0.28, 0.08, 0.02),
        documents=24,
        documents_spread=0.6,
        max_documents=140,
        factors=16,
        shared=0.1,
        linear=0.36,
        interaction=0.07,
        query_effect=1.0,
        barren=0.01,
        clearest=0.95,
        dimmest=0.5,
    ),
    "tiny": Preset(
        features=10,
        query_features=0,
        families=("count", "ratio", "score", "log-probability"),
        grades=(0.6, 0.3, 0.1),
        documents=12,
        documents_spread=0.4,
        max_documents=40,
        factors=5,
        shared=0.2,
        linear=0.5,
        interaction=0.2,
        query_effect=0.6,
        barren=0.03,
        clearest=0.95,
        dimmest=0.8,
    ),
}


def generate(
    preset: str, queries: int, seed: int, split: Split = "train", progress: Progress = no_progress
) -> RankingDataset:
    """Generate labelled queries.

    The same arguments give the same data; a larger number of queries extends it.

    Args:
        preset: One of `PRESETS`.
        queries: Number of queries.
        seed: Seed of the world and of the queries.
        split: Splits are different queries of the same world.
        progress: Called with the number of queries that were generated since the last call.
    """
    check_arguments(queries=(queries, Range(1)), seed=(seed, Range(0)))
    world = World(preset, seed)
    blocks = -(-queries // QUERIES_PER_BLOCK)
    sizes = world.draw_sizes(blocks * QUERIES_PER_BLOCK, np.random.default_rng([seed, STREAMS[split], 0]))
    n_documents = sizes[:queries].sum()
    features = np.empty((n_documents, world.preset.features), np.float32)
    relevance = np.empty(n_documents, np.int8)
    start = 0
    for block, block_sizes in enumerate(sizes.reshape(blocks, QUERIES_PER_BLOCK)):
        rng = np.random.default_rng([seed, STREAMS[split], 1 + block])
        block_features, block_relevance = world.draw_documents(block_sizes, rng)
        end = min(start + len(block_relevance), n_documents)
        features[start:end], relevance[start:end] = block_features[: end - start], block_relevance[: end - start]
        start = end
        progress(min(QUERIES_PER_BLOCK, queries - block * QUERIES_PER_BLOCK))
    offsets = np.concatenate([[0], np.cumsum(sizes[:queries])])
    query_ids = np.arange(FIRST_QUERY_ID[split], FIRST_QUERY_ID[split] + queries).astype(np.str_)
    return RankingDataset(Candidates(features, offsets, query_ids), relevance, len(world.preset.grades) - 1)


def generate_splits(
    preset: str, train: int, validation: int, test: int, seed: int, progress: Progress = no_progress
) -> tuple[RankingDataset, RankingDataset, RankingDataset]:
    """Training, validation and test queries of one world.

    Args:
        preset: One of `PRESETS`.
        train: Number of training queries.
        validation: Number of validation queries.
        test: Number of test queries.
        seed: Seed of the world and of the queries.
        progress: Called with the number of queries that were generated since the last call.
    """
    return (
        generate(preset, train, seed, "train", progress),
        generate(preset, validation, seed, "vali", progress),
        generate(preset, test, seed, "test", progress),
    )


class World:
    """Generates features and relevance from hidden factors."""

    def __init__(self, preset: str, seed: int) -> None:
        if preset not in PRESETS:
            raise unknown_name("preset", preset, PRESETS)
        self.preset = PRESETS[preset]
        rng = np.random.default_rng([seed, STREAMS["world"]])
        self._draw_features(rng)
        self._find_thresholds(rng)

    def draw_sizes(self, queries: int, rng: np.random.Generator) -> Ints:
        """[queries] the number of documents of each, log-normal."""
        spread = self.preset.documents_spread
        # The mean of a log-normal is exp(location + spread² / 2).
        logs = np.log(self.preset.documents) - spread**2 / 2 + spread * rng.standard_normal(queries)
        sizes: Ints = np.clip(np.round(np.exp(logs)), 1, self.preset.max_documents).astype(np.int64)
        return sizes

    def draw_documents(self, sizes: Ints, rng: np.random.Generator) -> tuple[Floats, Ints]:
        """The features and the grades of the documents of these queries.

        Args:
            sizes: [B] the number of documents of each query.
            rng: Source of randomness.

        Returns:
            features: [n, F] float32.
            grades: [n].
        """
        query = np.repeat(np.arange(len(sizes)), sizes)
        factors, relevance = self._draw_relevance(query, len(sizes), rng)
        blur = rng.standard_normal((len(query), self.preset.features), dtype=np.float32)
        of_query = rng.standard_normal((len(sizes), self.preset.query_features), dtype=np.float32)
        signals = factors[:, self.factor] * self.clarity + blur * np.sqrt(1 - self.clarity**2)
        signals[:, self.is_of_query] = of_query[query]
        features = np.empty_like(signals)
        for name in set(self.preset.families):
            columns = np.flatnonzero(self.family == name)
            features[:, columns] = FAMILIES[name](signals[:, columns], self.level[columns], self.width[columns])
        return features, np.searchsorted(self.thresholds, relevance)

    def _draw_features(self, rng: np.random.Generator) -> None:
        """Draw the factor, clarity and family of each feature: assigned evenly, then shuffled over columns.

        They are even so that data sets with different seeds are equally hard.
        """
        preset = self.preset
        column = rng.permutation(preset.features)
        place = column // preset.factors  # among the features of the same factor, the clearest first
        self.factor: Ints = column % preset.factors
        self.is_of_query: Bools = column >= preset.features - preset.query_features
        self.family = np.array(preset.families)[(place + self.factor) % len(preset.families)]
        clarity = preset.clearest + (preset.dimmest - preset.clearest) * place / max(place.max(), 1)
        sign = np.where((place > 0) & (rng.random(preset.features) < 0.25), -1, 1)
        self.clarity: Floats = (sign * clarity).astype(np.float32)
        self.level: Floats = rng.random(preset.features, dtype=np.float32)
        self.width: Floats = rng.random(preset.features, dtype=np.float32)

    def _find_thresholds(self, rng: np.random.Generator) -> None:
        """Set the thresholds between grades: quantiles of the relevance in a large sample."""
        sizes = self.draw_sizes(THRESHOLD_QUERIES, rng)
        query = np.repeat(np.arange(len(sizes)), sizes)
        _, relevance = self._draw_relevance(query, len(sizes), rng)
        self.thresholds: Doubles = np.quantile(relevance, np.cumsum(self.preset.grades)[:-1])

    def _draw_relevance(self, query: Ints, queries: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """The hidden factors [n, D] and the relevance [n] of documents."""
        preset = self.preset
        of_query = rng.standard_normal((queries, preset.factors), dtype=np.float32)
        own = rng.standard_normal((len(query), preset.factors), dtype=np.float32)
        factors = np.float32(preset.shared**0.5) * of_query[query] + np.float32((1 - preset.shared) ** 0.5) * own

        importance = np.arange(1, preset.factors + 1) ** -0.5
        linear = factors @ (importance / np.linalg.norm(importance)).astype(np.float32)
        noise = rng.standard_normal(len(query), dtype=np.float32)
        shift = preset.query_effect * rng.standard_normal(queries, dtype=np.float32)
        shift[rng.random(queries) < preset.barren] = -np.inf
        relevance = (
            preset.linear**0.5 * linear
            + preset.interaction**0.5 * _interaction(factors)
            + (1 - preset.linear - preset.interaction) ** 0.5 * noise
            + shift[query]
        )
        return factors, relevance


def _interaction(factors: Floats) -> Floats:
    """h(z) = Σ_j ±[z_j·z_{j−1} + (z_j² − 1)/√2] / √(2D): mean 0, variance 1, uncorrelated with each z_j.

    The sign alternates, so that h has no long tail on one side. [n, D] → [n].
    """
    n_factors = factors.shape[1]
    signs = np.where(np.arange(n_factors) % 2, 1, -1).astype(np.float32) / np.float32((2 * n_factors) ** 0.5)
    products = factors * np.roll(factors, 1, axis=1) + (factors**2 - 1) / np.float32(2**0.5)
    interaction: Floats = products @ signs
    return interaction
