"""Reading the rows of a lazy table, with the number read so far."""

import polars as pl

from cuolr.progress import Stages


def collect_rows(rows: pl.LazyFrame, name: str, stages: Stages) -> pl.DataFrame:
    """All rows.

    Args:
        rows: The table.
        name: What to call it.
        stages: Receives the number of rows read so far. To count them first takes a small part of the time.
    """
    progress = stages(f"reading {name}", rows.select(pl.len()).collect().item())

    def pass_on(part: pl.DataFrame) -> pl.DataFrame:
        progress(len(part))
        return part

    schema = rows.collect_schema()
    return rows.map_batches(pass_on, schema=schema, streamable=True).collect(engine="streaming")
