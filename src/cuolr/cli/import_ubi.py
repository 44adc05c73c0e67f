"""`cuolr import-ubi`: a click log from the records of User Behavior Insights."""

from collections.abc import Mapping
from pathlib import Path

import tyro

from cuolr.cli.feature_flags import FeatureFlags, flags_in_problems
from cuolr.cli.options import LetorFlags
from cuolr.cli.terminal import say, show_json, show_table, spinner
from cuolr.files import refuse_existing
from cuolr.logs.importing.import_ubi import import_ubi as read_log
from cuolr.logs.importing.ubi_report import UbiReport
from cuolr.logs.log_folder import SESSIONS_FILE, save_click_log


def import_ubi(
    files: tyro.conf.Positional[tuple[Path, ...]],
    out: Path,
    features: FeatureFlags = FeatureFlags(),
    dry_run: bool = False,
    json: bool = False,
    overwrite: bool = False,
    letor: LetorFlags = LetorFlags(),
) -> None:
    """Import User Behavior Insights (UBI) of OpenSearch, Elasticsearch or Solr: ubi_queries and ubi_events.

    Reads schema 1.0 to 1.3. Each query_id of UBI becomes a session. Positions from 0 and from 1 are recognised. Lists
    without impression events are taken from the response of the query, and reported as assumed. What cannot be used is
    dropped, and counted by reason.

    Without features the log serves for click rates, propensities and judgments, not for training. The query_id of
    features is the query's text.

    Args:
        files: NDJSON (also as a bulk request, also gzipped) or Parquet, with queries, events or both.
        out: Folder of the log.
        features: Features of documents and queries.
        dry_run: Report what would be imported, and write nothing.
        json: Print JSON instead of tables.
        overwrite: Replace an existing log.
        letor: How to read LETOR features.
    """
    if not dry_run:
        refuse_existing(out, overwrite, ours=SESSIONS_FILE)
    with spinner("importing UBI records"), flags_in_problems():
        log, report = read_log(files, features.tables() if features.given else None, letor.options())
        if not dry_run:
            source = {"ubi": [str(file) for file in files], **features.given}
            save_click_log(log, out, source, overwrite)
    if json:
        written = {"out": None if dry_run else str(out), "sessions": log.sessions, "queries": log.candidates.n_queries}
        show_json({**written, "k": log.k, "report": report.as_dict()})
        return
    _show(report)
    if dry_run:
        say("dry run: nothing was written")
    else:
        say(f"wrote {out}: {log.sessions:,} sessions; describe it with: cuolr log-info {out}")


def _show(report: UbiReport) -> None:
    dropped = sum(report.dropped.values())
    rows = [
        ["queries", f"{report.queries:,}"],
        ["events", f"{report.events:,}"],
        *([["records that are neither", f"{report.other_records:,}"]] if report.other_records else []),
        *([["queries without a query_id", f"{report.queries_without_id:,}"]] if report.queries_without_id else []),
        *([f"events not used: {action}", f"{number:,}"] for action, number in report.other_events.items()),
        ["lists", f"{report.lists:,}"],
        ["  complete", f"{report.complete:,}"],
        ["  repaired", f"{report.repaired:,}"],
        ["  dropped", f"{dropped:,}"],
        ["kept lists, positions from 0", f"{report.from_0:,}"],
        ["kept lists, positions from 1", f"{report.from_1:,}"],
        ["kept lists, impressions assumed from the response", f"{report.assumed:,}"],
        ["impressions kept", f"{report.impressions.kept:,} of {report.impressions.found:,}"],
        ["clicks kept", f"{report.clicks.kept:,} of {report.clicks.found:,}"],
    ]
    show_table("UBI records", ["", ""], rows)
    _show_reasons("lists repaired, by reason", report.repairs)
    _show_reasons("lists dropped, by reason", report.dropped)
    _show_reasons("impressions dropped, by reason", report.impressions.dropped)
    _show_reasons("clicks dropped, by reason", report.clicks.dropped)
    if report.without_time:
        say(f"note: {report.without_time:,} lists have no timestamp; the log is without timestamps")


def _show_reasons(title: str, reasons: Mapping[str, int]) -> None:
    if reasons:
        show_table(title, ["", ""], [[reason, f"{number:,}"] for reason, number in reasons.items()])
