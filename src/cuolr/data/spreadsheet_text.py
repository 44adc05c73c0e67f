"""Texts in CSV and TSV that no spreadsheet takes for a formula.

A spreadsheet evaluates a cell that begins with =, +, - or @, also after white space or as a full-width character, and a
formula can send other cells to a stranger. Such a text has an apostrophe before it; numbers stay as they are. Parquet
and JSON always have the text itself. (OWASP, "CSV Injection".)
"""

import re
from collections.abc import Mapping
from typing import Any

import polars as pl

FORMULA = "^(?:[\\s\\x00-\\x1f]*[=+\\-@＝＋－＠]|[\\t\\r])"
NUMBER = r"^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$"


def without_formulas(table: pl.DataFrame) -> pl.DataFrame:
    """The same table, texts that look like a formula with an apostrophe before them.

    >>> without_formulas(pl.DataFrame({"id": ["=1+1", "-5", "a"]}))["id"].to_list()
    ["'=1+1", '-5', 'a']
    """
    texts = [pl.col(name) for name, dtype in table.schema.items() if dtype == pl.String]
    looks_so = (text.str.contains(FORMULA) & ~text.str.contains(NUMBER) for text in texts)
    return table.with_columns(
        pl.when(so).then(pl.concat_str(pl.lit("'"), text)).otherwise(text).name.keep()
        for so, text in zip(looks_so, texts, strict=True)
    )


def row_without_formulas(row: Mapping[str, Any]) -> dict[str, Any]:
    """The same for a row."""
    return {name: f"'{value}" if _looks_so(value) else value for name, value in row.items()}


def _looks_so(value: Any) -> bool:
    return isinstance(value, str) and bool(re.match(FORMULA, value)) and not re.match(NUMBER, value)
