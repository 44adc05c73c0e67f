from pathlib import Path

import numpy as np
import pytest

from cuolr.clicks.fitting.fit_model import fit_click_model
from cuolr.clicks.fitting.simulated_users import SimulatedUsers, UserSimulation, load_users, save_users
from cuolr.errors import InputError
from cuolr.logs.aggregate import aggregate
from cuolr.logs.click_patterns import ClickPatterns
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.log_folder import concatenate
from cuolr.policies.random_policy import RandomPolicy
from tests.small_log import small_candidates, small_log


def users_of(log: ClickLog, tmp_path: Path, name: str = "dcm") -> SimulatedUsers:
    patterns = ClickPatterns.of(log)
    save_users(fit_click_model(name, patterns), patterns, tmp_path / "users.toml")
    return load_users(tmp_path / "users.toml", log.candidates)


def simulated(simulation: UserSimulation) -> ClickLog:
    return concatenate(simulation.blocks(), simulation.sessions)


@pytest.mark.parametrize("name", ["pbm", "ubm", "dcm", "dbn"])
def test_sessions_have_logged_lists_and_the_click_rates_of_the_users(name: str, tmp_path: Path) -> None:
    log = small_log(rows=200)
    users = users_of(log, tmp_path, name)
    simulation = UserSimulation(log, users, sessions=80_000)
    found = simulated(simulation)
    lists = {(int(query), tuple(ranking)) for query, ranking in zip(log.query, log.ranking.tolist(), strict=True)}
    assert {(int(q), tuple(r)) for q, r in zip(found.query, found.ranking.tolist(), strict=True)} <= lists
    assert not found.clicks[~found.where].any()
    documents = np.where(log.where, log.documents, -1)
    expected = np.where(log.where, users.model.marginal(users.values, documents), 0).sum(axis=1).mean()
    assert simulation.expected_clicks() == pytest.approx(expected)
    error = found.clicks.sum(axis=1).std() / np.sqrt(80_000)
    assert abs(found.clicks.sum(axis=1).mean() - expected) < 4 * error


def test_a_policy_ranks_the_documents_of_the_logged_queries(tmp_path: Path) -> None:
    log = small_log(rows=200)
    policy = RandomPolicy(3)
    found = simulated(UserSimulation(log, users_of(log, tmp_path), 500, policy, k=4))
    assert np.array_equal(found.ranking, policy.rank(log.candidates, 4)[found.query])


def test_the_seed_decides_the_sessions_and_blocks_are_independent(tmp_path: Path) -> None:
    log = small_log(rows=50)
    users = users_of(log, tmp_path)
    first, same, other = (simulated(UserSimulation(log, users, 40_000, seed=seed)) for seed in (1, 1, 2))
    assert np.array_equal(first.clicks, same.clicks)
    assert not np.array_equal(first.clicks, other.clicks)
    assert not np.array_equal(first.query[:5_000], first.query[32_768 : 32_768 + 5_000])


def test_gaps_on_the_page_are_examined_as_in_the_fit(tmp_path: Path) -> None:
    """Users who stop at the first position click nothing in a list that starts at the second."""
    candidates = small_candidates(queries=1)
    ranking, page = np.array([[0, 1], [1, 0]], np.int16), np.array([[0, 1], [1, 3]], np.int32)
    clicks = np.array([[1, 0], [0, 0]], np.uint8)
    rows = np.repeat([0, 1], 500)
    log = ClickLog(
        candidates,
        np.zeros(1_000, np.int32),
        ranking[rows],
        clicks[rows],
        np.ones(1_000, np.int64),
        page_position=page[rows],
    )
    found = simulated(UserSimulation(log, users_of(log, tmp_path, "pbm"), 4_000))
    assert found.page_position is not None
    at_top = found.page_position[:, 0] == 0
    assert found.clicks[at_top, 0].mean() > 0.95
    assert found.clicks[~at_top].mean() < 0.05


def test_lists_longer_than_the_fitted_ones_and_aggregated_logs_are_refused(tmp_path: Path) -> None:
    log = small_log(rows=100)
    users = users_of(log, tmp_path)
    with pytest.raises(InputError, match="fitted to lists of 5 positions, found a list of"):
        simulated(UserSimulation(log, users, 10, RandomPolicy(1), k=9))
    with pytest.raises(InputError, match="simulating users needs the clicks of each session"):
        simulated(UserSimulation(aggregate(log), users, 10))
    with pytest.raises(InputError, match="sessions: expected a whole number >= 1, found 0"):
        UserSimulation(log, users, 0)
