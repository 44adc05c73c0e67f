"""Examination and continuation by position, and their file, such as `propensity.json` in the folder of a click log.

examination    θ_k, the probability that position k is examined. For `ipw`.
continuation   λ_k, the probability of continuing after a click at position k. For `cm-ipw`.

Neither is a `logging_propensity`, which is the logging policy's probability of placing a document.
"""

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from reprlib import repr as in_short
from typing import Any

import numpy as np

from cuolr.errors import InputError, check_format, problems_in, unreadable
from cuolr.files import atomic_file, part_of, require_file
from cuolr.json_files import MAX_JSON_BYTES, parse_json
from cuolr.logs.log_meta import check_file_beside
from cuolr.types import Doubles

PROPENSITY_FILE = "propensity.json"
FORMAT = "cuolr-propensity-1"
# How continuation was estimated; `given` = values of the user.
METHODS = ("mle", "paper", "given")
LARGEST = sys.float_info.max


@dataclass(frozen=True)
class Estimate:
    """A quantity by position.

    Attributes:
        values: The value at each position, from position 1; None = unknown.
        standard_errors: The standard error of each value; empty if the values were given, not estimated.
    """

    values: tuple[float | None, ...]
    standard_errors: tuple[float | None, ...] = ()


@dataclass(frozen=True)
class Propensities:
    """Examination and continuation by position.

    Attributes:
        examination: θ, of which only the ratios matter; None = unknown.
        continuation: λ by estimation method: `mle`, `paper`, or `given`.
        lists: The number of random lists used for the estimates; 0 if the values were given.
    """

    examination: Estimate | None = None
    continuation: Mapping[str, Estimate] = field(default_factory=dict)
    lists: int = 0


def known_values(estimate: Estimate, positions: int, what: str) -> Doubles:
    """[positions] the values of the first positions, all of which must be known.

    Args:
        estimate: The values by position.
        positions: The number of positions.
        what: The name of the quantity, for the error message.
    """
    values = estimate.values[:positions]
    unknown = [str(position + 1) for position, value in enumerate(values) if value is None]
    unknown += [str(position + 1) for position in range(len(values), positions)]
    if unknown:
        raise InputError(f"{what} is needed for {positions} positions, but unknown for position {', '.join(unknown)}")
    return np.array(values, np.float64)


def save_propensities(propensities: Propensities, path: Path) -> None:
    """Write the estimates as JSON; missing parent folders are created."""

    def table(estimate: Estimate) -> dict[str, Any]:
        return {"values": estimate.values, "standard_errors": estimate.standard_errors}

    content: dict[str, Any] = {"format": FORMAT, "lists": propensities.lists}
    if propensities.examination is not None:
        content["examination"] = table(propensities.examination)
    content["continuation"] = {method: table(estimate) for method, estimate in propensities.continuation.items()}
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(path) as unfinished:
        unfinished.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def propensities_of_log(folder: Path) -> Propensities | None:
    """Those in the folder of a log, compared with their hash if they were written with the log; None if there are none.

    >>> propensities_of_log(Path("NO_LOG")) is None
    True
    """
    file = part_of(folder, PROPENSITY_FILE)
    if not file.is_file():
        return None
    check_file_beside(folder, PROPENSITY_FILE)
    return read_propensities(file)


def read_propensities(path: Path) -> Propensities:
    """Read estimates, or given values: `{"examination": [1, 0.9, 0.7], "continuation": [0.7, 0.6, null]}`."""
    content = _read_json(path)
    if not isinstance(content, dict) or all(content.get(name, {}) == {} for name in ("examination", "continuation")):
        raise InputError(f"{path}: expected an object with 'examination', 'continuation' or both")
    check_format(content.get("format", FORMAT), FORMAT, path, "a file of propensities")
    problems = _unknown_keys("", content, ("format", "lists", "examination", "continuation"))
    continuation = content.get("continuation", {})
    if isinstance(continuation, dict):
        problems += _unknown_keys("continuation.", continuation, METHODS)
        tables = {f"continuation.{method}": (table, 1.0) for method, table in continuation.items()}
    else:
        tables = {"continuation": (continuation, 1.0)}
    if "examination" in content:
        tables["examination"] = (content["examination"], LARGEST)
    estimates = {name: _read_estimate(name, table, top, problems) for name, (table, top) in tables.items()}
    lists = content.get("lists", 0)
    if type(lists) is not int or lists < 0:
        problems.append(f"lists: expected a whole number, found {in_short(lists)}")
    if problems:
        raise InputError([f"{path}: {problem}" for problem in problems])
    examination = estimates.pop("examination", None)
    by_method = {name.partition(".")[2] or "given": estimate for name, estimate in estimates.items()}
    return Propensities(examination, by_method, lists)


def _unknown_keys(where: str, content: Mapping[str, Any], known: tuple[str, ...]) -> list[str]:
    """A message for each unknown key."""
    return [f"unknown key '{where}{key}'; known: {', '.join(known)}" for key in content if key not in known]


def _read_json(path: Path) -> Any:
    if path.exists():
        require_file(path, MAX_JSON_BYTES)
    try:
        content = path.read_bytes()
    except OSError as error:
        expected = "expected a JSON file with examination or continuation by position"
        raise InputError(f"{unreadable(path, error)}; {expected}") from None
    with problems_in(path):
        return parse_json(content)


def _read_estimate(name: str, content: Any, greatest: float, problems: list[str]) -> Estimate:
    """The values by position and their standard errors, if any; adds errors to `problems`."""
    table = content if isinstance(content, dict) else {"values": content}
    problems += _unknown_keys(f"{name}.", table, ("values", "standard_errors"))
    values = _read_numbers(name, table.get("values"), greatest, problems)
    errors = _read_numbers(f"{name}.standard_errors", table.get("standard_errors", []), LARGEST, problems)
    if table.get("values") == []:
        problems.append(f"{name}: expected a number for each position, found none")
    if errors and len(errors) != len(values):
        problems.append(f"{name}.standard_errors: expected {len(values)} numbers, found {len(errors)}")
    return Estimate(values, errors)


def _read_numbers(name: str, content: Any, greatest: float, problems: list[str]) -> tuple[float | None, ...]:
    if not isinstance(content, list):
        problems.append(f"{name}: expected a list of numbers, found {in_short(content)}")
        return ()
    numbers: list[float | None] = []
    for position, value in enumerate(content, start=1):
        is_number = type(value) in (int, float) and 0 <= value <= greatest
        if value is not None and not is_number:
            limit = "up" if greatest == LARGEST else f"to {greatest:g}"
            problems.append(f"{name}, position {position}: expected a number from 0 {limit}, found {in_short(value)}")
        numbers.append(float(value) if is_number else None)
    return tuple(numbers)
