"""The rows of a large log in blocks of whole sessions, one of which is in memory at a time.

Blocks are ranges of session ids, so that sessions that are sorted in each of them are sorted in all of them. They are
kept in a temporary folder (`TMPDIR` says where) until all are read.
"""

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import polars as pl

from cuolr.data.tables import read_errors
from cuolr.logs.importing.log_rows import LogRows
from cuolr.logs.importing.resolve import position_number
from cuolr.progress import Share, share_of

# Rows of a block, about; some 200 bytes of memory each.
ROWS_AT_A_TIME = 1 << 22
# Of these rows one is looked at to find ranges of session ids with the same number of rows.
ROWS_PER_SAMPLE = 1009
# The share of the time that it takes to divide a table into blocks, roughly.
WRITING_SHARE = 0.3


@dataclass(frozen=True)
class Survey:
    """What is known of a table after one pass.

    Attributes:
        rows: How many there are.
        zeros: Rows at position 0.
        ones: Rows at position 1.
        sample: The session ids of a sample of the rows, sorted.
    """

    rows: int
    zeros: int
    ones: int
    sample: pl.Series

    @property
    def first_position(self) -> Literal[0, 1]:
        """Where positions start: at 0 if rows are there about as often as at 1; a few zeros are errors."""
        return 0 if self.zeros and 2 * self.zeros >= self.ones else 1


def survey(rows: LogRows, progress: Share) -> Survey:
    """Look once at all rows; `progress` takes the share that was done since the last call."""
    position = position_number(rows.schema)
    amounts, samples = [], []
    for part, place in zip(rows.parts, rows.places, strict=True):
        sample = part.select(pl.col("session_id").gather_every(ROWS_PER_SAMPLE))
        seen = rows.followed(part.select("position"), progress)
        numbers = seen.select(rows=pl.len(), zeros=(position == 0).sum(), ones=(position == 1).sum())
        with read_errors(place):
            found = pl.collect_all([numbers, sample], engine="streaming")
        amounts.append(found[0])
        samples.append(found[1]["session_id"].drop_nulls())
    total = pl.concat(amounts).sum().row(0, named=True)
    return Survey(total["rows"], total["zeros"], total["ones"], pl.concat(samples).sort())


def blocks(rows: LogRows, known: Survey, progress: Share) -> Iterator[tuple[LogRows, float]]:
    """The same rows, about `ROWS_AT_A_TIME` at a time, each session in one block; by session id, null first.

    With each block comes the share of the work that it is to read it.

    Args:
        rows: The tables.
        known: What is known of them.
        progress: Takes the share that was done here since the last call, which is what the blocks leave of 1.
    """
    number = -(-known.rows // ROWS_AT_A_TIME)
    starts = known.sample.gather([i * len(known.sample) // number for i in range(1, number)]).unique(
        maintain_order=True
    )
    if not len(starts):
        yield rows, 1.0
        return
    with tempfile.TemporaryDirectory(prefix="cuolr-import-") as name:
        folder, writing = Path(name), share_of(progress, WRITING_SHARE)
        for part, place in enumerate(rows.places):
            written = rows.followed(rows.parts[part], writing)
            _write_blocks(written, place, folder / str(part), starts, rows.schema)
        for block in range(len(starts) + 1):
            files = sorted(folder.glob(f"*/block={block}/*.parquet"))
            if files:
                read = LogRows((pl.scan_parquet(files, glob=False, hive_partitioning=False),), rows.places)
                yield read, (1 - WRITING_SHARE) * read.total / rows.total
            for file in files:
                file.unlink()


def _write_blocks(part: pl.LazyFrame, place: Path | str, folder: Path, starts: pl.Series, schema: pl.Schema) -> None:
    """The rows of one table, a file for each block."""
    session = pl.col("session_id")
    after = [(session >= pl.lit(start, schema["session_id"])).fill_null(False).cast(pl.UInt16) for start in starts]
    by_block = pl.PartitionBy(folder, key={"block": pl.sum_horizontal(after)}, include_key=False)
    with read_errors(place):
        part.sink_parquet(by_block, compression="lz4", statistics=False, mkdir=True)
