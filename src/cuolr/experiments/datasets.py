"""The data that an experiment runs on: a folder of a data set, or generated."""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from cuolr.data.letor.catalog import find_folds, find_source
from cuolr.data.synthetic import PRESETS, generate_splits
from cuolr.errors import InputError
from cuolr.types import RankingDataset

Splits = Mapping[str, RankingDataset]


@dataclass(frozen=True)
class ExperimentData:
    """Where the queries come from.

    Attributes:
        name: For people.
        paper_name: The data set of the paper that it is, or looks like; "" = none.
        folds: The folds that there are; none = one training, validation and test set.
        load: Gives the splits of a fold, 0 where there are none; reads each once.
    """

    name: str
    paper_name: str
    folds: tuple[int, ...]
    load: Callable[[int], Splits]


def generated(preset: str, queries: int, seed: int = 1) -> ExperimentData:
    """Generated queries: so many to train on, a third of that to validate on, and half to test on."""

    @cache
    def load(_: int) -> Splits:
        train, validation, test = generate_splits(preset, queries, max(queries // 3, 1), max(queries // 2, 1), seed)
        return {"train": train, "vali": validation, "test": test}

    alike = {"web10k-like": "mslr-web10k", "yahoo-like": "yahoo-set1"}
    return ExperimentData(f"{preset}, {queries:,} training queries", alike.get(preset, ""), (), load)


def from_folder(folder: Path, read: Callable[[Path, int | None], Splits], dataset: str | None = None) -> ExperimentData:
    """A data set in a folder, with all of its folds.

    Args:
        folder: As the user has it.
        read: Reads a fold of the folder.
        dataset: Its name in the catalogue; None = found by the folder's name and files.
    """
    source = find_source(folder, name=dataset)
    first = next(iter(source.paths.values())).parent
    folds = tuple(find_folds(first.parent)) if source.fold is not None else ()
    named = source.info.title if source.info.name != "folder" else folder.resolve().name
    return ExperimentData(named, source.info.name, folds, cache(lambda fold: read(folder, fold or None)))


def find_data(
    data: str, queries: int, read: Callable[[Path, int | None], Splits], dataset: str | None = None
) -> ExperimentData:
    """The data that the user names: a preset of generated data, or a folder."""
    if data in PRESETS and not Path(data).exists():
        return generated(data, queries)
    if not Path(data).is_dir():
        known = ", ".join(PRESETS)
        raise InputError(f"--data: expected a folder, or generated data ({known}), found '{data}'")
    return from_folder(Path(data), read, dataset)


def digest_of_ids(splits: Splits) -> str:
    """A short text that changes when a query has another name, by which a random order of its documents is drawn."""
    ids = [[name, *split.candidates.query_ids.tolist()] for name, split in sorted(splits.items())]
    return hashlib.sha256(json.dumps(ids).encode()).hexdigest()[:16]


def digest(splits: Splits) -> str:
    """A short text that changes when anything in the data changes that a number could depend on, but for names."""
    total = hashlib.sha256()
    for name, split in sorted(splits.items()):
        total.update(f"{name} {split.max_grade}".encode())
        for values in (split.candidates.offsets, split.relevance, split.candidates.features):
            total.update(str((values.shape, values.dtype.str)).encode())
            total.update(np.ascontiguousarray(values).data)
    return total.hexdigest()[:16]
