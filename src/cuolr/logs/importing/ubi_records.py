"""The records of User Behavior Insights (UBI), schema 1.0 to 1.3: `ubi_queries` and `ubi_events` as flat tables.

https://www.ubisearch.dev. A file is NDJSON (records, the bulk format of OpenSearch and Elasticsearch, or exported hits
with `_source`; gzipped or not) or Parquet. A record with an `action_name` is an event, another with a `user_query` or a
`query_id` a query.
"""

import datetime
import json
import math
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import polars as pl

from cuolr.data.compressed_files import count_parquet_rows, open_gzip
from cuolr.data.tables import PARQUET, read_errors
from cuolr.errors import InputError
from cuolr.files import require_file, size_of
from cuolr.progress import Progress, in_shares, no_progress

# Actions of events, in lower case. `view` and `click_through` are of older schemas.
IMPRESSIONS = ("impression", "view")
CLICKS = ("click", "click_through")
NDJSON = (".ndjson", ".jsonl", ".json", ".ndjson.gz", ".jsonl.gz", ".json.gz")
# Lines of the bulk format that say what to do with the record on the next line.
BULK_ACTIONS = ({"index"}, {"create"}, {"update"}, {"delete"})
# Records that are held as Python objects.
RECORDS_AT_A_TIME = 1 << 16
# Lines after which progress is reported.
LINES_AT_A_TIME = 1 << 10
# An epoch time above this is in milliseconds: in seconds it would be the year 5138.
MAX_SECONDS = 100_000_000_000

Schema: TypeAlias = dict[str, type[pl.DataType] | pl.DataType]
QUERY_SCHEMA: Schema = {
    "list": pl.String,
    "text": pl.String,
    "hits": pl.List(pl.String),
    "time": pl.Int64,
    "user": pl.String,
}
EVENT_SCHEMA: Schema = {
    "list": pl.String,
    "application": pl.String,
    "action": pl.String,
    "doc_id": pl.String,
    "ordinal": pl.Int64,
    "text": pl.String,
    "time": pl.Int64,
    "user": pl.String,
}


@dataclass(frozen=True)
class UbiRecords:
    """All records of some files; null where a field is missing or of no use.

    Attributes:
        queries: list (the `query_id` of UBI), text, hits (documents of the response in their order), time (in
            microseconds since 1970), user (the `client_id` of UBI).
        events: list, application, action, doc_id, ordinal (as it is, from 0 or 1), text, time, user.
        other: Records that are neither.
    """

    queries: pl.DataFrame
    events: pl.DataFrame
    other: int


def read_records(files: Sequence[Path], progress: Progress = no_progress) -> UbiRecords:
    """Read the records of all files together.

    Args:
        files: NDJSON or Parquet.
        progress: Called with the number of bytes of the files that were read since the last call.
    """
    queries: list[pl.DataFrame] = [pl.DataFrame(schema=QUERY_SCHEMA)]
    events: list[pl.DataFrame] = [pl.DataFrame(schema=EVENT_SCHEMA)]
    other = 0
    for file in files:
        for records in _batches(_records(file, progress)):
            of_events = [record for record in records if record.get("action_name") is not None]
            of_queries = [record for record in records if record.get("action_name") is None and _is_query(record)]
            queries.append(pl.DataFrame(map(_query, of_queries), schema=QUERY_SCHEMA, orient="row"))
            events.append(pl.DataFrame(map(_event, of_events), schema=EVENT_SCHEMA, orient="row"))
            other += len(records) - len(of_queries) - len(of_events)
    return UbiRecords(pl.concat(queries), pl.concat(events), other)


def _records(file: Path, progress: Progress) -> Iterator[Mapping[str, Any]]:
    require_file(file)
    name = file.name.lower()
    if name.endswith(PARQUET):
        with read_errors(file):
            count_parquet_rows(file)
            table = pl.read_parquet(file, glob=False)
        done = in_shares(progress, size_of(file))
        for part in table.iter_slices(RECORDS_AT_A_TIME):
            yield from part.iter_rows(named=True)
            done(len(part) / len(table))
    elif name.endswith(NDJSON):
        yield from _json_records(file, progress)
    else:
        raise InputError(
            f"{file}: expected UBI records in a file whose name ends in .ndjson, .jsonl, .json or .parquet"
        )


def _json_records(file: Path, progress: Progress) -> Iterator[Mapping[str, Any]]:
    seen = 0
    with read_errors(file), file.open("rb") as raw:
        try:
            lines = open_gzip(file, raw) if file.name.lower().endswith(".gz") else raw
            for number, line in enumerate(lines, start=1):
                if number % LINES_AT_A_TIME == 0:
                    progress(raw.tell() - seen)
                    seen = raw.tell()
                if not line.strip():
                    continue
                try:
                    record = json.loads(line)
                except (ValueError, RecursionError):
                    record = None
                if not isinstance(record, dict):
                    found = line[:60].decode(errors="replace").strip()
                    raise InputError(f"{file}:{number}: expected a JSON object in UTF-8, found {found!r}")
                if record.keys() not in BULK_ACTIONS:
                    source = record.get("_source")
                    yield source if isinstance(source, dict) else record
        except (EOFError, zlib.error) as error:
            raise InputError(f"{file}: cannot be read: {error}") from None
        progress(raw.tell() - seen)


def _batches(records: Iterable[Mapping[str, Any]]) -> Iterator[list[Mapping[str, Any]]]:
    batch: list[Mapping[str, Any]] = []
    for record in records:
        batch.append(record)
        if len(batch) == RECORDS_AT_A_TIME:
            yield batch
            batch = []
    yield batch


def _is_query(record: Mapping[str, Any]) -> bool:
    return record.get("user_query") is not None or record.get("query_id") is not None


def _query(record: Mapping[str, Any]) -> tuple[Any, ...]:
    """A row of `QUERY_SCHEMA`."""
    hits = record.get("query_response_hit_ids")
    if hits is None:
        hits = record.get("query_response_object_ids")
    documents = [_text(hit) for hit in hits] if isinstance(hits, list) else []
    return (
        _text(record.get("query_id")),
        _text(record.get("user_query")),
        documents,
        _time(record.get("timestamp")),
        _text(record.get("client_id")),
    )


def _event(record: Mapping[str, Any]) -> tuple[Any, ...]:
    """A row of `EVENT_SCHEMA`."""
    ordinal = _at(record, "event_attributes", "position", "ordinal")
    if isinstance(ordinal, dict):
        ordinal = ordinal.get("index")
    elif ordinal is None:
        ordinal = _at(record, "event_attributes", "position", "ordinal", "index")
    return (
        _text(record.get("query_id")),
        _text(record.get("application")) or "",
        (_text(record["action_name"]) or "").lower(),
        _text(_at(record, "event_attributes", "object", "object_id")),
        _ordinal(ordinal),
        _text(record.get("user_query")),
        _time(record.get("timestamp")),
        _text(record.get("client_id")),
    )


def _at(record: Mapping[str, Any], *path: str) -> Any:
    """A value by its path, whether fields are nested, written with dots, or a text with JSON in it; None = none."""
    value: Any = record
    for name in path:  # nested, as nearly always
        value = value.get(name) if isinstance(value, dict) else None
    if value is not None:
        return value
    for end in range(len(path), 0, -1):
        value = record.get(".".join(path[:end]))
        if value is not None and end == len(path):
            return value
        inner = _fields(value)
        if inner and end < len(path) and (found := _at(inner, *path[end:])) is not None:
            return found
    return None


def _fields(value: Any) -> Mapping[str, Any] | None:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return None
    return value if isinstance(value, dict) else None


def _text(value: Any) -> str | None:
    """An id or a query without surrounding spaces; None where nothing is left, or that is no valid id."""
    if value is None or isinstance(value, bool | dict | list):
        return None
    text = str(value).strip()
    if not text or "\0" in text or not (text.isascii() or _is_unicode(text)):
        return None
    return text


def _is_unicode(text: str) -> bool:
    """Whether UTF-8 can hold it: JSON can have half of a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _ordinal(value: Any) -> int | None:
    """A whole number from 0 up."""
    if isinstance(value, bool | dict | list):
        return None
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return int(number) if number.is_integer() and 0 <= number < 2**31 - 1 else None


def _time(value: Any) -> int | None:
    """Microseconds since 1970; a time without a zone is in UTC."""
    try:
        if isinstance(value, str):
            value = value.strip()
            # fromisoformat takes 20241210 for a date.
            value = float(value) if value.isdigit() else datetime.datetime.fromisoformat(value)
        if isinstance(value, datetime.datetime):
            moment = value if value.tzinfo else value.replace(tzinfo=datetime.UTC)
            return (moment - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)) // datetime.timedelta(microseconds=1)
    except (ValueError, OverflowError):
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    micros = value * 1000 if abs(value) > MAX_SECONDS else value * 1_000_000
    return round(micros) if abs(micros) < 2**60 else None
