from dataclasses import replace

import numpy as np
import pytest

from cuolr.clicks.click_model import click_model
from cuolr.clicks.simulate import simulate
from cuolr.data.normalise import Normaliser
from cuolr.data.synthetic import generate
from cuolr.examination.from_clicks import Examination, fit_examination, told_by_moved_documents
from cuolr.learners.factored.click_rates import ShownLists
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.counts import count_lists
from cuolr.logs.log_folder import one_each
from cuolr.policies.logging_policy import imitate_logger
from cuolr.policies.plackett_luce import StochasticLogger
from cuolr.supervised.ranksvm import fit_ranksvm
from cuolr.types import Candidates
from tests.small_log import small_log


def fitted(log: ClickLog) -> Examination:
    normaliser = Normaliser.fit("log-min-max", log.candidates)
    shown = ShownLists.of(log, normaliser)
    scores = imitate_logger(log, normaliser, 1, 3).scores(shown.features)
    return fit_examination(shown.counted, scores[shown.documents])


def learned(name: str, share: float = 0.01, sessions_per_query: int = 200) -> Examination:
    """From clicks of simulated users on lists of a ranker that learned from a share of the labels."""
    train = generate("web10k-like", 600, seed=3)
    log = simulate(train, fit_ranksvm(train, share, 1), click_model(name), 600 * sessions_per_query, seed=1)
    return fitted(log)


loggers = pytest.mark.parametrize("share", [0.01, 1.0], ids=["weak logger", "strong logger"])


@pytest.mark.thorough
@loggers
@pytest.mark.parametrize("sessions_per_query", [10, 200])
def test_it_learns_that_a_position_based_user_looks_whatever_was_clicked(share: float, sessions_per_query: int) -> None:
    table = learned("pbm", share, sessions_per_query).table
    truth = np.array(click_model("pbm").examination)  # type: ignore[attr-defined]
    truth = (truth / truth[0])[:8]
    np.testing.assert_allclose(table[:8, 0], truth, atol=0.1 if sessions_per_query == 200 else 0.15)
    after_click = np.array([table[k, k] for k in range(1, 8)])
    np.testing.assert_allclose(after_click, truth[1:], atol=0.1 if sessions_per_query == 200 else 0.25)


@pytest.mark.thorough
@loggers
def test_it_learns_that_a_cascade_user_stops_at_a_click(share: float) -> None:
    table = learned("cascade", share).table
    assert (table[:, 0] > 0.75).all(), "nothing clicked yet: still reading"
    assert all(table[k, j] < 0.02 for k in range(1, 10) for j in range(1, k + 1)), "after a click nobody looks"


@pytest.mark.thorough
@loggers
def test_it_learns_how_a_dependent_click_user_goes_on_after_a_click(share: float) -> None:
    table = learned("dcm", share).table
    truth = np.array(click_model("dcm").continuation)  # type: ignore[attr-defined]
    just_below = np.array([table[k, k] / table[k, 0] for k in range(1, 8)])  # the last click is right above
    np.testing.assert_allclose(just_below, truth[:7], atol=0.1)
    np.testing.assert_allclose(table[:8, 0], 1.0, atol=0.25)


def test_a_click_above_changes_looking_by_the_ratio_of_click_rates_on_the_same_document() -> None:
    """One list: half of the users who clicked at position 1 look no further."""
    log = small_log(rows=1)
    log = log.select(np.zeros(20_000, np.int64))
    rng = np.random.default_rng(0)
    first = rng.random(len(log)) < 0.4
    looks = ~first | (rng.random(len(log)) < 0.5)
    log.clicks[:] = 0
    log.clicks[:, 0], log.clicks[:, 1] = first, looks & (rng.random(len(log)) < 0.3)
    table = fit_examination(count_lists(log), np.zeros((1, log.k))).table
    assert table[1, 1] / table[1, 0] == pytest.approx(0.5, abs=0.03)


def test_nobody_who_has_not_clicked_looks_further_down_more_than_at_the_first_position() -> None:
    """One list whose second document is clicked three times as often as its first."""
    log = small_log(rows=1).select(np.zeros(400, np.int64))
    log.clicks[:] = 0
    log.clicks[:100, 0] = log.clicks[100:400, 1] = 1
    table = fit_examination(count_lists(log), np.zeros((1, log.k))).table
    assert table[0, 0] == table[1, 0] == 1
    table = fit_examination(count_lists(log), np.zeros((1, log.k)), first_is_most=False).table
    assert table[1, 0] > 2 * table[0, 0] == 2, "unless that is not asked for"


def test_what_the_log_never_shows_is_not_known_and_counts_for_nothing() -> None:
    log = small_log(rows=50)
    log.clicks[:] = 0
    counted, found = count_lists(log), fitted(log)
    assert np.isnan(found.table[:, 1:]).all()
    assert found.table[0, 0] == 1.0
    looked = found.looked(counted)
    np.testing.assert_allclose(
        looked, counted.lists.count[:, None] * found.table[:, 0] * counted.lists.where, rtol=1e-6
    )


def test_looks_are_the_sum_of_chi_over_sessions() -> None:
    log = small_log(rows=200)
    counted, found = count_lists(log), fitted(log)
    expected = np.zeros(counted.lists.where.shape)
    passed, _ = counted.dense(np.arange(len(counted.lists)))
    for row, position, last in zip(*np.nonzero(passed), strict=True):
        expected[row, position] += passed[row, position, last] * found.table[position, last]
    np.testing.assert_allclose(found.looked(counted), expected, rtol=1e-6)


def of_moving_documents(name: str) -> Examination:
    """From lists that are drawn anew in each session, so that hardly two are the same."""
    train = generate("tiny", 200, seed=3)
    logger = StochasticLogger(fit_ranksvm(train, 0.05, 1), 0.5)
    return fitted(simulate(train, logger, click_model(name), 40_000, seed=1))


def test_documents_that_move_tell_how_a_position_based_user_looks() -> None:
    table = of_moving_documents("pbm").table
    truth = np.array(click_model("pbm").examination)  # type: ignore[attr-defined]
    np.testing.assert_allclose(table[:, 0], truth / truth[0], atol=0.06)
    after_click = np.array([table[k, k] for k in range(1, 10)])
    np.testing.assert_allclose(after_click, truth[1:] / truth[0], atol=0.12)


def test_documents_that_move_tell_that_a_cascade_user_stops_at_a_click() -> None:
    table = of_moving_documents("cascade").table
    assert (table[:, 0] > 0.85).all()
    assert all(table[k, j] < 0.02 for k in range(1, 10) for j in range(1, k + 1))


def test_documents_that_move_tell_how_a_dependent_click_user_goes_on() -> None:
    table = of_moving_documents("dcm").table
    truth = np.array(click_model("dcm").continuation)  # type: ignore[attr-defined]
    just_below = np.array([table[k, k] / table[k, 0] for k in range(1, 8)])
    np.testing.assert_allclose(just_below, truth[:7], atol=0.1)
    assert (table[:8, 0] > 0.85).all()


def with_a_long_list(log: ClickLog, length: int) -> ClickLog:
    """The log with one session more, of one query with very many documents."""
    candidates = log.candidates
    first = int(np.argmax(candidates.sizes))
    taken = candidates.offsets[first] + np.arange(length) % candidates.sizes[first]
    longer = Candidates(
        np.concatenate([candidates.features, candidates.features[taken]]),
        np.append(candidates.offsets, candidates.n_documents + length),
        np.append(candidates.query_ids, "long"),
    )
    ranking = np.full((len(log) + 1, length), -1, np.int32)
    ranking[:-1, : log.k], ranking[-1] = log.ranking, np.arange(length)
    clicks = np.zeros((len(log) + 1, length), np.uint8)
    clicks[:-1, : log.k] = log.clicks
    query = np.append(log.query, candidates.n_queries)
    return ClickLog(longer, query, ranking, clicks, one_each(len(query)))


def test_one_very_long_list_changes_nothing_for_the_others() -> None:
    train = generate("tiny", 200, seed=3)
    log = simulate(train, fit_ranksvm(train, 0.05, 1), click_model("pbm"), 20_000, seed=1)
    log = replace(log, examination=None, timestamp=None)
    found = fitted(with_a_long_list(log, 300))
    assert found.table.shape == (300, 301)
    np.testing.assert_allclose(found.table[:10, 0], fitted(log).table[:, 0], atol=0.03)
    assert (found.table[30:, 0] == found.table[29, 0]).all()


def two_orders(first: int, second: int) -> ClickLog:
    """Two documents, in the one order and in the other; so many clicks on the first one, at position 1 and at 2."""
    candidates = Candidates(np.array([[0.0], [1.0]], np.float32), np.array([0, 2]), np.array(["q"]))
    ranking = np.repeat(np.array([[0, 1], [1, 0]], np.int32), [first, second], axis=0)
    clicks = (ranking == 0).astype(np.uint8)
    return ClickLog(candidates, np.zeros(len(ranking), np.int32), ranking, clicks, one_each(len(ranking)))


@pytest.mark.parametrize(("first", "second", "told"), [(300, 150, True), (300, 149, False), (10_000, 101, False)])
def test_clicks_on_a_document_at_two_positions_tell_them_apart_if_they_are_many(
    first: int, second: int, told: bool
) -> None:
    """300·150 / 450 = 100."""
    assert told_by_moved_documents(count_lists(two_orders(first, second))) is told


def test_where_no_document_moved_nothing_is_told() -> None:
    assert not told_by_moved_documents(count_lists(two_orders(10_000, 0)))


def test_a_few_odd_sessions_do_not_spoil_what_the_others_tell() -> None:
    """Ten sessions of five queries with shuffled lists, among 20,000."""
    train = generate("tiny", 200, seed=3)
    logger = fit_ranksvm(train, 0.05, 1)
    log = simulate(train, logger, click_model("pbm"), 20_000, seed=1)
    shuffled = simulate(train, StochasticLogger(logger, 5.0), click_model("pbm"), 2_000, seed=2)
    odd = shuffled.select(np.flatnonzero(shuffled.query < 5))
    assert 20 < len(odd) < 200
    both = ClickLog(
        log.candidates,
        np.concatenate([log.query, odd.query]),
        np.concatenate([log.ranking, odd.ranking]),
        np.concatenate([log.clicks, odd.clicks]),
        one_each(len(log) + len(odd)),
    )
    np.testing.assert_allclose(np.log(fitted(both).table[:, 0]), np.log(fitted(log).table[:, 0]), atol=0.06)
