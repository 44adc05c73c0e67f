"""Team-draft interleaving: by hand, the sessions that a test needs against simulated tests, and the test itself."""

import math

import numpy as np
import polars as pl
import pytest
from scipy.stats import norm

from cuolr.clicks.click_model import click_model, relevance_of
from cuolr.clicks.simulate import simulate
from cuolr.errors import InputError
from cuolr.logs.served_log import PART_COLUMNS
from cuolr.off_policy.assess import assess
from cuolr.off_policy.interleaving import interleaving_outcomes, outcome_of, team_draft
from cuolr.off_policy.intervals import sessions_needed
from cuolr.policies.plackett_luce import StochasticLogger
from cuolr.types import Ints
from tests.off_policy.policies import BETTER, LOGGER, TRAIN


def test_sessions_by_hand() -> None:
    # (1.96 + 0.8416)² · 4 / 0.5²
    assert sessions_needed(0.5, 4) == 126
    assert sessions_needed(0, 4) is None
    assert sessions_needed(-0.1, 4) is None


@pytest.mark.parametrize(
    ("coins", "documents", "team"),
    [
        ([True, False, True, False], [0, 3, 1, 2], [1, -1, 1, -1]),
        ([False, True, False, True], [3, 0, 2, 1], [-1, 1, -1, 1]),
        ([True, True, False, False], [0, 3, 2, 1], [1, -1, -1, 1]),
    ],
)
def test_a_draft_by_hand(coins: list[bool], documents: list[int], team: list[int]) -> None:
    """Only the coin of the first position of a round counts."""
    first, second = np.array([[0, 1, 2, 3]]), np.array([[3, 0, 2, 1]])
    found = team_draft(first, second, np.array([coins]))
    assert found[0].tolist() == [documents]
    assert found[1].tolist() == [team]


def test_a_team_without_documents_adds_none() -> None:
    found = team_draft(np.array([[0, 1, -1]]), np.array([[1, 0, -1]]), np.array([[True] * 3]))
    assert (found[0].tolist(), found[1].tolist()) == ([[0, 1, -1]], [[1, -1, 0]])


def preferences(model: str, first: Ints, second: Ints, sessions: int, rng: np.random.Generator) -> Ints:
    """The preference of each of so many simulated sessions with interleaved lists."""
    query = rng.integers(0, TRAIN.candidates.n_queries, sessions)
    documents, team = team_draft(first[query], second[query], rng.random((sessions, first.shape[1])) < 0.5)
    rows = TRAIN.candidates.offsets[query][:, None] + np.maximum(documents, 0)
    relevance = relevance_of(TRAIN.relevance[rows], TRAIN.max_grade)
    clicks, _ = click_model(model).sample(relevance, documents >= 0, rng)
    found: Ints = (team * clicks).sum(axis=1)
    return found


@pytest.mark.thorough
@pytest.mark.parametrize("model", ["pbm", "dcm"])
def test_a_test_of_this_size_finds_the_gain_in_80_percent(model: str) -> None:
    drawn = StochasticLogger(LOGGER, float(np.std(LOGGER.score(TRAIN.candidates))))
    log = simulate(TRAIN, drawn, click_model(model), 60_000, k=5, seed=1)
    size = assess(BETTER, log, against=LOGGER).sessions_for_interleaving
    assert size is not None
    first, second = (np.asarray(policy.rank(TRAIN.candidates, 5)) for policy in (BETTER, LOGGER))
    tests = 400
    found = preferences(model, first, second, tests * size, np.random.default_rng(5)).reshape(tests, size)
    z = found.mean(axis=1) / (found.std(axis=1, ddof=1) / np.sqrt(size))
    power = float((z > norm.ppf(0.975)).mean())
    assert 0.72 < power < 0.9


@pytest.mark.thorough
def test_a_model_has_no_preference_over_itself() -> None:
    drawn = StochasticLogger(LOGGER, float(np.std(LOGGER.score(TRAIN.candidates))))
    log = simulate(TRAIN, drawn, click_model("pbm"), 6_000, k=5, seed=1)
    assert assess(LOGGER, log, against=LOGGER).sessions_for_interleaving is None


def test_the_sign_test_by_hand() -> None:
    # 9 of 10 decided sessions are won: p = 2 · (10 + 1) / 2¹⁰.
    found = outcome_of("a", "b", np.array([1.0] * 9 + [-1.0] + [0.0] * 10), with_clicks=12)
    assert (found.sessions, found.with_clicks, found.first_wins, found.second_wins, found.ties) == (20, 12, 1, 9, 10)
    assert found.share == 0.9
    assert found.p_value == pytest.approx(2 * 11 / 1024)
    assert found.preferred == "b"
    # Clopper and Pearson: P(X ≥ 9 | low) = P(X ≤ 9 | high) = 0.025.
    low, high = found.share_interval
    assert 10 * low**9 * (1 - low) + low**10 == pytest.approx(0.025)
    assert 1 - high**10 == pytest.approx(0.025)
    # Mean 8/20; variance (10 − 20 · 0.4²) / 19.
    assert found.preference == pytest.approx(0.4)
    reach = 1.959964 * math.sqrt((10 - 20 * 0.16) / 19 / 20)
    assert found.preference_interval == pytest.approx((0.4 - reach, 0.4 + reach), abs=1e-6)


def test_without_decided_sessions_nothing_is_said() -> None:
    found = outcome_of("a", "b", np.zeros(5), with_clicks=2)
    assert (found.p_value, found.share_interval, found.preferred) == (1.0, (0.0, 1.0), None)
    assert found.as_dict()["share"] is None


def test_a_loss_is_a_preference_for_the_first() -> None:
    assert outcome_of("a", "b", -np.ones(20), with_clicks=20).preferred == "a"


def rows(*records: dict[str, object]) -> pl.DataFrame:
    text = ("request_id", "doc_id", "model", "team", "event", "event_id")
    schema = dict.fromkeys(PART_COLUMNS, pl.Float64()) | dict.fromkeys(text, pl.String()) | {"position": pl.Int32()}
    return pl.DataFrame([{**dict.fromkeys(PART_COLUMNS), **record} for record in records], schema=schema)


def shown(request: str, teams: str) -> list[dict[str, object]]:
    return [
        {"request_id": request, "doc_id": f"d{n}", "position": n + 1, "model": "a", "team": team}
        for n, team in enumerate(teams)
    ]


def click(request: str, document: str) -> dict[str, object]:
    return {"request_id": request, "doc_id": document, "event": "click", "value": 1.0}


def test_clicks_count_for_the_model_that_contributed_the_document_once() -> None:
    log = rows(
        *shown("1", "abba"),
        *shown("2", "baab"),
        *shown("3", "abab"),
        *shown("4", "aa"),  # the second model had nothing to add
        {"request_id": "5", "doc_id": "d0", "position": 1, "model": "a"},  # not interleaved
        click("1", "d1"),
        click("1", "d1"),
        click("1", "d0"),
        click("1", "d2"),
        click("2", "d0"),
        click("3", "d9"),  # was not shown
        click("4", "d0"),
        click("5", "d0"),
    )
    (found,) = interleaving_outcomes(log)
    # Session 1: b has two clicks, a one. Session 2: b has one. Session 3: none. Session 4: a has one.
    assert (found.first, found.second, found.sessions, found.with_clicks) == ("a", "b", 4, 3)
    assert (found.first_wins, found.second_wins, found.ties) == (1, 2, 1)
    assert found.preference == pytest.approx((1 + 1 + 0 - 1) / 4)


def test_a_log_without_interleaved_lists_is_refused() -> None:
    with pytest.raises(InputError, match="expected interleaved lists, found none"):
        interleaving_outcomes(rows({"request_id": "5", "doc_id": "d0", "position": 1, "model": "a"}))
