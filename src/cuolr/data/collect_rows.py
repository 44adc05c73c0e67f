"""Reading the rows of a lazy table, with the number read so far."""

import polars as pl

from cuolr.progress import Progress, Stages


def collect_rows(rows: pl.LazyFrame, name: str, stages: Stages) -> pl.DataFrame:
    """All rows.

    Args:
        rows: The table.
        name: What to call it.
        stages: Receives the number of rows read so far.
    """
    return followed(rows, stages(f"reading {name}", count_rows(rows))).collect(engine="streaming")


def count_rows(rows: pl.LazyFrame) -> int:
    """The number of rows; to count them takes a small part of the time to read them."""
    return int(rows.select(pl.len()).collect(engine="streaming").item())


def followed(rows: pl.LazyFrame, progress: Progress) -> pl.LazyFrame:
    """The same rows; progress is called with the number of those that passed since the last call, by any thread."""

    def pass_on(part: pl.DataFrame) -> pl.DataFrame:
        progress(len(part))
        return part

    return rows.map_batches(pass_on, schema=rows.collect_schema(), projection_pushdown=False, streamable=True)
