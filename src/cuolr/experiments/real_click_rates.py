"""Click rates of documents as rankings, for logs without features: how well they agree with labels."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from cuolr.evaluation.evaluate import evaluate
from cuolr.experiments.real_cells import NDCG, RealResult
from cuolr.experiments.real_data import RealData
from cuolr.logs.counts import ClickCounts
from cuolr.logs.importing.seen_documents import has_features
from cuolr.policies.policy import rank_by_score
from cuolr.types import Candidates, Doubles, Ints

CORRECTED = "examination-corrected click rate"


@dataclass(frozen=True)
class _ByScore:
    """Ranks the candidates that it has scores of."""

    scores: Doubles

    def rank(self, candidates: Candidates, k: int) -> Ints:
        return rank_by_score(self.scores, candidates.offsets, k)


def click_rates(data: RealData) -> dict[str, RealResult]:
    """NDCG of ranking labelled documents by their click rates: as they are (naive), and corrected for examination."""
    if data.labels is None or has_features(data.train.candidates):
        return {}
    counts = data.counts
    exposure = {
        "naive": counts.by_position(counts.impressions),
        CORRECTED: data.examination.expected_examinations(counts),
    }
    rows = _rows(data.labels.candidates, data.train.candidates)
    found = {}
    for name, of_lists in exposure.items():
        ranker = _ByScore(corrected_rates(counts, of_lists)[rows])
        found[name] = RealResult({NDCG: evaluate(ranker, data.labels, [NDCG]).per_query[NDCG]})
    return found


def corrected_rates(counts: ClickCounts, expected_examinations: Doubles) -> Doubles:
    """[n_documents] α̂ = (rewards + prior) / (expected examinations + 1), the prior being the query's mean α̂."""
    query = counts.lists.candidates.query_of_document
    n_queries = counts.lists.candidates.n_queries
    rewards = counts.by_document(counts.by_position(counts.rewards))
    exposure = counts.by_document(expected_examinations)
    of_query = (np.bincount(query, weights=values, minlength=n_queries) for values in (rewards, exposure))
    rewards_of_query, exposure_of_query = of_query
    mean = rewards_of_query / np.maximum(exposure_of_query, 1e-9)
    rates: Doubles = (rewards + mean[query]) / (exposure + 1)
    return rates


def _rows(labelled: Candidates, candidates: Candidates) -> Ints:
    """The row of each labelled document among the documents of the log."""

    def ids(of: Candidates) -> pl.DataFrame:
        assert of.document_ids is not None
        return pl.DataFrame({"query_id": of.query_ids[of.query_of_document], "doc_id": of.document_ids})

    rows = ids(candidates).with_columns(row=np.arange(candidates.n_documents))
    joined = ids(labelled).join(rows, on=["query_id", "doc_id"], how="left", maintain_order="left")
    return joined["row"].to_numpy().astype(np.int64)
