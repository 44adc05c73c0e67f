"""Days that polars cannot make a text of, in a column of the log."""

from pathlib import Path

import polars as pl
import pytest

from cuolr.errors import InputError
from cuolr.logs.importing.import_log import import_log_with_report


def test_a_day_outside_of_the_calendar_is_refused_with_a_line(tmp_path: Path) -> None:
    rows = {"query_id": ["q"], "session_id": ["s"], "position": [1], "doc_id": ["d"], "click": [1]}
    day = pl.Series("timestamp", [2**31 - 1], dtype=pl.Int32).cast(pl.Date)
    pl.DataFrame(rows).with_columns(day).write_parquet(tmp_path / "clicks.parquet")
    with pytest.raises(InputError, match=r"clicks\.parquet: cannot be read: damaged"):
        import_log_with_report(tmp_path / "clicks.parquet")
