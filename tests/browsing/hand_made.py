"""A log small enough to count by hand, and a page over a log whose names would like to be HTML."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from cuolr.browsing.browse_page import BrowsePage
from cuolr.browsing.browsed_model import BrowsedModel
from cuolr.browsing.document_evidence import DocumentEvidence
from cuolr.browsing.document_titles import DocumentTitles
from cuolr.browsing.overview import Overview
from cuolr.examination.from_clicks import ExaminationModel
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.counts import ClickCounts
from cuolr.off_policy.assess import assess
from cuolr.types import Candidates
from tests.small_log import linear_policy, small_log


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


SCRIPT = "<script>document.title = 'run'</script>"
PICTURE = "<img src=x onerror=\"document.title = 'run'\">"
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
ENDING = "</script><script>document.title = 'run'</script>"


def hostile_log() -> ClickLog:
    """Names of queries, documents and features are HTML; one query has few sessions."""
    log = small_log(600)
    ids = np.array([SCRIPT, PICTURE, "shoes", "Red Hats & more", "%2e#q=?&", "rare"])
    documents = np.array([f"{ENDING}{row}" for row in range(log.candidates.n_documents)])
    names = np.array([PICTURE, "b", ENDING, "d"])
    candidates = replace(log.candidates, query_ids=ids, document_ids=documents, feature_names=names)
    rare = np.flatnonzero(log.query == 5)[3:]
    kept = np.setdiff1d(np.arange(len(log)), rare)
    return replace(log.select(kept), candidates=candidates)


def hostile_page(queries: int = 200) -> BrowsePage:
    log = hostile_log()
    policy = linear_policy(log)
    names = log.candidates.document_names.tolist()
    title = {("", name): (f"{PICTURE} {number}", f"data:image/png;base64,{PNG}") for number, name in enumerate(names)}
    browsed = BrowsedModel.fit(policy, log).with_titles(DocumentTitles(Path(), title))
    evaluation = assess(policy, browsed.log, users=browsed.users)
    return BrowsePage(f"MODEL{SCRIPT}", f"LOG{ENDING}", browsed, Overview.of(browsed, evaluation, queries))
