"""Days that polars cannot make a text of, in a column of the log."""

from pathlib import Path

import polars as pl
import pytest

from cuolr.errors import InputError
from cuolr.logs.importing.import_log import import_log_with_report


@pytest.mark.parametrize(
    ("dtype", "number"),
    [
        (pl.Date(), 2**31 - 1),
        (pl.Datetime("ms"), 2**63 - 1),
        (pl.Datetime("ms"), -(2**63)),
        (pl.Datetime("us"), -(2**63)),  # which NumPy takes for a missing time
        (pl.Datetime("us", "UTC"), 2**63 - 1),
    ],
)
def test_a_time_outside_of_the_calendar_is_refused_with_a_line(
    dtype: pl.DataType, number: int, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    rows = {"query_id": ["q"], "session_id": ["s"], "position": [1], "doc_id": ["d"], "click": [1]}
    time = pl.Series("timestamp", [number], dtype=pl.Int32 if dtype == pl.Date else pl.Int64).cast(dtype)
    pl.DataFrame(rows).with_columns(time).write_parquet(tmp_path / "clicks.parquet")
    with pytest.raises(InputError, match="timestamp that is not a finite number or a time"):
        import_log_with_report(tmp_path / "clicks.parquet")
    assert capfd.readouterr() == ("", "")
