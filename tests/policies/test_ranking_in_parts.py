import numpy as np
import pytest

from cuolr.policies import ranking_in_parts
from cuolr.policies.random_policy import RandomPolicy
from cuolr.policies.ranking_in_parts import RankingInParts
from tests.small_log import small_candidates


@pytest.mark.parametrize("queries", [1, 4, 9])
def test_the_parts_together_are_the_ranking(queries: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranking_in_parts, "QUERIES_AT_A_TIME", 4)
    candidates, heard = small_candidates(queries), list[int]()
    ranking = RankingInParts(RandomPolicy(2), heard.append).rank(candidates, 5)
    np.testing.assert_array_equal(ranking, RandomPolicy(2).rank(candidates, 5))
    assert sum(heard) == queries
    assert max(heard) <= 4
