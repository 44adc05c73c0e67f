"""One measure of ranked lists, by name."""

from cuolr.evaluation.measures import GradedLists, Measure, WithoutRelevant
from cuolr.types import Doubles, Ints, RankingDataset


def measure_ranking(
    dataset: RankingDataset, ranking: Ints, measure: str, without_relevant: WithoutRelevant = "skip"
) -> Doubles:
    """One measure of ranked lists, by name.

    Args:
        dataset: The queries and their true grades.
        ranking: [n_queries, K] candidate indices, −1 after the last document.
        measure: Such as `ndcg@10`.
        without_relevant: Value of queries without a relevant document.

    Returns:
        [n_queries], NaN for queries to skip.
    """
    return Measure.parse(measure).per_query(GradedLists.of(dataset, ranking), without_relevant)
