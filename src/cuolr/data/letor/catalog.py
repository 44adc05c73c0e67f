"""The files of a learning-to-rank data set, published or of your own.

Nothing is downloaded: the user gives the folder of a data set.
"""

import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from cuolr.data.letor.published import CATALOGUE, DatasetInfo
from cuolr.data.letor.reader import LetorFile, LetorOptions, read_file, read_splits
from cuolr.errors import InputError, InputWarning
from cuolr.json_files import read_json
from cuolr.registry import unknown_name
from cuolr.types import RankingDataset

SPLITS = ("train", "vali", "test")
# Description of a generated data set, beside its folds.
DESCRIPTION_FILE = "generated.json"
# Share of the training queries that become validation queries if there are none.
VALIDATION_SHARE = 0.2

_NAMES_OF_SPLIT = {
    "train": ("train.txt", "trainingset.txt"),
    "vali": ("vali.txt", "valid.txt", "validationset.txt"),
    "test": ("test.txt", "testset.txt"),
}


@dataclass(frozen=True)
class Source:
    """The files of one fold of a data set.

    Attributes:
        info: The data set.
        folder: The folder that the user gave.
        fold: The fold; None if there are no folds.
        paths: The file of each split; `vali` may be missing.
    """

    info: DatasetInfo
    folder: Path
    fold: int | None
    paths: Mapping[str, Path]


def find_info(folder: Path, name: str | None = None) -> DatasetInfo:
    """The data set in a folder: by its given name, or else by the name or files of the folder."""
    if name is not None:
        if name not in CATALOGUE:
            raise unknown_name("data set", name, CATALOGUE)
        return CATALOGUE[name]
    plain = re.sub(r"[^a-z0-9]", "", folder.resolve().name.lower())
    for info in CATALOGUE.values():
        if plain in {re.sub(r"[^a-z0-9]", "", text.lower()) for text in (info.name, info.title)}:
            return info
    known = [info for info in CATALOGUE.values() if info.prefix and _has_train(folder, info.prefix)]
    if len(known) > 1:
        names = " and ".join(info.name for info in known)
        raise InputError(f"{folder}: expected one data set, found {names}; choose one with dataset")
    return known[0] if known else CATALOGUE["folder"]


def _has_train(folder: Path, prefix: str) -> bool:
    names = (f"{place}{prefix}train.txt{suffix}" for place in ("", "*/") for suffix in ("", ".gz"))
    return any(any(folder.glob(name)) for name in names)


def find_folds(folder: Path) -> list[int]:
    """The numbers of the folders Fold1, Fold2 and so on."""
    if not folder.is_dir():
        return []
    matches = (re.fullmatch(r"Fold([1-9]\d*)", entry.name) for entry in folder.iterdir() if entry.is_dir())
    return sorted(int(match[1]) for match in matches if match)


def find_source(folder: Path, fold: int | None = None, name: str | None = None) -> Source:
    """Find the files of one fold.

    Args:
        folder: Folder of the data set; files may be gzipped, and may be one level deeper.
        fold: Number of the fold; None = the first, or the folder itself if there are no folds.
        name: The data set's name in the catalogue; None = recognised by the folder's name and files.

    Raises:
        InputError: Says what is missing and where to get the data set.
    """
    if not folder.is_dir():
        raise InputError(
            f"{folder}: expected a folder, found a file" if folder.exists() else f"{folder}: folder not found"
        )
    info = find_info(folder, name)
    root = _root(folder, info)
    if info.max_grade is None:
        info = replace(info, max_grade=_described_scale(root))
    folds = find_folds(root)
    if info.folds and not folds:
        raise InputError(_missing(info, f"{folder}: expected folders Fold1 to Fold{info.folds}, found none"))
    if folds and fold is None:
        fold = folds[0]
    if fold is not None and fold not in folds:
        found = f"folds {', '.join(map(str, folds))}" if folds else "no folders named FoldN"
        raise InputError(_missing(info, f"{folder}: expected the folder Fold{fold}, found {found}"))
    home = root if fold is None else root / f"Fold{fold}"
    found_paths = {split: _find_split(home, split, info) for split in SPLITS}
    problems = [
        _missing(info, f"{home}: expected {_wanted(split, info)}, found none")
        for split in SPLITS
        if found_paths[split] is None and split != "vali"
    ]
    if problems:
        raise InputError(problems)
    return Source(info, folder, fold, {split: path for split, path in found_paths.items() if path is not None})


def load_source(
    source: Source,
    read: Callable[[Path, LetorOptions], LetorFile] = read_file,
    options: LetorOptions = LetorOptions(),
) -> dict[str, RankingDataset]:
    """Read train, vali and test; without a validation split, one is split off from train, by query.

    Args:
        source: The files.
        read: Reads one file, such as `Cache.read`.
        options: How to read them.
    """
    expected = LetorOptions(options.zero_based, options.missing, source.info.n_features or options.n_features)
    splits = read_splits(source.paths, expected, source.info.max_grade, read)
    if "vali" not in splits:
        if source.info.has_validation:
            problem = (
                f"{source.folder}: no validation split; {VALIDATION_SHARE:.0%} of the training queries are used instead"
            )
            warnings.warn(problem, InputWarning, stacklevel=2)
        try:
            splits["train"], splits["vali"] = cut_validation(splits["train"], VALIDATION_SHARE, seed=1)
        except InputError as error:
            raise InputError([f"{source.paths['train']}: {problem}" for problem in error.problems]) from None
    return {split: splits[split] for split in SPLITS}


def cut_validation(train: RankingDataset, share: float, seed: int) -> tuple[RankingDataset, RankingDataset]:
    """Split training queries at random into a smaller training set and a validation set."""
    n_queries = train.candidates.n_queries
    n_validation = max(1, round(share * n_queries))
    if n_validation >= n_queries:
        raise InputError(f"expected at least 2 queries to split off a validation set, found {n_queries}")
    order = np.random.default_rng(seed).permutation(n_queries)
    return train.select(np.sort(order[n_validation:])), train.select(np.sort(order[:n_validation]))


def check_counts(source: Source, splits: Mapping[str, RankingDataset]) -> str | None:
    """A message if the splits do not have the published numbers of queries and documents; else None."""
    info = source.info
    queries = sum(split.candidates.n_queries for split in splits.values())
    documents = sum(split.candidates.n_documents for split in splits.values())
    if info.queries is None or (queries, documents) == (info.queries, info.documents):
        return None
    return (
        f"{source.folder}: expected {info.queries:,} queries and {info.documents:,} documents in {info.title}, "
        f"found {queries:,} and {documents:,}; is it complete?"
    )


def _root(folder: Path, info: DatasetInfo) -> Path:
    """The folder of the folds or splits: the folder itself, or the only one below it that has them.

    LETOR 3.0 and 4.0 come in variants, one folder each; the literature uses `QueryLevelNorm`.
    """
    below = sorted(entry for entry in folder.iterdir() if entry.is_dir() and not find_folds(folder))
    roots = [home for home in (folder, *below) if find_folds(home) or _find_split(home, "train", info)]
    preferred = [home for home in roots if home in (folder, folder / "QueryLevelNorm")]
    if len(roots) > 1 and not preferred:
        raise InputError(f"{folder}: expected one data set, found several; give one of {', '.join(map(str, roots))}")
    return (preferred or roots or [folder])[0]


def _described_scale(root: Path) -> int | None:
    """The highest grade of a generated data set's scale; None = not known."""
    file = root / DESCRIPTION_FILE
    if not file.is_file():
        return None
    described = read_json(file)
    grade = described.get("max_grade") if isinstance(described, dict) else None
    if grade is not None and (type(grade) is not int or grade < 1):
        raise InputError(f"{file}: max_grade: expected a whole number >= 1, found {grade!r}")
    return grade


def _names(split: str, info: DatasetInfo) -> list[str]:
    names = [info.prefix + name for name in _NAMES_OF_SPLIT[split]]
    return names + [f"{name}.gz" for name in names]


def _find_split(folder: Path, split: str, info: DatasetInfo) -> Path | None:
    return next((folder / name for name in _names(split, info) if (folder / name).is_file()), None)


def _wanted(split: str, info: DatasetInfo) -> str:
    first, *others = (info.prefix + name for name in _NAMES_OF_SPLIT[split])
    return f"{first} (or {', '.join(others)}, or one of these gzipped)"


def _missing(info: DatasetInfo, problem: str) -> str:
    return problem if info.name == "folder" else f"{problem}; get {info.title} from {info.home}"
