import base64
import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from cuolr.browsing.browsed_model import BrowsedModel
from cuolr.browsing.document_evidence import CorrectedRate
from cuolr.browsing.document_titles import DocumentTitles
from cuolr.browsing.moves import Move, RateDifference, justification, moves_between, reason_for
from cuolr.errors import InputError
from cuolr.policies.random_policy import RandomPolicy
from cuolr.types import Candidates
from tests.browsing.hand_made import evidence_of, hand_made_log
from tests.small_log import counted_log, linear_policy, small_log


def test_a_view_has_both_lists_and_the_evidence(browsed: BrowsedModel) -> None:
    query = int(browsed.queries[0])
    view = browsed.view(query)
    log = browsed.log
    production = [one.document_id for one in sorted(view.documents, key=lambda d: d.production or 99) if one.production]
    expected = browsed.evidence.production_list(query, log.k)
    offset = int(log.candidates.offsets[query])
    assert production == [str(row - offset + 1) for row in expected]
    model = [one.document_id for one in view.documents if one.model]
    ranking = browsed.policy.rank(log.candidates, len(expected))[query]
    assert model == [str(index + 1) for index in ranking]
    assert view.sessions == np.count_nonzero(log.query == query)
    for one in view.documents:
        assert one.impressions == sum(times for _, times in one.positions)
        assert one.score == pytest.approx(sum(one.contributions) + one.other_features + one.unexplained, abs=1e-5)
        assert one.unexplained == pytest.approx(0, abs=1e-5)
    assert set(view.features) == {"feature 1", "feature 3"}
    json.dumps(view.as_dict(), allow_nan=False)


def test_queries_of_few_sessions_are_hidden_unless_asked_for() -> None:
    log = small_log(60)
    sessions = np.bincount(log.query)
    few = int(np.argmin(sessions))
    browsed = BrowsedModel.fit(linear_policy(log), log, min_sessions=int(sessions[few]) + 1)
    assert few not in browsed.queries
    assert browsed.hidden == np.count_nonzero(sessions <= sessions[few])
    with pytest.raises(InputError, match=rf"query 'q{few}': has fewer than .* show it with --min-sessions 1"):
        browsed.find(f"q{few}")
    assert BrowsedModel.fit(linear_policy(log), log, min_sessions=1).find(f"q{few}") == few


def test_an_unknown_query_is_refused_with_a_guess(browsed: BrowsedModel) -> None:
    with pytest.raises(InputError, match=r"query 'q11': expected a query of the log.*did you mean 'q1'"):
        browsed.find("q11")


def test_min_sessions_must_be_one_or_more() -> None:
    log = small_log(20)
    with pytest.raises(InputError, match="min_sessions"):
        BrowsedModel.fit(linear_policy(log), log, min_sessions=0)


def test_an_aggregated_log_and_a_policy_without_scores_can_be_browsed() -> None:
    log = counted_log()
    browsed = BrowsedModel.fit(RandomPolicy(1), log)
    view = browsed.view(int(browsed.queries[0]))
    assert view.features == ()
    assert all(one.score is None for one in view.documents)
    assert view.sessions == log.count[log.query == browsed.queries[0]].sum()


LISTS = [[0, 1], [0, 1], [1, 0], [0, 2]]
CLICKS = [[1, 0], [0, 1], [1, 0], [0, 0]]


def test_impressions_by_position_clicks_and_examinations_are_counted() -> None:
    evidence = evidence_of(hand_made_log(LISTS, CLICKS), [1.0, 0.5])
    assert evidence.positions_of(0) == [(1, 3), (2, 1)]
    assert evidence.positions_of(1) == [(1, 1), (2, 2)]
    assert evidence.positions_of(2) == [(2, 1)]
    assert evidence.positions_of(3) == []
    assert evidence.clicks.tolist() == [1, 2, 0, 0]
    assert evidence.examinations.tolist() == [3 + 0.5, 1 + 2 * 0.5, 0.5, 0]
    assert evidence.sessions.tolist() == [4]


def test_the_rate_is_clicks_per_expected_examination_and_pools_documents() -> None:
    evidence = evidence_of(hand_made_log(LISTS, CLICKS), [1.0, 0.5])
    assert evidence.rate_of([0]).rate == pytest.approx(1 / 3.5)
    both = evidence.rate_of([0, 1])
    assert both.rate == pytest.approx((1 + 2) / (3.5 + 2.0))
    assert both.low is not None
    assert both.high is not None
    assert both.low < 3 / 5.5 < both.high


def test_with_full_examination_the_interval_is_that_of_wilson() -> None:
    evidence = evidence_of(hand_made_log([[0, 1]] * 40, [[1, 0]] * 10 + [[0, 0]] * 30), [1.0, 1.0])
    wilson = stats.binomtest(10, 40).proportion_ci(method="wilson")
    found = evidence.rate_of([0])
    assert found.low == pytest.approx(wilson.low)
    assert found.high == pytest.approx(wilson.high)


def test_a_document_that_was_never_shown_has_no_rate() -> None:
    found = evidence_of(hand_made_log(LISTS, CLICKS), [1.0, 0.5]).rate_of([3])
    assert (found.examinations, found.rate, found.low, found.high) == (0, None, None, None)


def test_productions_list_is_the_logged_one_where_there_is_one() -> None:
    evidence = evidence_of(hand_made_log([[2, 0, 3]] * 3, [[0, 0, 0]] * 3), [1.0, 0.5, 0.3])
    assert evidence.production_list(0, k=3) == [2, 0, 3]
    assert evidence.production_list(0, k=2) == [2, 0]


def test_of_several_lists_productions_is_by_mean_height_and_of_their_mean_length() -> None:
    evidence = evidence_of(hand_made_log(LISTS, CLICKS), [1.0, 0.5])
    # Heights: document 0 has 3 · 2 + 1, document 1 has 2 + 2 · 1, document 2 has 1.
    assert evidence.production_list(0, k=10) == [0, 1]
    short = hand_made_log([[0, -1], [1, -1], [0, 2]], [[0, 0]] * 3)
    assert evidence_of(short, [1.0, 0.5]).production_list(0, k=10) == [0, 1]  # 4 impressions in 3 sessions


def test_queries_of_a_larger_log_are_not_mixed_up(browsed: BrowsedModel) -> None:
    log, evidence = browsed.log, browsed.evidence
    for query in range(log.candidates.n_queries):
        rows = np.flatnonzero(log.query == query)
        shown = log.documents[rows][log.where[rows]]
        assert set(evidence.production_list(query, log.k)) <= set(shown.tolist())
        for row in np.unique(shown):
            assert sum(times for _, times in evidence.positions_of(int(row))) == np.count_nonzero(shown == row)


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


PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
CANDIDATES = Candidates(
    np.zeros((3, 1), np.float32), np.array([0, 2, 3]), np.array(["shoes", "hats"]), np.array(["007", "b", "b"])
)


def titles(folder: Path, text: str) -> DocumentTitles:
    (folder / "titles.csv").write_text(text)
    return DocumentTitles.read(folder / "titles.csv", CANDIDATES)


def test_titles_are_found_by_document_and_ids_stay_text(tmp_path: Path) -> None:
    found = titles(tmp_path, "doc_id,title\n007,Running shoe\nz,Not in the log\n")
    assert found.title("shoes", "007") == "Running shoe"
    assert found.title("shoes", "b") == ""
    assert len(found.by_document) == 1


def test_a_title_of_one_query_goes_before_that_of_all(tmp_path: Path) -> None:
    found = titles(tmp_path, "query_id,doc_id,title\nhats,b,A hat\n,b,Any\n")
    assert (found.title("hats", "b"), found.title("shoes", "b")) == ("A hat", "Any")


def test_pictures_are_embedded_by_what_they_are_not_by_their_name(tmp_path: Path) -> None:
    (tmp_path / "a.jpg").write_bytes(PNG)
    found = titles(tmp_path, "doc_id,image\n007,a.jpg\nb,nowhere.png\n")
    assert found.picture("shoes", "007") == f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
    assert found.picture("shoes", "b") == ""


@pytest.mark.parametrize("content", [b"<svg onload='alert(1)'/>", b"", PNG + bytes(100_000)])
def test_what_is_no_picture_or_too_large_is_not_embedded(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.png").write_bytes(content)
    assert titles(tmp_path, "doc_id,image\n007,a.png\n").picture("shoes", "007") == ""


@pytest.mark.parametrize("leave", ["name", "link"])
def test_pictures_outside_of_the_folder_are_not_embedded(leave: str, tmp_path: Path) -> None:
    (tmp_path / "private.png").write_bytes(PNG)
    (tmp_path / "shared").mkdir()
    if leave == "link":
        (tmp_path / "shared" / "a.png").symlink_to(tmp_path / "private.png")
    place = "a.png" if leave == "link" else "../private.png"
    assert titles(tmp_path / "shared", f"doc_id,image\n007,{place}\n").picture("shoes", "007") == ""


def test_pictures_within_the_table_are_checked_as_well(tmp_path: Path) -> None:
    good, bad = (base64.b64encode(content).decode() for content in (PNG, b"<svg/>"))
    text = f'doc_id,image\n007,"data:image/png;base64,{good}"\nb,"data:image/svg+xml;base64,{bad}"\n'
    found = titles(tmp_path, text)
    assert found.picture("shoes", "007") == f"data:image/png;base64,{good}"
    assert found.picture("shoes", "b") == ""


def test_a_table_of_something_else_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"expected the columns doc_id and title \(or image\), found 'id', 'name'"):
        titles(tmp_path, "id,name\n1,x\n")
    with pytest.raises(InputError, match="has no title of a document of the log"):
        titles(tmp_path, "doc_id,title\nz,x\n")
    with pytest.raises(InputError, match="file not found"):
        DocumentTitles.read(tmp_path / "none.csv", CANDIDATES)
