"""What clicks say about a move, as a sentence."""

from cuolr.browsing.moves import MIN_EXAMINATIONS, Move
from cuolr.logs.clicklog import Outcome


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
        return f"{_passed(move)} {'has' if len(move.passed) == 1 else 'have'} {number} together"
    return f"{_difference(move, rate)}, which may be chance"


def _difference(move: Move, rate: str) -> str:
    found = move.difference
    assert found is not None
    higher = "higher" if found.value >= 0 else "lower"
    ends = sorted((abs(found.low), abs(found.high))) if found.low * found.high > 0 else None
    interval = f"{ends[0]:.3f} to {ends[1]:.3f}" if ends else f"{found.low:+.3f} to {found.high:+.3f}"
    return f"its corrected {rate} is {abs(found.value):.3f} {higher} ({interval}) than that of {_passed(move)}"


def _passed(move: Move) -> str:
    number = len(move.passed)
    if move.direction in ("up", "in"):
        return "the document that it passes" if number == 1 else f"the {number} documents that it passes"
    return "the document that passes it" if number == 1 else f"the {number} documents that pass it"
