import numpy as np
import pytest

from cuolr.examination.identifiability import identifiable, share_at_several_positions
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.counts import ClickCounts
from cuolr.logs.log_folder import one_each
from cuolr.types import Candidates


def two_orders(first: int, second: int) -> ClickLog:
    """Two documents, in the one order and in the other; so many clicks on the first one, at position 1 and at 2."""
    candidates = Candidates(np.array([[0.0], [1.0]], np.float32), np.array([0, 2]), np.array(["q"]))
    ranking = np.repeat(np.array([[0, 1], [1, 0]], np.int32), [first, second], axis=0)
    clicks = (ranking == 0).astype(np.uint8)
    return ClickLog(candidates, np.zeros(len(ranking), np.int32), ranking, clicks, one_each(len(ranking)))


@pytest.mark.parametrize(("first", "second", "expected"), [(300, 150, True), (300, 149, False), (10_000, 101, False)])
def test_two_positions_are_joined_by_enough_clicks_on_a_document_shown_at_both(
    first: int, second: int, expected: bool
) -> None:
    """300·150 / 450 = 100."""
    assert identifiable(ClickCounts.of(two_orders(first, second))) is expected


def test_examination_is_not_identifiable_if_each_document_has_one_position() -> None:
    assert not identifiable(ClickCounts.of(two_orders(10_000, 0)))


def test_the_share_at_several_positions_is_that_of_the_clicks_on_such_documents() -> None:
    """All clicks are on the first document, which is shown at both positions; or, in one order, at one."""
    for second, expected in ((7, 1.0), (0, 0.0)):
        counts = ClickCounts.of(two_orders(30, second))
        assert share_at_several_positions(counts, np.arange(len(counts.lists))) == expected
