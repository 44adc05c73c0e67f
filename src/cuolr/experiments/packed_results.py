"""All results of an experiment in one self-contained Parquet file.

There is a row for each cell: its fields, the name of its result, and
    measures     a column for each measure, such as `ndcg@10`: the mean over the queries that count
    per_query    for each query, the values of all measures in the order of their columns, in millionths; null = the
                 query does not count. Storing the values of a query side by side reduces the size by a third.
    validations  the step and the score of each validation
    log, settings, notes   as JSON
    error        why the cell failed
A cell that failed or has not been run has no results. The experiment, its data and versions are in the metadata, and so
is a hash of all bytes of the file, with zeros in place of the hash itself.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from cuolr.data.compressed_files import count_parquet_rows
from cuolr.data.tables import read_errors
from cuolr.errors import InputError, check_format, does_not_match
from cuolr.experiments.results import (
    DIGITS,
    FORMATS,
    CellResult,
    Results,
    cell_from,
    checked,
    damage_in,
    description_from,
)
from cuolr.experiments.spec import Cell
from cuolr.files import atomic_file, content_hash, is_verifying

SUFFIX = ".parquet"
_METADATA = "cuolr"
_CELL = [field.name for field in fields(Cell)]
_SCHEMA: dict[str, Any] = {
    "seconds": pl.Float64,
    "validations": pl.List(pl.Struct({"step": pl.Int64, "score": pl.Float64})),
    "best_step": pl.Int64,
    "steps": pl.Int64,
    "log": pl.String,
    "settings": pl.String,
    "notes": pl.String,
    "per_query": pl.List(pl.List(pl.Int64)),
    "error": pl.String,
}
# One page for each column, so that similar cells are compressed together.
_PAGE_BYTES = 1 << 26
_COMPRESSION_LEVEL = 19
# The hash as it is written in the metadata, in quotes, before it is known.
_OWN_HASH, _ZEROS = "sha256", "0" * 64


def write_packed(results: Results, file: Path) -> None:
    """Write results, all or nothing; an earlier file is replaced."""
    description, measures = results.description, results.experiment.measures
    finished: dict[Cell, dict[str, Any]] = {cell: _row(result, measures) for cell, result in results.cells.items()}
    failed = {cell: {"error": error} for cell, error in results.failed.items()}
    rows = [
        {**asdict(cell), "name": name, **finished.get(cell, failed.get(cell, {}))}
        for cell, name in description.names.items()
    ]
    schema = {
        **{name: pl.String if name in ("method", "logging", "click_model") else pl.Int64 for name in _CELL},
        "name": pl.String,
        **dict.fromkeys(measures, pl.Float64),
        **_SCHEMA,
    }
    with atomic_file(file) as unfinished:
        pl.DataFrame(rows, schema=schema).write_parquet(
            unfinished,
            compression="zstd",
            compression_level=_COMPRESSION_LEVEL,
            data_page_size=_PAGE_BYTES,
            row_group_size=max(len(rows), 1),
            metadata={_METADATA: json.dumps({**description.as_dict(), _OWN_HASH: _ZEROS})},
        )
        content = unfinished.read_bytes()
        unfinished.write_bytes(_with_hash(content, content_hash(content), _ZEROS))


def read_packed(file: Path) -> Results:
    """Read results that `write_packed` wrote; those of an earlier version have no hash."""
    description = _read_metadata(file)
    _check_hash(file, description)
    with damage_in(file), read_errors(file):
        count_parquet_rows(file)
        measures = description["experiment"]["measures"]
        rows = pl.read_parquet(file, glob=False).to_dicts()
        names = {_cell(row): str(row["name"]) for row in rows}
        cells = {_cell(row): _result(row, measures) for row in rows if row["per_query"] is not None}
        failed = {_cell(row): str(row["error"]) for row in rows if row["error"] is not None}
    missing = tuple(cell for cell in names if cell not in cells and cell not in failed)
    return checked(Results(description_from(description, names, file), cells, failed, missing))


def _with_hash(content: bytes, digest: str, earlier: str) -> bytes:
    """The file with another hash: metadata are stored as they are, near the end."""
    before, _, after = content.rpartition(_entry(earlier))
    return before + _entry(digest) + after if before else content


def _entry(digest: str) -> bytes:
    return f'"{_OWN_HASH}": "{digest}"'.encode()


def _check_hash(file: Path, description: Mapping[str, Any]) -> None:
    """Raise if the file does not match its hash; one of an earlier format may have none."""
    digest = description.get(_OWN_HASH)
    if not is_verifying() or (digest is None and not FORMATS[description["format"]]):
        return
    if not isinstance(digest, str) or content_hash(_with_hash(file.read_bytes(), _ZEROS, digest)) != digest:
        raise does_not_match(file)


def _row(result: CellResult, measures: tuple[str, ...]) -> dict[str, Any]:
    # By query, then by measure.
    values = np.array([result.per_query[measure] for measure in measures]).T * 10**DIGITS
    return {
        **{measure: result.measures[measure] for measure in measures},
        "per_query": [[None if np.isnan(v) else round(v) for v in of_query] for of_query in values.tolist()],
        "seconds": result.seconds,
        "validations": [{"step": step, "score": score} for step, score in result.validations.items()],
        "best_step": result.best_step,
        "steps": result.steps,
        **{name: json.dumps(getattr(result, name)) for name in ("log", "settings", "notes")},
    }


def _result(row: Mapping[str, Any], measures: list[str]) -> CellResult:
    per_query = np.array(row["per_query"], np.float64).reshape(-1, len(measures)) / 10**DIGITS
    return CellResult(
        measures={measure: float(row[measure]) for measure in measures},
        per_query={measure: per_query[:, place] for place, measure in enumerate(measures)},
        seconds=float(row["seconds"]),
        validations={entry["step"]: entry["score"] for entry in row["validations"]},
        best_step=int(row["best_step"]),
        steps=int(row["steps"]),
        log=json.loads(row["log"]),
        settings=json.loads(row["settings"]),
        notes=json.loads(row["notes"]),
    )


def _cell(row: Mapping[str, Any]) -> Cell:
    return cell_from({name: row[name] for name in _CELL})


def _read_metadata(file: Path) -> dict[str, Any]:
    try:
        text = pl.read_parquet_metadata(file).get(_METADATA, "{}")
    except FileNotFoundError:
        raise InputError(f"{file}: file not found; give the results of an experiment") from None
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        problem = str(error).partition("\n")[0]
        raise InputError(f"{file}: not a Parquet file of results ({problem})") from None
    with damage_in(file):
        content = json.loads(text)
    found = content.get("format") if isinstance(content, dict) else None
    if found not in list(FORMATS):
        check_format(found, next(iter(FORMATS)), file, "a file of results")
    described: dict[str, Any] = content
    return described
