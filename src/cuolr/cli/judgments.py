"""`cuolr judgments`: ratings of documents from clicks, for the tools of search engineers."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from cuolr.cli.options import TimeFlags
from cuolr.cli.terminal import say, show_json, stage_bars
from cuolr.errors import InputError
from cuolr.files import check_files
from cuolr.logs.log_folder import load_click_log

if TYPE_CHECKING:
    from cuolr.off_policy.judgments import Judgments, Scale


@dataclass(frozen=True)
class RatingFlags:
    """How to rate documents.

    Attributes:
        file_format: Format of the file. By default its name says it; Quepid's CSV needs `--format quepid`.
        scale: Ratings from 0 to 1, or grades. By default 0-1, for Quepid and TREC 0-3.
        min_examinations: Leave out documents with fewer expected examinations.
    """

    file_format: Annotated[Literal["table", "workbench", "quepid", "qrels"] | None, tyro.conf.arg(name="format")] = None
    scale: Literal["0-1", "0-3", "0-4"] | None = None
    min_examinations: float = 10.0


def judgments(
    log: tyro.conf.Positional[Path],
    out: Path,
    rating: RatingFlags = RatingFlags(),
    window: TimeFlags = TimeFlags(),
    json: bool = False,
    overwrite: bool = False,
) -> None:
    """Rate documents by examination-corrected click rates, for the offline evaluation of a search engine.

    The rate of a document is its clicks, or its reward if the log has rewards, divided by its expected examinations.
    Examination is estimated from the clicks of the log. A table also has the 95 % interval of each rate.

    Ratings compare with the rate that the best tenth of the clicked documents reach: this rate and higher ones have the
    highest rating, 0 clicks the rating 0. Grades divide the range into equal parts.

    Args:
        log: Folder of a click log.
        out: File to write: .parquet or .csv for a table, .json for the Search Relevance Workbench of OpenSearch, .qrels
            or .trec for TREC.
        rating: How to rate documents.
        window: Sessions to use, by time.
        json: Print JSON instead of a message.
        overwrite: Replace existing files.
    """
    # These need torch, which takes a second to load; no other command should wait for it.
    from cuolr.off_policy.judgment_files import format_of, needs_topics, topics_file, write_judgments
    from cuolr.off_policy.judgments import judge

    chosen, min_examinations = rating.file_format or format_of(out), rating.min_examinations
    graded: Scale = rating.scale or ("0-3" if chosen in ("quepid", "qrels") else "0-1")
    if chosen == "qrels" and graded == "0-1":
        raise InputError("--scale 0-1: qrels hold whole numbers; use 0-3 or 0-4")
    check_files((out, topics_file(out) if chosen == "qrels" else None), overwrite)
    with stage_bars() as stages:
        sessions = load_click_log(log, window.window(), ids=False, stages=stages)
        found = judge(sessions, min_examinations=min_examinations, scale=graded, stages=stages)
        if not len(found.table):
            raise InputError(
                f"{log}: no document has {min_examinations:g} expected examinations; lower --min-examinations or use "
                "a longer log"
            )
        write_judgments(out, found.table, chosen)
    topics = topics_file(out) if chosen == "qrels" and needs_topics(found.table) else None
    facts = _facts(found)
    if json:
        written = {"out": str(out), "topics": None if topics is None else str(topics)}
        show_json({**written, "format": chosen, "scale": graded, **facts})
        return
    rated = "" if found.outcome == "clicks" else f", by {found.outcome}"
    say(f"wrote {out}: {facts['documents']:,} documents of {facts['queries']:,} queries, ratings {graded}{rated}")
    if topics is not None:
        say(f"wrote {topics}: the queries by number, since a TREC file cannot hold spaces")
    if found.left_out:
        say(f"note: {found.left_out:,} documents have fewer than {min_examinations:g} expected examinations: left out")
    if not found.identifiable:
        say(
            "note: position bias is not identifiable in this log: too few clicks on documents shown at several "
            "positions. Ratings of documents at different positions compare less reliably than the intervals say."
        )


def _facts(found: "Judgments") -> dict[str, Any]:
    return {
        "documents": len(found.table),
        "queries": found.table["query_id"].n_unique(),
        "left_out": found.left_out,
        "position_bias_identifiable": found.identifiable,
        "top_rate": found.top_rate,
        "outcome": found.outcome,
    }
