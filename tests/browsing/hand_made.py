"""A log small enough to count by hand."""

import numpy as np

from cuolr.browsing.document_evidence import DocumentEvidence
from cuolr.examination.from_clicks import ExaminationModel
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.counts import ClickCounts
from cuolr.types import Candidates


def hand_made_log(lists: list[list[int]], clicks: list[list[int]], documents: int = 4) -> ClickLog:
    """Sessions of one query with documents 0, 1, …."""
    features = np.arange(documents, dtype=np.float32)[:, None]
    candidates = Candidates(features, np.array([0, documents]), np.array(["q"]))
    rows = len(lists)
    return ClickLog(
        candidates,
        np.zeros(rows, np.int32),
        np.array(lists, np.int16),
        np.array(clicks, np.uint8),
        np.ones(rows, np.int64),
    )


def evidence_of(log: ClickLog, examination: list[float]) -> DocumentEvidence:
    """With examination by position, whatever was clicked above."""
    table = np.repeat(np.array(examination)[:, None], len(examination) + 1, axis=1)
    return DocumentEvidence.of(ClickCounts.of(log), ExaminationModel(table))
