"""What became of the records of User Behavior Insights (UBI): counts by reason."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import polars as pl

from cuolr.logs.importing.importer import CountTable, SourceLoss
from cuolr.logs.importing.ubi_records import CLICKS, IMPRESSIONS, UbiRecords

NO_QUERY_ID = "event without a query_id"
NO_DOCUMENT = "event without an object_id"
NO_POSITION = "impression without a position"
REPEATED_IMPRESSION = "repeated impression"
REPEATED_CLICK = "repeated click"
SEVERAL_POSITIONS = "document at several positions: first kept"
NOT_SHOWN = "click on a document that is not in the list"
TEXT_FROM_EVENTS = "query text taken from the events"
UNKNOWN_QUERY = "query_id not in ubi_queries"
NO_TEXT = "no query text"
SEVERAL_TEXTS = "several query texts for one query_id"
NO_IMPRESSIONS = "no impressions"
SEVERAL_RESPONSES = "several responses for one query_id"
TWO_DOCUMENTS = "two documents at one position"
# Nothing is lost by these.
REPEATED = (REPEATED_IMPRESSION, REPEATED_CLICK)


@dataclass(frozen=True)
class Tally:
    """What became of the impressions, or of the clicks; `found` = `kept` + the sum of `dropped`."""

    found: int
    kept: int
    dropped: Mapping[str, int]


@dataclass(frozen=True)
class UbiReport:
    """What was found in UBI records, and what became of it.

    Attributes:
        queries: Records of queries.
        queries_without_id: Queries without a `query_id`, to which no event can belong.
        events: Records of events.
        other_records: Records that are neither.
        other_events: Events that are neither impressions nor clicks, by action; a reward can be made of them.
        lists: Distinct `query_id`s: complete + repaired + the sum of `dropped`.
        complete: Lists from which nothing was dropped.
        repaired: Lists that were kept in part, or with the query text of their events.
        repairs: Lists by reason; a list may have several.
        dropped: Lists by reason.
        assumed: Kept lists without impression events: the response is assumed to have been shown as a whole.
        from_0: Kept lists whose events number positions from 0.
        from_1: Kept lists whose events number positions from 1.
        impressions: Impressions, the assumed ones among them.
        assumed_impressions: Impressions that are assumed, whether kept or not.
        clicks: Clicks.
        without_time: Kept lists without a timestamp; if there are any, the log has no timestamps.
    """

    queries: int
    queries_without_id: int
    events: int
    other_records: int
    other_events: Mapping[str, int]
    lists: int
    complete: int
    repaired: int
    repairs: Mapping[str, int]
    dropped: Mapping[str, int]
    assumed: int
    from_0: int
    from_1: int
    impressions: Tally
    assumed_impressions: int
    clicks: Tally
    without_time: int

    def as_dict(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return asdict(self)

    def losses(self) -> tuple[SourceLoss, ...]:
        """Lists, impressions and clicks that could not be used."""
        tallies = {"impressions": self.impressions, "clicks": self.clicks}
        return (
            SourceLoss("sessions", self.lists, self.dropped),
            *(
                SourceLoss(
                    unit,
                    tally.found - sum(tally.dropped.get(reason, 0) for reason in REPEATED),
                    {reason: number for reason, number in tally.dropped.items() if reason not in REPEATED},
                )
                for unit, tally in tallies.items()
            ),
        )

    def tables(self) -> Iterator[CountTable]:
        """The numbers of records and lists, and what was repaired and dropped by reason."""
        rows = {
            "queries": self.queries,
            "events": self.events,
            **({"records that are neither": self.other_records} if self.other_records else {}),
            **({"queries without a query_id": self.queries_without_id} if self.queries_without_id else {}),
            **{f"other events: {action}": number for action, number in self.other_events.items()},
            "lists": self.lists,
            "  complete": self.complete,
            "  repaired": self.repaired,
            "  dropped": sum(self.dropped.values()),
            "kept lists, positions from 0": self.from_0,
            "kept lists, positions from 1": self.from_1,
            "kept lists, impressions assumed from the response": self.assumed,
        }
        kept = {"impressions kept": self.impressions, "clicks kept": self.clicks}
        yield (
            "UBI records",
            [(name, f"{number:,}") for name, number in rows.items()]
            + [(name, f"{tally.kept:,} of {tally.found:,}") for name, tally in kept.items()],
        )
        for title, reasons in {
            "lists repaired": self.repairs,
            "lists dropped": self.dropped,
            "impressions dropped": self.impressions.dropped,
            "clicks dropped": self.clicks.dropped,
        }.items():
            if reasons:
                yield f"{title}, by reason", [(reason, f"{number:,}") for reason, number in reasons.items()]


def report_of(
    records: UbiRecords, lists: pl.DataFrame, shown: pl.DataFrame, impressions: pl.DataFrame, clicks: pl.DataFrame
) -> UbiReport:
    """Count what became of all records.

    Args:
        records: As they were read.
        lists: A row per `query_id`: list, time, text_from_events, assumed, base, and reason (null = kept).
        shown: Impressions that lists were made of: assumed.
        impressions: A row per impression: list, and fate (null = kept).
        clicks: A row per click: list, and fate (null = kept).
    """
    kept = lists.filter(pl.col("reason").is_null())
    repairs = pl.concat(
        [
            impressions.drop_nulls().select("list", "fate"),
            clicks.drop_nulls("fate").select("list", "fate"),
            kept.filter("text_from_events").select("list", fate=pl.lit(TEXT_FROM_EVENTS)),
        ]
    ).join(kept, on="list", how="semi")
    repaired = repairs["list"].n_unique()
    actions = records.events.filter(~pl.col("action").is_in((*IMPRESSIONS, *CLICKS)))["action"]
    return UbiReport(
        queries=len(records.queries),
        queries_without_id=records.queries["list"].null_count(),
        events=len(records.events),
        other_records=records.other,
        other_events=_counted(actions),
        lists=len(lists),
        complete=len(kept) - repaired,
        repaired=repaired,
        repairs=_counted(repairs.unique()["fate"]),
        dropped=_counted(lists["reason"].drop_nulls()),
        assumed=int(kept["assumed"].fill_null(False).sum()),
        from_0=int((kept["base"] == 0).sum()),
        from_1=int((kept["base"] == 1).sum()),
        impressions=_tally(impressions["fate"]),
        assumed_impressions=int(shown["assumed"].sum()),
        clicks=_tally(clicks["fate"]),
        without_time=kept["time"].null_count(),
    )


def _tally(fates: pl.Series) -> Tally:
    return Tally(len(fates), fates.null_count(), _counted(fates.drop_nulls()))


def _counted(values: pl.Series) -> dict[str, int]:
    """How often each value occurs, the most frequent first."""
    counts: list[tuple[Any, int]] = list(values.value_counts().iter_rows())
    return dict(sorted(counts, key=lambda item: (-item[1], item[0])))
