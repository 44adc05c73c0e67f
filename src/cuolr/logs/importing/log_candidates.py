"""The candidates of a log that is being imported: from tables of features, or from the documents that it shows."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from math import log
from pathlib import Path
from typing import Self

import numpy as np
import polars as pl

from cuolr.data.feature_tables import VARIANT, FeatureTables, named_variants, read_feature_tables
from cuolr.data.features import IDS
from cuolr.data.frames import Table, followed
from cuolr.data.tables import read_errors
from cuolr.errors import InputError, InputWarning
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.columns import index_dtype
from cuolr.logs.importing.import_options import ImportOptions
from cuolr.logs.importing.log_rows import LogRows, scan_log
from cuolr.logs.importing.seen_documents import seen_documents
from cuolr.progress import Stages, no_stages
from cuolr.types import Candidates

# As good as no value, in lower case.
NOTHING = ("", "0", "0.0", "false", "nan", "null", "na", "?")
# A column is taken for an outcome if it has values at clicks alone with at most this probability by chance.
CHANCE = 1e-9


def check_no_outcomes(rows: LogRows, tables: FeatureTables) -> None:
    """Raise if a feature of impressions, such as the dwell time, has values at clicked documents alone.

    A ranker would learn from it what was clicked, and could not know it when it ranks. If values did not depend on
    clicks, all n would be at clicks with probability (click rate)ⁿ.

    Args:
        rows: The log, with the features of impressions.
        tables: Says which those are, and which are allowed all the same.
    """
    columns = [
        name for name in tables.impression if name not in (*tables.options.allow_columns, *tables.options.drop_columns)
    ]
    amounts = []
    for part, place in rows.scans():
        clicked = _has_value("click", part)
        counts = [pl.len().alias("(rows)"), clicked.sum().alias("(clicks)")]
        for name in columns:
            has_value = _has_value(name, part)
            counts += [has_value.sum().alias(name), (has_value & ~clicked).sum().alias(f"{name}, not clicked")]
        with read_errors(place):
            amounts.append(part.select(counts).collect(engine="streaming"))
    found = pl.concat(amounts).sum().row(0, named=True)
    if not 0 < found["(clicks)"] < found["(rows)"]:
        return
    click_rate = found["(clicks)"] / found["(rows)"]
    problems = [
        f"column '{name}' has values at clicked documents only, so it is an outcome, not a feature; if it is known "
        f"before documents are shown, say allow_columns=['{name}']"
        for name in columns
        if not found[f"{name}, not clicked"] and found[name] * log(click_rate) < log(CHANCE)
    ]
    if problems:
        raise InputError(problems)


def _has_value(name: str, part: pl.LazyFrame) -> pl.Expr:
    column = pl.col(name)
    if part.collect_schema()[name].is_nested():
        return column.is_not_null()
    text = column.cast(pl.String, strict=False).str.strip_chars().str.to_lowercase()
    return text.is_not_null() & ~text.is_in(NOTHING)


@dataclass(frozen=True)
class LogCandidates:
    """The rows of a log, and its candidates.

    A document whose features change from impression to impression has variants, each of which is a candidate.

    Attributes:
        rows: The rows, with a column `VARIANT` if documents have variants.
        candidates: The documents of each query.
        shown: What the log shows, if candidates or features come from it, see `named_variants`; None if not.
        tables: The tables of features; None if there are none.
    """

    rows: LogRows
    candidates: Candidates
    shown: pl.DataFrame | None = None
    tables: FeatureTables | None = None

    @property
    def variants(self) -> pl.DataFrame | None:
        """The documents as the log calls them, if the candidates may be called otherwise."""
        return None if self.tables is None else self.shown

    @classmethod
    def of(
        cls,
        table: Table | Sequence[Path | str],
        features: Candidates | FeatureTables | None,
        options: ImportOptions,
        stages: Stages = no_stages,
    ) -> Self:
        """Find the candidates.

        Args:
            table: The log.
            features: The candidates, or the tables that have their features; None = the documents that the log shows,
                without features.
            options: How to import.
            stages: Receives what was read so far.
        """
        if isinstance(features, Candidates):
            return cls(scan_log(table, options), features)
        if features is None:
            rows = scan_log(table, options)
            shown = _shown(rows, stages)
            return cls(rows, seen_documents(shown), shown)
        tables = features.with_ids(options.columns, options.one_query)
        rows = scan_log(table, options, tables.impression)
        if not tables.needs_shown:
            return cls(rows, read_feature_tables(tables, stages=stages), tables=tables)
        check_no_outcomes(rows, tables)
        rows = _with_variant(rows, tables.impression)
        shown = named_variants(_shown(rows, stages, VARIANT, *tables.impression))
        rows = LogRows(tuple(part.drop(tables.impression) for part in rows.parts), rows.places)
        with warnings.catch_warnings():
            if options.window:  # the candidates within it have warnings of their own
                warnings.simplefilter("ignore", InputWarning)
            return cls(rows, read_feature_tables(tables, shown, stages), shown, tables)

    def of_sessions(self, log: ClickLog, stages: Stages = no_stages) -> ClickLog:
        """Some sessions of the log, over the candidates that an import of these sessions alone would have."""
        if self.shown is None:
            return log
        listed = np.unique(log.documents[log.where])
        pairs = _pairs(log.candidates)[listed]
        shown = self.shown.join(pairs, on=IDS, how="semi", maintain_order="left")
        candidates = seen_documents(shown) if self.tables is None else read_feature_tables(self.tables, shown, stages)
        number = pl.DataFrame({"row": np.arange(candidates.n_documents)})
        new_row = np.zeros(log.candidates.n_documents, np.int64)
        new_row[listed] = pairs.join(_pairs(candidates).hstack(number), on=IDS, how="left", maintain_order="left")[
            "row"
        ]
        new_query = np.zeros(log.candidates.n_queries, np.int32)
        new_query[log.candidates.query_of_document[listed]] = candidates.query_of_document[new_row[listed]]
        query = new_query[log.query]
        index = new_row[log.documents] - candidates.offsets[query][:, None]
        columns = {"query": query, "ranking": np.where(log.where, index, -1).astype(index_dtype(candidates))}
        return ClickLog.from_columns(candidates, {**log.columns, **columns}, log.aggregated)


def _pairs(candidates: Candidates) -> pl.DataFrame:
    query = np.asarray(candidates.query_ids)[candidates.query_of_document]
    return pl.DataFrame({"query_id": query, "doc_id": candidates.document_ids})


def _with_variant(rows: LogRows, features: Sequence[str]) -> LogRows:
    """The rows with a number that differs where the features do."""
    variant = pl.struct(features).hash() if features else pl.lit(0, pl.UInt64)
    return LogRows(tuple(part.with_columns(variant.alias(VARIANT)) for part in rows.parts), rows.places)


def _shown(rows: LogRows, stages: Stages, *more: str) -> pl.DataFrame:
    """Each pair of query and document that the log shows, once for each variant, with these columns."""
    keys = [*IDS, *more[:1]]
    found = []
    progress = stages("listing documents", rows.total)
    for part, place in rows.scans():
        listed = followed(part.select(*IDS, *more), progress)
        distinct = listed.drop_nulls(IDS).unique(keys, keep="any")
        with read_errors(place):
            found.append(distinct.collect(engine="streaming"))
    shown = pl.concat(found).unique(keys, keep="any")
    if not len(shown):
        raise InputError(f"{rows.name}: expected a row for each shown document, found no rows")
    return shown
