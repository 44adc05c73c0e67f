"""Columns of a log that cannot be features, because they are known only after a click."""

from math import log

import polars as pl

from cuolr.data.feature_tables import FeatureTables
from cuolr.data.tables import read_errors
from cuolr.errors import InputError
from cuolr.logs.importing.log_rows import LogRows

# As good as no value, in lower case.
NOTHING = ("", "0", "0.0", "false", "nan", "null", "na", "?")
# A column is taken for an outcome if it has values at clicks alone with at most this probability by chance.
CHANCE = 1e-9


def check_no_outcomes(rows: LogRows, tables: FeatureTables) -> None:
    """Raise if a feature of impressions, such as the dwell time, has values at clicked documents alone.

    A ranker would learn from it what was clicked, and could not know it when it ranks. If values did not depend on
    clicks, all n would be at clicks with probability (click rate)ⁿ.

    Args:
        rows: The log, with the features of impressions.
        tables: Says which those are, and which are allowed all the same.
    """
    columns = [
        name for name in tables.impression if name not in (*tables.options.allow_columns, *tables.options.drop_columns)
    ]
    amounts = []
    for part, place in rows.scans():
        clicked = _has_value("click", part)
        counts = [pl.len().alias("(rows)"), clicked.sum().alias("(clicks)")]
        for name in columns:
            has_value = _has_value(name, part)
            counts += [has_value.sum().alias(name), (has_value & ~clicked).sum().alias(f"{name}, not clicked")]
        with read_errors(place):
            amounts.append(part.select(counts).collect(engine="streaming"))
    found = pl.concat(amounts).sum().row(0, named=True)
    if not 0 < found["(clicks)"] < found["(rows)"]:
        return
    click_rate = found["(clicks)"] / found["(rows)"]
    problems = [
        f"column '{name}' has values at clicked documents only, so it is an outcome, not a feature; if it is known "
        f"before documents are shown, say allow_columns=['{name}']"
        for name in columns
        if not found[f"{name}, not clicked"] and found[name] * log(click_rate) < log(CHANCE)
    ]
    if problems:
        raise InputError(problems)


def _has_value(name: str, part: pl.LazyFrame) -> pl.Expr:
    column = pl.col(name)
    if part.collect_schema()[name].is_nested():
        return column.is_not_null()
    text = column.cast(pl.String, strict=False).str.strip_chars().str.to_lowercase()
    return text.is_not_null() & ~text.is_in(NOTHING)
