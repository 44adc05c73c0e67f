"""The columns that several logs have in common, and the types that hold the values of all."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cuolr.errors import InputError
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.columns import IDS

# Columns that can be filled in where a log does not have them.
FILLED = (*IDS, "page_position")


def common_columns(examples: Sequence[ClickLog]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The columns of the merged log, and those that some logs lack."""
    names = dict.fromkeys(name for example in examples for name in example.columns)
    common = [name for name in names if name in FILLED or all(name in example.columns for example in examples)]
    return tuple(common), tuple(name for name in names if name not in common)


def common_types(
    paths: Sequence[Path], examples: Sequence[ClickLog], columns: Sequence[str]
) -> dict[str, np.dtype[Any]]:
    """A type for the numbers of each column with one value for a session; raises if some are texts in other logs."""
    types: dict[str, np.dtype[Any]] = {}
    for name in columns:
        found = {path: log.columns[name] for path, log in zip(paths, examples, strict=True) if name in log.columns}
        texts = [path for path, values in found.items() if values.dtype.kind == "U"]
        if texts and len(texts) < len(found):
            other = next(path for path in found if path not in texts)
            raise InputError(
                f"column '{name}': expected numbers or texts in all logs; {texts[0]} has texts, {other} not"
            )
        if not texts and next(iter(found.values())).ndim == 1 and name != "query":
            types[name] = np.result_type(*found.values())
    if "timestamp" in types and types["timestamp"].kind == "M":
        types["timestamp"] = np.dtype("datetime64[us]")
    return types
