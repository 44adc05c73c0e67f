"""Rows of LETOR text to arrays: one careful parser, and two fast ones that must agree with it or decline.

A row is `<grade> qid:<id> <index>:<value> … # comment`. `parse_line` is the definition of the format: it reads one
line and either returns its values or says what is wrong with it. `parse_dense` and `parse_sparse` read a whole block
at once; where anything at all is unusual they return None and the block is read line by line.
"""

import io
import re
from dataclasses import dataclass

import numpy as np
import polars as pl

from cuolr.types import Doubles, Floats, Ints

MAX_GRADE = 30  # gains are 2^grade − 1
MAX_FEATURES = 1_000_000
# Rows are stored dense. Where that takes so many times their text, an index is wrong, or the data not for dense rows.
MAX_GROWTH, FREE_BYTES = 100, 1 << 30
# Exports that know no NULL write the largest double, 1.7976931348623157e+308, with however many digits.
MISSING_MARK = 1.7976e308

# From here on a double rounds to an infinite float32: half a step above the largest one.
_LARGEST = (2 - 2**-24) * 2.0**127
_NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_GRADE_AND_QUERY = re.compile(rb"(?m)^([^ \n]+) qid:([^ \n]+)[ \n]")
_GRADE = re.compile(rb"(?m)^([^ \n]+)()[ \n]")
_NOT_SEPARATORS = bytes(set(range(256)) - set(b" :\n"))
_BLANKS_TO_SPACE = bytes.maketrans(b"\t\r", b"  ")
_COLON_TO_SPACE = bytes.maketrans(b":", b" ")


@dataclass(frozen=True)
class RowLayout:
    """How the rows of a file are written.

    Attributes:
        first_index: The index of the first feature, 1 or 0.
        has_query: Whether each row has a `qid` field.
        n_features: The number of features where it is known beforehand; a higher index is an error.
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
        queries: [n] query id of each row; null where rows have none.
        comments: [n] what follows `#`, empty where nothing does; None where no row has a comment.
        dense: Whether each row names all features from the first to the last.
    """

    features: Floats
    grades: Ints
    queries: pl.Series
    comments: pl.Series | None
    dense: bool


class BadLineError(ValueError):
    """What is wrong with a line."""


@dataclass(frozen=True)
class Line:
    """One row: its grade, query (empty where rows have none), features and comment."""

    grade: int
    query: str
    indices: list[int]
    values: list[float]
    comment: str


def parse_line(line: bytes, layout: RowLayout) -> Line | None:
    """Read one line by the definition of the format; None where it holds no row; raises `BadLineError`."""
    if b"\0" in line:
        raise BadLineError("expected text, found a NUL character")
    body, _, comment = line.translate(_BLANKS_TO_SPACE).partition(b"#")
    fields = [field for field in body.split(b" ") if field]
    if not fields:
        return None
    grade = _parse_grade(fields[0])
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


def _parse_grade(field: bytes) -> int:
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
        hint = "; is the file 0-based?" if index == 0 else ""
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
    """Read a block line by line.

    Returns:
        The rows that are right, and the problems of the others as (line number within the block from 0, problem).
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
        problems.append((_line_of_index(text, widest), f"expected fewer features than memory can hold, found {widest}"))
        rows = []
    row_of_value = np.repeat(np.arange(len(rows)), [len(row.indices) for row in rows])
    indices = np.array([index for row in rows for index in row.indices], np.int64)
    values = np.array([value for row in rows for value in row.values], np.float64)
    features, dense = _scatter(row_of_value, indices - layout.first_index, values, len(rows))
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
    """Whether rows of that width, stored dense, are of a size that their text makes plausible."""
    return 4 * n_rows * width <= max(FREE_BYTES, MAX_GROWTH * text_bytes)


def _line_of_index(text: bytes, index: int) -> int:
    """The line, from 0, that first names a feature."""
    return text.count(b"\n", 0, text.find(f" {index}:".encode()))


def parse_block(text: bytes, layout: RowLayout) -> tuple[Block, list[tuple[int, str]]]:
    """Read whole lines by the fastest parser that takes them; returns as `parse_lines`."""
    if b"\0" in text:
        return parse_lines(text, layout)
    plain = text.endswith(b"\n") and not any(mark in text for mark in (b"#", b"\r", b"\t"))
    rows, comments = (text, None) if plain else _strip(text)
    block = parse_dense(rows, comments, layout)
    if block is None:
        rows, comments = _strip(text)
        while b"  " in rows:
            rows = rows.replace(b"  ", b" ")
        block = parse_dense(rows, comments, layout) or parse_sparse(rows, comments, layout)
    return (block, []) if block is not None else parse_lines(text, layout)


def parse_dense(rows: bytes, comments: pl.Series | None, layout: RowLayout) -> Block | None:
    """Read rows that all name the features first, first + 1, …, last.

    Every colon becomes a space, so that one pass of the CSV reader gives each index and each value as a column.
    What that forgets, which separator was where, is checked on its own.
    """
    first_line = rows[: rows.find(b"\n") + 1]
    n_features = first_line.count(b":") - layout.has_query
    n_rows = rows.count(b"\n")
    if not 1 <= n_features <= (layout.n_features or MAX_FEATURES):
        return None
    pairs = n_features + layout.has_query
    if rows.translate(None, _NOT_SEPARATORS) != (b" :" * pairs + b"\n") * n_rows:
        return None
    schema: dict[str, type[pl.DataType]] = {"grade": pl.String}
    if layout.has_query:
        schema |= {"qid": pl.String, "query": pl.String}
    indices = range(layout.first_index, layout.first_index + n_features)
    for index in indices:
        schema |= {f"index {index}": pl.String, f"value {index}": pl.Float64}
    frame = _read_csv(rows.translate(_COLON_TO_SPACE), " ", schema)
    if frame is None:
        return None
    expected = {f"index {index}": str(index) for index in indices} | ({"qid": "qid"} if layout.has_query else {})
    as_expected = (pl.col(name).eq_missing(text).all() for name, text in expected.items())
    if not frame.select(pl.all_horizontal(as_expected)).item():
        return None
    values = frame.select(pl.col(f"value {index}") for index in indices)
    if not _only_null_is_missing(values, rows):
        return None
    queries = frame["query"] if layout.has_query else None
    return _checked_block(_narrowed(values.to_numpy()), frame["grade"], queries, comments, dense=True)


def parse_sparse(rows: bytes, comments: pl.Series | None, layout: RowLayout) -> Block | None:
    """Read rows that leave features out: zeros are not written.

    Grade and query are cut off; what is left is one long column of `index:value`.
    """
    separators = rows.translate(None, _NOT_SEPARATORS)
    ends = np.flatnonzero(np.frombuffer(separators, np.uint8) == ord("\n"))
    separators_of_row = np.diff(ends, prepend=-1) - 1
    sizes = separators_of_row // 2 - layout.has_query
    alternate = separators.replace(b"\n", b"") == b" :" * (int(separators_of_row.sum()) // 2)
    if not alternate or not sizes.size or sizes.min() < 0 or (separators_of_row % 2).any():
        return None
    head_pattern = _GRADE_AND_QUERY if layout.has_query else _GRADE
    heads = head_pattern.findall(rows)
    pairs_text = head_pattern.sub(b"", rows).replace(b" ", b"\n")
    pairs = _read_csv(pairs_text, ":", {"index": pl.Int64, "value": pl.Float64})
    if len(heads) != len(sizes) or pairs is None or len(pairs) != sizes.sum():
        return None
    # The CSV reader takes "+1" and "-0" for an index; the format does not.
    if pairs["index"].null_count() or re.search(rb"(?m)^[+-]", pairs_text):
        return None
    try:
        grades = pl.Series(b"\n".join(head[0] for head in heads).decode().split("\n"))
        queries = pl.Series(b"\n".join(head[1] for head in heads).decode().split("\n"))
    except UnicodeDecodeError:
        return None
    indices = pairs["index"].to_numpy()
    row = np.repeat(np.arange(len(sizes)), sizes)
    ascending = (np.diff(indices) > 0) | (np.diff(row) > 0)
    last = layout.first_index + (layout.n_features or MAX_FEATURES) - 1
    in_range = (indices >= layout.first_index) & (indices <= last)
    if not ascending.all() or not in_range.all() or not _only_null_is_missing(pairs.select("value"), rows):
        return None
    if not fits_memory(len(sizes), int(indices.max(initial=0)), len(rows)):
        return None
    features, dense = _scatter(row, indices - layout.first_index, pairs["value"].to_numpy(), len(sizes))
    return _checked_block(features, grades, queries if layout.has_query else None, comments, dense)


def _only_null_is_missing(values: pl.DataFrame, rows: bytes) -> bool:
    """Whether every value is a number or NULL: the CSV reader takes an empty field for null, and `nan` for a number."""
    nulls = sum(values.null_count().row(0))
    if nulls and nulls != rows.count(b":NULL"):
        return False
    return not values.select(pl.any_horizontal(pl.all().is_nan().any())).item()


def _checked_block(
    features: Floats, grades: pl.Series, queries: pl.Series | None, comments: pl.Series | None, dense: bool
) -> Block | None:
    """A block from the parsed columns, or None where one of them is not what it should be."""
    if np.isinf(features).any():
        return None
    whole_grades = _whole_grades(grades)
    if whole_grades is None or (comments is not None and len(comments) != len(grades)):
        return None
    if queries is None:
        queries = pl.Series([None], dtype=pl.String).new_from_index(0, len(grades))
    elif queries.null_count() or (queries == "").any():
        return None
    return Block(features, whole_grades, queries, comments, dense)


def _whole_grades(texts: pl.Series) -> Ints | None:
    """Grades from their texts, of which there are few different ones; None if any is not a grade."""
    try:
        grade_of = {text: _parse_grade((text or "").encode()) for text in texts.unique()}
    except BadLineError:
        return None
    return texts.replace_strict(grade_of, return_dtype=pl.Int64).to_numpy()


def _scatter(row: Ints, column: Ints, values: Doubles, n_rows: int) -> tuple[Floats, bool]:
    """[n_rows, F] with each value in its place and 0 elsewhere, and whether nothing was left out."""
    features = np.zeros((n_rows, int(column.max(initial=-1)) + 1), np.float32)
    features[row, column] = _narrowed(values)
    return features, len(values) == features.size


def _narrowed(values: Doubles) -> Floats:
    """As float32, row after row, with marks for missing values as NaN; what does not fit becomes infinite."""
    with np.errstate(over="ignore"):
        narrow = values.astype(np.float32, order="C")
    if np.isinf(narrow).any():
        narrow[(np.abs(values) >= MISSING_MARK) & np.isfinite(values)] = np.nan
    return narrow


def _strip(text: bytes) -> tuple[bytes, pl.Series | None]:
    """Lines without comments, blanks at their ends and lines without a row; and the comment of each row."""
    lines = text.translate(_BLANKS_TO_SPACE).split(b"\n")
    if b"#" not in text:
        return b"".join(row + b"\n" for line in lines if (row := line.strip(b" "))), None
    parts = [(body.strip(b" "), comment.strip(b" ")) for body, _, comment in (line.partition(b"#") for line in lines)]
    rows = b"".join(row + b"\n" for row, _ in parts if row)
    comments = b"\n".join(comment for row, comment in parts if row).decode(errors="replace")
    return rows, pl.Series(comments.split("\n"), dtype=pl.String)


def _read_csv(text: bytes, separator: str, schema: dict[str, type[pl.DataType]]) -> pl.DataFrame | None:
    """A table of exactly these columns, or None where the text is not one."""
    try:
        return pl.read_csv(
            io.BytesIO(text), separator=separator, schema=schema, has_header=False, quote_char=None, null_values="NULL"
        )
    except (pl.exceptions.PolarsError, UnicodeDecodeError):
        return None
