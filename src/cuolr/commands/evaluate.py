"""`cuolr evaluate`: how well a model ranks labelled queries."""

from pathlib import Path
from typing import Literal

import tyro

from cuolr.commands.data_options import DataOptions
from cuolr.commands.labelled import labelled_queries
from cuolr.evaluation import evaluate as measure_policy
from cuolr.measures import WithoutRelevant
from cuolr.policies.store import load_policy
from cuolr.terminal import show_json, show_table, show_text

COUNTED = {"skip": "skipped", "zero": "counted as 0", "one": "counted as 1"}


def evaluate(
    model: tyro.conf.Positional[Path],
    data: Path,
    split: Literal["train", "vali", "test"] = "test",
    measures: str = "ndcg@10",
    without_relevant: WithoutRelevant = "skip",
    data_options: DataOptions = DataOptions(),
    json: bool = False,
) -> None:
    """Measure how well a model ranks labelled queries.

    Args:
        model: Folder of a saved model.
        data: Folder of a labelled data set, or one LETOR file.
        split: Which part of a data set.
        measures: Separated by commas, such as ndcg@5,ndcg@10.
        without_relevant: What a query without a relevant document counts.
        data_options: How to read the data set.
        json: Print JSON instead of a table.
    """
    policy = load_policy(model)
    queries = labelled_queries(data, data_options, split)
    names = [name.strip() for name in measures.split(",")]
    evaluation = measure_policy(policy, queries, names, without_relevant)
    means = evaluation.means()
    n_queries, n_without = len(evaluation.query_ids), evaluation.n_without_relevant
    if json:
        show_json(
            {
                "measures": means,
                "model": str(model),
                "data": str(data),
                "fold": data_options.fold,
                "split": data.name if data.is_file() else split,
                "queries": n_queries,
                "queries_without_relevant": n_without,
                "without_relevant": without_relevant,
            }
        )
        return
    show_text(f"{model} on {data}" if data.is_file() else f"{model} on {data}, {split}")
    show_table("", ["measure", "mean"], [[name, f"{value:.4f}"] for name, value in means.items()])
    show_text(f"{n_queries:,} queries; {n_without:,} without a relevant document {COUNTED[without_relevant]}")
