import numpy as np
import pytest
from scipy.special import betaln

from cuolr.clicks.fitting.beta_prior import BetaPrior


def test_the_pseudo_counts_of_simulated_pairs_are_recovered() -> None:
    rng = np.random.default_rng(1)
    trials = rng.integers(1, 60, 40_000).astype(np.float64)
    successes = rng.binomial(trials.astype(np.int64), rng.beta(2.0, 8.0, len(trials))).astype(np.float64)
    prior = BetaPrior.learned(successes, trials, np.zeros(len(trials), np.int64))
    assert prior.successes == pytest.approx([2.0], rel=0.06)
    assert prior.failures == pytest.approx([8.0], rel=0.06)


def test_no_other_strength_has_a_higher_likelihood() -> None:
    rng = np.random.default_rng(2)
    trials = rng.uniform(0, 20, 300)
    successes = trials * rng.beta(1.0, 3.0, 300)

    def likelihood(a: float, b: float) -> float:
        return float((betaln(successes + a, trials - successes + b) - betaln(a, b)).sum())

    prior = BetaPrior.learned(successes, trials, np.zeros(300, np.int64))
    a, b = float(prior.successes[0]), float(prior.failures[0])
    for factor in (0.9, 1.1):
        assert likelihood(a * factor, b * factor) < likelihood(a, b)


def test_the_mean_is_that_of_the_pairs_also_if_they_are_of_few_kinds() -> None:
    rng = np.random.default_rng(3)
    rates = rng.choice([0.1, 0.4, 1.0], 2_000, p=[0.6, 0.3, 0.1])
    trials = np.full(2_000, 40.0)
    prior = BetaPrior.learned(rng.binomial(40, rates).astype(np.float64), trials, np.zeros(2_000, np.int64))
    assert prior.mean == pytest.approx([rates.mean()], abs=0.01)


def test_each_group_has_its_own_prior() -> None:
    groups = np.repeat([0, 1], 500)
    trials = np.full(1_000, 10.0)
    successes = np.where(groups == 0, 1.0, 6.0)
    prior = BetaPrior.learned(successes, trials, groups)
    assert prior.mean[groups == 0] == pytest.approx(0.1, abs=0.005)
    assert prior.mean[groups == 1] == pytest.approx(0.6, abs=0.005)


def test_a_posterior_adds_the_pseudo_counts() -> None:
    prior = BetaPrior(np.array([2.0]), np.array([6.0]))
    assert prior.posterior(np.array([0.0, 3.0]), np.array([0.0, 4.0])).tolist() == [2 / 8, (3 + 2) / (4 + 8)]


@pytest.mark.parametrize("successes", [0.0, 5.0])
def test_pairs_that_are_all_alike_or_none_have_a_finite_prior(successes: float) -> None:
    prior = BetaPrior.learned(np.full(50, successes), np.full(50, 5.0), np.zeros(50, np.int64))
    assert np.isfinite([prior.successes, prior.failures]).all()
    nothing = BetaPrior.learned(np.zeros(5), np.zeros(5), np.zeros(5, np.int64))
    assert nothing.mean.tolist() == [0.5]
