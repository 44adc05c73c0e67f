"""`cuolr evaluate`: measure how well a model ranks labelled queries."""

from dataclasses import dataclass
from pathlib import Path

import tyro

from cuolr.cli.options import DataOptions, MeasureOptions, as_model_takes
from cuolr.cli.terminal import progress_bar, say, show_json, show_table, show_text
from cuolr.evaluation.evaluate import PER_QUERY_SUFFIXES, Evaluation, write_per_query
from cuolr.evaluation.evaluate import evaluate as measure_policy
from cuolr.evaluation.measures import what_counts
from cuolr.evaluation.trec import write_qrels, write_run
from cuolr.files import check_files, check_suffix
from cuolr.policies.model_folder import load_policy
from cuolr.policies.policy import RankingInParts
from cuolr.types import RankingDataset


@dataclass(frozen=True)
class FileOptions:
    """Files to write.

    Attributes:
        per_query: The values of each query: .csv, .parquet or .json.
        trec_run: The rankings, as a run for trec_eval.
        qrels: The true grades, as qrels for trec_eval.
        overwrite: Replace existing files.
    """

    per_query: Path | None = None
    trec_run: Path | None = None
    qrels: Path | None = None
    overwrite: bool = False

    def check(self) -> None:
        """Raise, before any work, if a file cannot be written."""
        if self.per_query is not None:
            check_suffix(self.per_query, PER_QUERY_SUFFIXES)
        check_files((self.per_query, self.trec_run, self.qrels), self.overwrite)

    def write(self, queries: RankingDataset, evaluation: Evaluation) -> None:
        """Write the requested files."""
        # Ids that a TREC file cannot hold are an error. The qrels come first, because they have all ids.
        if self.qrels is not None:
            write_qrels(self.qrels, queries)
            say(f"wrote {self.qrels}")
        if self.trec_run is not None:
            write_run(self.trec_run, queries.candidates, evaluation.ranking)
            say(f"wrote {self.trec_run}")
        if self.per_query is not None:
            write_per_query(self.per_query, evaluation)
            say(f"wrote {self.per_query}")


def evaluate(
    model: tyro.conf.Positional[Path],
    data: Path,
    measured: MeasureOptions = MeasureOptions(),
    files: FileOptions = FileOptions(),
    json: bool = False,
    data_options: DataOptions = DataOptions(),
) -> None:
    """Evaluate a model on labelled queries.

    Args:
        model: Folder of a saved model.
        data: Folder of a labelled data set, or one LETOR file.
        measured: What to measure.
        files: Files to write.
        json: Print JSON instead of a table.
        data_options: How to read the data set.
    """
    files.check()
    policy = load_policy(model)
    labelled = data_options.load_labelled(data, measured.split, measured.names)
    queries = as_model_takes(labelled, policy.n_features, data)
    with progress_bar("ranking", queries.candidates.n_queries) as progress:
        ranker = RankingInParts(policy, progress)
        evaluation = measure_policy(ranker, queries, measured.names, measured.without_relevant)
    means = evaluation.means()
    files.write(queries, evaluation)
    n_queries, n_without = len(evaluation.query_ids), evaluation.n_without_relevant
    if json:
        show_json(
            {
                "measures": means,
                "model": str(model),
                "data": str(data),
                "fold": data_options.fold_of(data),
                "split": data.name if data.is_file() else measured.split,
                "queries": n_queries,
                "queries_without_relevant": n_without,
                "without_relevant": measured.without_relevant,
            }
        )
        return
    show_text(f"{model} on {data}" if data.is_file() else f"{model} on {data}, {measured.split}")
    show_table("", ["measure", "mean"], [[name, f"{value:.4f}"] for name, value in means.items()])
    counted = what_counts(measured.without_relevant, means)
    show_text(f"{n_queries:,} queries; {n_without:,} without a relevant document, {counted}")
