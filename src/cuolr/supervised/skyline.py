"""SKYLINE, a ranker trained on labels of shown documents, and clicks with the true examination. Left of the wall."""

from dataclasses import replace

import numpy as np

from cuolr.logs.clicklog import ClickLog
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


def only_examined(log: ClickLog) -> ClickLog:
    """The sessions with only the documents that their users examined.

    A naive learner then learns from clicks / examinations of each document, without any bias of position.

    Args:
        log: Raw sessions with `examination`, see `simulate(keep_examination=True)`.
    """
    assert log.examination is not None, "expected a log that records examination"
    ranking = np.where(log.examination > 0, log.ranking, -1).astype(log.ranking.dtype)
    return replace(log, ranking=ranking, examination=None)
