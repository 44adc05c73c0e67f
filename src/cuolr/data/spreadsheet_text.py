"""Texts in CSV and TSV that no spreadsheet takes for a formula, and that no terminal obeys.

A spreadsheet evaluates a cell that begins with =, +, - or @, also after white space or as a full-width character, and a
formula can send other cells to a stranger. Such a text has an apostrophe before it; numbers stay as they are. Control
characters, by which a file that is printed could write over the terminal, are escaped. Parquet and JSON always have the
text itself. (OWASP, "CSV Injection".)
"""

import re
from collections.abc import Mapping
from typing import Any

import polars as pl

from cuolr.data.printable_text import OBEYED, printable

FORMULA = "^(?:[\\s\\x00-\\x1f]*[=+\\-@＝＋－＠]|[\\t\\r])"
NUMBER = r"^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$"


def printable_texts(table: pl.DataFrame) -> pl.DataFrame:
    r"""The same table, with an escape for each character of a text that a terminal would obey.

    >>> printable_texts(pl.DataFrame({"id": ["a", "\x1b[2J"]}))["id"].to_list()
    ['a', '\\x1b[2J']
    """
    texts = [column for column in table if column.dtype == pl.String and column.str.contains(f"[{OBEYED}]").any()]
    return table.with_columns(text.map_elements(printable, return_dtype=pl.String) for text in texts)


def without_formulas(table: pl.DataFrame) -> pl.DataFrame:
    """The same table, printable, texts that look like a formula with an apostrophe before them.

    >>> without_formulas(pl.DataFrame({"id": ["=1+1", "-5", "a"]}))["id"].to_list()
    ["'=1+1", '-5', 'a']
    """
    texts = [pl.col(name) for name, dtype in table.schema.items() if dtype == pl.String]
    looks_so = (text.str.contains(FORMULA) & ~text.str.contains(NUMBER) for text in texts)
    return printable_texts(table).with_columns(
        pl.when(so).then(pl.concat_str(pl.lit("'"), text)).otherwise(text).name.keep()
        for so, text in zip(looks_so, texts, strict=True)
    )


def row_without_formulas(row: Mapping[str, Any]) -> dict[str, Any]:
    """The same for a row."""
    shown = {name: printable(value) if isinstance(value, str) else value for name, value in row.items()}
    return {name: f"'{value}" if _looks_so(value) else value for name, value in shown.items()}


def _looks_so(value: Any) -> bool:
    return isinstance(value, str) and bool(re.match(FORMULA, value)) and not re.match(NUMBER, value)
