"""`cuolr rank`: put documents in order by a model."""

from pathlib import Path
from typing import Literal

import tyro

from cuolr.data.feature_file import read_candidates
from cuolr.data.letor import LetorOptions
from cuolr.errors import InputError
from cuolr.files import check_suffix, refuse_existing
from cuolr.policies.store import load_policy
from cuolr.rankings import SUFFIXES, write_rankings
from cuolr.terminal import say


def rank(
    model: tyro.conf.Positional[Path],
    candidates: Path,
    out: Path,
    top: int = 10,
    zero_based: bool = False,
    missing: Literal["zero", "minimum"] = "zero",
    overwrite: bool = False,
) -> None:
    """Rank the documents of each query by a model.

    Args:
        model: Folder of a saved model.
        candidates: What to rank: LETOR, whose labels are ignored, or Parquet with query_id, doc_id and the features.
        out: A row per document: Parquet or CSV by its name, or a TREC run where it ends in .trec or .run.
        top: Length of the lists.
        zero_based: LETOR candidates: indices start at 0, not at 1.
        missing: LETOR candidates: what NULL becomes, 0 or the feature's least value in the file.
        overwrite: Replace the file if it is there.
    """
    if top < 1:
        raise InputError(f"--top: expected a whole number from 1 up, found {top}")
    check_suffix(out, SUFFIXES)
    refuse_existing(out, overwrite)
    policy = load_policy(model)
    documents = read_candidates(candidates, LetorOptions(zero_based, missing))
    write_rankings(out, documents, policy.rank(documents, top))
    say(f"wrote {out}: the {top} best documents of {documents.n_queries:,} queries")
