"""`cuolr inspect`: describe a labelled data set."""

from dataclasses import asdict
from pathlib import Path

import tyro

from cuolr.cli.options import DataOptions
from cuolr.cli.terminal import show_json, show_table
from cuolr.data.letor.catalog import find_folds
from cuolr.data.statistics import DatasetStatistics, describe
from cuolr.errors import InputError


def inspect(
    data: tyro.conf.Positional[tuple[Path, ...]],
    table: bool = False,
    json: bool = False,
    data_options: DataOptions = DataOptions(),
) -> None:
    """Describe labelled data sets: queries, documents, features and grades of each split.

    Args:
        data: Folders of data sets, or LETOR files.
        table: Print one row per data set, all splits together, as in the paper's table of data sets.
        json: Print JSON instead of a table; by path if there are several.
        data_options: How to read the data set.
    """
    if not data:
        raise InputError("DATA is missing; give the folder of a data set or a LETOR file")
    if missing := [path for path in data if not path.exists()]:
        raise InputError([f"{path}: not found; expected the folder of a data set or a LETOR file" for path in missing])
    statistics = {
        str(path): {name: describe(split) for name, split in data_options.load_any(path).items()} for path in data
    }
    if table:
        rows = {path: _row(Path(path), splits, data_options) for path, splits in statistics.items()}
        if json:
            show_json(rows)
        else:
            _show_rows(list(rows.values()))
    elif json:
        counts = {path: {name: asdict(split) for name, split in splits.items()} for path, splits in statistics.items()}
        show_json(counts if len(data) > 1 else next(iter(counts.values())))
    else:
        for title, splits in statistics.items():
            _show(title, splits)


def _row(path: Path, splits: dict[str, DatasetStatistics], options: DataOptions) -> dict[str, str | int]:
    """One data set as a row of the paper's table; the splits of a fold are all of its queries."""
    source = None if path.is_file() else options.find(path)
    known = source is not None and source.info.name != "folder"
    files = () if source is None else tuple(source.paths.values())
    return {
        "name": source.info.title if source is not None and known else path.resolve().name,
        "queries": sum(counts.queries for counts in splits.values()),
        "features": max(counts.features for counts in splits.values()),
        "documents": sum(counts.documents for counts in splits.values()),
        "relevance_levels": max(len(counts.grades) for counts in splits.values()),
        "folds": len(find_folds(files[0].parent.parent)) if source is not None and source.fold is not None else 1,
    }


def _show_rows(rows: list[dict[str, str | int]]) -> None:
    columns = ["", "queries", "features", "query-document pairs", "relevance levels", "folds"]
    cells = [[f"{value:,}" if isinstance(value, int) else value for value in row.values()] for row in rows]
    show_table("data sets", columns, cells)


def _show(title: str, statistics: dict[str, DatasetStatistics]) -> None:
    grades = max(len(counts.grades) for counts in statistics.values())
    columns = ["split", "queries", "documents", "features", "documents per query", "without relevant"]
    columns += [f"grade {grade}" for grade in range(grades)]
    rows = []
    for name, counts in statistics.items():
        least, mean, most = counts.documents_per_query
        without = f"{counts.queries_without_relevant:,} ({counts.queries_without_relevant / counts.queries:.0%})"
        row = [name, f"{counts.queries:,}", f"{counts.documents:,}", f"{counts.features}"]
        row += [f"{least}–{mean:.1f}–{most}", without]
        rows.append(row + [f"{count / counts.documents:.1%}" for count in counts.grades])
    caption = "documents per query: minimum–mean–maximum; without relevant: queries whose documents all have grade 0"
    show_table(title, columns, rows, caption)
