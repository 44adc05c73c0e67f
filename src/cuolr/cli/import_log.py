"""`cuolr import-log`: check and repair a click log and convert it for training."""

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from cuolr.cli.feature_flags import (
    LogFeatureFlags,
    NamedColumns,
    flags_in_problems,
    parse_columns,
    with_flags,
)
from cuolr.cli.options import LetorFlags, Name, RetentionFlags
from cuolr.cli.terminal import in_one_line, progress_bar, say, show_json, show_table, show_text, stage_bars
from cuolr.data.feature_tables import FeatureTables
from cuolr.errors import InputError
from cuolr.files import refuse_existing
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.hashed_ids import HASHED_WITH, IdKey
from cuolr.logs.importing.import_log import TABLE, import_log_with_report
from cuolr.logs.importing.import_options import FirstPosition, ImportOptions
from cuolr.logs.importing.import_report import ImportFinding, ImportReport, TooManyDroppedError
from cuolr.logs.importing.log_rows import find_tables
from cuolr.logs.log_folder import SESSIONS_FILE, save_click_log

FIRST_POSITIONS: dict[str, FirstPosition] = {"auto": "auto", "0": 0, "1": 1}


@dataclass(frozen=True)
class PersonalFlags:
    """Personal data.

    Attributes:
        hash_ids: Replace the ids of queries, sessions and users by hashes with the key in this file (16 bytes or more).
        no_session_ids: Leave the ids of sessions out of the log; they serve to merge logs and to delete sessions.
    """

    hash_ids: Annotated[Path | None, tyro.conf.arg(metavar="KEYFILE")] = None
    no_session_ids: bool = False


@dataclass(frozen=True)
class RepairFlags:
    """How to read the files: what columns mean, what to repair and what to drop.

    Attributes:
        format: Format of the files (`cuolr list formats`).
        k: Truncate lists to this length. By default the longest is kept.
        column: The table's name of a column that is called otherwise, such as `doc_id=product_id`; also of tables of
            features that have it.
        reward: What to maximise, if not clicks: columns with weights, such as `click=1,cart=3,purchase=10`, or a column
            of numbers, such as `revenue`.
        context: A column that describes the session, such as device or layout, on which examination may depend.
        one_query: All sessions are of one query, as in a log of recommendations; query_id is not needed.
        first_position: Number of the first position of a page; auto finds out.
        max_dropped: Stop if more than this share of the sessions, impressions or clicks has to be dropped.
        strict: Every problem is an error.
        dry_run: Print the report and write nothing.
    """

    format: Name = TABLE
    k: int | None = None
    column: NamedColumns = ()
    reward: Annotated[str | None, tyro.conf.arg(metavar="COLUMN=WEIGHT,…")] = None
    context: Annotated[tuple[str, ...], tyro.conf.arg(metavar="COLUMN"), tyro.conf.UseAppendAction] = ()
    one_query: bool = False
    first_position: Literal["auto", "0", "1"] = "auto"
    max_dropped: Annotated[str, tyro.conf.arg(metavar="SHARE")] = "5%"
    strict: bool = False
    dry_run: bool = False
    keeping: RetentionFlags = field(default_factory=RetentionFlags)
    personal: PersonalFlags = field(default_factory=PersonalFlags)

    def options(self) -> ImportOptions:
        """As the importer takes them."""
        if self.column and self.format != TABLE:
            raise InputError(f"--column: the columns of --format {self.format} are known; name columns of tables only")
        return ImportOptions(
            self.k,
            self.strict,
            self._share(),
            parse_columns(self.column),
            FIRST_POSITIONS[self.first_position],
            self.keeping.window(),
            not self.personal.no_session_ids,
            None if self.personal.hash_ids is None else IdKey.read(self.personal.hash_ids),
            self.reward,
            self.context,
            self.one_query,
        )

    def _share(self) -> float:
        """A share, as a number up to 1 or as a percentage."""
        try:
            share = float(self.max_dropped.removesuffix("%")) / (100 if self.max_dropped.endswith("%") else 1)
        except ValueError:
            share = -1
        if not 0 <= share <= 1:
            raise InputError(f"--max-dropped: expected a share such as 5% or 0.05, found '{self.max_dropped}'")
        return share


def import_log(
    tables: tyro.conf.Positional[tuple[str, ...]],
    features: LogFeatureFlags = LogFeatureFlags(),
    out: Path | None = None,
    json: bool = False,
    overwrite: bool = False,
    repair: RepairFlags = RepairFlags(),
    letor: LetorFlags = LetorFlags(),
) -> None:
    """Import a click log: a table of shown and clicked documents, the log of a search engine or a public data set.

    A table has a row per shown document with the columns query_id, session_id, position, doc_id and click (0 or 1), and
    optionally logging_propensity, examination, timestamp, reward, user_id and randomised (the list was in random
    order). For other formats, see `cuolr list formats`. Gaps in the positions, documents without features, click counts
    and rewards without a click are repaired. Sessions with other problems are dropped. A report counts both, with
    examples.

    Features may be numbers, booleans, categories and dates, with missing values; files are tables as the log's. They
    replace those of a public data set. Without features, the log serves for examination, click rates and judgments, not
    for training.

    Args:
        tables: Files of the format. Tables: Parquet, Feather, CSV, TSV or JSON lines, the last three also as .gz or
            .zst. Patterns such as 'day-*.csv' are expanded.
        features: Features of documents, queries and impressions.
        out: Folder of the log. Required without --dry-run.
        json: Print JSON instead of a table.
        overwrite: Replace an existing log.
        repair: How to read the files: what columns mean, what to repair and what to drop.
        letor: How to read LETOR features.
    """
    if out is None and not repair.dry_run:
        raise InputError("--out: expected the folder to write the log to; to write nothing, use --dry-run")
    if out is not None and not repair.dry_run:
        refuse_existing(out, overwrite, ours=SESSIONS_FILE)
    with flags_in_problems():
        options = repair.options()
    feature_tables = features.tables() if features.given else None
    files = list(find_tables(tables))
    try:
        with flags_in_problems():
            log, report = _read(files, feature_tables, (repair.format, options), letor)
    except TooManyDroppedError as error:
        if repair.dry_run:
            _show(error.report, json)
            raise InputError(_with_flag(error.headline)) from None
        raise InputError([_with_flag(error.headline), *error.report.lines()]) from None
    written: dict[str, Any] = {}
    if out is not None and not repair.dry_run:
        source: dict[str, Any] = {
            "format": repair.format,
            "tables": [str(file) for file in files],
            **features.given,
        }
        if options.id_key is not None:
            source[HASHED_WITH] = options.id_key.name
        if options.reward_weights:
            source["reward"] = options.reward_weights
        with progress_bar(f"writing {out.name}", len(log)) as progress:
            save_click_log(log, out, {**source, "import": report.to_dict(examples=False)}, overwrite, progress)
        written = {"out": str(out)}
    noted = options.window or report.source is not None or report.source_notes
    if json or repair.dry_run or noted or not report.is_clean:
        _show(report, json, {**written, "sessions": log.sessions, "queries": log.candidates.n_queries, "k": log.k})
    else:
        _say_notes(report)
    if written and not json:
        say(f"wrote {out}: {log.sessions:,} sessions; describe it with: cuolr log-info {out}")


def _read(
    files: list[Path], tables: FeatureTables | None, how: tuple[str, ImportOptions], letor: LetorFlags
) -> tuple[ClickLog, ImportReport]:
    with stage_bars() as stages:
        return import_log_with_report(files, tables, how[1], how[0], letor.options(), stages)


def _with_flag(headline: str) -> str:
    return headline.replace("max_dropped = ", "--max-dropped ")


def _say_notes(report: ImportReport) -> None:
    for note in report.notes:
        say(f"note: {with_flags(note)}")


def _show(report: ImportReport, json: bool, more: dict[str, Any] | None = None) -> None:
    """Print the report: a table for people, JSON for programs."""
    if json:
        show_json({**(more or {}), "report": report.to_dict()})
        return
    _say_notes(report)
    for title, counts in report.source.tables() if report.source is not None else ():
        show_table(title, ["", ""], counts)
    rows = [("read", ImportFinding("", report.read)), ("kept", ImportFinding("", report.kept))]
    rows += [("repaired", found) for found in report.repaired]
    rows += [("dropped", found) for found in report.dropped]
    show_table(
        ", ".join(report.tables[:3]) + (f" and {len(report.tables) - 3} more" if len(report.tables) > 3 else ""),
        ("", "reason", "sessions", "impressions", "clicks"),
        [(what, row.reason, *(f"{number:,}" for number in asdict(row.amounts).values())) for what, row in rows],
        left=(0, 1),
    )
    # What is repaired in a session and dropped of it has the same examples.
    for reason, examples in {row.reason: row.examples for _, row in rows if row.examples}.items():
        show_text("\n  ".join([f"{reason}, for example:", *map(in_one_line, examples)]))
