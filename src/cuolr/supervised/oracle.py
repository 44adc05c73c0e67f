"""ORACLE and SKYLINE: rankers trained on true labels, which rankers learned from clicks are measured against.

Left of the wall: it reads relevance labels, so it is not a learner.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cuolr.clicks.click_model import relevance_of
from cuolr.errors import InputError
from cuolr.evaluation.evaluate import score_on
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.columns import slot_dtype
from cuolr.logs.log_folder import one_each
from cuolr.policies.lambdamart_policy import MAX_DOCUMENTS, LambdaMartPolicy, load_lightgbm
from cuolr.policies.policy import RankingPolicy
from cuolr.supervised.ranksvm import fit_ranksvm
from cuolr.types import Candidates, Ints, RankingDataset


@dataclass(frozen=True)
class LambdaMartSettings:
    """The paper's hyper-parameters, appendix A.

    Attributes:
        trees: At most.
        leaves: Per tree.
        learning_rate: Shrinkage of each tree.
        min_documents_per_leaf: Fewer make no leaf.
        early_stopping: Stop after this many trees that do not improve nDCG@10 on the validation queries.
        seed: The same seed gives the same trees, whatever the number of threads.
        threads: How many to use.
    """

    trees: int = 1_000
    leaves: int = 100
    learning_rate: float = 0.01
    min_documents_per_leaf: int = 50
    early_stopping: int = 100
    seed: int = 0
    threads: int = 2


def fit_lambdamart(
    train: RankingDataset, validation: RankingDataset | None = None, settings: LambdaMartSettings | None = None
) -> LambdaMartPolicy:
    """LambdaMART (Burges, 2010) on true labels, with gain 2^r − 1.

    Deviation: the paper uses RankLib, here it is LightGBM, which grows the best leaf first.

    Args:
        train: What to learn from.
        validation: Where early stopping looks; None = all trees are grown and kept.
        settings: Hyper-parameters; None = the paper's.
    """
    settings = settings or LambdaMartSettings()
    parameters = {
        "objective": "lambdarank",
        "metric": "ndcg",
        "eval_at": [10],
        "label_gain": [2**grade - 1 for grade in range(train.max_grade + 1)],
        "num_leaves": settings.leaves,
        "learning_rate": settings.learning_rate,
        "min_data_in_leaf": settings.min_documents_per_leaf,
        "seed": settings.seed,
        "deterministic": True,
        "force_row_wise": True,
        "num_threads": settings.threads,
        "verbosity": -1,
    }
    lgb = load_lightgbm()
    labelled = _lightgbm_dataset(train)
    if validation is None:
        booster = lgb.train(parameters, labelled, settings.trees)
    else:
        booster = lgb.train(
            parameters,
            labelled,
            settings.trees,
            valid_sets=[_lightgbm_dataset(validation, reference=labelled)],
            callbacks=[lgb.early_stopping(settings.early_stopping, verbose=False)],
        )
    # LightGBM writes only the trees up to the best one of early stopping.
    return LambdaMartPolicy(booster.model_to_string(), settings.threads)


def _lightgbm_dataset(dataset: RankingDataset, reference: Any = None) -> Any:
    longest = int(dataset.candidates.sizes.argmax())
    if dataset.candidates.sizes[longest] > MAX_DOCUMENTS:
        raise InputError(
            f"query {dataset.candidates.query_ids[longest]}: expected at most {MAX_DOCUMENTS:,} documents, which is "
            f"what LightGBM takes, found {dataset.candidates.sizes[longest]:,}"
        )
    return load_lightgbm().Dataset(
        dataset.candidates.features, dataset.relevance, reference=reference, group=dataset.candidates.sizes
    )


# What `fit_best` tries of LambdaMART beside the paper's settings: faster rates, and fewer leaves for small data.
TUNED_LAMBDAMART = (
    LambdaMartSettings(leaves=31, learning_rate=0.05, min_documents_per_leaf=50),
    LambdaMartSettings(leaves=31, learning_rate=0.05, min_documents_per_leaf=200),
    LambdaMartSettings(leaves=7, learning_rate=0.05, min_documents_per_leaf=20),
)
# What it tries of RankSVM: weights of the loss against the size of w.
TUNED_RANKSVM = (1.0, 10.0, 100.0)
NETWORK_SETTINGS: Mapping[str, Any] = {
    "learner.hidden": [256, 256],
    "learner.learning_rate": 3e-4,
    "training.batch_size": 32,
    "training.steps": 1_000,
    "training.validate_every": 50,
    "training.patience": 6,
}


@dataclass(frozen=True)
class BestOracle:
    """The best of several rankers trained on all labels.

    Attributes:
        policy: The best on validation.
        name: What it is.
        validation: nDCG@10 on validation of all that were tried, by name.
    """

    policy: RankingPolicy
    name: str
    validation: Mapping[str, float]


def fit_best(
    train: RankingDataset,
    validation: RankingDataset,
    seed: int = 0,
    threads: int = 2,
    progress: Callable[[str, float], None] | None = None,
) -> BestOracle:
    """The best on validation of LambdaMART, a 256-256 network and RankSVM, all on all labels.

    Deviation: the paper's ORACLE is LambdaMART with one setting, which on small data loses to a linear ranker: it is no
    upper bound there.

    Args:
        train: What to learn from.
        validation: Where the best is chosen, and where LambdaMART and the network stop early.
        seed: Of all that is random.
        threads: How many LightGBM uses.
        progress: Told each name and its nDCG@10 on validation.
    """
    score = score_on(validation)
    scores: dict[str, float] = {}
    best: tuple[str, RankingPolicy] | None = None
    for name, policy in _candidates(train, validation, seed, threads):
        scores[name] = score(policy)
        if progress is not None:
            progress(name, scores[name])
        if best is None or scores[name] > scores[best[0]]:
            best = name, policy
    assert best is not None
    return BestOracle(best[1], best[0], scores)


def only_shown(dataset: RankingDataset, ranking: Ints) -> RankingDataset:
    """The queries with just the documents that were shown, for SKYLINE: `fit_best` on the labels of these.

    What the shown documents teach is no bound for a learner from clicks: the labels are coarse, and the clicks of many
    users are not. ORACLE sees all documents.

    Args:
        dataset: Labelled queries.
        ranking: [n_queries, k] the slots of the documents shown, −1 where there is none.
    """
    candidates = dataset.candidates
    where = ranking >= 0
    rows = np.sort((candidates.offsets[:-1, None] + ranking)[where])
    shown = Candidates(
        candidates.features[rows],
        np.concatenate([[0], np.cumsum(where.sum(axis=1))]),
        candidates.query_ids,
        None if candidates.document_ids is None else candidates.document_ids[rows],
        candidates.feature_names,
    )
    return RankingDataset(shown, dataset.relevance[rows], dataset.max_grade)


def _candidates(
    train: RankingDataset, validation: RankingDataset, seed: int, threads: int
) -> Iterator[tuple[str, RankingPolicy]]:
    for settings in (LambdaMartSettings(), *TUNED_LAMBDAMART):
        name = f"lambdamart, {settings.leaves} leaves of {settings.min_documents_per_leaf} documents or more"
        yield name, fit_lambdamart(train, validation, replace(settings, seed=seed, threads=threads))
    yield "network", fit_network(train, validation, seed)
    for C in TUNED_RANKSVM:
        yield f"ranksvm, C = {C:g}", fit_ranksvm(train, fraction=1.0, seed=seed, C=C)


def fit_network(
    train: RankingDataset, validation: RankingDataset, seed: int = 0, settings: Mapping[str, Any] | None = None
) -> RankingPolicy:
    """The network of the counterfactual learners with the softmax list loss on gains, −Σ_d g_d log softmax(s)_d.

    g_d is the share of document d in the gains 2^r − 1 of its query; all of the query's documents are in the list.

    Args:
        train: What to learn from.
        validation: The best step is chosen here.
        seed: Of the network and of the batches.
        settings: As for `presets.configure`; None = `NETWORK_SETTINGS`.
    """
    # These need torch, which takes a second to load.
    from cuolr.training.fit import fit
    from cuolr.training.loop import policy_validation
    from cuolr.training.presets.configure import configure

    config = configure("naive", settings={"training.seed": seed, **(settings or NETWORK_SETTINGS)})
    result = fit(_gains_as_clicks(train), config, policy_validation(score_on(validation)))
    if result.best is None or result.outcome == "interrupted":
        raise KeyboardInterrupt
    return result.best.policy


def _gains_as_clicks(dataset: RankingDataset) -> ClickLog:
    """A row for each query that has gains: all of its documents, "clicked" by their share in the query's gains."""
    candidates = dataset.candidates
    gains = relevance_of(dataset.relevance, dataset.max_grade).astype(np.float64)
    total = np.bincount(candidates.query_of_document, weights=gains, minlength=candidates.n_queries)
    queries = np.flatnonzero(total > 0)
    rows, where = candidates.padded_rows(queries)
    slots = np.arange(where.shape[1])
    return ClickLog(
        candidates=candidates,
        query=queries.astype(np.int32),
        ranking=np.where(where, slots, -1).astype(slot_dtype(candidates)),
        clicks=np.where(where, gains[rows] / total[queries, None], 0.0),
        count=one_each(len(queries)),
        aggregated=True,
    )
