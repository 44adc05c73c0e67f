"""How the commands that measure by labels find the queries to measure on."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from cuolr.cli.data_options import DataOptions
from cuolr.cli.terminal import say
from cuolr.data.letor.reader import filled_up
from cuolr.errors import InputError
from cuolr.evaluation.measures import Measure
from cuolr.registry import unknown_name
from cuolr.types import RankingDataset


def labelled_queries(path: Path, options: DataOptions, split: str, measures: Sequence[str]) -> RankingDataset:
    """A split of a data set, or all of one LETOR file; a note says the scale of grades where nobody else does.

    Args:
        path: The folder of a data set, or a file.
        options: How to read it.
        split: Which part of a data set.
        measures: What is to be measured.
    """
    parsed = [Measure.parse(measure) for measure in measures]
    queries = _read(path, options, split)
    graded = [str(measure) for measure in parsed if measure.needs_scale]
    if graded and options.scale_of(path) is None:
        say(
            f"note: {path} does not say its scale of grades; {', '.join(graded)}: {queries.max_grade}, the highest "
            "grade that occurs, is taken for the highest there is; --max-grade says another"
        )
    return queries


def as_model_takes(queries: RankingDataset, n_features: int | None, path: Path) -> RankingDataset:
    """Queries with as many features as the model has; see `filled_up`.

    Args:
        queries: From LETOR.
        n_features: Of the model; None = any number will do.
        path: Where they come from.
    """
    if n_features is None:
        return queries
    return replace(queries, candidates=filled_up(queries.candidates, n_features, path))


def _read(path: Path, options: DataOptions, split: str) -> RankingDataset:
    if path.is_file():
        return options.load_file(path)
    if not path.is_dir():
        raise InputError(f"{path}: expected the folder of a data set or a LETOR file, found nothing")
    splits = options.load(path)
    if split not in splits:
        raise unknown_name("split", split, splits)
    return splits[split]
