"""`cuolr rank`: rank documents with a model."""

from dataclasses import dataclass
from pathlib import Path

import tyro

from cuolr.cli.feature_flags import CandidateFlags, flags_in_problems
from cuolr.cli.terminal import progress_bar, say, show_json, stage_bars
from cuolr.config import Range, check_arguments
from cuolr.data.candidate_reader import read_candidates
from cuolr.errors import problems_in
from cuolr.evaluation.trec import SUFFIXES, write_rankings
from cuolr.files import check_files, check_suffix
from cuolr.policies.model_folder import load_policy
from cuolr.policies.policy import RankingInParts


@dataclass(frozen=True)
class ListOptions:
    """The rankings.

    Attributes:
        k: Length of the lists.
        sample: Seed; samples each document from the policy instead of taking the best. Only for models that place one
            document after the other.
    """

    k: int = 10
    sample: int | None = None


def rank(
    model: tyro.conf.Positional[Path],
    candidates: Path,
    out: Path,
    lists: ListOptions = ListOptions(),
    json: bool = False,
    overwrite: bool = False,
    reading: CandidateFlags = CandidateFlags(),
) -> None:
    """Rank the documents of each query with a model.

    Args:
        model: Folder of a saved model.
        candidates: Documents to rank: LETOR, whose labels are ignored, or a table with query_id, doc_id and features.
        out: File of the rankings, a row per document: .parquet, .csv, or a TREC run with .trec or .run.
        lists: The rankings.
        json: Print JSON instead of a message.
        overwrite: Replace an existing file.
        reading: How to read the documents.
    """
    check_arguments(**{"--k": (lists.k, Range(1))})
    check_suffix(out, SUFFIXES)
    check_files([out], overwrite)
    policy = load_policy(model)
    if lists.sample is not None:
        with problems_in("--sample"):
            policy = policy.sampled(lists.sample)
    with stage_bars() as stages, flags_in_problems():
        documents = read_candidates(
            reading.tables(candidates),
            reading.letor.options(),
            policy.n_features,
            recipe=policy.recipe,
            stages=stages,
        )
    k = min(lists.k, int(documents.sizes.max()))
    with problems_in(candidates), progress_bar("ranking", documents.n_queries) as progress:
        # Samples are drawn for all queries together.
        ranker = policy if lists.sample is not None else RankingInParts(policy, progress)
        ranking = ranker.rank(documents, k)
    write_rankings(out, documents, ranking)
    if json:
        show_json({"out": str(out), "queries": documents.n_queries, "k": k, "sample": lists.sample})
    else:
        drawn = "top" if lists.sample is None else "sampled"
        queries = "query" if documents.n_queries == 1 else "queries"
        say(f"wrote {out}: {drawn} {k} documents of {documents.n_queries:,} {queries}")
