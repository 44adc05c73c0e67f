"""SKYLINE: what the labels of the shown documents alone would teach. Left of the wall: it reads relevance labels."""

import numpy as np

from cuolr.types import Candidates, Ints, RankingDataset


def only_shown(dataset: RankingDataset, ranking: Ints) -> RankingDataset:
    """The queries with just the documents that were shown, for SKYLINE, which is `fit_best` on their labels.

    What the shown documents teach is no bound for a learner from clicks: the labels are coarse, and the clicks of many
    users are not. ORACLE sees all documents.

    Args:
        dataset: Labelled queries.
        ranking: [n_queries, k] the candidate indices of the documents shown, −1 where there is none.
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
