"""Cases: what Hypothesis draws, the decisions that a damage takes from it, and how many cases each kind gets."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from hypothesis import strategies as st

T = TypeVar("T")


class Choices:
    """Decisions taken from numbers that Hypothesis drew; 0 once they are used up.

    >>> choices = Choices([7, 1])
    >>> choices.below(5), choices.one_of("abc"), choices.below(9)
    (2, 'b', 0)
    """

    def __init__(self, numbers: Iterable[int]) -> None:
        self._numbers = iter(numbers)

    def below(self, bound: int) -> int:
        """A whole number from 0 to `bound` − 1; 0 if there is none."""
        return next(self._numbers, 0) % bound if bound > 0 else 0

    def one_of(self, options: Sequence[T]) -> T:
        """One of these."""
        return options[self.below(len(options))]

    def span(self, length: int, longest: int) -> slice:
        """A part of a sequence of this length."""
        start = self.below(length)
        return slice(start, start + 1 + self.below(longest))


# Enough decisions for three damages, of three bytes each. One draw of bytes takes a fifth of the time of 24 numbers.
DECISIONS, BYTES_EACH = 24, 3
NUMBERS = st.binary(min_size=DECISIONS * BYTES_EACH, max_size=DECISIONS * BYTES_EACH)


@dataclass(frozen=True)
class Case:
    """A damaged file.

    Attributes:
        kind: The name of its kind.
        damages: How many damages follow each other.
        numbers: The decisions; see `Choices`.
    """

    kind: str
    damages: int
    numbers: tuple[int, ...]


def cases(kind: str) -> st.SearchStrategy[Case]:
    """Cases of a kind; most have one damage."""
    times = st.sampled_from((1, 1, 1, 1, 2, 3))
    return st.builds(Case, st.just(kind), times, NUMBERS.map(_numbers))


def _numbers(drawn: bytes) -> tuple[int, ...]:
    starts = range(0, len(drawn), BYTES_EACH)
    return tuple(int.from_bytes(drawn[start : start + BYTES_EACH]) for start in starts)


def shares(total: int, seconds: Mapping[str, float], least: int) -> dict[str, int]:
    """The number of cases of each kind.

    >>> shares(100, {"fast": 0.001, "slow": 0.004}, least=10)
    {'fast': 74, 'slow': 26}

    Args:
        total: Of all kinds; more if `least` asks for more.
        seconds: What a case of each kind takes.
        least: The least number of cases of a kind.
    """
    left = max(0, total - least * len(seconds))
    speed = {kind: 1 / max(taken, 1e-4) for kind, taken in seconds.items()}
    return {kind: least + round(left * speed[kind] / sum(speed.values())) for kind in seconds}
