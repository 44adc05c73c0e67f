"""The contract of an importer: the files of a data set as the long table of a log."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from cuolr.progress import Progress, no_progress
from cuolr.registry import Registry
from cuolr.types import Candidates

if TYPE_CHECKING:  # polars takes a moment to load, and `cuolr list` does not need it
    from cuolr.data.frames import Table

# A title, and a name and a number in each row.
CountTable: TypeAlias = tuple[str, list[tuple[str, str]]]


class SourceReport(Protocol):
    """What an importer itself found in its files, before the table is checked."""

    def as_dict(self) -> dict[str, Any]:
        """As JSON can hold it."""

    def tables(self) -> Iterator[CountTable]:
        """As people read it."""


@dataclass(frozen=True)
class SourceCounts:
    """Counts of what was found.

    Attributes:
        title: What was read.
        counts: By name.
    """

    title: str
    counts: Mapping[str, int] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return dict(self.counts)

    def tables(self) -> Iterator[CountTable]:
        """One table."""
        yield self.title, [(name, f"{number:,}") for name, number in self.counts.items()]


@dataclass(frozen=True)
class SourceLoss:
    """What an importer could not use.

    Attributes:
        unit: What is counted: sessions, impressions, clicks, or something else that the format has, such as lines.
        found: Number in the files; events that repeat another are not counted.
        dropped: Those that are not in the table, by reason.
    """

    unit: str
    found: int
    dropped: Mapping[str, int]

    @property
    def total(self) -> int:
        """Number of those that are not in the table."""
        return sum(self.dropped.values())

    def lines(self) -> Iterator[str]:
        """A line for each reason."""
        for reason, number in self.dropped.items():
            if number:
                yield f"dropped: {reason}: {number:,} {self.unit if number != 1 else self.unit[:-1]}"


@dataclass(frozen=True)
class SourceLog:
    """What an importer makes of its files. No relevance label is in it.

    Attributes:
        table: A row per shown document, as `read_log_table` takes it: a data frame, or files.
        candidates: The documents with the features of the data set; None = it has none.
        notes: What was assumed, and what the user should know of the data, a line each.
        report: What was found before the table is checked; None = the table holds all that is in the files.
        files: Names of the files.
        losses: What is not in the table because it could not be used, at most one for each unit.
    """

    table: "Table | Sequence[Path | str]"
    candidates: Candidates | None = None
    notes: tuple[str, ...] = ()
    report: SourceReport | None = None
    files: tuple[str, ...] = ()
    losses: tuple[SourceLoss, ...] = ()


class LogImporter(ABC):
    """Reads the files of one format. The table is checked, repaired and counted afterwards, as for every format."""

    @abstractmethod
    def read(self, files: Sequence[Path], progress: Progress = no_progress) -> SourceLog:
        """Read the files of a log.

        Args:
            files: The files.
            progress: Called with the number of bytes of the files that were read since the last call; if it takes
                longer to put rows together than to read them, with a number of bytes for each part of this work.

        Raises:
            InputError: If they are not of this format.
        """


IMPORTERS: Registry[type[LogImporter]] = Registry(
    "format",
    package="cuolr.logs.importing.formats",
    entry_points="cuolr.importers",
    base="LogImporter",
    variable="IMPORTERS",
)
