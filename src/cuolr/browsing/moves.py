"""What moves between two lists, whether clicks justify it, and the sentence that says so."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from cuolr.browsing.document_evidence import CorrectedRate, DocumentEvidence
from cuolr.logs.clicklog import Outcome

Direction: TypeAlias = Literal["up", "down", "in", "out", "same"]
Justification: TypeAlias = Literal["supported", "too few impressions", "contradicted", "none"]
# Expected examinations, of the document and of those that it passes, below which clicks say nothing about a move.
MIN_EXAMINATIONS = 10.0


@dataclass(frozen=True)
class RateDifference:
    """Difference of two rates with its 95 % interval."""

    value: float
    low: float
    high: float

    @classmethod
    def between(cls, one: CorrectedRate, other: CorrectedRate) -> "RateDifference | None":
        """One rate minus another, None if one is not known.

        The interval is made of those of the two rates (Newcombe 1998, method 10): with rates r and intervals l to u,
        d ± √((r₁ − l₁)² + (u₂ − r₂)²) below, and √((u₁ − r₁)² + (r₂ − l₂)²) above.
        """
        if one.rate is None or one.low is None or one.high is None:
            return None
        if other.rate is None or other.low is None or other.high is None:
            return None
        value = one.rate - other.rate
        below = math.hypot(one.rate - one.low, other.high - other.rate)
        above = math.hypot(one.high - one.rate, other.rate - other.low)
        return cls(value, value - below, value + above)


@dataclass(frozen=True)
class Move:
    """How the place of a document changes.

    Attributes:
        document: Its row.
        before: Its rank in production's list, from 1; None = not in the list.
        after: Its rank in the model's list.
        passed: The documents that change sides with it: that it overtakes, or that overtake it.
        rate: Its own rate.
        rate_of_passed: That of the passed documents together.
        difference: Rate of the document minus that of the passed ones together; None if one is not known.
        justification: What clicks say about the move, see `justification`.
    """

    document: int
    before: int | None
    after: int | None
    passed: tuple[int, ...]
    rate: CorrectedRate
    rate_of_passed: CorrectedRate
    difference: RateDifference | None = None
    justification: Justification = "none"

    @property
    def direction(self) -> Direction:
        """Where it goes."""
        if self.before is None:
            return "in"
        if self.after is None:
            return "out"
        return "same" if self.before == self.after else "up" if self.after < self.before else "down"


def moves_between(before: Sequence[int], after: Sequence[int], evidence: DocumentEvidence) -> list[Move]:
    """The move of each document of two lists: those of the second in its order, then those that leave.

    Args:
        before: Rows of the documents of production's list.
        after: Rows of those of the model's list.
        evidence: What the log says about them.
    """
    old, new = ({row: rank for rank, row in enumerate(rows, start=1)} for rows in (before, after))
    return [_move(row, old, new, evidence) for row in (*after, *(row for row in before if row not in new))]


def justification(difference: RateDifference | None, upwards: bool, enough: bool) -> Justification:
    """What clicks say about a move.

    `supported`: the rate of a document that moves up is above that of the documents that it passes, with the whole
    interval of the difference; for a move down, below. `contradicted`: the other way round. Everything else is `too few
    impressions` to justify the move: also where either side has fewer than `MIN_EXAMINATIONS` expected examinations.

    Args:
        difference: Of the rates; None = not known.
        upwards: Whether the document moves up, or in.
        enough: Whether both sides have enough expected examinations.
    """
    if difference is None or not enough or difference.low <= 0 <= difference.high:
        return "too few impressions"
    return "supported" if (difference.value > 0) == upwards else "contradicted"


def _move(row: int, old: dict[int, int], new: dict[int, int], evidence: DocumentEvidence) -> Move:
    """The move of a document between the ranks of two lists."""
    passed = _passed(row, old, new) if old.get(row) != new.get(row) else []
    own, others = evidence.rate_of([row]), evidence.rate_of(passed)
    move = Move(row, old.get(row), new.get(row), tuple(passed), own, others, RateDifference.between(own, others))
    if not passed:
        return move
    enough = min(own.examinations, others.examinations) >= MIN_EXAMINATIONS
    return replace(move, justification=justification(move.difference, move.direction in ("up", "in"), enough))


def _passed(row: int, old: dict[int, int], new: dict[int, int]) -> list[int]:
    """The documents on one side of a document before, and on the other side after; outside a list is below it."""
    below = max(len(old), len(new)) + 1
    before, after = old.get(row, below), new.get(row, below)
    upwards = after < before
    found = []
    for other in {**old, **new}:
        there, then = old.get(other, below), new.get(other, below)
        overtaken, overtaking = there < before and then > after, there > before and then < after
        if other != row and (overtaken if upwards else overtaking):
            found.append(other)
    return found


def reason_for(move: Move, outcome: Outcome) -> str:
    """Why clicks justify a move, or why they do not; "" if there is nothing to justify."""
    if move.direction == "same":
        return ""
    if not move.passed:
        return "No document of the other list changes places with it."
    rate = "click rate" if outcome == "clicks" else "reward rate"
    if move.justification == "too few impressions":
        return f"Too few impressions to justify this move: {_what_is_missing(move, rate)}."
    says = "Clicks support this move" if move.justification == "supported" else "Clicks contradict this move"
    return f"{says}: {_difference(move, rate)}."


def _what_is_missing(move: Move, rate: str) -> str:
    number = f"fewer than {MIN_EXAMINATIONS:g} expected examinations"
    if move.rate.rate is None:
        return "the log never shows this document, or only where examination is not known"
    if move.rate.examinations < MIN_EXAMINATIONS:
        return f"this document has {number} ({move.rate.examinations:.1f})"
    if move.rate_of_passed.examinations < MIN_EXAMINATIONS:
        return f"{_passed_text(move)} {'has' if len(move.passed) == 1 else 'have'} {number} together"
    return f"{_difference(move, rate)}, which may be chance"


def _difference(move: Move, rate: str) -> str:
    found = move.difference
    assert found is not None
    higher = "higher" if found.value >= 0 else "lower"
    ends = sorted((abs(found.low), abs(found.high))) if found.low * found.high > 0 else None
    interval = f"{ends[0]:.3f} to {ends[1]:.3f}" if ends else f"{found.low:+.3f} to {found.high:+.3f}"
    return f"its corrected {rate} is {abs(found.value):.3f} {higher} ({interval}) than that of {_passed_text(move)}"


def _passed_text(move: Move) -> str:
    number = len(move.passed)
    if move.direction in ("up", "in"):
        return "the document that it passes" if number == 1 else f"the {number} documents that it passes"
    return "the document that passes it" if number == 1 else f"the {number} documents that pass it"
