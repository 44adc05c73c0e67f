"""The data of an experiment: the folder of a data set, or generated."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from cuolr.data.letor.catalog import find_folds, find_source
from cuolr.data.synthetic import PRESETS, generate_splits
from cuolr.errors import InputError
from cuolr.files import content_hash
from cuolr.random import DEFAULT_SEED
from cuolr.types import RankingDataset

Splits = Mapping[str, RankingDataset]


@dataclass(frozen=True)
class ExperimentData:
    """A data set.

    Attributes:
        name: As the report prints it.
        paper_name: The data set of the paper that it is, or resembles; "" = none.
        folds: Its folds; empty = one training, validation and test set.
        load: Returns the splits of a fold, or of fold 0 if it has no folds; reads each fold once.
    """

    name: str
    paper_name: str
    folds: tuple[int, ...]
    load: Callable[[int], Splits]


def generated(preset: str, queries: int, seed: int = DEFAULT_SEED) -> ExperimentData:
    """Generated data: `queries` training queries, a third as many validation queries and half as many test queries."""

    @cache
    def load(_: int) -> Splits:
        train, validation, test = generate_splits(preset, queries, max(queries // 3, 1), max(queries // 2, 1), seed)
        return {"train": train, "vali": validation, "test": test}

    resembled = {"web10k-like": "mslr-web10k", "yahoo-like": "yahoo-set1"}
    return ExperimentData(f"{preset}, {queries:,} training queries", resembled.get(preset, ""), (), load)


def from_folder(folder: Path, read: Callable[[Path, int | None], Splits], dataset: str | None = None) -> ExperimentData:
    """A data set in a folder, with all of its folds.

    Args:
        folder: Folder of the data set.
        read: Reads a fold of the folder.
        dataset: Its name in the catalogue; None = recognised by the folder's name and files.
    """
    source = find_source(folder, name=dataset)
    first = next(iter(source.paths.values())).parent
    folds = tuple(find_folds(first.parent)) if source.fold is not None else ()
    named = source.info.title if source.info.name != "folder" else folder.resolve().name
    return ExperimentData(named, source.info.name, folds, cache(lambda fold: read(folder, fold or None)))


def find_data(
    data: str, queries: int, read: Callable[[Path, int | None], Splits], dataset: str | None = None
) -> ExperimentData:
    """A preset of generated data, by its name, or the data set in a folder."""
    if data in PRESETS and not Path(data).exists():
        return generated(data, queries)
    if not Path(data).is_dir():
        known = ", ".join(PRESETS)
        raise InputError(f"data: '{data}' is neither a folder nor generated data ({known})")
    return from_folder(Path(data), read, dataset)


def digest_of_ids(splits: Splits) -> str:
    """A hash of the query ids, which seed the random order of the documents."""
    ids = [[name, *split.candidates.query_ids.tolist()] for name, split in sorted(splits.items())]
    return content_hash(ids)[:16]


def digest(splits: Splits) -> str:
    """A hash of everything in the data that affects results, except the query ids."""
    parts: list[Any] = []
    for name, split in sorted(splits.items()):
        parts += [f"{name} {split.max_grade}", split.candidates.offsets, split.relevance, split.candidates.features]
    return content_hash(*parts)[:16]
