"""Progress of long work, reported stage by stage."""

from collections.abc import Callable
from threading import Lock
from typing import TypeAlias

# Called with the amount done since the last call.
Progress: TypeAlias = Callable[[int], None]
# Called with the share of the work that was done since the last call.
Share: TypeAlias = Callable[[float], None]
# Called when a stage begins, with its name and the amount to do; None = not known.
Stages: TypeAlias = Callable[[str, int | None], Progress]


def unseen(amount: float) -> None:
    """Progress that nobody follows."""


def in_shares(progress: Progress, total: int) -> Share:
    """Progress that takes the share of the work that was done since the last call, for a stage with this total."""
    done, lock = 0.0, Lock()  # rows are read by several threads

    def advance(share: float) -> None:
        nonlocal done
        with lock:
            before, done = done, done + share
            progress(round(total * done) - round(total * before))

    return advance


def share_of(progress: Share, share: float) -> Share:
    """Progress of a part of the work, given the share of the whole that it is."""
    return lambda done: progress(share * done)


def unseen_stages(name: str, total: int | None) -> Progress:
    """Stages that nobody follows."""
    return unseen
