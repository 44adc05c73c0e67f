"""How the commands that read a data set are told which, and how they read it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from cuolr.cli.terminal import progress_bar, say
from cuolr.data.letor.cache import Cache, default_folder
from cuolr.data.letor.catalog import Source, check_counts, find_info, find_source, load_source
from cuolr.data.letor.reader import LetorFile, LetorOptions
from cuolr.data.letor.rows import MAX_GRADE
from cuolr.errors import InputError
from cuolr.types import RankingDataset


@dataclass(frozen=True)
class DataOptions:
    """How to read a data set."""

    fold: int | None = None
    """The fold, where the data set has folds; the first by default."""
    dataset: str | None = None
    """The data set's name in the catalogue (`cuolr list`); by default found by the folder's name."""
    max_grade: int | None = None
    """The highest grade of the data set's scale; by default the catalogue's, else the highest that occurs."""
    zero_based: bool = False
    """Feature indices start at 0, not at 1."""
    missing: Literal["zero", "minimum"] = "zero"
    """What NULL becomes: 0, or the feature's least value in the file."""
    verify: bool = False
    """Compare the content of the files with the cache, even if they look unchanged."""

    def __post_init__(self) -> None:
        if self.max_grade is not None and not 1 <= self.max_grade <= MAX_GRADE:
            raise InputError(f"--max-grade: expected a whole number from 1 to {MAX_GRADE}, found {self.max_grade}")

    def find(self, folder: Path) -> Source:
        """The files of the data set."""
        source = find_source(folder, self.fold, self.dataset)
        return replace(source, info=replace(source.info, max_grade=self.max_grade or source.info.max_grade))

    def fold_of(self, path: Path) -> int | None:
        """The fold that is read; None where there are none."""
        return self.find(path).fold if path.is_dir() else None

    def scale_of(self, path: Path) -> int | None:
        """The highest grade of the scale of a data set, or of a file; None where nobody says it."""
        if path.is_dir():
            return self.find(path).info.max_grade
        return self.max_grade or (None if self.dataset is None else find_info(path, self.dataset).max_grade)

    def read_file(self, path: Path, options: LetorOptions | None = None) -> LetorFile:
        """Read one file through the cache, with a progress bar."""
        cache = Cache(default_folder(), self.verify)
        size = path.stat().st_size if path.is_file() else 0
        with progress_bar(f"reading {path.name}", size, in_bytes=True) as progress:
            return cache.read(path, options or LetorOptions(self.zero_based, self.missing), progress)

    def load_file(self, path: Path) -> RankingDataset:
        """Read one file as a data set."""
        if self.fold is not None:
            raise InputError(f"--fold {self.fold}: {path} is one file, and has no folds; leave it away")
        scale = self.scale_of(path)
        dataset = self.read_file(path).as_dataset(scale)
        _check_grades([(path, dataset)])
        return dataset

    def load(self, folder: Path) -> dict[str, RankingDataset]:
        """Read the splits of a data set."""
        source = self.find(folder)
        splits = load_source(source, self.read_file, LetorOptions(self.zero_based, self.missing))
        # Where there is no file for vali, it was cut from train.
        _check_grades([(source.paths.get(split, source.paths["train"]), splits[split]) for split in splits])
        if note := check_counts(source, splits):
            say(f"note: {note}")
        return splits


def _check_grades(datasets: Sequence[tuple[Path, RankingDataset]]) -> None:
    """Refuse grades that are not on the scale."""
    problems = [
        f"{path}: expected grades from 0 to {dataset.max_grade}, found {highest}; say another with --max-grade"
        for path, dataset in datasets
        if (highest := int(dataset.relevance.max())) > dataset.max_grade
    ]
    if problems:
        raise InputError(list(dict.fromkeys(problems)))
