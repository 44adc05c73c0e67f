"""Rows of LETOR text, parsed in blocks by the CSV reader of polars.

`parse_dense` and `parse_sparse` must agree with `parse_lines`. They return None for anything unusual, and the block is
then parsed line by line.
"""

import io
import re

import numpy as np
import polars as pl

from cuolr.data.letor.rows import (
    BLANKS_TO_SPACE,
    MAX_FEATURES,
    BadLineError,
    Block,
    RowLayout,
    fits_memory,
    narrowed,
    parse_grade,
    parse_lines,
    scatter,
)
from cuolr.types import Floats, Ints

_GRADE_AND_QUERY = re.compile(rb"(?m)^([^ \n]+) qid:([^ \n]+)[ \n]")
_GRADE = re.compile(rb"(?m)^([^ \n]+)()[ \n]")
_NOT_SEPARATORS = bytes(set(range(256)) - set(b" :\n"))
_COLON_TO_SPACE = bytes.maketrans(b":", b" ")


def parse_block(text: bytes, layout: RowLayout) -> tuple[Block, list[tuple[int, str]]]:
    """Parse whole lines with the fastest parser that accepts them; returns the same as `parse_lines`."""
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
    """Parse rows that all list the features first, first + 1, …, last.

    Every colon becomes a space, so that one pass of the CSV reader gives each index and each value as a column. The
    order of the separators, which is lost, is checked separately.
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
    return _checked_block(narrowed(values.to_numpy()), frame["grade"], queries, comments, dense=True)


def parse_sparse(rows: bytes, comments: pl.Series | None, layout: RowLayout) -> Block | None:
    """Parse rows that omit zeros.

    Grade and query are split off; the rest is one long column of `index:value`.
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
    # The CSV reader accepts "+1" and "-0" as an index; the format does not.
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
    features, dense = scatter(row, indices - layout.first_index, pairs["value"].to_numpy(), len(sizes))
    return _checked_block(features, grades, queries if layout.has_query else None, comments, dense)


def _only_null_is_missing(values: pl.DataFrame, rows: bytes) -> bool:
    """Whether every value is a number or NULL: the CSV reader also accepts an empty field and `nan`."""
    nulls = sum(values.null_count().row(0))
    if nulls and nulls != rows.count(b":NULL"):
        return False
    return not values.select(pl.any_horizontal(pl.all().is_nan().any())).item()


def _checked_block(
    features: Floats, grades: pl.Series, queries: pl.Series | None, comments: pl.Series | None, dense: bool
) -> Block | None:
    """A block from the parsed columns, or None if a column is invalid."""
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
    """Grades from strings, few of which are distinct; None if any is not a grade."""
    try:
        grade_of = {text: parse_grade((text or "").encode()) for text in texts.unique()}
    except BadLineError:
        return None
    return texts.replace_strict(grade_of, return_dtype=pl.Int64).to_numpy()


def _strip(text: bytes) -> tuple[bytes, pl.Series | None]:
    """The rows without comments and surrounding blanks, and the comment of each row."""
    lines = text.translate(BLANKS_TO_SPACE).split(b"\n")
    if b"#" not in text:
        return b"".join(row + b"\n" for line in lines if (row := line.strip(b" "))), None
    parts = [(body.strip(b" "), comment.strip(b" ")) for body, _, comment in (line.partition(b"#") for line in lines)]
    rows = b"".join(row + b"\n" for row, _ in parts if row)
    comments = b"\n".join(comment for row, comment in parts if row).decode(errors="replace")
    return rows, pl.Series(comments.split("\n"), dtype=pl.String)


def _read_csv(text: bytes, separator: str, schema: dict[str, type[pl.DataType]]) -> pl.DataFrame | None:
    """A table with exactly these columns, or None if the text does not fit."""
    try:
        return pl.read_csv(
            io.BytesIO(text), separator=separator, schema=schema, has_header=False, quote_char=None, null_values="NULL"
        )
    except (pl.exceptions.PolarsError, UnicodeDecodeError):
        return None
