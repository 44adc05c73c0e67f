"""Grouping the rows of a LETOR file by query, and the ids of their documents."""

import re
from pathlib import Path

import numpy as np
import polars as pl

from cuolr.data.letor.rows import MAX_PROBLEMS, Block
from cuolr.data.text_sizes import text_array
from cuolr.errors import InputError
from cuolr.types import Ints, Strings


def group_file(path: Path) -> Path:
    """The path of the group file, as in LightGBM; for a gzipped file, its name may lack `.gz`."""
    without_suffix = path.with_name(path.name.removesuffix(".gz") + ".query")
    return without_suffix if without_suffix.exists() else path.with_name(path.name + ".query")


def group(queries: pl.Series) -> tuple[Ints | None, Ints, Strings]:
    """Group the rows of each query.

    Returns:
        order: The rows in their new order, None = as they are; offsets; query ids by first appearance.
    """
    starts = np.flatnonzero((queries != queries.shift()).fill_null(True).to_numpy())
    sizes = np.diff(starts, append=len(queries))
    names = text_array(queries.gather(starts), "qid")
    unique, first, run_query = np.unique(names, return_index=True, return_inverse=True)
    if len(unique) == len(names):
        return None, np.concatenate([[0], np.cumsum(sizes)]), names
    by_appearance = np.argsort(first)
    place = np.empty_like(by_appearance)
    place[by_appearance] = np.arange(len(unique))
    query_of_row = np.repeat(place[run_query], sizes)
    order = np.argsort(query_of_row, kind="stable")
    return order, np.concatenate([[0], np.cumsum(np.bincount(query_of_row))]), unique[by_appearance]


def read_groups(path: Path, n_rows: int) -> tuple[Ints, Strings]:
    """Offsets from the group file of a file without `qid`; queries are named by their number."""
    groups = group_file(path)
    lines = groups.read_text(encoding="utf-8", errors="replace").split("\n")
    problems = [
        f"{groups}:{number}: expected the number of rows of a query, found {line!r}"
        for number, line in enumerate(lines, start=1)
        if line.strip() and not re.fullmatch(r"[1-9]\d{0,8}", line.strip())
    ]
    if problems:
        raise InputError(problems[:MAX_PROBLEMS])
    sizes = np.array([int(line) for line in lines if line.strip()], np.int64)
    if sizes.sum() != n_rows:
        raise InputError(f"{groups}: expected counts that add up to the {n_rows} rows of {path}, found {sizes.sum()}")
    return np.concatenate([[0], np.cumsum(sizes)]), np.arange(1, len(sizes) + 1).astype(np.str_)


def document_ids_of(blocks: list[Block]) -> Strings | None:
    """The document ids in the comments, empty for a row without one; None if no row has one."""
    if all(block.comments is None for block in blocks):
        return None
    empty = pl.Series([""])
    comments = pl.concat([empty.new_from_index(0, len(b.grades)) if b.comments is None else b.comments for b in blocks])
    named = comments.str.extract(r"(?i)\bdoc_?id\s*[=:]\s*(\S+)")
    single_word = comments.str.extract(r"^(\S+)$")
    ids = named.fill_null(single_word).fill_null("")
    return text_array(ids, "docid") if (ids != "").any() else None
