"""Users who read down until they stop, recovered from their clicks, and not found in those of others."""

from itertools import product

import numpy as np
import pytest

from cuolr.clicks.click_model import click_model
from cuolr.clicks.simulate import simulate
from cuolr.data.synthetic import generate
from cuolr.examination.continuation import Attractiveness, _Clicks, likely_users
from cuolr.examination.from_clicks import ExaminationModel
from cuolr.logs.click_patterns import ClickPatterns
from cuolr.policies.browsing_users import BrowsingUsers, LastClickUsers, TopDownUsers
from cuolr.policies.plackett_luce import StochasticLogger
from cuolr.supervised.ranksvm import fit_ranksvm
from cuolr.types import Doubles

K = 6
DATA = generate("tiny", 200, seed=5)
WEAK = fit_ranksvm(DATA, 0.02, 1)
LOGGER = StochasticLogger(WEAK, float(np.std(WEAK.score(DATA.candidates))))
PAIRS = DATA.candidates.n_documents


def counted(name: str, sessions: int = 30_000) -> tuple[ClickPatterns, Doubles]:
    """The counts of a log of these users, and χ as it is estimated from it."""
    log = simulate(DATA, LOGGER, click_model(name), sessions, k=K, seed=1)
    return ClickPatterns.of(log).with_every_document(), ExaminationModel.fit(log).table


def likely(name: str, prior_strength: float = 5.0) -> BrowsingUsers:
    """With a prior mean of 0.3 for every document, and a first estimate that is just that."""
    patterns, examination = counted(name)
    flat = np.full(PAIRS, 0.3)
    clicks = _Clicks.of(patterns, K)
    known = np.nan_to_num(np.where(np.isnan(examination), examination[:, :1], examination))
    examined = clicks.by_last_click(np.ones(PAIRS), known)
    first = Attractiveness(flat, prior_strength * flat, prior_strength)
    rate = first.with_examinations(clicks.by_pair(clicks.clicks, PAIRS), clicks.by_pair(examined, PAIRS))
    return likely_users(patterns, Attractiveness(rate, first.prior_clicks, prior_strength), examination)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "truth"),
    # DBN: γ = 0.9, and a click on a document of attractiveness α satisfies with probability α − 0.1.
    [("sdbn", (1.0, 1.0, 0.1)), ("dbn", (0.9, 0.99, 0.09)), ("ccm", (0.9, 0.53, 0.25)), ("cascade", (1.0, 0.0, 0.0))],
)
def test_the_probabilities_to_continue_are_recovered(name: str, truth: tuple[float, ...]) -> None:
    users = likely(name)
    assert isinstance(users, TopDownUsers)
    assert users.positions == K
    assert [users.after_skip, users.after_irrelevant, users.after_relevant] == pytest.approx(truth, abs=0.1)


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["pbm", "ubm", "trust"])
def test_users_who_examine_by_position_or_last_click_are_not_taken_for_top_down(name: str) -> None:
    assert isinstance(likely(name), LastClickUsers)


def test_a_log_without_clicks_says_nothing() -> None:
    patterns, _ = counted("pbm", 100)
    silent = patterns.select(patterns.clicks.sum(axis=1) == 0)
    table = np.ones((K, K + 1))
    users = likely_users(silent, Attractiveness(np.full(PAIRS, 0.5), np.zeros(PAIRS), 0.0), table)
    assert isinstance(users, LastClickUsers | TopDownUsers)


def test_the_likelihood_is_that_of_the_click_model_summed_over_what_is_hidden() -> None:
    """Each pattern of a list of three, by enumeration of how far the user read."""
    skip, irrelevant, relevant = 0.8, 0.7, 0.2
    alpha = np.array([0.5, 0.3, 0.6])
    users = TopDownUsers(3, skip, irrelevant, relevant)
    patterns = np.array(list(product((False, True), repeat=3)))
    rows = len(patterns)
    clicks = _Clicks(
        np.tile(np.arange(3), (rows, 1)), np.ones((rows, 3), np.bool_), patterns, np.ones(rows), np.arange(rows)
    )
    logits = np.log(np.array([skip, irrelevant, relevant]) / (1 - np.array([skip, irrelevant, relevant])))

    def probability(pattern: np.ndarray) -> float:
        total = 0.0
        for read in (1, 2, 3):  # documents that the user examined
            chance = 1.0
            for k in range(read):
                chance *= alpha[k] if pattern[k] else 1 - alpha[k]
                onward = users.after_click(alpha[k]) if pattern[k] else skip
                if k < 2:
                    chance *= onward if k < read - 1 else 1 - onward
            total += 0.0 if pattern[read:].any() else chance
        return total

    by_hand = [probability(pattern) for pattern in patterns]
    assert sum(by_hand) == pytest.approx(1)
    np.testing.assert_allclose(np.exp(clicks.top_down_log_likelihood(alpha, logits)), by_hand, rtol=1e-9)


def test_attractiveness_keeps_its_prior() -> None:
    found = Attractiveness(np.array([0.9, 0.4]), np.array([3.0, 0.0]), 10.0)
    assert found.with_examinations(np.array([2.0, 30.0]), np.array([10.0, 10.0])).tolist() == [5 / 20, 1.0]
    none = Attractiveness(np.array([0.9]), np.zeros(1), 0.0)
    assert none.with_examinations(np.zeros(1), np.zeros(1)).tolist() == [0.9]
