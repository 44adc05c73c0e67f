"""`cuolr inspect`: what is in a data set."""

from dataclasses import asdict
from pathlib import Path

import tyro

from cuolr.commands.data_options import DataOptions
from cuolr.data.statistics import DatasetStatistics, describe
from cuolr.errors import InputError
from cuolr.terminal import show_json, show_table


def inspect(
    path: tyro.conf.Positional[Path],
    options: DataOptions = DataOptions(),
    json: bool = False,
) -> None:
    """Show what is in a data set: queries, documents, features and grades of each split.

    Args:
        path: A folder, or one LETOR file.
        options: How to read it.
        json: Print JSON instead of a table.
    """
    if not path.exists():
        raise InputError(f"{path}: expected the folder of a data set or a LETOR file, found nothing")
    splits = {path.name: options.read_file(path).as_dataset()} if path.is_file() else options.load(path)
    statistics = {name: describe(split) for name, split in splits.items()}
    if json:
        show_json({name: asdict(counts) for name, counts in statistics.items()})
    else:
        _show(str(path), statistics)


def _show(title: str, statistics: dict[str, DatasetStatistics]) -> None:
    grades = max(len(counts.grades) for counts in statistics.values())
    columns = ["split", "queries", "documents", "features", "documents a query", "without relevant"]
    columns += [f"grade {grade}" for grade in range(grades)]
    rows = []
    for name, counts in statistics.items():
        least, mean, most = counts.documents_per_query
        without = f"{counts.queries_without_relevant:,} ({counts.queries_without_relevant / counts.queries:.0%})"
        row = [name, f"{counts.queries:,}", f"{counts.documents:,}", f"{counts.features}"]
        row += [f"{least}–{mean:.1f}–{most}", without]
        rows.append(row + [f"{count / counts.documents:.1%}" for count in counts.grades])
    caption = "documents a query: least–mean–most; without relevant: queries whose documents all have grade 0"
    show_table(title, columns, rows, caption)
