"""`cuolr evaluate`: how well a model ranks labelled queries."""

from pathlib import Path
from typing import Literal

import tyro

from cuolr.cli.options import DataOptions, Measures, as_model_takes
from cuolr.cli.terminal import say, show_json, show_table, show_text, spinner
from cuolr.evaluation.evaluate import PER_QUERY_SUFFIXES, write_per_query
from cuolr.evaluation.evaluate import evaluate as measure_policy
from cuolr.evaluation.measures import WithoutRelevant, what_counts
from cuolr.evaluation.trec import write_qrels, write_run
from cuolr.files import check_files, check_suffix
from cuolr.policies.store import load_policy


def evaluate(
    model: tyro.conf.Positional[Path],
    data: Path,
    split: Literal["train", "vali", "test"] = "test",
    measures: Measures = "ndcg@10",
    without_relevant: WithoutRelevant = "skip",
    data_options: DataOptions = DataOptions(),
    per_query: Path | None = None,
    trec_run: Path | None = None,
    qrels: Path | None = None,
    json: bool = False,
    overwrite: bool = False,
) -> None:
    """Evaluate a model on labelled queries.

    Args:
        model: Folder of a saved model.
        data: Folder of a labelled data set, or one LETOR file.
        split: Split of the data set.
        measures: Measures (`cuolr list measures`), separated by commas.
        without_relevant: Value of queries without a relevant document. Does not apply to clicks:MODEL@k.
        data_options: How to read the data set.
        per_query: Write the values of each query to this file: .csv, .parquet or .json.
        trec_run: Write the rankings to this file, as a run for trec_eval.
        qrels: Write the true grades to this file, as qrels for trec_eval.
        json: Print JSON instead of a table.
        overwrite: Replace existing files.
    """
    if per_query is not None:
        check_suffix(per_query, PER_QUERY_SUFFIXES)
    check_files((per_query, trec_run, qrels), overwrite)
    policy = load_policy(model)
    names = [name.strip() for name in measures.split(",")]
    queries = as_model_takes(data_options.load_labelled(data, split, names), policy.n_features, data)
    with spinner(f"ranking {queries.candidates.n_queries:,} queries"):
        evaluation = measure_policy(policy, queries, names, without_relevant)
    means = evaluation.means()
    # Ids that a TREC file cannot hold are refused: the qrels have all of them, so they come first.
    if qrels is not None:
        write_qrels(qrels, queries)
        say(f"wrote {qrels}")
    if trec_run is not None:
        write_run(trec_run, queries.candidates, evaluation.ranking)
        say(f"wrote {trec_run}")
    if per_query is not None:
        write_per_query(per_query, evaluation)
        say(f"wrote {per_query}")
    n_queries, n_without = len(evaluation.query_ids), evaluation.n_without_relevant
    if json:
        show_json(
            {
                "measures": means,
                "model": str(model),
                "data": str(data),
                "fold": data_options.fold_of(data),
                "split": data.name if data.is_file() else split,
                "queries": n_queries,
                "queries_without_relevant": n_without,
                "without_relevant": without_relevant,
            }
        )
        return
    show_text(f"{model} on {data}" if data.is_file() else f"{model} on {data}, {split}")
    show_table("", ["measure", "mean"], [[name, f"{value:.4f}"] for name, value in means.items()])
    counted = what_counts(without_relevant, means)
    show_text(f"{n_queries:,} queries; {n_without:,} without a relevant document {counted}")
