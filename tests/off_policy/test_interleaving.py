"""Team-draft interleaving: by hand, and the sessions that a test needs against simulated tests."""

import numpy as np
import pytest
from scipy.stats import norm

from cuolr.clicks.click_model import click_model, relevance_of
from cuolr.clicks.simulate import simulate
from cuolr.off_policy.assess import assess
from cuolr.off_policy.interleaving import team_draft
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


def test_a_model_has_no_preference_over_itself() -> None:
    drawn = StochasticLogger(LOGGER, float(np.std(LOGGER.score(TRAIN.candidates))))
    log = simulate(TRAIN, drawn, click_model("pbm"), 6_000, k=5, seed=1)
    assert assess(LOGGER, log, against=LOGGER).sessions_for_interleaving is None
