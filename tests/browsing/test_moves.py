import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuolr.browsing.document_evidence import CorrectedRate
from cuolr.browsing.moves import Move, RateDifference, justification, moves_between, reason_for
from tests.browsing.hand_made import evidence_of, hand_made_log

# Four documents in a fixed list, examined everywhere: 0 is clicked in 10 of 100 sessions, 1 in 90, 2 in 50, 3 in 52.
TIMES = (10, 90, 50, 52)
SESSIONS = [[int(number < times) for times in TIMES] for number in range(100)]
EVIDENCE = evidence_of(hand_made_log([[0, 1, 2, 3]] * 100, SESSIONS, documents=5), [1.0] * 4)


def moves(after: list[int]) -> dict[int, Move]:
    return {move.document: move for move in moves_between([0, 1, 2, 3], after, EVIDENCE)}


def test_moves_have_their_direction_and_those_they_pass() -> None:
    found = moves([1, 0, 4, 2])
    assert {row: move.direction for row, move in found.items()} == {1: "up", 0: "down", 4: "in", 2: "down", 3: "out"}
    assert list(found) == [1, 0, 4, 2, 3]
    assert found[1].passed == (0,)
    assert found[0].passed == (1,)
    assert set(found[4].passed) == {2, 3}
    assert found[3].passed == (4,)


def test_clicks_support_contradict_or_say_too_little() -> None:
    better_first = moves([1, 0, 2, 3])
    assert better_first[1].justification == "supported"
    assert better_first[0].justification == "supported"
    assert better_first[2].justification == "none"
    worse_first = moves_between([1, 0, 2, 3], [0, 1, 2, 3], EVIDENCE)
    assert [move.justification for move in worse_first[:2]] == ["contradicted", "contradicted"]
    alike = moves([0, 1, 3, 2])
    assert alike[3].justification == alike[2].justification == "too few impressions"  # 52 against 50 of 100


def test_a_document_that_was_never_shown_has_too_few_impressions() -> None:
    found = moves([4, 0, 1, 2])[4]
    assert (found.direction, found.justification, found.difference) == ("in", "too few impressions", None)
    assert reason_for(found, "clicks") == (
        "Too few impressions to justify this move: the log never shows this document, or only where examination is not "
        "known."
    )


def test_ten_expected_examinations_are_needed_however_different_the_rates() -> None:
    lists = hand_made_log([[0, 1]] * 9, [[0, 1]] * 9)
    few = moves_between([0, 1], [1, 0], evidence_of(lists, [1.0, 1.0]))
    assert {move.justification for move in few} == {"too few impressions"}
    assert reason_for(few[0], "clicks") == (
        "Too few impressions to justify this move: this document has fewer than 10 expected examinations (9.0)."
    )
    more = hand_made_log([[0, 1]] * 10, [[0, 1]] * 10)
    assert moves_between([0, 1], [1, 0], evidence_of(more, [1.0, 1.0]))[0].justification == "supported"


def test_the_interval_of_a_difference_is_newcombes() -> None:
    # Newcombe (1998), table II, method 10, without continuity correction: 56/70 − 48/80 is 0.0524 to 0.3339.
    def wilson(times: int, number: int) -> CorrectedRate:
        z, p = 1.959964, times / number
        middle, half = p + z * z / (2 * number), z * math.sqrt(p * (1 - p) / number + z * z / (4 * number**2))
        scale = 1 + z * z / number
        return CorrectedRate(number, p, (middle - half) / scale, (middle + half) / scale)

    found = RateDifference.between(wilson(56, 70), wilson(48, 80))
    assert found is not None
    assert found.value == pytest.approx(0.2)
    assert found.low == pytest.approx(0.0524, abs=5e-5)
    assert found.high == pytest.approx(0.3339, abs=5e-5)


def test_a_move_up_needs_a_higher_rate_and_a_move_down_a_lower_one() -> None:
    higher, lower = RateDifference(0.2, 0.1, 0.3), RateDifference(-0.2, -0.3, -0.1)
    assert justification(higher, upwards=True, enough=True) == "supported"
    assert justification(higher, upwards=False, enough=True) == "contradicted"
    assert justification(lower, upwards=False, enough=True) == "supported"
    assert justification(lower, upwards=True, enough=False) == "too few impressions"


@given(st.permutations(range(6)), st.permutations(range(6)), st.integers(1, 6))
def test_whoever_changes_rank_passes_another_document(one: list[int], two: list[int], k: int) -> None:
    lists = hand_made_log([list(range(6))], [[0] * 6], documents=6)
    found = {move.document: move for move in moves_between(one[:k], two[:k], evidence_of(lists, [1.0] * 6))}
    assert set(found) == {*one[:k], *two[:k]}
    for move in found.values():
        assert bool(move.passed) == (move.before != move.after)


def test_reasons_say_the_difference_and_whom() -> None:
    found = moves([1, 0, 2, 3])
    assert reason_for(found[1], "clicks").startswith(
        "Clicks support this move: its corrected click rate is 0.800 higher ("
    )
    assert reason_for(found[0], "reward").endswith("than that of the document that passes it.")
    assert reason_for(found[2], "clicks") == ""
    assert reason_for(moves([0, 1, 3, 2])[3], "clicks").endswith(
        "than that of the document that it passes, which may be chance."
    )
