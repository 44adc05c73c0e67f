"""ORACLE: LambdaMART trained on true labels, the reference for rankers learned from clicks.

Left of the wall: it reads relevance labels, so it is not a learner.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

from cuolr.config import Range, check_ranges
from cuolr.errors import InputError
from cuolr.policies.regression_trees import MAX_TREES, RegressionTrees
from cuolr.policies.trees_policy import MAX_DOCUMENTS, TreesPolicy, load_lightgbm
from cuolr.random import DEFAULT_SEED
from cuolr.types import RankingDataset


@dataclass(frozen=True)
class LambdaMartSettings:
    """The paper's hyper-parameters, appendix A.

    Attributes:
        trees: Maximum number of trees.
        leaves: Maximum number of leaves per tree.
        learning_rate: Shrinkage of each tree.
        min_documents_per_leaf: Minimum number of documents in a leaf.
        early_stopping: Number of trees without improvement of nDCG@10 on the validation queries after which to stop.
        seed: The same seed gives the same trees, for any number of threads.
        threads: Number of threads.
    """

    trees: Annotated[int, Range(1, MAX_TREES - 1)] = 1_000
    leaves: Annotated[int, Range(2)] = 100
    learning_rate: Annotated[float, Range(above=0)] = 0.01
    min_documents_per_leaf: Annotated[int, Range(1)] = 50
    early_stopping: Annotated[int, Range(1)] = 100
    seed: Annotated[int, Range(0)] = DEFAULT_SEED
    threads: Annotated[int, Range(1)] = 2

    def __post_init__(self) -> None:
        check_ranges(self)


def fit_lambdamart(
    train: RankingDataset,
    validation: RankingDataset | None = None,
    settings: LambdaMartSettings | None = None,
    progress: Callable[[int], None] | None = None,
) -> TreesPolicy:
    """LambdaMART (Burges, 2010) on true labels, with gain 2^r − 1.

    Deviation: the paper uses RankLib; this is LightGBM, which grows trees leaf-wise (best first).

    Args:
        train: The training queries.
        validation: Queries for early stopping; None = grow all trees.
        settings: Hyper-parameters; None = the paper's.
        progress: Called with 1 after each tree.
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
    callbacks = [] if progress is None else [lambda _: progress(1)]
    labelled = _lightgbm_dataset(train)
    if validation is None:
        booster = lgb.train(parameters, labelled, settings.trees, callbacks=callbacks)
    else:
        booster = lgb.train(
            parameters,
            labelled,
            settings.trees,
            valid_sets=[_lightgbm_dataset(validation, reference=labelled)],
            callbacks=[*callbacks, lgb.early_stopping(settings.early_stopping, verbose=False)],
        )
    # After early stopping, LightGBM writes the trees up to the best iteration only.
    return TreesPolicy(RegressionTrees.from_lightgbm(booster.model_to_string()), settings.threads)


def _lightgbm_dataset(dataset: RankingDataset, reference: Any = None) -> Any:
    longest = int(dataset.candidates.sizes.argmax())
    if dataset.candidates.sizes[longest] > MAX_DOCUMENTS:
        raise InputError(
            f"query {dataset.candidates.query_ids[longest]}: expected at most {MAX_DOCUMENTS:,} documents, the limit "
            f"of LightGBM, found {dataset.candidates.sizes[longest]:,}"
        )
    return load_lightgbm().Dataset(
        dataset.candidates.features, dataset.relevance, reference=reference, group=dataset.candidates.sizes
    )
