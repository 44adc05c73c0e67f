"""Candidates of a log without features: the documents that it shows."""

import numpy as np
import polars as pl

from cuolr.types import Candidates

# The only feature: it says nothing of a document. Anything computed from the log, such as a mean position, would let a
# ranker read off the order in which documents were shown.
CONSTANT_FEATURE = "constant"


def seen_documents(table: pl.DataFrame) -> Candidates:
    """The documents shown for each query, sorted by their ids, with the constant 0 as their only feature.

    Such candidates serve to estimate examination and click rates. A ranker cannot be trained on them.

    Args:
        table: The long table of a log: query_id and doc_id.
    """
    pairs = table.select("query_id", "doc_id").unique().sort("query_id", "doc_id")
    sizes = pairs.group_by("query_id", maintain_order=True).len()
    return Candidates(
        features=np.zeros((len(pairs), 1), np.float32),
        offsets=np.concatenate([[0], np.cumsum(sizes["len"].to_numpy().astype(np.int64))]),
        query_ids=np.array(sizes["query_id"].to_list(), dtype=np.str_),
        document_ids=np.array(pairs["doc_id"].to_list(), dtype=np.str_),
        feature_names=np.array([CONSTANT_FEATURE]),
    )
