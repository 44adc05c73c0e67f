"""What the rows of a log stand for, and what needs which form: sessions, lists, or documents."""

from cuolr.errors import InputError
from cuolr.logs.clicklog import ClickLog

# Why a log that counts documents cannot be used.
LISTS_UNKNOWN = (
    "this log counts documents (`cuolr count --by document`), and this needs lists; use the log of sessions, or count "
    "it with --by list"
)


def require_sessions(log: ClickLog, what: str) -> None:
    """Raise if a log is aggregated; for methods that need the clicks of each session."""
    if log.aggregated:
        raise InputError(
            f"{what} needs the clicks of each session, but the rows of this log are means over several sessions; use "
            "the log from before aggregation"
        )


def require_single_sessions(log: ClickLog, what: str) -> None:
    """Raise if a row may stand for several sessions."""
    require_sessions(log, what)
    if log.counted:
        raise InputError(f"{what} needs sessions one by one, but this log is counted; use the log that was counted")


def require_lists(log: ClickLog, what: str) -> None:
    """Raise if a log counts documents, so that its lists are not known."""
    if log.of_documents:
        raise InputError(f"{what}: {LISTS_UNKNOWN}")
