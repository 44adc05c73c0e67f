"""Rows of LETOR text, parsed line by line: the definition of the format.

A row is `<grade> qid:<id> <index>:<value> … # comment`. `parse_line` returns the values of a line, or raises with what
is wrong with it.
"""

import re
from dataclasses import dataclass

import numpy as np
import polars as pl

from cuolr.types import Doubles, Floats, Ints

MAX_PROBLEMS = 20  # reported per file
MAX_GRADE = 30  # gains are 2^grade − 1
MAX_FEATURES = 1_000_000
# Rows are stored dense. If that takes this many times the size of the text, an index is wrong or the data too sparse.
MAX_GROWTH, FREE_BYTES = 100, 1 << 30
# Some exports write the largest double, 1.7976931348623157e+308, instead of NULL, with varying digits.
MISSING_MARK = 1.7976e308

# From here on a double rounds to infinity in float32: half a step above the largest float32.
_LARGEST = (2 - 2**-24) * 2.0**127
_NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
BLANKS_TO_SPACE = bytes.maketrans(b"\t\r", b"  ")


@dataclass(frozen=True)
class RowLayout:
    """How the rows of a file are written.

    Attributes:
        first_index: The index of the first feature, 1 or 0.
        has_query: Whether each row has a `qid` field.
        n_features: The number of features, if known; a higher index is then an error.
    """

    first_index: int = 1
    has_query: bool = True
    n_features: int | None = None


@dataclass(frozen=True)
class Block:
    """Consecutive rows of a file.

    Attributes:
        features: [n, F] float32; NaN = missing (`NULL`).
        grades: [n].
        queries: [n] query id of each row; null if rows have none.
        comments: [n] the text after `#`, or empty; None if no row has a comment.
        dense: Whether each row lists all features from the first to the last.
    """

    features: Floats
    grades: Ints
    queries: pl.Series
    comments: pl.Series | None
    dense: bool


class BadLineError(ValueError):
    """A line that does not follow the format."""


@dataclass(frozen=True)
class Line:
    """One row: its grade, query (empty if rows have none), features and comment."""

    grade: int
    query: str
    indices: list[int]
    values: list[float]
    comment: str


def parse_line(line: bytes, layout: RowLayout) -> Line | None:
    """Parse one line by the definition of the format; None if it has no row; raises `BadLineError`."""
    if b"\0" in line:
        raise BadLineError("expected text, found a NUL character")
    body, _, comment = line.translate(BLANKS_TO_SPACE).partition(b"#")
    fields = [field for field in body.split(b" ") if field]
    if not fields:
        return None
    grade = parse_grade(fields[0])
    query = _parse_query(fields[1] if len(fields) > 1 else b"") if layout.has_query else ""
    indices: list[int] = []
    values: list[float] = []
    for field in fields[2 if layout.has_query else 1 :]:
        index, value = _parse_feature(field, layout)
        if indices and index <= indices[-1]:
            problem = "twice" if index == indices[-1] else f"after feature {indices[-1]}"
            raise BadLineError(f"expected feature indices in ascending order, found feature {index} {problem}")
        indices.append(index)
        values.append(value)
    return Line(grade, query, indices, values, comment.strip(b" ").decode(errors="replace"))


def parse_grade(field: bytes) -> int:
    """The grade that a line starts with."""
    if not _NUMBER.fullmatch(field):
        raise BadLineError(f"expected a grade (a whole number) as field 1, found {_show(field)}")
    grade = float(field)
    if not 0 <= grade <= MAX_GRADE or grade != int(grade):
        raise BadLineError(f"expected a grade that is a whole number from 0 to {MAX_GRADE}, found {_show(field)}")
    return int(grade)


def _parse_query(field: bytes) -> str:
    if not field.startswith(b"qid:") or len(field) == 4:
        raise BadLineError(f"expected 'qid:<id>' as field 2, found {_show(field) if field else 'the end of the line'}")
    try:
        return field[4:].decode()
    except UnicodeDecodeError:
        raise BadLineError(f"expected a query id in UTF-8, found {_show(field)}") from None


def _parse_feature(field: bytes, layout: RowLayout) -> tuple[int, float]:
    """Index and value of `index:value`; a value of NULL is NaN."""
    index_text, colon, value_text = field.partition(b":")
    if not colon or not re.fullmatch(rb"\d{1,9}", index_text):
        raise BadLineError(f"expected '<index>:<value>', found {_show(field)}")
    index = int(index_text)
    last = layout.first_index + (layout.n_features or MAX_FEATURES) - 1
    if not layout.first_index <= index <= last:
        hint = "; if indices start at 0, use --zero-based (zero_based=True in Python)" if index == 0 else ""
        raise BadLineError(f"expected a feature index from {layout.first_index} to {last}, found {index}{hint}")
    if value_text == b"NULL":
        return index, np.nan
    if not _NUMBER.fullmatch(value_text):
        raise BadLineError(f"expected a number as the value of feature {index}, found {_show(value_text)}")
    value = float(value_text)
    if abs(value) < _LARGEST:
        return index, value
    if MISSING_MARK <= abs(value) < np.inf:
        return index, np.nan
    raise BadLineError(f"expected a value that fits 32 bits for feature {index}, found {_show(value_text)}")


def _show(field: bytes) -> str:
    text = field.decode(errors="backslashreplace")
    return repr(text if len(text) <= 40 else text[:37] + "...")


def parse_lines(text: bytes, layout: RowLayout) -> tuple[Block, list[tuple[int, str]]]:
    """Parse a block line by line.

    Returns:
        The valid rows, and the problems of the others as (line number within the block from 0, problem).
    """
    rows: list[Line] = []
    problems: list[tuple[int, str]] = []
    for number, line in enumerate(text.split(b"\n")):
        try:
            row = parse_line(line, layout)
        except BadLineError as problem:
            problems.append((number, str(problem)))
            continue
        if row is not None:
            rows.append(row)
    widest = max((row.indices[-1] for row in rows if row.indices), default=0)
    if not fits_memory(len(rows), widest, len(text)):
        problems.append((_line_of_index(text, widest), f"feature index {widest} is too large for memory"))
        rows = []
    row_of_value = np.repeat(np.arange(len(rows)), [len(row.indices) for row in rows])
    indices = np.array([index for row in rows for index in row.indices], np.int64)
    values = np.array([value for row in rows for value in row.values], np.float64)
    features, dense = scatter(row_of_value, indices - layout.first_index, values, len(rows))
    comments = pl.Series([row.comment for row in rows], dtype=pl.String)
    block = Block(
        features=features,
        grades=np.array([row.grade for row in rows], np.int64),
        queries=pl.Series([row.query if layout.has_query else None for row in rows], dtype=pl.String),
        comments=comments if (comments != "").any() else None,
        dense=dense,
    )
    return block, problems


def fits_memory(n_rows: int, width: int, text_bytes: int) -> bool:
    """Whether the size of dense rows of that width is plausible for the size of their text."""
    return 4 * n_rows * width <= max(FREE_BYTES, MAX_GROWTH * text_bytes)


def _line_of_index(text: bytes, index: int) -> int:
    """The line, from 0, that first names a feature."""
    return text.count(b"\n", 0, text.find(f" {index}:".encode()))


def scatter(row: Ints, column: Ints, values: Doubles, n_rows: int) -> tuple[Floats, bool]:
    """[n_rows, F] with each value in its place and 0 elsewhere, and whether every value is given."""
    features = np.zeros((n_rows, int(column.max(initial=-1)) + 1), np.float32)
    features[row, column] = narrowed(values)
    return features, len(values) == features.size


def narrowed(values: Doubles) -> Floats:
    """The values as float32 in row order, with NaN for marks of missing values; too large values become infinite."""
    with np.errstate(over="ignore"):
        narrow = values.astype(np.float32, order="C")
    if np.isinf(narrow).any():
        narrow[(np.abs(values) >= MISSING_MARK) & np.isfinite(values)] = np.nan
    return narrow
