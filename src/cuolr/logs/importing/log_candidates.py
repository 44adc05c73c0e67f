"""The candidates of a log that is being imported: from tables of features, or from the documents that it shows."""

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from cuolr.data.feature_tables import VARIANT, FeatureTables, named_variants, read_feature_tables
from cuolr.data.frames import Table
from cuolr.data.tables import read_errors
from cuolr.errors import InputError
from cuolr.logs.importing.import_options import ImportOptions
from cuolr.logs.importing.log_rows import LogRows, scan_log
from cuolr.types import Candidates


def with_candidates(
    table: Table | Sequence[Path | str], features: Candidates | FeatureTables, options: ImportOptions
) -> tuple[LogRows, Candidates, pl.DataFrame | None]:
    """The rows of a log, and its candidates.

    A document whose features change from impression to impression has variants, each of which is a candidate.

    Args:
        table: The log.
        features: The candidates, or the tables that have their features.
        options: How to import.

    Returns:
        The rows, with a column `VARIANT` if documents have variants; the candidates; and the variants, see
        `named_variants`, None if there are none.
    """
    if isinstance(features, Candidates):
        return scan_log(table, options), features, None
    tables = features.with_ids(options.columns, options.one_query)
    rows = scan_log(table, options, tables.impression)
    if not tables.needs_shown:
        return rows, read_feature_tables(tables), None
    rows = _with_variant(rows, tables.impression)
    shown = named_variants(_shown(rows, tables.impression))
    rows = LogRows(tuple(part.drop(tables.impression) for part in rows.parts), rows.places)
    return rows, read_feature_tables(tables, shown), shown


def _with_variant(rows: LogRows, features: Sequence[str]) -> LogRows:
    """The rows with a number that differs where the features do."""
    variant = pl.struct(features).hash() if features else pl.lit(0, pl.UInt64)
    return LogRows(tuple(part.with_columns(variant.alias(VARIANT)) for part in rows.parts), rows.places)


def _shown(rows: LogRows, features: Sequence[str]) -> pl.DataFrame:
    """Each pair of query and document that the log shows, once for each variant."""
    keys = ["query_id", "doc_id", VARIANT]
    found = []
    for part, place in rows.scans():
        distinct = part.select(*keys, *features).drop_nulls(["query_id", "doc_id"]).unique(keys, keep="any")
        with read_errors(place):
            found.append(distinct.collect(engine="streaming"))
    shown = pl.concat(found).unique(keys, keep="any")
    if not len(shown):
        raise InputError(f"{rows.name}: expected a row for each shown document, found no rows")
    return shown
