import numpy as np
import pytest

from cuolr.examination.list_variation import ListVariation
from cuolr.logs.aggregate import aggregate
from tests.data.small_data import candidates_of, log_of


def variation(ranking: list[list[int]], query: list[int] | None = None) -> ListVariation:
    log = log_of(candidates_of(4, 4), query or [0] * len(ranking), ranking, np.zeros((len(ranking), 4), int).tolist())
    return ListVariation.of(aggregate(log))


def test_one_list_for_each_query_does_not_vary() -> None:
    found = variation([[0, 1, 2, 3], [0, 1, 2, 3], [3, 2, 1, 0]], [0, 0, 1])
    assert (found.changed, found.swapped) == (0, 0)
    assert not found.by_swaps


@pytest.mark.parametrize(
    ("other", "swapped"),
    [
        ([1, 0, 2, 3], 1),  # neighbours
        ([0, 1, 3, 2], 1),
        ([2, 1, 0, 3], 0),  # not neighbours
        ([1, 0, 3, 2], 0),  # two swaps
        ([0, 1, 2, -1], 0),  # a shorter list
        ([1, 2, 0, 3], 0),
    ],
)
def test_swaps_of_neighbours_are_recognised(other: list[int], swapped: int) -> None:
    found = variation([[0, 1, 2, 3]] * 3 + [other])
    assert (found.changed, found.swapped) == (1 / 4, swapped)
    assert found.by_swaps == bool(swapped)


def test_the_most_frequent_list_is_the_usual_one() -> None:
    assert variation([[1, 0, 2, 3], [0, 1, 2, 3], [0, 1, 2, 3]]) == ListVariation(1 / 3, 1)
