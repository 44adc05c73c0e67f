"""Rows that a log has twice, as where an event was delivered twice."""

import polars as pl

from cuolr.data.tables import ROW
from cuolr.logs.importing.import_report import MAX_EXAMPLES, REPEATED, Amounts, ImportFinding
from cuolr.logs.importing.log_rows import LogRows


def without_repeats(rows: LogRows, shown: pl.DataFrame) -> tuple[pl.DataFrame, ImportFinding | None]:
    """The rows without those that equal an earlier one of the same session in every value.

    Documents without features are not compared: their ids are not known here.

    Args:
        rows: The table.
        shown: Its rows, resolved; see `resolve`.

    Returns:
        The other rows, and what was left out; None = nothing.
    """
    values = [name for name in shown.columns if name != ROW]
    comparable = shown.filter(pl.all_horizontal(pl.col("session", "index", "position").is_not_null()))
    again = comparable.sort(ROW).filter(~pl.struct(values).is_first_distinct())
    if not len(again):
        return shown, None
    examples = tuple(f"{rows.place(row)}: the same as an earlier row" for row in again[ROW].head(MAX_EXAMPLES))
    clicks = int((again["click"] == 1).sum())
    others = shown.join(again.select(ROW), on=ROW, how="anti", maintain_order="left")
    return others, ImportFinding(REPEATED, Amounts(0, len(again), clicks), examples)
