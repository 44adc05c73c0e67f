from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import tomli_w

from cuolr.clicks.click_model import read_click_model
from cuolr.clicks.fitting.click_model_fit import CLICK_FITS
from cuolr.clicks.fitting.fit_model import fit_click_model, with_errors
from cuolr.clicks.fitting.simulated_users import SimulatedUsers, UserSimulation, load_users, pairs_file, save_users
from cuolr.config import read_toml
from cuolr.errors import InputError
from cuolr.logs.aggregate import aggregate
from cuolr.logs.click_patterns import ClickPatterns
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.log_folder import concatenate
from cuolr.policies.random_policy import RandomPolicy
from tests.small_log import small_candidates, small_log

USERS = [name for name in CLICK_FITS.names() if not CLICK_FITS.get(name).is_baseline]
PATTERNS = ClickPatterns.of(small_log(rows=300))


@pytest.mark.parametrize("name", USERS)
def test_users_are_read_back_with_the_same_click_probabilities(name: str, tmp_path: Path) -> None:
    fitted = with_errors(fit_click_model(name, PATTERNS), PATTERNS, samples=2)
    save_users(fitted, PATTERNS, tmp_path / "users.toml", "LOG")
    users = load_users(tmp_path / "users.toml", PATTERNS.candidates)
    rows = np.where(PATTERNS.where, PATTERNS.pairs[PATTERNS.documents], -1)
    expected = fitted.model.conditional(fitted.values, PATTERNS.documents, PATTERNS.clicks)
    found = users.model.conditional(users.values, rows, PATTERNS.clicks)
    assert found[PATTERNS.where] == pytest.approx(expected[PATTERNS.where], abs=1e-4)
    assert users.known == pytest.approx(len(PATTERNS.pairs) / PATTERNS.candidates.n_documents)


@pytest.mark.parametrize("name", USERS)
def test_every_parameter_has_a_name_of_its_own(name: str) -> None:
    fitted = fit_click_model(name, PATTERNS)
    for parameter in fitted.global_names:
        names = [fitted.model.entry_name(parameter, place) for place in range(len(fitted.values[parameter]))]
        assert len(set(names)) == len(names)


def test_lists_of_one_document_give_users_that_can_be_simulated(tmp_path: Path) -> None:
    patterns = ClickPatterns.of(small_log(rows=200, k=1))
    fitted = fit_click_model("ubm", patterns)
    save_users(fitted, patterns, tmp_path / "users.toml")
    users = read_click_model(tmp_path / "users.toml")
    relevance, where = np.ones((1, 1), np.float32), np.ones((1, 1), np.bool_)
    examination = fitted.model.table(fitted.values)[0, 0]  # type: ignore[attr-defined]
    expected = examination * users.click_if_examined(relevance)
    assert users.click_probability(relevance, where) == pytest.approx(expected)


@pytest.mark.parametrize("name", USERS)
def test_the_file_is_a_click_model_for_labelled_documents(name: str, tmp_path: Path) -> None:
    fitted = fit_click_model(name, PATTERNS)
    save_users(fitted, PATTERNS, tmp_path / "users.toml")
    simulated = read_click_model(tmp_path / "users.toml")
    assert type(simulated) is type(fitted.model.click_model(fitted.values))


def test_documents_that_are_not_in_the_file_have_the_learned_mean(tmp_path: Path) -> None:
    fitted = fit_click_model("pbm", PATTERNS)
    save_users(fitted, PATTERNS, tmp_path / "users.toml")
    others = replace(small_candidates(), query_ids=np.array(["q0", *(f"other {i}" for i in range(5))]))
    users = load_users(tmp_path / "users.toml", others)
    rest = users.values["attractiveness"][others.offsets[1] :]
    assert rest == pytest.approx(fitted.unseen["attractiveness"], abs=1e-6)
    assert users.known == pytest.approx(others.sizes[0] / others.n_documents)


def test_a_click_rate_is_not_saved(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="'ctr' is a click rate, not a model of users"):
        save_users(fit_click_model("ctr", PATTERNS), PATTERNS, tmp_path / "users.toml")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_was_not_fitted_or_is_damaged_is_one_clear_line(tmp_path: Path) -> None:
    path = tmp_path / "users.toml"
    path.write_text('name = "pbm"\n')
    with pytest.raises(InputError, match="expected the table 'fit'"):
        load_users(path, PATTERNS.candidates)
    save_users(fit_click_model("pbm", PATTERNS), PATTERNS, path)
    good = read_toml(path)
    for fit, problem in (
        ({**good["fit"], "k": 4}, "expected {'examination': 4} numbers, found {'examination': 5}"),
        ({**good["fit"], "model": "pmb"}, "unknown fitted click model 'pmb'"),
        ({**good["fit"], "values": {"examination": [2.0] * 5}}, "expected 0 to 1, found 2.0"),
        ({**good["fit"], "k": 10**12}, "`k` = at most 1,000, found 'users.parquet' and 1000000000000"),
        ({**good["fit"], "pairs": "../users.parquet"}, "the name of a file in the same folder"),
        ({**good["fit"], "pairs": ""}, "the name of a file in the same folder"),
        ({**good["fit"], "pairs": "a\0b"}, "the name of a file in the same folder"),
    ):
        path.write_text(tomli_w.dumps({**good, "fit": fit}))
        with pytest.raises(InputError) as error:
            load_users(path, PATTERNS.candidates)
        assert problem in str(error.value)
        assert str(error.value).startswith(str(path))
    path.write_text(tomli_w.dumps(good))
    pairs = pl.read_parquet(tmp_path / "users.parquet")
    pairs.with_columns(attractiveness=pl.lit("high")).write_parquet(tmp_path / "users.parquet")
    with pytest.raises(InputError, match=r"users.parquet: conversion from `str` to `f64` failed"):
        load_users(path, PATTERNS.candidates)
    pairs.write_parquet(tmp_path / "users.parquet")
    pl.DataFrame({"query_id": ["q"], "doc_id": ["1"]}).write_parquet(pairs_file(path))
    with pytest.raises(InputError, match="found no attractiveness"):
        load_users(path, PATTERNS.candidates)
    pl.DataFrame({"query_id": ["q"], "doc_id": ["1"], "attractiveness": [2.0]}).write_parquet(pairs_file(path))
    with pytest.raises(InputError, match="column 'attractiveness': expected numbers from 0 to 1"):
        load_users(path, PATTERNS.candidates)
    pairs_file(path).unlink()
    with pytest.raises(InputError, match=r"users\.parquet"):
        load_users(path, PATTERNS.candidates)


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
