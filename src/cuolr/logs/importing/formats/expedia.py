"""`expedia`: hotel searches of Expedia, Kaggle "Personalize Expedia Hotel Searches" (ICDM 2013), train.csv."""

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from cuolr.data.compressed_files import check_expansion
from cuolr.data.tables import read_errors
from cuolr.files import require_file
from cuolr.logs.importing.importer import IMPORTERS, LogImporter, SourceLog
from cuolr.logs.importing.source_tables import check_columns, features_of, in_turn, read_rows, share_of_bytes
from cuolr.progress import Progress, Share, no_progress, share_of

LOG_COLUMNS = ("srch_id", "date_time", "prop_id", "position", "random_bool", "click_bool", "booking_bool")
# Known only after the click, or names without an order: no features.
NO_FEATURES = (
    *LOG_COLUMNS,
    "gross_bookings_usd",
    "site_id",
    "visitor_location_country_id",
    "prop_country_id",
    "srch_destination_id",
)
# What a booking is worth beyond its click.
BOOKING = 4
# The share of the time to read rows, roughly; the rest is to find the features of each document.
READING = 0.5


@IMPORTERS.register("expedia")
class ExpediaImporter(LogImporter):
    """Each search is a query of its own; `random_bool` marks lists in random order.

    The reward is that of the competition: 1 for a click, 5 for a booking.
    """

    def read(self, files: Sequence[Path], progress: Progress = no_progress) -> SourceLog:
        """Read one or more CSV files."""
        done = share_of_bytes(files, progress)
        read = [_read(file, advance) for _, file, advance in in_turn(files, share_of(done, READING))]
        rows = pl.concat(read, how="diagonal")
        features = [name for name in rows.columns if name not in NO_FEATURES]
        table = rows.select(
            "position",
            query_id="srch_id",
            session_id="srch_id",
            doc_id="prop_id",
            click="click_bool",
            reward=pl.col("click_bool") + BOOKING * pl.col("booking_bool"),
            randomised="random_bool",
            timestamp="date_time",
        )
        candidates = features_of(rows.rename({"srch_id": "query_id", "prop_id": "doc_id"}), features)
        done(1 - READING)
        return SourceLog(
            table,
            candidates,
            notes=(
                "every search of this data set has a click or a booking; searches without one were left out by its "
                "publisher, so click rates are too high",
            ),
        )


def _read(file: Path, progress: Share) -> pl.DataFrame:
    require_file(file)
    with read_errors(file):
        check_expansion(file)
        names = pl.scan_csv(file, glob=False).collect_schema().names()
        check_columns(file, names, LOG_COLUMNS, "train.csv of the Expedia data set")
        types = {name: pl.Float64() for name in names if name not in LOG_COLUMNS}
        ids = {"srch_id": pl.Int64(), "prop_id": pl.Int64()}
        given = {**types, **ids, "date_time": pl.String()}
        scanned = pl.scan_csv(file, null_values=["NULL"], schema_overrides=given, glob=False)
        rows = read_rows(file, scanned, progress)
        # A feature without a value in the whole file is dropped below: it says nothing.
        known = [name for name in names if name not in types or rows[name].null_count() < len(rows)]
        return rows.select(known).with_columns(
            pl.col("date_time").str.to_datetime(strict=False), pl.col(set(types) & set(known)).cast(pl.Float32)
        )
