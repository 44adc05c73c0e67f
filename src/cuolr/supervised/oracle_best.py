"""The best of several rankers trained on labels, by validation. Left of the wall: it reads relevance labels."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from cuolr.clicks.click_model import relevance_of
from cuolr.data.normalise import Normaliser
from cuolr.evaluation.evaluate import score_on
from cuolr.learners.rankers.base_ranker import RankerSteps
from cuolr.learners.rankers.network import NetworkConfig, NetworkRanker
from cuolr.learners.rankers.targets import batches_of_targets
from cuolr.logs.columns import index_dtype
from cuolr.networks.layers import seeded
from cuolr.policies.policy import RankingPolicy
from cuolr.random import DEFAULT_SEED
from cuolr.supervised.oracle import LambdaMartSettings, fit_lambdamart
from cuolr.supervised.ranksvm import fit_ranksvm
from cuolr.training.batches import Batches, WeightedLists
from cuolr.training.loop import Loop
from cuolr.training.training_config import TrainingConfig
from cuolr.types import RankingDataset

# LambdaMART settings that `fit_best` tries besides the paper's: faster rates, and fewer leaves for small data.
TUNED_LAMBDAMART = (
    LambdaMartSettings(leaves=31, learning_rate=0.05, min_documents_per_leaf=50),
    LambdaMartSettings(leaves=31, learning_rate=0.05, min_documents_per_leaf=200),
    LambdaMartSettings(leaves=7, learning_rate=0.05, min_documents_per_leaf=20),
)
# Values of C that it tries for RankSVM: the weight of the loss against |w|².
TUNED_RANKSVM = (1.0, 10.0, 100.0)
# Number of rankers that it tries: LambdaMART also with its default settings, and one network.
RANKERS = 1 + len(TUNED_LAMBDAMART) + 1 + len(TUNED_RANKSVM)
NETWORK = NetworkConfig(hidden=(256, 256), learning_rate=3e-4)
NETWORK_TRAINING = TrainingConfig(steps=1_000, batch_size=32, validate_every=50, patience=6)


@dataclass(frozen=True)
class BestOracle:
    """The best of several rankers trained on all labels.

    Attributes:
        policy: The best policy on the validation queries.
        name: The name of that ranker.
        validation: nDCG@10 of all rankers on the validation queries, by name.
    """

    policy: RankingPolicy
    name: str
    validation: Mapping[str, float]


def fit_best(
    train: RankingDataset,
    validation: RankingDataset,
    seed: int = DEFAULT_SEED,
    threads: int = 2,
    progress: Callable[[str, float], None] | None = None,
) -> BestOracle:
    """The best on validation of LambdaMART, a 256-256 network and RankSVM, each trained on all labels.

    Deviation: the paper's ORACLE is LambdaMART with fixed settings. On small data it is no upper bound: a linear ranker
    is better.

    Args:
        train: The training queries.
        validation: Queries for choosing the best ranker, and for early stopping of LambdaMART and the network.
        seed: Seed of all rankers.
        threads: Number of threads of LightGBM.
        progress: Called with the name of each ranker and its nDCG@10 on the validation queries.
    """
    score = score_on(validation)
    scores: dict[str, float] = {}
    best: tuple[str, RankingPolicy] | None = None
    for name, policy in _rankers(train, validation, seed, threads):
        scores[name] = score(policy)
        if progress is not None:
            progress(name, scores[name])
        if best is None or scores[name] > scores[best[0]]:
            best = name, policy
    assert best is not None
    return BestOracle(best[1], best[0], scores)


def _rankers(
    train: RankingDataset, validation: RankingDataset, seed: int, threads: int
) -> Iterator[tuple[str, RankingPolicy]]:
    for settings in (LambdaMartSettings(), *TUNED_LAMBDAMART):
        name = f"lambdamart, {settings.leaves} leaves of {settings.min_documents_per_leaf} documents or more"
        yield name, fit_lambdamart(train, validation, replace(settings, seed=seed, threads=threads))
    yield "network", fit_network(train, validation, training=replace(NETWORK_TRAINING, seed=seed))
    for C in TUNED_RANKSVM:
        yield f"ranksvm, C = {C:g}", fit_ranksvm(train, fraction=1.0, seed=seed, C=C)


def fit_network(
    train: RankingDataset,
    validation: RankingDataset,
    config: NetworkConfig = NETWORK,
    training: TrainingConfig = NETWORK_TRAINING,
) -> RankingPolicy:
    """A network ranker trained with the list-wise softmax loss on gains, −Σ_d g_d log softmax(s)_d.

    g_d is the share of document d in the gains 2^r − 1 of its query. A list has all documents of a query.

    Args:
        train: The training queries.
        validation: Queries for choosing the best step.
        config: Settings of the network.
        training: Number of steps, batch size and seed.
    """
    normaliser = Normaliser.fit(training.normalising, train.candidates)
    batches = Batches(_gain_targets(train), normaliser, training.batch_size, training.seed)
    n_features = train.candidates.n_features + normaliser.n_indicators
    with seeded(training.seed):
        ranker = NetworkRanker(n_features, config, normaliser, batches_of_targets(batches))
    loop = Loop(training, validate=score_on(validation))
    policy = loop.run(RankerSteps(ranker, held_out=None))
    if loop.result is None or loop.result.outcome == "interrupted":
        raise KeyboardInterrupt
    return policy


def _gain_targets(dataset: RankingDataset) -> WeightedLists:
    """A list for each query with gains: all its documents, with their shares of the query's gains as targets."""
    candidates = dataset.candidates
    gains = relevance_of(dataset.relevance, dataset.max_grade).astype(np.float64)
    total = np.bincount(candidates.query_of_document, weights=gains, minlength=candidates.n_queries)
    queries = np.flatnonzero(total > 0)
    rows, where = candidates.padded_rows(queries)
    return WeightedLists(
        candidates=candidates,
        query=queries.astype(np.int32),
        ranking=np.where(where, np.arange(where.shape[1]), -1).astype(index_dtype(candidates)),
        targets=np.where(where, gains[rows] / total[queries, None], 0.0),
        count=np.ones(len(queries), np.int64),
    )
