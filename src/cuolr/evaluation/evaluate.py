"""Evaluation of policies on labelled queries. It reads labels, so no learner may use it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from cuolr.data.spreadsheet_text import without_formulas
from cuolr.data.tables import write_errors
from cuolr.errors import InputError, require_type
from cuolr.evaluation.measures import GradedLists, Measure, WithoutRelevant, mean_over_queries
from cuolr.files import atomic_file
from cuolr.policies.policy import RankingPolicy, Ranks
from cuolr.types import Doubles, Ints, RankingDataset, Strings

PER_QUERY_SUFFIXES = (".csv", ".parquet", ".json")
# Where labelled queries come from, for the error of an argument of another type.
OF_LABELS = "read_letor and generate_splits return them"


@dataclass(frozen=True)
class Evaluation:
    """Measures of one policy on one data set.

    Attributes:
        query_ids: [n_queries].
        per_query: [n_queries] values by measure, such as `ndcg@10`; NaN for queries that do not count.
        without_relevant: Value of queries without a relevant document.
        n_without_relevant: Number of queries without a relevant document.
        ranking: [n_queries, K] the lists that were measured, as candidate indices, −1 after the last document.
    """

    query_ids: Strings
    per_query: Mapping[str, Doubles]
    without_relevant: WithoutRelevant
    n_without_relevant: int
    ranking: Ints

    def means(self) -> dict[str, float]:
        """Each measure's mean over the queries that count."""
        return {measure: mean_over_queries(values) for measure, values in self.per_query.items()}


def evaluate(
    policy: Ranks,
    dataset: RankingDataset,
    measures: Sequence[str] = ("ndcg@10",),
    without_relevant: WithoutRelevant = "skip",
) -> Evaluation:
    """Rank every query once and measure the lists.

    Args:
        policy: A policy, or a fitted `Ranker`.
        dataset: The queries and their true grades.
        measures: Such as `ndcg@10`.
        without_relevant: Value of queries without a relevant document; `skip` = they do not count.
    """
    require_type("dataset", dataset, RankingDataset, OF_LABELS)
    if not measures:
        raise InputError("measures: expected at least one, such as ndcg@10, found none")
    parsed = [Measure.parse(measure) for measure in measures]
    longest = int(dataset.candidates.sizes.max(initial=1))
    ranking = policy.rank(dataset.candidates, min(longest, max(measure.cutoff for measure in parsed)))
    lists = GradedLists.of(dataset, ranking)
    return Evaluation(
        query_ids=dataset.candidates.query_ids,
        per_query={str(measure): measure.per_query(lists, without_relevant) for measure in parsed},
        without_relevant=without_relevant,
        n_without_relevant=int(np.count_nonzero(lists.relevant == 0)),
        ranking=ranking,
    )


def write_per_query(path: Path, evaluation: Evaluation) -> None:
    """Write a row per query: query_id and a column per measure, empty if the query does not count. All or nothing.

    Args:
        path: The suffix gives the format, one of `PER_QUERY_SUFFIXES`; JSON is a list of objects.
        evaluation: What to write.
    """
    suffix = path.suffix.lower()
    assert suffix in PER_QUERY_SUFFIXES, path
    table = pl.DataFrame({"query_id": evaluation.query_ids, **evaluation.per_query}).fill_nan(None)
    path.parent.mkdir(parents=True, exist_ok=True)
    with write_errors(path), atomic_file(path) as unfinished:
        if suffix == ".csv":
            without_formulas(table).write_csv(unfinished)
        elif suffix == ".json":
            table.write_json(unfinished)
        else:
            table.write_parquet(unfinished)


def score_on(dataset: RankingDataset, measure: str = "ndcg@10") -> Callable[[RankingPolicy], float]:
    """A function from a policy to its mean of a measure on a data set, for validation."""
    name = str(Measure.parse(measure))
    return lambda policy: evaluate(policy, dataset, [name]).means()[name]
