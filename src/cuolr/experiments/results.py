"""The folder of an experiment's results: a file per finished cell, so that a run can stop and go on at any moment.

experiment.json      the experiment as it was run last, its data, and the file of each of its cells
cells/<name>.json    a finished cell: its measures, a value per query, how it was trained
failed/<name>.json   a cell that failed, with the error

A file's name ends in a fingerprint of all that decides the numbers in it, so results of another configuration are
never taken for these; they stay where they are, and are not shown.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cuolr.config import to_dict
from cuolr.errors import InputError
from cuolr.experiments.spec import Cell, Experiment
from cuolr.experiments.spec_file import parse_experiment
from cuolr.files import UNFINISHED, atomic_file
from cuolr.types import Doubles

FORMAT = "cuolr-results-1"
# Every folder of results has it; a folder with other files and without it is not written to.
DESCRIPTION = "experiment.json"
DIGITS = 6
# Of a file's name, which with all that is added to it may have 255 characters.
MAX_READABLE = 200


@dataclass(frozen=True)
class CellResult:
    """What came of a cell.

    Attributes:
        measures: Their means over the queries that count.
        per_query: [n_queries] by measure, in the order of the data; NaN for queries that do not count.
        seconds: Of training.
        validations: The score at each step that was validated; none for a yardstick.
        best_step: The step whose policy was measured; 0 for a yardstick.
        steps: Made in all.
        log: What the log was like: `sessions`, `rows`, `click_rate` by position; empty for a yardstick.
        settings: Of the learner and its training.
        notes: Other things worth knowing, by name.
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


@dataclass(frozen=True)
class Results:
    """All that is in a folder of results.

    Attributes:
        experiment: As it was run last.
        data: Its `name`, `paper_name` and number of queries.
        versions: Of what it was run with, and on what machine.
        cells: The finished ones.
        failed: The error of those that failed, or whose file is damaged.
        missing: Those still to be run.
    """

    experiment: Experiment
    data: Mapping[str, Any]
    versions: Mapping[str, str]
    cells: Mapping[Cell, CellResult]
    failed: Mapping[Cell, str]
    missing: tuple[Cell, ...]


@dataclass(frozen=True)
class ResultsFolder:
    """Where results go."""

    path: Path

    def check(self) -> None:
        """Refuse a place that is somebody else's."""
        if self.path.exists() and not self.path.is_dir():
            raise InputError(f"{self.path}: expected a folder for the results, found a file; give another path")
        if not self.path.exists() or (self.path / DESCRIPTION).is_file():
            return
        # A run that was killed at once may have left a description that has no name yet.
        if {file.name for file in self.path.iterdir()} - {file.name for file in self.path.glob(UNFINISHED)}:
            raise InputError(f"{self.path}: has no {DESCRIPTION}, so it is not a folder of results; give another path")

    def start(
        self, experiment: Experiment, data: Mapping[str, Any], versions: Mapping[str, str], names: Mapping[Cell, str]
    ) -> None:
        """Write down what is run; `names` has the file name of each of its cells."""
        self.check()
        self.path.mkdir(parents=True, exist_ok=True)
        described = {
            "format": FORMAT,
            "experiment": to_dict(experiment),
            "data": dict(data),
            "versions": dict(versions),
            "cells": [{**asdict(cell), "file": name} for cell, name in names.items()],
        }
        _write(self.path / DESCRIPTION, described)
        for folder in ("cells", "failed"):
            (self.path / folder).mkdir(exist_ok=True)

    def result(self, name: str) -> CellResult | None:
        """The result of that name; a damaged one is none, so that the cell is run again."""
        file = self.path / "cells" / f"{name}.json"
        try:
            return _read_result(file) if file.is_file() else None
        except InputError:
            return None

    def is_finished(self, name: str) -> bool:
        """Whether there is a result of that name."""
        return self.result(name) is not None

    def finish(self, name: str, result: CellResult) -> None:
        """Write a result, whole or not at all."""
        per_query = {measure: [_number(v) for v in values] for measure, values in result.per_query.items()}
        _write(self.path / "cells" / f"{name}.json", {"format": FORMAT, **asdict(result), "per_query": per_query})
        (self.path / "failed" / f"{name}.json").unlink(missing_ok=True)

    def fail(self, name: str, error: str) -> None:
        """Write down that a cell failed."""
        _write(self.path / "failed" / f"{name}.json", {"format": FORMAT, "error": error})

    def strangers(self, names: Mapping[Cell, str]) -> int:
        """How many results of another configuration there are."""
        known = set(names.values())
        return sum(file.stem not in known for file in (self.path / "cells").glob("*.json"))


def read_results(path: Path) -> Results:
    """All results in a folder, of the configuration that was run last."""
    described = _read(path / DESCRIPTION)
    with _damage_in(path / DESCRIPTION):
        names = {_cell_from(entry): str(entry["file"]) for entry in described["cells"]}
        data, versions, table = described["data"], described["versions"], described["experiment"]
        if "name" not in data or not isinstance(table, dict):
            raise ValueError("no name of the data, or no experiment")
    cells, failed, missing = {}, {}, []
    for cell, name in names.items():
        if (file := path / "cells" / f"{name}.json").is_file():
            try:
                cells[cell] = _read_result(file)
            except InputError as error:
                failed[cell] = str(error)
        elif (file := path / "failed" / f"{name}.json").is_file():
            failed[cell] = str(_read(file).get("error", "unknown"))
        else:
            missing.append(cell)
    experiment = parse_experiment(table, str(path / DESCRIPTION))
    return Results(experiment, data, versions, cells, failed, tuple(missing))


def name_of(cell: Cell, decisive: Mapping[str, Any]) -> str:
    """The name of a cell's file: readable, and different where anything that decides its numbers differs."""
    fingerprint = hashlib.sha256(json.dumps(decisive, sort_keys=True).encode()).hexdigest()[:12]
    readable = re.sub(r"[^a-z0-9.+-]+", "-", str(cell).lower()).strip("-")
    return f"{readable[:MAX_READABLE]}-{fingerprint}"


def _cell_from(entry: Mapping[str, Any]) -> Cell:
    return Cell(**{name: value for name, value in entry.items() if name != "file"})


def _read_result(file: Path) -> CellResult:
    content = _read(file)
    with _damage_in(file):
        result = CellResult(
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
        if result.measures.keys() != result.per_query.keys() or len({len(v) for v in result.per_query.values()}) != 1:
            raise ValueError("expected a mean, and a value per query, of each measure")
    return result


@contextmanager
def _damage_in(file: Path) -> Iterator[None]:
    """Say that a file is damaged where its content is not what was written."""
    try:
        yield
    except InputError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        problem = f"{type(error).__name__}: {error}"
        raise InputError(f"{file}: damaged ({problem}); run the experiment again, with the same command") from None


def _number(value: float) -> float | None:
    """A value in JSON, which has no NaN."""
    return None if np.isnan(value) else round(float(value), DIGITS)


def _write(path: Path, content: Mapping[str, Any]) -> None:
    with atomic_file(path) as unfinished:
        unfinished.write_text(json.dumps(content) + "\n", encoding="utf-8")


def _read(path: Path) -> dict[str, Any]:
    try:
        text = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); expected the results of an experiment") from None
    with _damage_in(path):
        content = json.loads(text)
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise InputError(f"{path}: expected a file in the format '{FORMAT}'; give another folder")
    return content
