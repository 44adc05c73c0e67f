"""The folder of a log that the service keeps: parts in Parquet, and journals that are not yet parts.

part-000001.parquet     a row per shown document, and a row per event
journal-000002.jsonl    a line per list, and a line per event; part 2, once there is one, takes its place
"""

import io
import re
from pathlib import Path

import polars as pl

from cuolr.data.compressed_files import count_parquet_rows
from cuolr.data.tables import read_errors
from cuolr.errors import InputError
from cuolr.files import part_of

PART, JOURNAL = "part-{:06}.parquet", "journal-{:06}.jsonl"
NUMBERED = re.compile(r"(part|journal)-(\d{6,})\.(parquet|jsonl)")

# A line of a journal.
JOURNAL_SCHEMA = pl.Schema(
    {
        "kind": pl.String(),
        "time": pl.Float64(),
        "request_id": pl.String(),
        "query": pl.String(),
        "user": pl.String(),
        "model": pl.String(),
        "version": pl.String(),
        "documents": pl.List(pl.String()),
        "scores": pl.List(pl.Float64()),
        "propensity": pl.List(pl.Float64()),
        "team": pl.List(pl.String()),
        "document": pl.String(),
        "event": pl.String(),
        "value": pl.Float64(),
        "event_id": pl.String(),
    }
)
OF_BOTH = ("request_id", "timestamp")
OF_LISTS = ("query_id", "user_id", "model", "version", "position", "score", "logging_propensity", "team")
OF_EVENTS = ("event", "value", "event_id")
# A row of a part: a shown document if `position` is known, else an event.
PART_COLUMNS = (*OF_BOTH, "doc_id", *OF_LISTS, *OF_EVENTS)
NO_TEXTS = {"timestamp": pl.Datetime("us", "UTC"), "position": pl.Int32()}
NO_TEXTS |= dict.fromkeys(("score", "logging_propensity", "value"), pl.Float64())


def numbered_files(folder: Path) -> dict[int, Path]:
    """The file of each number that counts: the part or, until there is one, the journal."""
    found: dict[int, Path] = {}
    for path in sorted(folder.iterdir()):
        match = NUMBERED.fullmatch(path.name)
        if match and (match[1] == "part" or int(match[2]) not in found):
            found[int(match[2])] = path
    return dict(sorted(found.items()))


def read_part(path: Path) -> pl.DataFrame:
    """The rows of a part, or of a journal without its unfinished last line."""
    with read_errors(path):
        if path.suffix == ".parquet":
            count_parquet_rows(path)
            rows = pl.read_parquet(path, glob=False)
            if wrong := [name for name in PART_COLUMNS if rows.schema.get(name) != NO_TEXTS.get(name, pl.String())]:
                raise InputError(
                    f"{path}: expected a part of a log of cuolr serve; columns missing or of another type: "
                    + ", ".join(wrong)
                )
            return rows.select(PART_COLUMNS)
        return read_journal(path)


def read_journal(path: Path) -> pl.DataFrame:
    """The rows of a journal; what follows its last line break was not written to the end."""
    content = path.read_bytes()
    content = content[: content.rfind(b"\n") + 1]
    lines = (
        pl.read_ndjson(io.BytesIO(content), schema=JOURNAL_SCHEMA) if content else pl.DataFrame(schema=JOURNAL_SCHEMA)
    )
    lines = lines.with_columns(
        pl.from_epoch((pl.col("time") * 1e6).cast(pl.Int64), time_unit="us")
        .dt.replace_time_zone("UTC")
        .alias("timestamp")
    )
    return pl.concat([_shown(lines), _events(lines)], how="diagonal").select(PART_COLUMNS)


def files_of_log(folder: Path) -> list[Path]:
    """The files of a log, oldest first."""
    if not folder.is_dir():
        raise InputError(f"{folder}: expected the folder of a log of cuolr serve, found none")
    files = numbered_files(folder)
    if not files:
        raise InputError(f"{folder}: expected a log of cuolr serve, found no part and no journal")
    return [part_of(folder, file.name) for file in files.values()]


def shown_rows(rows: pl.DataFrame) -> pl.DataFrame:
    """A row per shown document."""
    return rows.filter(pl.col("position").is_not_null()).select(*OF_BOTH, "doc_id", *OF_LISTS)


def event_rows(rows: pl.DataFrame) -> pl.DataFrame:
    """A row per event; one that was sent again under its `event_id` counts once."""
    events = rows.filter(pl.col("event").is_not_null()).select(*OF_BOTH, "doc_id", *OF_EVENTS)
    known = pl.col("event_id").is_not_null()
    once = events.filter(known).unique(["request_id", "doc_id", "event", "event_id"], keep="first", maintain_order=True)
    return pl.concat([once, events.filter(~known)])


def _shown(lines: pl.DataFrame) -> pl.DataFrame:
    lists = lines.filter(pl.col("kind") == "list")
    # Lists without teams have as many nulls as documents, so that all columns are as long.
    team = (
        pl.when(pl.col("team").is_null())
        .then(pl.col("documents").list.eval(pl.lit(None, pl.String())))
        .otherwise("team")
    )
    return (
        lists.with_columns(team.alias("team"), pl.int_ranges(1, pl.col("documents").list.len() + 1).alias("position"))
        .explode("documents", "scores", "propensity", "team", "position")
        .select(
            *OF_BOTH,
            "model",
            "version",
            "team",
            doc_id="documents",
            query_id="query",
            user_id="user",
            position=pl.col("position").cast(pl.Int32()),
            score="scores",
            logging_propensity="propensity",
        )
    )


def _events(lines: pl.DataFrame) -> pl.DataFrame:
    return lines.filter(pl.col("kind") == "event").select(*OF_BOTH, *OF_EVENTS, doc_id="document")
