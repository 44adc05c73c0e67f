import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from cuolr.logs.changed_candidates import in_groups
from tests.data.small_data import candidates_of, random_log


@given(sizes=st.lists(st.integers(1, 4), min_size=1, max_size=3), groups=st.integers(1, 4), seed=st.integers(0, 99))
def test_each_group_has_its_own_copy_of_the_queries(sizes: list[int], groups: int, seed: int) -> None:
    log = random_log(candidates_of(*sizes), sessions=12, k=3, seed=seed)
    group = np.random.default_rng(seed).integers(0, groups, len(log))
    grouped = in_groups(log, group, groups)
    n = log.candidates.n_queries
    assert grouped.candidates.n_queries == groups * n
    np.testing.assert_array_equal(grouped.query, group * n + log.query)
    np.testing.assert_array_equal(grouped.ranking, log.ranking)
    np.testing.assert_array_equal(grouped.clicks, log.clicks)
    shown = log.where
    np.testing.assert_array_equal(
        grouped.candidates.features[grouped.documents[shown]], log.candidates.features[log.documents[shown]]
    )
    assert len(np.intersect1d(grouped.documents[group == 0], grouped.documents[group == 1])) <= 1  # padding
