"""Counts by document: what they hold, the lists that are stacked from them, and what click models are fitted to."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuolr.clicks.fitting.compare_fits import compare_fits
from cuolr.data.normalise import Normaliser
from cuolr.errors import InputError
from cuolr.examination.identifiability import Identifiability
from cuolr.files import unverified
from cuolr.logs.aggregate import aggregate
from cuolr.logs.click_patterns import ClickPatterns
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.counting import count_chunks, count_log, subtract_sessions
from cuolr.logs.counts import ClickCounts
from cuolr.logs.deletion import SessionsToDelete, delete_sessions
from cuolr.logs.document_patterns import DocumentPatterns, patterns_of
from cuolr.logs.log_folder import load_click_log, save_click_log
from cuolr.logs.log_info import describe_log
from cuolr.logs.log_meta import digest_of_clicks
from cuolr.logs.merge import merge_logs
from cuolr.policies.logging_policy_model import clone_linear
from tests.data.small_data import assert_same_log, candidates_of, full_log, log_of, random_log
from tests.logs.day_tables import make_days, save_days
from tests.small_log import small_log


def cells_by_hand(log: ClickLog) -> Counter[tuple[object, ...]]:
    """The number of sessions of each query, document, position on the page, last click above and click."""
    found: Counter[tuple[object, ...]] = Counter()
    for row in range(len(log)):
        last = -1
        for place in range(log.k):
            if log.ranking[row, place] < 0:
                continue
            at = int(place if log.page_position is None else log.page_position[row, place])
            click = int(log.clicks[row, place])
            found[int(log.query[row]), int(log.ranking[row, place]), at, last, click] += int(log.count[row])
            last = at + 1 if click else max(last, 0)
    return found


def cells_of(counted: ClickLog) -> Counter[tuple[object, ...]]:
    assert counted.page_position is not None
    assert counted.last_click is not None
    keys = zip(
        counted.query.tolist(),
        counted.ranking[:, 0].tolist(),
        counted.page_position[:, 0].tolist(),
        counted.last_click.tolist(),
        counted.clicks[:, 0].tolist(),
        strict=True,
    )
    found: Counter[tuple[object, ...]] = Counter()
    for key, count in zip(keys, counted.count.tolist(), strict=True):
        found[key] += count
    return found


def test_a_row_is_a_document_at_a_position_with_the_last_click_above_it() -> None:
    log = log_of(
        candidates_of(3, 2),
        query=[1, 0, 0, 0],
        ranking=[[1, -1], [2, 0], [0, 2], [2, 0]],
        clicks=[[1, 0], [1, 1], [0, 1], [1, 1]],
    )
    counted = count_chunks([log], "document")
    assert counted.of_documents
    assert counted.sessions == 4
    # (query, document, position, last click above, click): −1 = the first of its list, 0 = no click above
    assert cells_of(counted) == {
        (0, 2, 0, -1, 1): 2,
        (0, 0, 1, 1, 1): 2,
        (0, 0, 0, -1, 0): 1,
        (0, 2, 1, 0, 1): 1,
        (1, 1, 0, -1, 1): 1,
    }


@pytest.mark.thorough
@given(seed=st.integers(0, 1000), parts=st.integers(1, 4))
def test_counts_by_document_are_those_of_a_loop_and_add_up(seed: int, parts: int) -> None:
    log = random_log(candidates_of(4, 3, 6, seed=seed), 50, 3, 3, seed)
    gaps = np.where(log.where, np.arange(3) * 2 + 1, -1).astype(np.int32)
    for sessions in (log, replace(log, page_position=gaps)):
        whole = count_chunks([sessions], "document")
        assert cells_of(whole) == cells_by_hand(sessions)
        chunks = [sessions.select(rows) for rows in np.array_split(np.arange(len(log)), parts)]
        assert_same_log(count_chunks(chunks, "document"), whole)
        assert_same_log(count_chunks([count_chunks([chunk], "document") for chunk in chunks], "document"), whole)
        assert_same_log(count_chunks([count_chunks([sessions])], "document"), whole)
        assert digest_of_clicks(whole) == digest_of_clicks(sessions)


def test_positions_far_down_the_page_are_counted_as_examination_tells_them_apart() -> None:
    log = log_of(candidates_of(3), [0, 0], [[2, 0, 1]] * 2, [[0, 1, 0]] * 2)
    log = replace(log, page_position=np.array([[4, 40, 77]] * 2, np.int32))
    counted = count_chunks([log], "document")
    assert cells_of(counted) == {(0, 2, 4, -1, 0): 2, (0, 0, 30, 0, 1): 2, (0, 1, 31, 31, 0): 2}
    assert_same_log(count_chunks([counted], "document"), counted)


def test_one_list_per_query_is_stacked_as_it_is() -> None:
    log = random_log(candidates_of(5, 8, 9), 300, 4, lists_per_query=1)
    of_lists, of_documents = ClickCounts.of(log), ClickCounts.of(count_chunks([log], "document"))
    assert_same_log(of_documents.lists, of_lists.lists)
    for name in ("cells", "impressions", "clicks"):
        np.testing.assert_array_equal(getattr(of_documents, name), getattr(of_lists, name))


@given(seed=st.integers(0, 1000))
def test_stacked_lists_have_the_counts_of_the_log_by_document(seed: int) -> None:
    log = random_log(candidates_of(4, 3, 6, seed=seed), 80, 3, 4, seed)
    log = replace(log, context={"device": np.random.default_rng(seed).choice(["phone", "tablet"], 80)})
    counts = [ClickCounts.of(log), ClickCounts.of(count_chunks([log], "document"))]

    def by_document(counts: ClickCounts) -> Counter[tuple[int, ...]]:
        row, position, last = counts.coordinates()
        document, level = counts.lists.documents[row, position], counts.level_of_list[row]
        found: Counter[tuple[int, ...]] = Counter()
        for *key, shown, clicked in zip(
            level, document, position, last, counts.impressions, counts.clicks, strict=True
        ):
            found[(0, *map(int, key))] += int(shown)
            found[(1, *map(int, key))] += int(clicked)
        return +found

    assert by_document(counts[0]) == by_document(counts[1])
    assert counts[0].levels == counts[1].levels
    sessions = [np.bincount(each.lists.query, each.lists.count, 3).tolist() for each in counts]
    assert sessions[0] == sessions[1]
    assert Identifiability.of(counts[0]) == Identifiability.of(counts[1])


def test_the_logging_policy_is_cloned_from_documents_as_from_lists() -> None:
    log = small_log(rows=200)
    normaliser = Normaliser.fit("log-min-max", log.candidates)
    one, other = (clone_linear(each, normaliser, 1) for each in (log, count_chunks([log], "document")))
    assert one is not None
    assert other is not None
    np.testing.assert_array_equal(one.weights, other.weights)


def test_a_log_that_counts_documents_is_described_as_its_sessions_are() -> None:
    log = random_log(candidates_of(4, 3, 6), 90, 3, 2)
    log = replace(
        log,
        context={"device": np.array(["phone", "tablet", "phone"] * 30)},
        reward=(2 * log.clicks).astype(np.float32),
    )
    expected, found = describe_log([log]), describe_log([count_chunks([log], "document")])
    assert found.distinct_lists is None
    assert found.share_without_clicks == pytest.approx(expected.share_without_clicks)
    same = {"distinct_lists": expected.distinct_lists, "share_without_clicks": expected.share_without_clicks}
    assert replace(found, **same) == expected  # type: ignore[arg-type]


@given(seed=st.integers(0, 1000))
def test_cells_of_click_models_are_those_of_the_sessions(seed: int) -> None:
    log = random_log(candidates_of(*[4] * 12, seed=seed), 100, 3, 4, seed)
    lists, documents = ClickPatterns.of(log), patterns_of(count_chunks([log], "document"), seed)
    assert isinstance(documents, DocumentPatterns)
    assert documents.sessions == 100
    for name in ("pair", "position", "last_click", "unit", "impressions", "clicks"):
        np.testing.assert_array_equal(getattr(documents.cells, name), getattr(lists.cells, name))
    train, held_out = documents.held_out(2)
    assert train.sessions + held_out.sessions == 100
    assert train.cells.clicks.sum() + held_out.cells.clicks.sum() == log.clicks.sum()


def test_click_models_that_need_the_last_click_only_are_compared_on_documents() -> None:
    log = small_log(rows=3_000, queries=12)
    lists, documents = (compare_fits(patterns_of(each)) for each in (log, count_chunks([log], "document")))
    assert sorted(documents.fits) == sorted(
        ["pbm", "ubm", "cascade", "trust", "ctr", "ctr-position", "ctr-document", "ctr-document-position"]
    )
    for name in ("pbm", "ubm", "ctr-document"):
        # Other sessions are held out: the likelihoods differ by noise.
        one, other = lists.scores[name], documents.scores[name]
        assert other.log_likelihood == pytest.approx(one.log_likelihood, abs=0.1)
        assert other.conditional_perplexity == pytest.approx(one.conditional_perplexity, abs=0.02)
        assert np.isnan(other.perplexity)
    with pytest.raises(InputError, match=r"dcm: this log counts documents .* needs lists"):
        compare_fits(patterns_of(count_chunks([log], "document")), ["pbm", "dcm"])


def test_what_needs_lists_refuses_documents(tmp_path: Path) -> None:
    save_click_log(full_log(), tmp_path / "LOG")
    counted = count_log(tmp_path / "LOG", tmp_path / "COUNTS", by="document")
    assert_same_log(load_click_log(tmp_path / "COUNTS", documents=True), counted)
    assert counted.sessions == full_log().sessions
    for refused in (
        lambda: load_click_log(tmp_path / "COUNTS"),
        lambda: aggregate(counted),
        lambda: count_chunks([counted]),
        lambda: ClickPatterns.of(counted),
        lambda: count_log(tmp_path / "COUNTS", tmp_path / "X"),
    ):
        with pytest.raises(InputError, match=r"counts documents .*needs lists"):
            refused()


def test_a_damaged_log_of_documents_is_refused(tmp_path: Path) -> None:
    save_click_log(full_log(), tmp_path / "LOG")
    count_log(tmp_path / "LOG", tmp_path / "COUNTS", by="document")
    meta = tmp_path / "COUNTS" / "meta.json"
    meta.write_text(meta.read_text().replace('"of_documents": true', '"of_documents": "yes"'))
    with unverified(), pytest.raises(InputError, match="expected 'of_documents' to be true or false"):
        load_click_log(tmp_path / "COUNTS", documents=True)
    meta.write_text(meta.read_text().replace('"of_documents": "yes"', '"of_documents": false'))
    with unverified(), pytest.raises(InputError, match="expected last_click and page_position if the log counts"):
        load_click_log(tmp_path / "COUNTS", documents=True)


def test_counts_of_days_by_document_merge_to_those_of_all_days_and_forget_users(tmp_path: Path) -> None:
    days = save_days(make_days(1, sessions=40), tmp_path)
    for number, day in enumerate(days):
        count_log(day, tmp_path / f"COUNTS {number}", by="document")
    merge_logs(days, tmp_path / "LOG")
    whole = count_log(tmp_path / "LOG", tmp_path / "COUNTS", by="document")
    report = merge_logs([tmp_path / f"COUNTS {number}" for number in range(len(days))], tmp_path / "MERGED")
    merged = load_click_log(tmp_path / "MERGED", documents=True)
    assert report.kept == merged.sessions == whole.sessions == 80
    assert cells_of(merged) == cells_of(whole)
    with pytest.raises(InputError, match=r"is counted by document, .* is of sessions; merge logs of one form"):
        merge_logs([tmp_path / "COUNTS 0", days[1]], tmp_path / "MIXED")
    delete_sessions(days[0], SessionsToDelete(user_ids=["user 3"]), [tmp_path / "COUNTS 0"])
    left = load_click_log(tmp_path / "COUNTS 0", documents=True)
    assert left.sessions == 32
    assert cells_of(left) == cells_of(count_chunks([load_click_log(days[0])], "document"))


def test_sessions_are_taken_away_from_counts_by_document() -> None:
    log = random_log(candidates_of(4, 3), 60, 3)
    counted = count_chunks([log], "document")
    left = subtract_sessions(counted, log.select(slice(0, 25)))
    assert_same_log(left, count_chunks([log.select(slice(25, 60))], "document"))
    with pytest.raises(InputError, match="does not hold all of the sessions"):
        subtract_sessions(left, log)
