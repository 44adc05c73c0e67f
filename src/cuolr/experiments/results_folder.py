"""The folder of an experiment's results. A run can be stopped and resumed at any moment.

experiment.json      the experiment as it was run last, its data, and the name of each of its cells
cells/<name>.json    a finished cell
failed/<name>.json   a cell that failed, with the error
results.parquet      earlier results, packed into one file; a file of the same name in `cells` takes precedence

A name ends in a fingerprint of everything that affects the result, so that results of another configuration are
recognised. They stay in the folder as stale results, and are not shown.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path

from cuolr.errors import InputError
from cuolr.experiments.packed_results import SUFFIX, read_packed
from cuolr.experiments.results import (
    FORMAT,
    FORMATS,
    CellResult,
    Description,
    Results,
    cell_from,
    checked,
    damage_in,
    description_from,
    read_hashed,
    result_from_json,
    result_to_json,
    write_hashed,
)
from cuolr.experiments.spec import Cell
from cuolr.files import part_of
from cuolr.output_lock import UNFINISHED

DESCRIPTION = "experiment.json"
PACKED = f"results{SUFFIX}"


@dataclass(frozen=True)
class ResultsFolder:
    """A folder that results are written to."""

    path: Path

    @cached_property
    def _packed(self) -> Results | None:
        return read_packed(file) if (file := part_of(self.path, PACKED)).is_file() else None

    @cached_property
    def _packed_results(self) -> Mapping[str, CellResult]:
        packed = self._packed
        return {} if packed is None else {packed.description.names[c]: result for c, result in packed.cells.items()}

    @cached_property
    def _packed_errors(self) -> Mapping[str, str]:
        packed = self._packed
        return {} if packed is None else {packed.description.names[c]: error for c, error in packed.failed.items()}

    def check(self) -> None:
        """Raise if the folder has files but no results."""
        if self.path.exists() and not self.path.is_dir():
            raise InputError(f"{self.path}: expected a folder for the results, found a file; choose another path")
        if not self.path.exists() or any((self.path / own).is_file() for own in (DESCRIPTION, PACKED)):
            return
        # A run that was killed at once may have left an unfinished description.
        if {file.name for file in self.path.iterdir()} - {file.name for file in self.path.glob(UNFINISHED)}:
            raise InputError(f"{self.path}: not a folder of results: it has no {DESCRIPTION}; choose another path")

    def start(self, description: Description) -> None:
        """Create the folder and write the description of a run."""
        self.check()
        self.path.mkdir(parents=True, exist_ok=True)
        cells = [{**asdict(cell), "name": name} for cell, name in description.names.items()]
        write_hashed(self.path / DESCRIPTION, {**description.as_dict(), "cells": cells})

    def result(self, name: str) -> CellResult | None:
        """The result of that name, or None. A damaged one counts as missing, so that the cell is run again."""
        try:
            return self._result(name)
        except InputError:
            return None

    def _result(self, name: str) -> CellResult | None:
        file = self._file("cells", name)
        return result_from_json(read_hashed(file, FORMATS), file) if file.is_file() else self._packed_results.get(name)

    def _file(self, kind: str, name: str) -> Path:
        """The file of a cell; a name that would lead out of the folder is refused."""
        file = part_of(part_of(self.path, kind), f"{name}.json")
        if file.name != f"{name}.json":
            raise InputError(f"{file}: damaged: expected the name of a file in the folder of results")
        return file

    def _error(self, name: str) -> str | None:
        file = self._file("failed", name)
        if not file.is_file():
            return self._packed_errors.get(name)
        return str(read_hashed(file, FORMATS).get("error", "unknown"))

    def is_finished(self, name: str) -> bool:
        """Whether there is a result of that name."""
        return self.result(name) is not None

    def finish(self, name: str, result: CellResult) -> None:
        """Write a result, all or nothing."""
        write_hashed(self.path / "cells" / f"{name}.json", result_to_json(result))
        (self.path / "failed" / f"{name}.json").unlink(missing_ok=True)

    def fail(self, name: str, error: str) -> None:
        """Record that a cell failed."""
        write_hashed(self.path / "failed" / f"{name}.json", {"format": FORMAT, "error": error})

    def stale(self, names: Mapping[Cell, str]) -> int:
        """The number of results in the folder that belong to none of these cells."""
        written = {file.stem for file in (self.path / "cells").glob("*.json")}
        return len((written | self._packed_results.keys()) - set(names.values()))

    def read(self) -> Results:
        """All results of the experiment as it was run last."""
        file = part_of(self.path, DESCRIPTION)
        if not file.is_file():
            if self._packed is not None:
                return self._packed
            found = f"not a folder of results: it has no {DESCRIPTION}" if self.path.is_dir() else "folder not found"
            raise InputError(f"{self.path}: {found}; give the results of an experiment")
        described = read_hashed(file, FORMATS)
        with damage_in(file):
            entries = described["cells"]
            cell_names = [({k: v for k, v in entry.items() if k != "name"}, str(entry["name"])) for entry in entries]
            names = {cell_from(values): name for values, name in cell_names}
        cells, failed, missing = {}, {}, []
        for cell, name in names.items():
            try:
                if (result := self._result(name)) is not None:
                    cells[cell] = result
                elif (error_text := self._error(name)) is not None:
                    failed[cell] = error_text
                else:
                    missing.append(cell)
            except InputError as error:
                failed[cell] = str(error)
        return checked(Results(description_from(described, names, file), cells, failed, tuple(missing)))


def read_results(path: Path) -> Results:
    """The results in a folder, or in a Parquet file of packed results."""
    return read_packed(path) if path.suffix == SUFFIX and not path.is_dir() else ResultsFolder(path).read()
