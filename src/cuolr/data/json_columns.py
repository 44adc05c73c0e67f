"""The columns of JSON lines and their types, found block by block."""

from io import BytesIO
from pathlib import Path

import polars as pl

from cuolr.data.line_blocks import blocks_of_lines
from cuolr.progress import Progress

# Bytes of text whose columns are found at a time.
BLOCK_BYTES = 1 << 26


def json_columns(path: Path, progress: Progress) -> pl.Schema:
    """The types that hold the values of all lines, as polars finds them.

    Args:
        path: JSON lines, gzipped or not.
        progress: Called with the number of bytes of the file that were read since the last call.
    """
    blocks = (text for _, text in blocks_of_lines(path, BLOCK_BYTES, progress))
    schemas = [pl.scan_ndjson(BytesIO(text), infer_schema_length=None).collect_schema() for text in blocks]
    return pl.concat([pl.DataFrame(schema=schema) for schema in schemas], how="diagonal_relaxed").schema
