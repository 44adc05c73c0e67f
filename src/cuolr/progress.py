"""Progress of long work, reported stage by stage."""

from collections.abc import Callable
from typing import TypeAlias

# Called with the amount done since the last call.
Progress: TypeAlias = Callable[[int], None]
# Called when a stage begins, with its name and the amount to do; None = not known.
Stages: TypeAlias = Callable[[str, int | None], Progress]


def unseen(amount: int) -> None:
    """Progress that nobody follows."""


def in_shares(progress: Progress, total: int) -> Callable[[float], None]:
    """Progress that takes the share of the work that was done since the last call, for a stage with this total."""
    done = 0.0

    def advance(share: float) -> None:
        nonlocal done
        before, done = done, done + share
        progress(round(total * done) - round(total * before))

    return advance


def unseen_stages(name: str, total: int | None) -> Progress:
    """Stages that nobody follows."""
    return unseen
