"""Options that several commands share: how to read a data set or part of a log, and the parameters of a click model."""

import dataclasses
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

import tyro

from cuolr.cli.help import NOT_SHOWN
from cuolr.cli.terminal import progress_bar, say
from cuolr.clicks.click_model import ClickModel, click_model, read_click_model
from cuolr.config import Range, check_arguments
from cuolr.data.letor.cache import Cache, default_folder
from cuolr.data.letor.catalog import Source, check_counts, find_info, find_source, load_source
from cuolr.data.letor.reader import LetorFile, LetorOptions, filled_up
from cuolr.data.letor.rows import MAX_GRADE
from cuolr.errors import InputError, InputWarning
from cuolr.evaluation.measures import Measure, WithoutRelevant
from cuolr.logs.time_window import TimeWindow
from cuolr.types import RankingDataset

# Placeholders of values in the help; those of numbers and paths follow from their type.
Name = Annotated[str, tyro.conf.arg(metavar="NAME")]
Measures = Annotated[str, tyro.conf.arg(metavar="NAME@K,...")]
TimeOfLog = Annotated[str, tyro.conf.arg(metavar="TIME")]


@dataclass(frozen=True)
class DataOptions:
    """How to read a data set.

    Attributes:
        fold: The fold to read, of a data set with folds. By default the first.
        dataset: Name of the data set (`cuolr list data-sets`). By default it is recognised by the folder's name.
        max_grade: Highest grade of the relevance scale. By default the catalogue's, else the highest that occurs.
        zero_based: Feature indices start at 0 instead of 1.
        missing: Value of features that are NULL: 0, or the feature's minimum in the file.
        verify: Compare files with the cache by content, not by size and time alone.
    """

    fold: int | None = None
    dataset: Name | None = None
    max_grade: int | None = None
    zero_based: bool = False
    missing: Literal["zero", "minimum"] = "zero"
    verify: bool = False

    def find(self, folder: Path) -> Source:
        """The files of the data set."""
        source = find_source(folder, self.fold, self.dataset)
        return replace(source, info=replace(source.info, max_grade=self._given_scale() or source.info.max_grade))

    def fold_of(self, path: Path) -> int | None:
        """The fold that is read; None if there are no folds."""
        return self.find(path).fold if path.is_dir() else None

    def scale_of(self, path: Path) -> int | None:
        """The highest grade of the scale of a data set or a file; None if not known."""
        if path.is_dir():
            return self.find(path).info.max_grade
        return self._given_scale() or (None if self.dataset is None else find_info(path, self.dataset).max_grade)

    def _given_scale(self) -> int | None:
        # Not checked in `__post_init__`: tyro would report the error as its own.
        if self.max_grade is not None and not 1 <= self.max_grade <= MAX_GRADE:
            raise InputError(f"--max-grade: expected a whole number from 1 to {MAX_GRADE}, found {self.max_grade}")
        return self.max_grade

    def read_file(self, path: Path, options: LetorOptions | None = None) -> LetorFile:
        """Read one file through the cache, with a progress bar."""
        cache = Cache(default_folder(), self.verify)
        size = path.stat().st_size if path.is_file() else 0
        with progress_bar(f"reading {path.name}", size, unit="bytes") as progress:
            return cache.read(path, options or LetorOptions(self.zero_based, self.missing), progress)

    def load_file(self, path: Path) -> RankingDataset:
        """Read one file as a data set."""
        if self.fold is not None:
            raise InputError(f"--fold {self.fold}: {path} is a single file without folds; omit --fold")
        dataset = self.read_file(path).as_dataset(self.scale_of(path))
        _check_grades([(path, dataset)])
        return dataset

    def load(self, folder: Path) -> dict[str, RankingDataset]:
        """Read the splits of a data set."""
        source = self.find(folder)
        splits = load_source(source, self.read_file, LetorOptions(self.zero_based, self.missing))
        # Without a file of its own, vali was split off from train.
        _check_grades([(source.paths.get(split, source.paths["train"]), splits[split]) for split in splits])
        if note := check_counts(source, splits):
            say(f"note: {note}")
        return splits

    def load_any(self, path: Path) -> dict[str, RankingDataset]:
        """Read the splits of a data set, or a single file as one split of its name."""
        if path.is_file():
            return {path.name: self.load_file(path)}
        if not path.is_dir():
            raise InputError(f"{path}: not found; expected the folder of a data set or a LETOR file")
        return self.load(path)

    def load_labelled(self, path: Path, split: str, measures: Sequence[str]) -> RankingDataset:
        """Read the queries to evaluate on; prints a note if a measure needs the scale of grades and it is not known.

        Args:
            path: The folder of a data set, or a LETOR file, all of which is used.
            split: Split of a data set.
            measures: Measures to compute, such as `ndcg@10`.
        """
        scaled = [str(measure) for measure in map(Measure.parse, measures) if measure.needs_scale]
        splits = self.load_any(path)
        queries = splits[path.name if path.is_file() else split]
        if scaled and self.scale_of(path) is None:
            say(
                f"note: {path}: the highest possible grade is not known; {', '.join(scaled)} uses {queries.max_grade}, "
                "the highest that occurs; set it with --max-grade"
            )
        return queries


@dataclass(frozen=True)
class AllFoldsOptions(DataOptions):
    """How to read a data set, all folds of which are read.

    `--fold` is not shown in the help; `CellOptions.request` refuses it and says what to use instead.
    """

    fold: Annotated[int | None, NOT_SHOWN] = None


@dataclass(frozen=True)
class LetorFlags:
    """How to read LETOR files.

    Attributes:
        zero_based: Feature indices start at 0 instead of 1.
        missing: Value of features that are NULL: 0, or the feature's minimum in the file.
    """

    zero_based: bool = False
    missing: Literal["zero", "minimum"] = "zero"

    def options(self) -> LetorOptions:
        """The options for the reader."""
        return LetorOptions(self.zero_based, self.missing)


@dataclass(frozen=True)
class TimeFlags:
    """Sessions to use, by time.

    Attributes:
        since: From this time on: 2026-11-01, 2026-11-01T12:30Z (UTC without a zone), or 28d before the latest session.
        until: Before this time.
    """

    since: TimeOfLog | None = None
    until: TimeOfLog | None = None

    def window(self) -> TimeWindow:
        """As the library takes it."""
        return window_of(self.since, self.until)


@dataclass(frozen=True)
class RetentionFlags(TimeFlags):
    """Sessions to keep, by time.

    Attributes:
        keep_days: Keep this many days before the latest session; the same as --since Nd.
    """

    keep_days: int | None = None

    def window(self) -> TimeWindow:
        """As the library takes it."""
        if self.keep_days is None:
            return super().window()
        if self.since is not None:
            raise InputError(f"--keep-days {self.keep_days}: says when to start, as --since does; give one of them")
        check_arguments(**{"--keep-days": (self.keep_days, Range(1))})
        return window_of(f"{self.keep_days}d", self.until)


def window_of(since: str | None, until: str | None) -> TimeWindow:
    """The time window of two flags."""
    try:
        return TimeWindow(since, until)
    except InputError as error:
        raise InputError([f"--{problem}" for problem in error.problems]) from None


@dataclass(frozen=True)
class MeasureOptions:
    """What to measure.

    Attributes:
        split: Split of the data set.
        measures: Measures (`cuolr list measures`), separated by commas.
        without_relevant: Value of queries without a relevant document. Does not apply to clicks:MODEL@k.
    """

    split: Literal["train", "vali", "test"] = "test"
    measures: Measures = "ndcg@10"
    without_relevant: WithoutRelevant = "skip"

    @property
    def names(self) -> list[str]:
        """The measures, one by one."""
        return [name.strip() for name in self.measures.split(",")]


def as_model_takes(queries: RankingDataset, n_features: int | None, path: Path) -> RankingDataset:
    """Queries with as many features as the model has; see `filled_up`.

    Args:
        queries: Queries read from LETOR.
        n_features: Number of features of the model; None = any number.
        path: The file or folder that they were read from, for messages.
    """
    if n_features is None:
        return queries
    return replace(queries, candidates=filled_up(queries.candidates, n_features, path))


def _check_grades(datasets: Sequence[tuple[Path, RankingDataset]]) -> None:
    """Raise if a grade is above the scale."""
    problems = [
        f"{path}: expected grades from 0 to {dataset.max_grade}, found {highest}; set the maximum with --max-grade"
        for path, dataset in datasets
        if (highest := int(dataset.relevance.max())) > dataset.max_grade
    ]
    if problems:
        raise InputError(list(dict.fromkeys(problems)))


@dataclass(frozen=True)
class ClickModelOptions:
    """The click model.

    Attributes:
        click_model: Name of a click model (`cuolr list click-models`), or a TOML file that describes one, such as that
            of `cuolr fit-clicks`.
        eta: Severity of position bias, 0 = none, of pbm, ubm, dcm and trust. By default 1.
        noise: Attractiveness of an irrelevant document. By default 0.1, of trust 0.
    """

    click_model: Name
    eta: float | None = None
    noise: float | None = None

    def fitted_file(self) -> Path:
        """The file of users that were fitted to a log, to simulate them on it."""
        if not self.click_model.endswith(".toml"):
            raise InputError(
                f"--click-model {self.click_model}: on a click log, expected the file of `cuolr fit-clicks LOG --out "
                "users.toml`"
            )
        if self.eta is not None or self.noise is not None:
            raise InputError("--eta and --noise: not possible if --data is a click log")
        return Path(self.click_model)

    def model(self) -> ClickModel:
        """The click model with these parameters, by its name or from a file."""
        is_file = self.click_model.endswith(".toml")
        model = read_click_model(Path(self.click_model)) if is_file else click_model(self.click_model)
        known = {field.name for field in dataclasses.fields(model)}
        given = {name: value for name, value in (("eta", self.eta), ("noise", self.noise)) if value is not None}
        for name in given.keys() - known:
            message = f"--{name} is ignored: click model '{self.click_model}' has no such parameter"
            warnings.warn(message, InputWarning, stacklevel=2)
        return dataclasses.replace(model, **{name: given[name] for name in given.keys() & known})
