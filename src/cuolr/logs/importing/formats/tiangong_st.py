"""`tiangong-st`: sessions of Sogou web search, TianGong-ST, in the text form with a line per query."""

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from cuolr.errors import InputError
from cuolr.logs.importing.importer import IMPORTERS, LogImporter, SourceCounts, SourceLog, SourceLoss
from cuolr.logs.importing.source_tables import in_turn, list_numbers, read_fields, share_of_bytes
from cuolr.progress import Progress, Share, no_progress, share_of

COLUMNS = ("session", "query_id", "documents", "verticals", "clicks")

# The share of the time to read lines, roughly; the rest is to make rows of them.
READING = 0.5


@IMPORTERS.register("tiangong-st")
class TianGongImporter(LogImporter):
    """Each line is a list: session, query, then document ids, vertical types and clicks in brackets, tab-separated.

    The human grades are in a file of their own, which `cuolr experiment real --labels` reads.
    """

    def read(self, files: Sequence[Path], progress: Progress = no_progress) -> SourceLog:
        """Read one or more text files."""
        done = share_of_bytes(files, progress)
        read = [_lists(file, number, advance) for number, file, advance in in_turn(files, share_of(done, READING))]
        lists = pl.concat(read)
        size = pl.col("doc_id").list.len()
        good = lists.filter((size > 0) & (size == pl.col("click").list.len()))
        if not len(good):
            raise InputError(
                f"{files[0]}: expected lines of session, query, [documents], [vertical types] and [clicks], separated "
                "by tabs, found none"
            )
        table = good.with_columns(position=pl.int_ranges(1, pl.col("doc_id").list.len() + 1)).explode(
            "doc_id", "click", "position"
        )
        done(1 - READING)
        bad, reason = len(lists) - len(good), "lists without documents, or with another number of clicks"
        return SourceLog(
            table.select("query_id", "session_id", "position", "doc_id", "click"),
            report=SourceCounts("TianGong-ST", {"lists": len(lists), f"{reason}: dropped": bad}),
            losses=(SourceLoss("sessions", len(lists), {reason: bad}),),
        )


def _lists(file: Path, number: int, progress: Share) -> pl.DataFrame:
    return read_fields(file, COLUMNS, progress).select(
        "query_id",
        session_id=list_numbers(number),
        doc_id=_items("documents"),
        click=_items("clicks"),
    )


def _items(name: str) -> pl.Expr:
    """The items of a list in brackets, as texts; none where there is no list."""
    inside = pl.col(name).fill_null("").str.strip_chars("[]")
    items = inside.str.split(",").list.eval(pl.element().str.strip_chars().str.strip_chars("'\""))
    return items.list.filter(pl.element() != "")
