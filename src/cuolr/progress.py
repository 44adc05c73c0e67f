"""Progress of long work, reported stage by stage."""

from collections.abc import Callable
from typing import TypeAlias

# Called with the amount done since the last call.
Progress: TypeAlias = Callable[[int], None]
# Called when a stage begins, with its name and the amount to do; None = not known.
Stages: TypeAlias = Callable[[str, int | None], Progress]


def unseen(amount: int) -> None:
    """Progress that nobody follows."""


def unseen_stages(name: str, total: int | None) -> Progress:
    """Stages that nobody follows."""
    return unseen
