import numpy as np

from cuolr.off_policy.support import ShownLists, Support, support_of
from cuolr.types import Doubles


def support(logged: list[list[int]], target: list[int], propensity: Doubles, query: list[int] | None = None) -> Support:
    """Of one query with one session per list, unless queries are given; the target policy has the same list for all."""
    of_list = np.zeros(len(logged), np.int64) if query is None else np.array(query)
    queries, sessions = np.unique(of_list, return_counts=True)
    shown = ShownLists(of_list, np.array(logged), np.ones(len(logged)))
    lists = ShownLists(queries, np.array([target] * len(queries)), sessions.astype(np.float64))
    return support_of(shown, lists, propensity, propensity)


def test_a_list_that_was_shown_is_supported() -> None:
    found = support([[0, 1], [1, 0]], [1, 0], np.full((2, 2), 0.5))
    assert found.never_shown == 0
    for level in ("position", "above", "list"):
        assert found.unsupported[level].tolist() == [0, 0]
        assert found.unobserved[level].tolist() == [0, 0]


def test_a_document_that_was_never_shown_is_not_supported() -> None:
    found = support([[0, 1], [1, 0]], [0, 2], np.full((2, 2), 0.3))
    assert found.never_shown == 1 / 2
    assert found.unsupported["position"].tolist() == [0, 1]
    assert found.unsupported["above"].tolist() == [0, 1]
    assert found.unsupported["list"].tolist() == [1, 1]


def test_nothing_else_is_supported_where_the_log_always_shows_the_same() -> None:
    found = support([[0, 1, 2]], [0, 2, 1], np.ones((1, 3)))
    assert found.never_shown == 0
    assert found.unsupported["position"].tolist() == [0, 1, 1]
    assert found.unsupported["above"].tolist() == [0, 1, 1]
    assert found.unsupported["list"].tolist() == [1, 1, 1]


def test_an_order_that_the_log_could_have_shown_is_only_unobserved() -> None:
    found = support([[0, 1, 2], [1, 0, 2]], [0, 2, 1], np.full((2, 3), 0.4))
    assert found.unsupported["list"].tolist() == [0, 0, 0]
    assert found.unobserved["position"].tolist() == [0, 1, 1]
    assert found.unobserved["above"].tolist() == [0, 1, 1]
    assert found.unobserved["list"].tolist() == [1, 1, 1]


def test_a_document_can_be_unobserved_after_those_above_and_observed_at_its_position() -> None:
    found = support([[0, 1, 2], [1, 2, 0]], [0, 2, 1], np.full((2, 3), 0.4))
    assert found.unobserved["position"].tolist() == [0, 0, 1]
    assert found.unobserved["above"].tolist() == [0, 1, 1]


def test_queries_count_by_their_sessions_and_only_positions_that_they_show() -> None:
    found = support([[0, 1], [0, 1], [0, 1], [1, -1]], [2, 1], np.full((4, 2), 0.5), query=[0, 0, 0, 1])
    assert found.unobserved["position"].tolist() == [1, 0]
    assert found.unobserved["above"].tolist() == [1, 3 / 4]
    assert found.never_shown == 4 / 7  # of 4 documents at position 1 and 3 at position 2


def test_documents_of_another_query_do_not_count() -> None:
    found = support([[0, 1], [1, 0]], [0, 1], np.full((2, 2), 0.5), query=[0, 1])
    assert found.unobserved["list"].tolist() == [1 / 2, 1 / 2]
