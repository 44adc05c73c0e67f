"""Decisions of a damage: which byte, which value, which line."""

from collections.abc import Iterable, Sequence
from typing import TypeVar

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
