"""`open-bandit`: recommendations of a fashion shop, the Open Bandit Dataset; with item_context.csv for features."""

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from cuolr.data.compressed_files import check_expansion
from cuolr.data.tables import read_errors
from cuolr.errors import InputError
from cuolr.files import require_file
from cuolr.logs.importing.importer import IMPORTERS, LogImporter, SourceLog
from cuolr.logs.importing.source_tables import (
    check_columns,
    features_of,
    in_turn,
    list_numbers,
    read_rows,
    share_of_bytes,
)
from cuolr.progress import Progress, no_progress
from cuolr.types import Candidates

LOG_COLUMNS = ("timestamp", "item_id", "position", "click")
# Names of the probability with which the logging policy chose the item.
PROPENSITIES = ("propensity_score", "action_prob", "pscore")


@IMPORTERS.register("open-bandit")
class OpenBanditImporter(LogImporter):
    """Each row is a list of one item in one of three slots: the data set does not say which items stood together.

    The query is the campaign, which is the file's name. A file whose items all had the same probability was logged in
    random order. Features of users depend on the session and are not used.
    """

    def read(self, files: Sequence[Path], progress: Progress = no_progress) -> SourceLog:
        """Read the logs of one or more campaigns, and item_context.csv if it is among the files."""
        contexts, logs = [], []
        for number, file, advance in in_turn(files, share_of_bytes(files, progress)):
            require_file(file)
            with read_errors(file):
                check_expansion(file)
                scanned = pl.scan_csv(file, infer_schema_length=None, glob=False)
            rows = read_rows(file, scanned, advance)
            if "item_id" in rows.columns and "click" not in rows.columns:
                contexts.append(rows)
            else:
                logs.append(_log(file, rows, number))
        if not logs:
            raise InputError("expected the log of a campaign, such as random/all/all.csv, found no such file")
        table = pl.concat(logs)
        notes = [
            "assumed: each row is a list of its own, of one item at its position; the data set does not say which "
            "items were shown together"
        ]
        if table["randomised"].any():
            notes.append("files in which all items had the same probability are taken as in random order")
        return SourceLog(table, _items(table, contexts) if contexts else None, tuple(notes))


def _log(file: Path, rows: pl.DataFrame, number: int) -> pl.DataFrame:
    check_columns(file, rows.columns, LOG_COLUMNS, "a log of the Open Bandit Dataset")
    known = [name for name in PROPENSITIES if name in rows.columns]
    if not known:
        check_columns(file, rows.columns, PROPENSITIES[:1], "a log of the Open Bandit Dataset")
    propensity = pl.col(known[0])
    return rows.select(
        "position",
        "click",
        query_id=pl.lit(file.name.partition(".")[0]),
        session_id=list_numbers(number),
        doc_id=pl.col("item_id").cast(pl.String),
        timestamp=pl.col("timestamp").cast(pl.String).str.to_datetime(strict=False, time_zone="UTC"),
        logging_propensity=propensity.cast(pl.Float64),
        randomised=propensity.min() == propensity.max(),
    )


def _items(table: pl.DataFrame, contexts: list[pl.DataFrame]) -> Candidates:
    """The items of each campaign: numbers as they are, categories as a column per value."""
    (context,) = contexts if len(contexts) == 1 else [pl.concat(contexts).unique("item_id", maintain_order=True)]
    features = context.select(pl.exclude("^$", "Unnamed: 0")).with_columns(doc_id=pl.col("item_id").cast(pl.String))
    features = features.drop("item_id")
    categories = [name for name, dtype in features.schema.items() if dtype == pl.String and name != "doc_id"]
    features = features.to_dummies(categories, separator="=") if categories else features
    rows = table.select("query_id", "doc_id").unique().join(features, on="doc_id")
    columns = [name for name in features.columns if name != "doc_id"]
    return features_of(rows.with_columns(pl.col(columns).cast(pl.Float32).fill_null(0.0)), columns)
