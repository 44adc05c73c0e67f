"""The file that says how users look at positions: `propensity.json` in the folder of a click log, or one's own.

Two quantities, by position:

examination    θ_k, the chance that position k is looked at. For `ipw`.
continuation   λ_k, the chance to look further after a click at position k. For `cm-ipw`.

Neither is a `logging_propensity`, which is the logger's chance to place a document.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from cuolr.errors import InputError
from cuolr.files import atomic_file

PROPENSITY_FILE = "propensity.json"
FORMAT = "cuolr-propensity-1"


@dataclass(frozen=True)
class Estimate:
    """A quantity by position.

    Attributes:
        values: From position 1 on; None = not known.
        standard_errors: Of the same length; empty where the values were given, not estimated.
    """

    values: tuple[float | None, ...]
    standard_errors: tuple[float | None, ...] = ()


@dataclass(frozen=True)
class Propensities:
    """What is known of how users look at positions.

    Attributes:
        examination: θ, of which only the ratios count; None = not known.
        continuation: λ by the method that it was estimated with: `mle`, `paper`, or `given`.
        lists: The number of random lists behind it; 0 where the values were given.
    """

    examination: Estimate | None = None
    continuation: Mapping[str, Estimate] = field(default_factory=dict)
    lists: int = 0


def save_propensities(propensities: Propensities, path: Path) -> None:
    """Write the estimates as JSON."""

    def table(estimate: Estimate) -> dict[str, Any]:
        return {"values": estimate.values, "standard_errors": estimate.standard_errors}

    content: dict[str, Any] = {"format": FORMAT, "lists": propensities.lists}
    if propensities.examination is not None:
        content["examination"] = table(propensities.examination)
    content["continuation"] = {method: table(estimate) for method, estimate in propensities.continuation.items()}
    with atomic_file(path) as unfinished:
        unfinished.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def read_propensities(path: Path) -> Propensities:
    """Read estimates, or values of one's own: `{"examination": [1, 0.9, 0.7], "continuation": [0.7, 0.6, null]}`."""
    try:
        content = json.loads(path.read_bytes())
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); expected examination by position") from None
    except ValueError as error:
        raise InputError(f"{path}: not valid JSON: {error}") from None
    if not isinstance(content, dict) or not content.keys() & {"examination", "continuation"}:
        raise InputError(f"{path}: expected an object with 'examination', 'continuation' or both")
    if content.get("format", FORMAT) != FORMAT:
        raise InputError(f"{path}: expected format '{FORMAT}', found {content['format']!r}")
    reader = _Reader(path)
    examination = None
    if "examination" in content:
        examination = reader.estimate("examination", content["examination"], np.inf)
        if examination.values[:1] and not examination.values[0]:
            reader.problems.append(f"examination, position 1: expected a number above 0, found {examination.values[0]}")
    continuation = content.get("continuation", {})
    if isinstance(continuation, list):
        continuation = {"given": continuation}
    if not isinstance(continuation, dict):
        reader.problems.append(f"continuation: expected a list of numbers, found {continuation!r}")
        continuation = {}
    by_method = {name: reader.estimate(f"continuation.{name}", value, 1) for name, value in continuation.items()}
    lists = content.get("lists", 0)
    if type(lists) is not int or lists < 0:
        reader.problems.append(f"lists: expected a whole number, found {lists!r}")
    if reader.problems:
        raise InputError([f"{path}: {problem}" for problem in reader.problems])
    return Propensities(examination, by_method, lists)


@dataclass
class _Reader:
    """Checks values by position, and collects all that is wrong."""

    path: Path
    problems: list[str] = field(default_factory=list)

    def estimate(self, name: str, content: Any, greatest: float) -> Estimate:
        table = content if isinstance(content, dict) else {"values": content}
        values = self._numbers(name, table.get("values"), greatest)
        errors = self._numbers(f"{name}.standard_errors", table.get("standard_errors") or [], np.inf)
        if not values:
            self.problems.append(f"{name}: expected a list of numbers by position, found none")
        if errors and len(errors) != len(values):
            self.problems.append(f"{name}.standard_errors: expected {len(values)} numbers, found {len(errors)}")
        return Estimate(values, errors)

    def _numbers(self, name: str, content: Any, greatest: float) -> tuple[float | None, ...]:
        if not isinstance(content, Sequence) or isinstance(content, str):
            return ()
        expected = "a number from 0 up" if np.isinf(greatest) else f"a number from 0 to {greatest:g}"
        for position, value in enumerate(content, start=1):
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            if value is not None and not (is_number and 0 <= value <= greatest and np.isfinite(value)):
                self.problems.append(f"{name}, position {position}: expected {expected}, found {value!r}")
        return tuple(None if value is None or isinstance(value, str) else float(value) for value in content)
