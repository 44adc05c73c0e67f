"""The results of an experiment: the measures of each cell, and the description of the experiment."""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from cuolr.config import to_dict
from cuolr.errors import InputError, check_format, does_not_match, problems_in
from cuolr.experiments.spec import Cell, Experiment, self_contained
from cuolr.experiments.spec_file import parse_saved_experiment
from cuolr.files import atomic_file, content_hash, is_verifying
from cuolr.json_files import Shape, check_shape, read_json
from cuolr.types import Doubles

FORMAT = "cuolr-results-3"
# The formats that are read, and whether each must have a hash.
FORMATS = {FORMAT: True, "cuolr-results-2": False}
# Decimal places of values per query.
DIGITS = 6
# Numbers of a result, with which reports compute.
LARGEST = 1e15
# What reports show of the data, beside the number of queries by part.
DATA: Shape = {"name": str, "paper_name": str, "command": str}
# Characters of the readable part of a cell's name; a file name may have 255 in all.
MAX_READABLE = 200


@dataclass(frozen=True)
class CellResult:
    """The result of a cell.

    Attributes:
        measures: Means over the queries that count.
        per_query: [n_queries] by measure, in the order of the data; NaN = the query does not count.
        seconds: Training time.
        validations: The score at each validated step; empty for a reference ranker.
        best_step: The step whose policy was measured; 0 for a reference ranker.
        steps: Number of steps taken.
        log: Statistics of the log: `sessions`, `rows`, `click_rate` by position; empty for a reference ranker.
        settings: Settings of the learner and of the training.
        notes: Other facts, by name.
    """

    measures: Mapping[str, float]
    per_query: Mapping[str, Doubles]
    seconds: float
    validations: Mapping[int, float]
    best_step: int
    steps: int
    log: Mapping[str, Any]
    settings: Mapping[str, Any]
    notes: Mapping[str, Any]

    def __post_init__(self) -> None:
        lengths = {len(values) for values in self.per_query.values()}
        if self.measures.keys() != self.per_query.keys() or len(lengths) != 1:
            raise ValueError("expected a mean, and a value per query, of each measure")
        whole = all(abs(number) <= LARGEST for number in (self.seconds, self.best_step, self.steps))
        scores: list[Any] = [
            *self.validations.values(),
            *self.measures.values(),
            *self.per_query.values(),
        ]  # NaN = none
        if not whole or any((np.abs(values) > LARGEST).any() for values in scores):
            raise ValueError(f"expected numbers up to {LARGEST:.0e}")


@dataclass(frozen=True)
class Description:
    """What was run.

    Attributes:
        experiment: As it was run last.
        data: `name`, `paper_name`, `folds`, number of `queries`, `digests` by fold, the `command` that was typed.
        versions: Versions of packages, and the machine.
        names: The name of each cell's result; see `name_of`.
    """

    experiment: Experiment
    data: Mapping[str, Any]
    versions: Mapping[str, str]
    names: Mapping[Cell, str]

    def as_dict(self) -> dict[str, Any]:
        """Everything except the names, in JSON types."""
        experiment = to_dict(self_contained(self.experiment))
        return {"format": FORMAT, "experiment": experiment, "data": dict(self.data), "versions": dict(self.versions)}


@dataclass(frozen=True)
class Results:
    """Saved results.

    Attributes:
        description: What was run.
        cells: The cells that finished.
        failed: The error of each cell that failed, or whose file is damaged.
        missing: The cells that have not been run.
    """

    description: Description
    cells: Mapping[Cell, CellResult]
    failed: Mapping[Cell, str]
    missing: tuple[Cell, ...]

    @property
    def experiment(self) -> Experiment:
        """As it was run last."""
        return self.description.experiment

    @property
    def data(self) -> Mapping[str, Any]:
        """See `Description`."""
        return self.description.data

    @property
    def versions(self) -> Mapping[str, str]:
        """See `Description`."""
        return self.description.versions

    @property
    def planned(self) -> tuple[Cell, ...]:
        """All cells: finished, failed and missing."""
        return (*self.cells, *self.failed, *self.missing)


def description_from(content: Mapping[str, Any], names: Mapping[Cell, str], file: Path) -> Description:
    """Parse and check what `Description.as_dict` returns.

    Args:
        content: The saved description.
        names: See `Description`.
        file: Its file, for messages.
    """
    with damage_in(file), problems_in(file):
        data, versions, table = content["data"], content["versions"], content["experiment"]
        if "name" not in data or not isinstance(table, dict):
            raise ValueError("no name of the data, or no experiment")
        check_shape(data, DATA, "data")
        check_shape(data, {"queries": dict.fromkeys(data["queries"], int)} if data.get("queries") else {}, "data")
        check_shape(versions, {}, "versions")
    return Description(parse_saved_experiment(table, str(file)), data, versions, names)


def checked(results: Results) -> Results:
    """The results, those cells of which that cannot be compared with the others count as failed."""
    measures = results.experiment.measures
    queries: dict[int, int] = {}
    problems = {}
    for cell, result in results.cells.items():
        number = len(next(iter(result.per_query.values())))
        if missing := [measure for measure in measures if measure not in result.measures]:
            problems[cell] = f"damaged: has no {', '.join(missing)}; run the same experiment command again"
        elif queries.setdefault(cell.fold, number) != number:
            problems[cell] = f"damaged: has {number} queries, and others of its fold have {queries[cell.fold]}"
    kept = {cell: result for cell, result in results.cells.items() if cell not in problems}
    return replace(results, cells=kept, failed={**results.failed, **problems}) if problems else results


def cell_from(values: Mapping[str, Any]) -> Cell:
    """A saved cell; raises `TypeError` for other fields, or values of another type."""
    cell = Cell(**values)
    for field in fields(cell):
        expected, value = (int if type(field.default) is int else str), getattr(cell, field.name)
        if type(value) is not expected:
            raise TypeError(f"{field.name}: expected {expected.__name__}, found {type(value).__name__}")
    return cell


def name_of(cell: Cell, decisive: Mapping[str, Any]) -> str:
    """The name of a cell's result: the cell in words, and a fingerprint of everything that affects its result."""
    fingerprint = content_hash(decisive)[:12]
    readable = re.sub(r"[^a-z0-9.+-]+", "-", str(cell).lower()).strip("-")
    return f"{readable[:MAX_READABLE]}-{fingerprint}"


def result_to_json(result: CellResult) -> dict[str, Any]:
    """A result in JSON types, with null for NaN."""
    per_query = {
        measure: [None if np.isnan(value) else round(float(value), DIGITS) for value in values]
        for measure, values in result.per_query.items()
    }
    return {"format": FORMAT, **asdict(result), "per_query": per_query}


def result_from_json(content: Mapping[str, Any], file: Path) -> CellResult:
    """Parse and check what `result_to_json` returns; `file` is for messages."""
    with damage_in(file):
        return CellResult(
            measures={measure: float(value) for measure, value in content["measures"].items()},
            per_query={measure: np.array(values, np.float64) for measure, values in content["per_query"].items()},
            seconds=float(content["seconds"]),
            validations={int(step): float(score) for step, score in content["validations"].items()},
            best_step=int(content["best_step"]),
            steps=int(content["steps"]),
            log=content["log"],
            settings=content["settings"],
            notes=content["notes"],
        )


@contextmanager
def damage_in(file: Path) -> Iterator[None]:
    """Report a file as damaged if its content is invalid."""
    try:
        yield
    except InputError:
        raise
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        problem = f"{type(error).__name__}: {error}"
        raise InputError(f"{file}: damaged ({problem}); run the same experiment command again") from None


OWN_HASH = "sha256"


def write_hashed(path: Path, content: Mapping[str, Any]) -> None:
    """Write an object with its hash, all or nothing."""
    with atomic_file(path) as unfinished:
        hashed = {**content, OWN_HASH: content_hash(content)}
        unfinished.write_text(json.dumps(hashed) + "\n", encoding="utf-8")


def read_hashed(path: Path, formats: Mapping[str, bool]) -> dict[str, Any]:
    """Read what `write_hashed` wrote, and compare it with its hash.

    Args:
        path: The file.
        formats: The formats that are read, the present one first, and whether each must have a hash: files from before
            there was one have none.
    """
    content = read_json(path)
    found = content.get("format") if isinstance(content, dict) else None
    if found not in list(formats):
        check_format(found, next(iter(formats)), path, "a file of results")
    assert isinstance(content, dict)
    digest = content.pop(OWN_HASH, None)
    if is_verifying() and (digest is not None or formats[content["format"]]) and digest != content_hash(content):
        raise does_not_match(path)
    return content
