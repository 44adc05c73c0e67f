"""Cases: what Hypothesis draws."""

from dataclasses import dataclass

from hypothesis import strategies as st

# Enough decisions for three damages; a number is below 2^24, which Hypothesis draws evenly.
NUMBERS = st.lists(st.integers(0, (1 << 24) - 1), min_size=24, max_size=24)


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
    return st.builds(Case, st.just(kind), times, NUMBERS.map(tuple))
