import numpy as np
import pytest

from cuolr.cli import ranking_progress
from cuolr.cli.ranking_progress import RankingInParts
from cuolr.policies.random_policy import RandomPolicy
from tests.small_log import small_candidates


@pytest.mark.parametrize("queries", [1, 4, 9])
def test_the_parts_together_are_the_ranking(queries: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranking_progress, "QUERIES_AT_A_TIME", 4)
    candidates, heard = small_candidates(queries), list[int]()
    ranking = RankingInParts(RandomPolicy(2), heard.append).rank(candidates, 5)
    np.testing.assert_array_equal(ranking, RandomPolicy(2).rank(candidates, 5))
    assert sum(heard) == queries
    assert max(heard) <= 4
