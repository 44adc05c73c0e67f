"""Tables of features and of clicks, in every format; and the formats of other systems."""

import gzip
import io
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import polars as pl

from cuolr.data.features import read_feature_table
from cuolr.logs.importing.import_log import import_log_with_report
from cuolr.logs.importing.import_options import ImportOptions
from cuolr.logs.served_log import read_journal
from fuzz.damage import Damage
from fuzz.damage.bytes import BYTES, inside_gzip
from fuzz.damage.tables import FEATHER, PARQUET
from fuzz.damage.text import TEXT
from fuzz.damage.trees_of_values import JSON_LINES
from fuzz.kinds.kind import Kind, hash_of_candidates, hash_of_log
from tests.logs.importing.formats.test_shops import write_campaign, write_items, write_searches
from tests.logs.importing.formats.test_web_search import write_part

LINES = (*TEXT, *JSON_LINES, *JSON_LINES, *BYTES)
# How a table is damaged, by the ending of its name.
FORMATS: Mapping[str, Sequence[Damage]] = {
    "parquet": (*PARQUET, *PARQUET, *BYTES),
    "feather": (*FEATHER, *FEATHER, *BYTES),
    "csv": (*TEXT, *TEXT, *BYTES),
    "ndjson": LINES,
    "csv.gz": (inside_gzip((*TEXT, *BYTES)),),
    "ndjson.gz": (inside_gzip(LINES),),
}
YANDEX = "".join(
    f"{s}\t0\tQ\t{s % 3}\t1\t" + "\t".join(str(10 + (s + i) % 9) for i in range(5)) + f"\n{s}\t1\tC\t{10 + s % 9}\n"
    for s in range(6)
)
TIANGONG = """5\t30\t[101, 102, 103]\t[1, 1, 19]\t[0, 1, 0]
5\t31\t[201, 101]\t[1, 1]\t[0, 0]
6\t30\t[103, 101, 102]\t[1, 1, 1]\t[1, 1, 0]
"""


def feature_table() -> pl.DataFrame:
    """Documents with features of each kind."""
    rng = np.random.default_rng(0)
    return pl.DataFrame(
        {
            "query_id": [f"q{i // 4}" for i in range(16)],
            "doc_id": [f"d{i % 4}" for i in range(16)],
            "price": [None if i == 3 else round(float(x), 3) for i, x in enumerate(rng.random(16))],
            "stock": rng.integers(0, 50, 16),
            "brand": [["a", "b", "c"][i % 3] for i in range(16)],
            "new": [i % 2 == 0 for i in range(16)],
            "since": [f"2026-01-{i + 1:02d}" for i in range(16)],
        }
    )


def click_table() -> pl.DataFrame:
    """Impressions with clicks."""
    rng = np.random.default_rng(1)
    rows = [(f"q{s % 4}", f"s{s}", p, f"d{(p + s) % 4}", int(rng.random() < 0.4)) for s in range(12) for p in (1, 2, 3)]
    return pl.DataFrame(rows, ["query_id", "session_id", "position", "doc_id", "click"], orient="row").with_columns(
        timestamp=pl.lit(1_700_000_000) + pl.int_range(pl.len()), device=pl.lit("mobile")
    )


def maker(table: Callable[[], pl.DataFrame], ending: str) -> Callable[[Path], None]:
    """Writes the table in a format."""

    def make(folder: Path) -> None:
        (folder / "table").mkdir()
        write = {"parquet": "write_parquet", "feather": "write_ipc", "csv": "write_csv", "ndjson": "write_ndjson"}
        written = io.BytesIO()
        getattr(table(), write[ending.removesuffix(".gz")])(written)
        content = written.getvalue()
        compressed = gzip.compress(content, mtime=0) if ending.endswith(".gz") else content
        (folder / "table" / f"table.{ending}").write_bytes(compressed)

    return make


def read_features(folder: Path) -> str:
    """The documents of a table."""
    return hash_of_candidates(read_feature_table(next(folder.glob("table.*"))))


def reader(form: str = "table") -> Callable[[Path], str]:
    """Imports a log of this form."""

    def read(folder: Path) -> str:
        files = sorted(folder.iterdir())
        log, _ = import_log_with_report(files, options=ImportOptions(max_dropped=1.0), format=form)
        return hash_of_log(log)

    return read


def text_maker(text: str) -> Callable[[Path], None]:
    """Writes a text."""

    def make(folder: Path) -> None:
        (folder / "text").mkdir()
        (folder / "text" / "log.txt").write_text(text)

    return make


def make_ubi(folder: Path) -> None:
    """Queries and events of User Behavior Insights."""
    records: list[dict[str, object]] = []
    for number in range(4):
        at = {"query_id": f"L{number}", "timestamp": f"2024-12-10T00:00:0{number}Z", "client_id": f"c{number}"}
        records.append({**at, "user_query": "red shoes", "query_response_hit_ids": ["a", "b", "c"]})
        for position, document in enumerate("abc", start=1):
            attributes = {"object": {"object_id": document}, "position": {"ordinal": position}}
            records.append({**at, "action_name": "impression", "event_attributes": attributes})
        records.append({**at, "action_name": "click", "event_attributes": {"object": {"object_id": "b"}}})
    (folder / "text").mkdir()
    (folder / "text" / "ubi.ndjson").write_text("".join(json.dumps(record) + "\n" for record in records))


def make_clax(folder: Path) -> None:
    """Parquet with a row per session."""
    (folder / "table").mkdir()
    table = pl.DataFrame(
        {"query_doc_ids": [[1, 2, 3], [3, 1], [4, 5]], "clicks": [[0, 1, 0], [1, 0], [0, 0]], "query_id": [1, 1, 2]}
    )
    table.write_parquet(folder / "table" / "sessions.parquet")


def make_open_bandit(folder: Path) -> None:
    """The log of a campaign, and its items."""
    written = write_campaign(folder.parent / "campaign", "random", rows=12, items=4)
    (folder / "table").mkdir()
    written.rename(folder / "table" / "all.csv")
    write_items(folder / "table", items=4)


def make_served(folder: Path) -> None:
    """A journal of the service, and the part that it becomes."""
    at = {"time": 1.7e9, "query": "q", "user": None, "model": "m", "version": "v", "team": None}
    lists = {"documents": ["a", "b", "c"], "scores": [3.0, 2.5, 1], "propensity": [1.0, 0.5, 1.0]}
    lines: list[dict[str, object]] = [{"kind": "list", "request_id": f"r{i}", **at, **lists} for i in range(3)]
    lines[0]["team"] = ["x", "y", "x"]
    for number, event in enumerate(("click", "purchase", "click")):
        shown = {"request_id": f"r{number}", "document": "b", "event": event, "value": 1.0, "event_id": f"e{number}"}
        lines.append({"kind": "event", "time": 1.7e9 + number, **shown})
    for name in ("journal", "part"):
        (folder / name).mkdir()
    journal = folder / "journal" / "journal-000001.jsonl"
    journal.write_text("".join(json.dumps(line) + "\n" for line in lines))
    read_journal(journal).write_parquet(folder / "part" / "part-000001.parquet")


def in_a_folder(write: Callable[[Path], object], name: str) -> Callable[[Path], None]:
    """Writes one file into a folder of its own."""

    def make(folder: Path) -> None:
        (folder / "table").mkdir()
        write(folder / "table" / name)

    return make


KINDS = (
    *(
        Kind(f"features, {ending}", maker(feature_table, ending), read_features, {"table.*": d})
        for ending, d in FORMATS.items()
    ),
    *(Kind(f"clicks, {ending}", maker(click_table, ending), reader(), {"table.*": d}) for ending, d in FORMATS.items()),
    *(
        Kind(f"{name}, {ending} damaged", maker(table, ending), read, {"table.*": BYTES}, checksum=True)
        for name, table, read in (("features", feature_table, read_features), ("clicks", click_table, reader()))
        for ending in ("csv.gz", "ndjson.gz")
    ),
    Kind("UBI", make_ubi, reader("ubi"), {"*": LINES}),
    Kind("Yandex", text_maker(YANDEX), reader("yandex"), {"*": (*TEXT, *BYTES)}),
    Kind("TianGong-ST", text_maker(TIANGONG), reader("tiangong-st"), {"*": (*TEXT, *BYTES)}),
    Kind("CLAX, parquet", make_clax, reader("clax"), {"*": (*PARQUET, *BYTES)}),
    Kind(
        "Baidu-ULTR, feather",
        in_a_folder(lambda path: write_part(path, lists=3, documents=3, embedding=False), "part-0_split-0.feather"),
        reader("baidu-ultr-uva"),
        {"*": (*FEATHER, *FEATHER, *BYTES)},
    ),
    Kind(
        "Expedia",
        in_a_folder(lambda path: write_searches(path, searches=3, hotels=4), "train.csv"),
        reader("expedia"),
        {"*": (*TEXT, *TEXT, *BYTES)},
    ),
    Kind("Open Bandit", make_open_bandit, reader("open-bandit"), {"*": (*TEXT, *TEXT, *BYTES)}),
    Kind("log of serve", make_served, reader("cuolr-serve"), {"*.jsonl": LINES, "*.parquet": FORMATS["parquet"]}),
)
