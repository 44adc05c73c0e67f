"""User Behavior Insights (UBI) as the long table of a log: what was shown under each `query_id`, and what was clicked.

Nothing is lost silently: every impression and every click is kept, or dropped with a reason that is counted.
"""

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from cuolr.errors import InputError
from cuolr.logs.importing.ubi_records import CLICKS, IMPRESSIONS, UbiRecords, read_records
from cuolr.logs.importing.ubi_report import (
    NO_DOCUMENT,
    NO_IMPRESSIONS,
    NO_POSITION,
    NO_QUERY_ID,
    NO_TEXT,
    NOT_SHOWN,
    REPEATED_CLICK,
    REPEATED_IMPRESSION,
    SEVERAL_POSITIONS,
    SEVERAL_RESPONSES,
    SEVERAL_TEXTS,
    TWO_DOCUMENTS,
    UNKNOWN_QUERY,
    UbiReport,
    report_of,
)
from cuolr.progress import Progress, no_progress

# Lists of one application that start at 1 while others start at 0: from this share on it numbers some lists from 1,
# below it these lists have lost their first impression.
MIN_SHARE_FROM_1 = 0.2


def read_ubi(files: Sequence[Path | str], progress: Progress = no_progress) -> tuple[pl.DataFrame, UbiReport]:
    """Read UBI queries and events.

    A `query_id` of UBI stands for one shown list, which becomes a session. Its documents and positions are those of its
    impression events or, without any, of the response. A click belongs to the position at which its document was shown.

    Args:
        files: NDJSON or Parquet, with queries, events or both; see `ubi_records`.
        progress: Called with the number of bytes of the files that were read since the last call.

    Returns:
        table: As `read_log_table` takes it: query_id (the query's text), session_id (the `query_id` of UBI), position
            (on the page, from 1), doc_id, click and, where all lists have one, timestamp; where any has one, user_id;
            and a column for each other action, such as add_to_cart, which a reward can be made of.
        report: What was found, kept and dropped.
    """
    if not files:
        raise InputError("files: expected one or more files with UBI queries and events, found none")
    records = read_records([Path(file) for file in files], progress)
    events = _checked_events(records.events)
    texts = _lists(records)
    shown = _shown(records, events)
    lists = _with_reasons(texts, shown)
    shown = _with_fate(shown, lists)
    clicks = _clicks_with_fate(events, shown, lists)
    impressions = pl.concat(
        [
            events.filter(pl.col("action").is_in(IMPRESSIONS), pl.col("fate").is_not_null()).select("list", "fate"),
            shown.select("list", "fate"),
        ]
    )
    table = _with_actions(_table(shown, clicks, lists), records.events)
    return table, report_of(records, lists, shown, impressions, clicks)


def _checked_events(events: pl.DataFrame) -> pl.DataFrame:
    """Impressions and clicks; `fate` says why one is dropped on its own account, null = not."""
    impression = pl.col("action").is_in(IMPRESSIONS)
    used = events.filter(impression | pl.col("action").is_in(CLICKS)).with_columns(
        fate=pl.when(pl.col("list").is_null())
        .then(pl.lit(NO_QUERY_ID))
        .when(pl.col("doc_id").is_null())
        .then(pl.lit(NO_DOCUMENT))
        .when(impression & (pl.col("ordinal").fill_null(-1) < 0))
        .then(pl.lit(NO_POSITION))
    )
    # A document that scrolls into view again, an event that was sent twice: the first in time counts.
    position = pl.when(impression).then(pl.col("ordinal"))
    first = pl.struct("fate", "list", "doc_id", impression=impression, position=position).is_first_distinct()
    again = pl.when(impression).then(pl.lit(REPEATED_IMPRESSION)).otherwise(pl.lit(REPEATED_CLICK))
    ordered = used.sort("time", nulls_last=True, maintain_order=True)
    return ordered.with_columns(fate=pl.when(pl.col("fate").is_null() & ~first).then(again).otherwise(pl.col("fate")))


def _lists(records: UbiRecords) -> pl.DataFrame:
    """A row per `query_id`: list, text, time, user, text_from_events, and a reason where the text is in doubt."""

    def by_list(rows: pl.DataFrame, suffix: str) -> pl.DataFrame:
        text = pl.col("text").drop_nulls()
        return (
            rows.filter(pl.col("list").is_not_null())
            .group_by("list")
            .agg(
                text.first().alias(f"text_{suffix}"),
                text.n_unique().alias(f"texts_{suffix}"),
                pl.col("time").min().alias(f"time_{suffix}"),
                pl.col("user").drop_nulls().first().alias(f"user_{suffix}"),
                pl.lit(True).alias(suffix),
            )
        )

    both = by_list(records.queries, "queries").join(
        by_list(records.events, "events"), on="list", how="full", coalesce=True
    )
    from_events = pl.col("text_queries").is_null() & pl.col("text_events").is_not_null()
    return both.select(
        "list",
        text=pl.coalesce("text_queries", "text_events"),
        time=pl.coalesce("time_queries", "time_events"),
        user=pl.coalesce("user_queries", "user_events"),
        text_from_events=from_events,
        reason=pl.when(pl.when(from_events).then("texts_events").otherwise("texts_queries") > 1)
        .then(pl.lit(SEVERAL_TEXTS))
        .when(pl.col("text_queries").is_null() & pl.col("text_events").is_null() & pl.col("queries").is_null())
        .then(pl.lit(UNKNOWN_QUERY))
        .when(pl.col("text_queries").is_null() & pl.col("text_events").is_null())
        .then(pl.lit(NO_TEXT)),
    ).sort("list")


def _shown(records: UbiRecords, events: pl.DataFrame) -> pl.DataFrame:
    """A row per impression: list, doc_id, position (from 1), assumed, base (0 or 1; null if assumed), responses."""
    seen = events.filter(pl.col("action").is_in(IMPRESSIONS), pl.col("fate").is_null())
    bases = _bases(seen)
    from_events = seen.join(bases, on="list", how="left").select(
        "list",
        "doc_id",
        position=pl.col("ordinal") - pl.col("base") + 1,
        assumed=pl.lit(False),
        base=pl.col("base"),
        responses=pl.lit(1, pl.UInt32),
    )
    responses = (
        records.queries.filter(pl.col("list").is_not_null(), pl.col("hits").list.len() > 0)
        .join(bases, on="list", how="anti")
        .unique(["list", "hits"], maintain_order=True)
        .with_columns(responses=pl.len().over("list").cast(pl.UInt32))
        .with_columns(position=pl.int_ranges(1, pl.col("hits").list.len() + 1))
        .explode("hits", "position")
    )
    assumed = responses.select(
        "list",
        doc_id="hits",
        position=pl.col("position").cast(pl.Int64),
        assumed=pl.lit(True),
        base=pl.lit(None, pl.Int64),
        responses="responses",
    )
    return pl.concat([from_events, assumed])


def _bases(seen: pl.DataFrame) -> pl.DataFrame:
    """Whether each list numbers its positions from 0 or from 1: list, base.

    A list that has a 0 is numbered from 0. Of the others of its application, those that start at 1 are numbered from 1,
    unless nearly all lists of the application have a 0.
    """
    lists = seen.group_by("list").agg(pl.col("application").first(), least=pl.col("ordinal").min())
    number = {0: (pl.col("least") == 0).sum(), 1: (pl.col("least") == 1).sum()}
    share = (number[1] / (number[0] + number[1])).over("application")
    from_1 = (pl.col("least") > 0) & ((share >= MIN_SHARE_FROM_1) | (number[0].over("application") == 0))
    return lists.select("list", base=from_1.cast(pl.Int64))


def _with_reasons(lists: pl.DataFrame, shown: pl.DataFrame) -> pl.DataFrame:
    """The lists, with the reason why each is dropped as a whole; null = it is kept."""
    at_position = shown.filter(pl.col("doc_id").is_not_null()).group_by("list", "position")
    crowded = at_position.agg(documents=pl.col("doc_id").n_unique()).group_by("list").agg(pl.col("documents").max())
    facts = (
        shown.group_by("list")
        .agg(
            pl.col("position").filter(pl.col("doc_id").is_not_null()).min().alias("start"),
            pl.col("responses", "assumed", "base").first(),
        )
        .join(crowded, on="list", how="left")
    )
    return (
        lists.join(facts, on="list", how="left", maintain_order="left")
        .with_columns(
            reason=pl.when(pl.col("reason").is_not_null())
            .then(pl.col("reason"))
            .when(pl.col("start").is_null())
            .then(pl.lit(NO_IMPRESSIONS))
            .when(pl.col("responses") > 1)
            .then(pl.lit(SEVERAL_RESPONSES))
            .when(pl.col("documents") > 1)
            .then(pl.lit(TWO_DOCUMENTS))
        )
        .drop("start", "responses", "documents")
    )


def _with_fate(shown: pl.DataFrame, lists: pl.DataFrame) -> pl.DataFrame:
    """The impressions, with the reason why each is dropped; null = it is kept."""
    reasons = lists.select("list", "reason")
    known = shown.sort("list", "position", maintain_order=True).join(
        reasons, on="list", how="left", maintain_order="left"
    )
    return known.with_columns(
        fate=pl.when(pl.col("reason").is_not_null())
        .then(pl.col("reason"))
        .when(pl.col("doc_id").is_null())
        .then(pl.lit(NO_DOCUMENT))
        .when(~pl.struct("list", "doc_id").is_first_distinct())
        .then(pl.lit(SEVERAL_POSITIONS))
    ).drop("reason")


def _clicks_with_fate(events: pl.DataFrame, shown: pl.DataFrame, lists: pl.DataFrame) -> pl.DataFrame:
    """The clicks, with the reason why each is dropped; null = it is kept."""
    clicks = events.filter(pl.col("action").is_in(CLICKS)).select("list", "doc_id", "fate")
    # A document that is shown at several positions has its first one.
    places = shown.filter(pl.col("doc_id").is_not_null()).unique(["list", "doc_id"], keep="first", maintain_order=True)
    found = clicks.join(
        places.select("list", "doc_id", place=pl.col("fate"), shown=pl.lit(True)), on=["list", "doc_id"], how="left"
    ).join(lists.select("list", "reason"), on="list", how="left")
    return found.select(
        "list",
        "doc_id",
        fate=pl.coalesce(
            "fate", "reason", pl.when(pl.col("shown").is_null()).then(pl.lit(NOT_SHOWN)).otherwise(pl.col("place"))
        ),
    )


def _table(shown: pl.DataFrame, clicks: pl.DataFrame, lists: pl.DataFrame) -> pl.DataFrame:
    clicked = clicks.filter(pl.col("fate").is_null()).select("list", "doc_id", click=pl.lit(1, pl.UInt8))
    rows = (
        shown.filter(pl.col("fate").is_null())
        .join(clicked, on=["list", "doc_id"], how="left")
        .join(lists.select("list", "text", "time", "user"), on="list", how="left")
    )
    table = rows.select(
        query_id="text",
        session_id="list",
        position="position",
        doc_id="doc_id",
        click=pl.col("click").fill_null(0),
        timestamp=pl.col("time").cast(pl.Datetime("us")),
        user_id="user",
    ).sort("session_id", "position")
    table = table.drop("timestamp") if table["timestamp"].null_count() else table
    return table.drop("user_id") if table["user_id"].null_count() == len(table) else table


def _with_actions(table: pl.DataFrame, events: pl.DataFrame) -> pl.DataFrame:
    """The table with a column for each action but impressions and clicks: 1 where it happened to a shown document."""
    others = (
        events.filter(~pl.col("action").is_in((*IMPRESSIONS, *CLICKS, *table.columns)))
        .select(pl.col("action"), session_id="list", doc_id="doc_id", happened=pl.lit(1, pl.UInt8))
        .drop_nulls()
        .unique()
        .sort("action")
    )
    if not len(others):
        return table
    by_action = others.pivot(on="action", index=["session_id", "doc_id"], values="happened")
    actions = pl.col(others["action"].unique().to_list())
    joined = table.join(by_action, on=["session_id", "doc_id"], how="left", maintain_order="left")
    return joined.with_columns(actions.fill_null(0))
