"""`ubi`: User Behavior Insights of OpenSearch, Elasticsearch or Solr, schema 1.0 to 1.3."""

from collections.abc import Sequence
from pathlib import Path

from cuolr.errors import InputError
from cuolr.logs.importing.importer import IMPORTERS, LogImporter, SourceLog
from cuolr.logs.importing.ubi_lists import read_ubi
from cuolr.logs.importing.ubi_report import UbiReport
from cuolr.progress import Progress, no_progress


@IMPORTERS.register("ubi")
class UbiImporter(LogImporter):
    """Makes a list of each `query_id`: what was shown and what was clicked. The query is named by its text."""

    def read(self, files: Sequence[Path], progress: Progress = no_progress) -> SourceLog:
        """Read queries and events, in one or more files."""
        table, report = read_ubi(files, progress)
        if not len(table):
            reasons = "; ".join(f"{reason}: {number:,}" for reason, number in report.dropped.items())
            raise InputError(
                f"expected UBI lists with a query text and impressions, found {report.lists:,} lists, none of them "
                f"usable{f' ({reasons})' if reasons else ''}, in {report.queries:,} queries and {report.events:,} "
                "events"
            )
        return SourceLog(table, notes=tuple(_notes(report)), report=report, losses=report.losses())


def _notes(report: UbiReport) -> list[str]:
    notes = []
    if report.assumed:
        notes.append(
            f"assumed: {report.assumed:,} lists have no impression events; all of their response is taken as shown"
        )
    if report.without_time:
        notes.append(f"{report.without_time:,} lists have no timestamp; the log is without timestamps")
    return notes
