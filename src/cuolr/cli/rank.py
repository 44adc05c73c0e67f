"""`cuolr rank`: rank documents with a model."""

from pathlib import Path
from typing import Literal

import tyro

from cuolr.cli.terminal import say, show_json, spinner
from cuolr.data.candidate_reader import read_candidates
from cuolr.data.letor.reader import LetorOptions
from cuolr.errors import check_at_least, problems_in
from cuolr.evaluation.trec import SUFFIXES, write_rankings
from cuolr.files import check_files, check_suffix
from cuolr.policies.store import load_policy


def rank(
    model: tyro.conf.Positional[Path],
    candidates: Path,
    out: Path,
    k: int = 10,
    sample: int | None = None,
    zero_based: bool = False,
    missing: Literal["zero", "minimum"] = "zero",
    json: bool = False,
    overwrite: bool = False,
) -> None:
    """Rank the documents of each query with a model.

    Args:
        model: Folder of a saved model.
        candidates: Documents to rank: LETOR, whose labels are ignored, or Parquet with query_id, doc_id and features.
        out: File of the rankings, a row per document: .parquet, .csv, or a TREC run with .trec or .run.
        k: Length of the lists.
        sample: Sample each document from the policy with this seed instead of taking the best. Only for models that
            place one document after the other.
        zero_based: Feature indices of LETOR start at 0 instead of 1.
        missing: Value of LETOR features that are NULL: 0, or the feature's minimum in the file.
        json: Print JSON instead of a message; the rankings are written to the file.
        overwrite: Replace an existing file.
    """
    check_at_least("--k", k, 1)
    check_suffix(out, SUFFIXES)
    check_files([out], overwrite)
    policy = load_policy(model)
    if sample is not None:
        with problems_in("--sample"):
            policy = policy.sampled(sample)
    with spinner(f"reading {candidates.name}"):
        documents = read_candidates(candidates, LetorOptions(zero_based, missing), policy.n_features)
    k = min(k, int(documents.sizes.max()))
    with problems_in(candidates), spinner(f"ranking {documents.n_queries:,} queries"):
        ranking = policy.rank(documents, k)
    write_rankings(out, documents, ranking)
    if json:
        show_json({"out": str(out), "queries": documents.n_queries, "k": k, "sample": sample})
    else:
        drawn = "top" if sample is None else "sampled"
        say(f"wrote {out}: {drawn} {k} documents of {documents.n_queries:,} queries")
