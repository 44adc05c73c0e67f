"""What became of merged logs."""

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class MergeReport:
    """What became of the merged logs.

    Attributes:
        sessions: Sessions of the logs together.
        outside: Those outside the time window.
        repeated: Those that a later log has, too, by their ids; the later one is kept.
        without_id: Those in the time window without a session id, which cannot be compared; 0 for aggregated logs.
        differing: Repeated sessions with other lists or clicks, such as one that spans two files.
        changed: Documents whose features differ between logs; those of the last log are kept.
        left_out: Columns that some logs lack, and therefore the merged one.
        overlapping: Counted or aggregated logs that are made from a log that one before them is made from, too.
            Sessions that are in both count twice, because rows have no ids.
        expired: Queries that are left out, because all their sessions are outside the time window.
        queries: Queries of the merged log.
        documents: Documents of the merged log.
    """

    sessions: int
    outside: int
    repeated: int
    without_id: int
    differing: int
    changed: int
    left_out: tuple[str, ...]
    overlapping: tuple[str, ...]
    expired: int
    queries: int
    documents: int

    @property
    def kept(self) -> int:
        """Sessions of the merged log."""
        return self.sessions - self.outside - self.repeated

    def as_dict(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return {
            **asdict(self),
            "left_out": list(self.left_out),
            "overlapping": list(self.overlapping),
            "kept": self.kept,
        }
