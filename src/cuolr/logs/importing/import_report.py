"""What became of the rows of an imported table."""

import warnings
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

from cuolr.errors import InputError, InputWarning
from cuolr.logs.importing.importer import SourceLoss, SourceReport

MAX_EXAMPLES = 3
# With fewer, it may be chance that none or all were clicked.
MIN_IMPRESSIONS = 100
# Why a session is dropped that has the rows of several shown lists.
SEVERAL_QUERIES, POSITION_TWICE = "several queries", "position twice"
SEVERAL_LISTS = (SEVERAL_QUERIES, POSITION_TWICE)
SEVERAL_LISTS_HINT = (
    "; session_id seems to stand for several shown lists, such as those of a visit, or of the same number on another "
    "day: give each list an id of its own"
)
# Rows that the caller asked to leave out, which are no fault of the table.
CUT = "after the last of the k positions"
OUTSIDE = "outside the time window"
AS_ASKED = (CUT, OUTSIDE)
# Nothing is lost with these rows.
REPEATED = "row that repeats another"


@dataclass(frozen=True)
class Amounts:
    """Numbers of sessions, of impressions (rows of the table) and of clicks (rows with a click)."""

    sessions: int
    impressions: int
    clicks: int

    def __add__(self, other: "Amounts") -> "Amounts":
        return Amounts(self.sessions + other.sessions, self.impressions + other.impressions, self.clicks + other.clicks)


@dataclass(frozen=True)
class ImportFinding:
    """One kind of problem.

    Attributes:
        reason: What is wrong.
        amounts: Of a repair, the sessions in which it was made. Of what was dropped, the sessions that were dropped as
            a whole, and all impressions and clicks that were.
        examples: A line each, with the row.
    """

    reason: str
    amounts: Amounts
    examples: tuple[str, ...] = ()


@dataclass(frozen=True)
class ImportReport:
    """What became of the rows of a table: impressions and clicks read = kept + dropped.

    Attributes:
        tables: Names of the files.
        first_position: The number of the first position of a page in the table, 0 or 1.
        read: All that is in the table.
        kept: What is in the log.
        repaired: What was changed, by kind.
        dropped: What is not in the log, by reason.
        guesses: What was found out about the values of columns.
        source_notes: What the importer of the format assumed.
        source: What it found before the table was checked.
        source_losses: What it could not use.
    """

    tables: tuple[str, ...]
    first_position: int
    read: Amounts
    kept: Amounts
    repaired: tuple[ImportFinding, ...] = ()
    dropped: tuple[ImportFinding, ...] = ()
    guesses: tuple[str, ...] = ()
    source_notes: tuple[str, ...] = ()
    source: SourceReport | None = None
    source_losses: tuple[SourceLoss, ...] = ()

    def __add__(self, other: "ImportReport") -> "ImportReport":
        """The report of two parts of the same tables, without a session in common."""
        return replace(
            self,
            read=self.read + other.read,
            kept=self.kept + other.kept,
            repaired=_together(self.repaired + other.repaired),
            dropped=_together(self.dropped + other.dropped),
        )

    @property
    def is_clean(self) -> bool:
        """Whether the table was taken as it is, but for what the caller asked to leave out."""
        as_told = all(found.reason in AS_ASKED for found in self.dropped)
        return as_told and not self.repaired and self.first_position == 1 and not self._doubts

    @property
    def dropped_shares(self) -> dict[str, float]:
        """The share of the sessions, impressions and clicks that could not be used, by the importer or in the table."""
        totals: dict[str, int] = asdict(self.read)
        lost = {
            unit: sum(
                getattr(found.amounts, unit) for found in self.dropped if found.reason not in (*AS_ASKED, REPEATED)
            )
            for unit in totals
        }
        for loss in self.source_losses:
            totals[loss.unit] = loss.found
            lost[loss.unit] = lost.get(loss.unit, 0) + loss.total
        return {unit: lost[unit] / total if total else 0.0 for unit, total in totals.items()}

    @property
    def notes(self) -> list[str]:
        """What was found out about the table as a whole."""
        start = ["positions start at 0 in the table"] if self.first_position == 0 else []
        return [*self.source_notes, *start, *self.guesses, *self._doubts]

    @property
    def _doubts(self) -> list[str]:
        """What makes the log useless to learn from."""
        if self.kept.impressions < MIN_IMPRESSIONS:
            return []
        if not self.kept.clicks:
            return ["no document was clicked: there is nothing to learn from"]
        if self.kept.clicks == self.kept.impressions:
            return ["every document was clicked: the table seems to lack what was shown and not clicked"]
        return []

    def summary(self) -> str:
        """One line with all counts."""
        parts = [f"kept {self.kept.sessions:,} of {self.read.sessions:,} sessions", *self.notes]
        parts += [f"repaired {_count(found.amounts)} ({found.reason})" for found in self.repaired]
        parts += [f"dropped {_count(found.amounts)} ({found.reason})" for found in self.dropped]
        return "; ".join(parts)

    def warn(self) -> None:
        """Warn with all counts, unless the table was taken as it is."""
        if not self.is_clean:
            warnings.warn(self.summary(), InputWarning, stacklevel=3)

    def lines(self) -> Iterator[str]:
        """What was dropped, a line for each reason and each example, and what was repaired."""
        for loss in self.source_losses:
            yield from loss.lines()
        for found in self.dropped:
            yield f"dropped: {found.reason}: {_count(found.amounts)}"
            yield from found.examples
        said = {found.reason for found in self.dropped}
        for found in (found for found in self.repaired if found.reason not in said):
            yield f"repaired: {found.reason}: {_count(found.amounts)}"

    def to_dict(self, examples: bool = True) -> dict[str, Any]:
        """As JSON can hold it; without the examples no id is in it."""
        report = asdict(replace(self, source=None))
        del report["source_notes"], report["source_losses"]
        report["notes"] = self.notes
        report["source"] = None if self.source is None else self.source.as_dict()
        for found in (*report["repaired"], *report["dropped"]):
            found.update(found.pop("amounts"))
            found["examples"] = list(found["examples"])
            if not examples:
                del found["examples"]
        return {name: list(value) if isinstance(value, tuple) else value for name, value in report.items()}


class TooManyDroppedError(InputError):
    """More of a table is unusable than `max_dropped` allows.

    Attributes:
        report: What is wrong with it.
        headline: What is too much, in one line.
    """

    def __init__(self, report: ImportReport, headline: str) -> None:
        self.report, self.headline = report, headline
        super().__init__([headline, *report.lines()])

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.report, self.headline)


def check_dropped(report: ImportReport, max_dropped: float, name: str) -> None:
    """Raise if more was dropped than is allowed, or if nothing is left."""
    share, unit = max((share, unit) for unit, share in report.dropped_shares.items())
    mixed = sum(found.amounts.sessions for found in report.dropped if found.reason in SEVERAL_LISTS)
    dropped = sum(found.amounts.sessions for found in report.dropped)
    hint = SEVERAL_LISTS_HINT if 2 * mixed > dropped else ""
    if share > max_dropped:
        raise TooManyDroppedError(
            report,
            f"{name}: {share:.1%} of the {unit} cannot be used, more than max_dropped = {max_dropped:.4g} allows{hint}",
        )
    if not report.kept.sessions:
        raise TooManyDroppedError(report, f"{name}: no session can be used{hint}")


def _together(findings: Iterable[ImportFinding]) -> tuple[ImportFinding, ...]:
    """One finding for each reason."""
    found: dict[str, ImportFinding] = {}
    for one in findings:
        known = found.get(one.reason, ImportFinding(one.reason, Amounts(0, 0, 0)))
        examples = (known.examples + one.examples)[:MAX_EXAMPLES]
        found[one.reason] = ImportFinding(one.reason, known.amounts + one.amounts, examples)
    return tuple(found.values())


def _count(amounts: Amounts) -> str:
    """Numbers in words, without those that are 0.

    >>> _count(Amounts(1, 20_000, 0))
    '1 session, 20,000 impressions'
    """
    words = [f"{n:,} {unit if n != 1 else unit[:-1]}" for unit, n in asdict(amounts).items() if n]
    return ", ".join(words) or "nothing"
