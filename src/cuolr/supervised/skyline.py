"""SKYLINE: a ranker trained on the labels of the shown documents. Left of the wall: it reads relevance labels."""

import numpy as np

from cuolr.types import Candidates, Ints, RankingDataset


def only_shown(dataset: RankingDataset, ranking: Ints) -> RankingDataset:
    """The queries with only their shown documents, for SKYLINE, which is `fit_best` on their labels.

    SKYLINE is no upper bound for learning from clicks. Simulated clicks depend on the grades alone, but other rankers,
    with other losses, are fitted to them. ORACLE is trained on all documents.

    Args:
        dataset: Labelled queries.
        ranking: [n_queries, k] the candidate indices of the shown documents, −1 where there is none.
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
        candidates.recipe,
    )
    return RankingDataset(shown, dataset.relevance[rows], dataset.max_grade)
