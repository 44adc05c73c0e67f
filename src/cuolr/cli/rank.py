"""`cuolr rank`: put documents in order by a model."""

from pathlib import Path
from typing import Literal

import tyro

from cuolr.cli.terminal import say
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
    top: int = 10,
    sample: int | None = None,
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
        sample: Draw each document from the policy by this seed, instead of taking the best; for models that place one
            document after the other.
        zero_based: LETOR candidates: indices start at 0, not at 1.
        missing: LETOR candidates: what NULL becomes, 0 or the feature's least value in the file.
        overwrite: Replace the file if it is there.
    """
    check_at_least("--top", top, 1)
    check_suffix(out, SUFFIXES)
    check_files([out], overwrite)
    policy = load_policy(model)
    if sample is not None:
        with problems_in("--sample"):
            policy = policy.sampled(sample)
    documents = read_candidates(candidates, LetorOptions(zero_based, missing), policy.n_features)
    top = min(top, int(documents.sizes.max()))
    with problems_in(candidates):
        ranking = policy.rank(documents, top)
    write_rankings(out, documents, ranking)
    say(f"wrote {out}: the {top} {'best' if sample is None else 'first'} documents of {documents.n_queries:,} queries")
