"""Candidates of a log without features: the documents that it shows."""

import numpy as np
import polars as pl

from cuolr.data.text_sizes import text_array
from cuolr.errors import InputError
from cuolr.types import Candidates

# The only feature: it says nothing of a document. Anything computed from the log, such as a mean position, would let a
# ranker read off the order in which documents were shown.
CONSTANT_FEATURE = "constant"


def seen_documents(shown: pl.DataFrame) -> Candidates:
    """The documents shown for each query, sorted by their ids, with the constant 0 as their only feature.

    Such candidates serve to estimate examination and click rates. A ranker cannot be trained on them.

    Args:
        shown: The columns query_id and doc_id of a log, as text.
    """
    known = shown.select("query_id", "doc_id").drop_nulls()
    pairs = known.filter(~pl.any_horizontal(pl.all().str.contains("\0", literal=True))).unique().sort(pl.all())
    if not len(pairs):
        raise InputError("expected rows with a query_id and a doc_id, found none")
    sizes = pairs.group_by("query_id", maintain_order=True).len()
    return Candidates(
        features=np.zeros((len(pairs), 1), np.float32),
        offsets=np.concatenate([[0], np.cumsum(sizes["len"].to_numpy().astype(np.int64))]),
        query_ids=text_array(sizes["query_id"]),
        document_ids=text_array(pairs["doc_id"]),
        feature_names=np.array([CONSTANT_FEATURE]),
    )


def has_features(candidates: Candidates) -> bool:
    """Whether a log was imported with features."""
    return candidates.feature_names is None or candidates.feature_names.tolist() != [CONSTANT_FEATURE]


def require_features(candidates: Candidates) -> None:
    """Raise if a log was imported without features."""
    if not has_features(candidates):
        raise InputError(
            "the documents of this log have no features, so a ranker cannot be trained on it; import the log again "
            "with features. Without them it serves for examination, click rates and judgments"
        )
