"""Cases: what Hypothesis draws."""

from dataclasses import dataclass

from hypothesis import strategies as st

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
