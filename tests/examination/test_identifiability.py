import itertools
import json

import numpy as np
import pytest
from scipy.sparse.csgraph import connected_components

from cuolr.clicks.pbm import PositionBasedModel
from cuolr.clicks.simulate import simulate
from cuolr.examination.identifiability import Identifiability, Link, positions_text
from cuolr.logs.aggregate import aggregate
from cuolr.logs.click_patterns import ClickPatterns
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.counts import ClickCounts
from cuolr.logs.session_files import one_each
from cuolr.policies.plackett_luce import StochasticLogger
from cuolr.policies.random_policy import RandomPolicy
from cuolr.types import Candidates
from tests.data.small_data import candidates_of, dataset_of, random_log


def two_orders(first: int, second: int) -> ClickLog:
    """Two documents, in the one order and in the other; so many clicks on the first one, at position 1 and at 2."""
    candidates = Candidates(np.array([[0.0], [1.0]], np.float32), np.array([0, 2]), np.array(["q"]))
    ranking = np.repeat(np.array([[0, 1], [1, 0]], np.int32), [first, second], axis=0)
    clicks = (ranking == 0).astype(np.uint8)
    return ClickLog(candidates, np.zeros(len(ranking), np.int32), ranking, clicks, one_each(len(ranking)))


def found_in(log: ClickLog) -> Identifiability:
    return Identifiability.of(ClickCounts.of(log))


def of_table(clicks: list[list[float]]) -> Identifiability:
    """From the clicks on each document, a row, at each position; documents are shown everywhere."""
    table = np.array(clicks, np.float64)
    document, position = (index.ravel() for index in np.indices(table.shape))
    return Identifiability.of_documents(document, position, table.ravel())


@pytest.mark.parametrize(("first", "second", "expected"), [(300, 150, True), (300, 149, False), (10_000, 101, False)])
def test_two_positions_are_joined_by_enough_clicks_on_a_document_shown_at_both(
    first: int, second: int, expected: bool
) -> None:
    """300·150 / 450 = 100."""
    found = found_in(two_orders(first, second))
    assert found.identifiable is expected
    assert found.thinnest_link == Link(0, 1, first * second / (first + second))
    assert found.verdict == ("yes" if expected else "no")


def test_examination_is_not_identifiable_if_each_document_has_one_position() -> None:
    found = found_in(two_orders(10_000, 0))
    assert not found.identifiable
    assert found.in_words().startswith("no, no click is on a document shown at several positions")
    found = found_in(simulate(dataset_of(12, 30, 7), RandomPolicy(), PositionBasedModel(), 500))
    assert found.share_at_several_positions == 0
    assert found.thinnest_link is not None
    assert found.thinnest_link.clicks == 0
    assert found.thinnest_link.second == found.thinnest_link.first + 1, "of links without clicks, one of neighbours"


def test_a_logger_that_shows_documents_everywhere_identifies_examination() -> None:
    logger = StochasticLogger(RandomPolicy(), temperature=1)
    found = found_in(simulate(dataset_of(12, 30, 7), logger, PositionBasedModel(), 30_000))
    assert found.verdict == "yes"
    assert found.groups[0][:5] == (0, 1, 2, 3, 4)
    assert found.in_words().startswith(f"yes, {found.share_at_several_positions:.1%} of the clicks are on documents")


def test_the_share_at_several_positions_is_that_of_the_clicks_on_documents_shown_there() -> None:
    """All clicks are on the first document, which is shown at both positions; or, in one order, at one."""
    for second, expected in ((7, 1.0), (0, 0.0)):
        assert found_in(two_orders(30, second)).share_at_several_positions == expected
    document, position = np.array([0, 0, 1]), np.array([0, 1, 1])
    found = Identifiability.of_documents(document, position, np.array([3.0, 0.0, 1.0]))
    assert found.share_at_several_positions == 3 / 4, "a document that was shown twice and clicked at one position"
    assert found.informative
    assert not found.identifiable
    few = Identifiability.of_documents(document, position, np.array([1.0, 0.0, 2.0]))
    assert not few.informative


def test_the_thinnest_link_is_on_the_best_way_between_positions() -> None:
    """Positions 1 and 3 have a weak link of their own, and two strong ones by way of position 2."""
    found = of_table([[400, 400, 0], [0, 300, 300], [20, 0, 20]])
    assert found.thinnest_link == Link(1, 2, 300 * 300 / 600)
    assert found.groups == ((0, 1, 2),)
    assert "positions 2 and 3, 150 effective clicks" in found.in_words()


def test_groups_without_a_strong_link_are_identified_in_part() -> None:
    found = of_table([[500, 500, 0, 0], [0, 0, 400, 400], [0, 60, 30, 0]])
    assert found.verdict == "in part"
    assert not found.identifiable
    assert found.groups == ((0, 1), (2, 3))
    assert found.thinnest_link == Link(1, 2, 60 * 30 / 90)
    assert "form 2 groups (1–2, 3–4)" in found.in_words()
    assert "positions 2 and 3, 20 effective clicks, of 100 needed" in found.in_words()


def test_a_position_with_few_clicks_may_be_left_out() -> None:
    """The last position has 4 % of the clicks, or 6 %."""
    for clicks, expected in ((40, True), (64, False)):
        found = of_table([[480, 480, 0], [0, 0, clicks]])
        assert found.identifiable is expected
        assert found.groups == ((0, 1), (2,))


def test_one_position_leaves_nothing_to_separate() -> None:
    found = of_table([[10], [5]])
    assert found.verdict == "not applicable"
    assert found.thinnest_link is None
    assert found.in_words().startswith("not applicable")


def test_a_log_without_clicks_identifies_nothing() -> None:
    found = of_table([[0, 0], [0, 0]])
    assert (found.verdict, found.thinnest_link, found.groups) == ("no", None, ())
    assert "no click is on a document" in found.in_words()


def test_the_verdict_is_that_of_the_component_of_most_clicks() -> None:
    """A plain version: connected components at the threshold, with 95 % of the clicks in one of several positions."""
    rng = np.random.default_rng(0)
    verdicts = []
    for _ in range(200):
        k = int(rng.integers(2, 7))
        table = rng.poisson(rng.choice([5, 60, 200, 600], (4, k)) * (rng.random((4, k)) < 0.5)).astype(np.float64)
        links = np.zeros((k, k))
        for row, (i, j) in itertools.product(table, itertools.combinations(range(k), 2)):
            if row[i] and row[j]:
                links[i, j] = links[j, i] = links[i, j] + row[i] * row[j] / (row[i] + row[j])
        _, component = connected_components(links >= 100, directed=False)
        clicks = np.bincount(component, weights=table.sum(axis=0))
        largest = int(clicks.argmax())
        expected = (component == largest).sum() > 1 and clicks[largest] >= 0.95 * clicks.sum()
        found = of_table(table.tolist())
        np.testing.assert_allclose(found.links, links)
        assert found.identifiable == expected
        verdicts.append(found.identifiable)
    assert 0.1 < np.mean(verdicts) < 0.9


def test_lists_that_are_left_out_do_not_count() -> None:
    log = random_log(candidates_of(5, 4, 6), sessions=300, k=4)
    counts = ClickCounts.of(log)
    kept = np.flatnonzero(counts.lists.query == 1)
    alone = Identifiability.of(ClickCounts.of(log.select(np.flatnonzero(log.query == 1))))
    assert Identifiability.of(counts, kept) == alone != Identifiability.of(counts)


def test_sessions_counts_and_click_patterns_say_the_same() -> None:
    log = random_log(candidates_of(5, 4, 6), sessions=300, k=4)
    cells = ClickPatterns.of(log).cells
    assert Identifiability.of_documents(cells.pair, cells.position, cells.clicks) == found_in(log)
    np.testing.assert_allclose(found_in(aggregate(log)).links, found_in(log).links)


def test_json_has_positions_from_1() -> None:
    values = json.loads(json.dumps(of_table([[500, 500, 0], [0, 30, 60]]).as_dict()))
    assert values["groups"] == [[1, 2], [3]]
    assert values["thinnest_link"] == {"positions": [2, 3], "effective_clicks": pytest.approx(20)}
    assert values["verdict"] == "in part"
    assert values["effective_clicks"][0] == [0, 250, 0]


@pytest.mark.parametrize(
    ("positions", "text"), [((0,), "1"), ((0, 1), "1–2"), ((0, 2, 3), "1 and 3–4"), ((4, 7), "5 and 8")]
)
def test_positions_for_people(positions: tuple[int, ...], text: str) -> None:
    assert positions_text(positions) == text
