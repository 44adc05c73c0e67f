"""How the commands that measure by labels find the queries to measure on."""

from pathlib import Path

from cuolr.commands.data_options import DataOptions
from cuolr.errors import InputError
from cuolr.registry import unknown_name
from cuolr.types import RankingDataset


def labelled_queries(path: Path, options: DataOptions, split: str) -> RankingDataset:
    """A split of a data set, or all of one LETOR file."""
    if path.is_file():
        return options.read_file(path).as_dataset()
    if not path.is_dir():
        raise InputError(f"{path}: expected the folder of a data set or a LETOR file, found nothing")
    splits = options.load(path)
    if split not in splits:
        raise unknown_name("split", split, splits)
    return splits[split]
