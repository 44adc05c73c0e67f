import numpy as np
import pytest

from cuolr.clicks.fitting import mixture_prior
from cuolr.clicks.fitting.beta_prior import BetaPrior
from cuolr.clicks.fitting.click_model_fit import CLICK_FITS
from cuolr.clicks.fitting.evaluate_fit import evaluate_fit
from cuolr.clicks.fitting.fit_model import fit_click_model
from cuolr.clicks.fitting.mixture_prior import GRID, MixturePrior, fit_users, with_mixture_prior
from cuolr.logs.click_patterns import ClickPatterns
from cuolr.types import Doubles
from tests.clicks.fitting.small_patterns import random_log
from tests.small_log import small_log

every_fit = pytest.mark.parametrize("name", CLICK_FITS.names())


def two_kinds(pairs: int = 4_000, trials: int = 20) -> tuple[Doubles, Doubles, Doubles]:
    """Nine documents in ten have a rate of 0.1, the others of 0.8: the rates, clicks and impressions."""
    rng = np.random.default_rng(1)
    rates = np.where(rng.random(pairs) < 0.9, 0.1, 0.8)
    return rates, rng.binomial(trials, rates).astype(np.float64), np.full(pairs, float(trials))


def test_two_kinds_of_documents_are_found() -> None:
    _, successes, trials = two_kinds()
    prior = MixturePrior.learned(successes, trials)
    assert prior.weights.sum() == pytest.approx(1)
    assert prior.weights[GRID < 0.3].sum() == pytest.approx(0.9, abs=0.02)
    assert prior.weights[GRID > 0.6].sum() == pytest.approx(0.1, abs=0.02)
    assert prior.mean == pytest.approx(0.9 * 0.1 + 0.1 * 0.8, abs=0.01)


def test_posterior_means_are_bayes_rule() -> None:
    weights = np.zeros(len(GRID))
    weights[[10, 50]] = 0.25, 0.75
    low, high = GRID[10], GRID[50]
    of_low, of_high = 0.25 * low**2 * (1 - low) ** 3, 0.75 * high**2 * (1 - high) ** 3
    expected = (of_low * low + of_high * high) / (of_low + of_high)
    means = MixturePrior(weights).posterior(np.array([2.0, 0.0]), np.array([5.0, 0.0]))
    assert means == pytest.approx([expected, 0.25 * low + 0.75 * high])


def test_two_kinds_have_less_error_than_under_a_beta_prior() -> None:
    rates, successes, trials = two_kinds()
    mixture = MixturePrior.learned(successes, trials).posterior(successes, trials)
    one_hump = BetaPrior.learned(successes, trials, np.zeros(len(rates), np.int64)).posterior(successes, trials)
    assert np.square(mixture - rates).mean() < 0.7 * np.square(one_hump - rates).mean()


def test_without_trials_the_prior_is_flat() -> None:
    nothing = np.zeros(3)
    prior = MixturePrior.learned(nothing, nothing)
    assert prior.posterior(nothing, nothing) == pytest.approx([0.5, 0.5, 0.5])


def test_many_pairs_are_estimated_from_a_sample_and_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    _, successes, trials = two_kinds()
    whole = MixturePrior.learned(successes, trials)
    parts = whole.posterior(successes, trials)
    monkeypatch.setattr(mixture_prior, "MAX_PAIRS", 2_000)
    monkeypatch.setattr(mixture_prior, "PAIRS_AT_A_TIME", 7)
    assert MixturePrior.learned(successes, trials).mean == pytest.approx(whole.mean, abs=0.02)
    np.testing.assert_allclose(whole.posterior(successes, trials), parts, rtol=1e-12)


@every_fit
def test_parameters_by_pair_are_probabilities_and_global_ones_stay(name: str) -> None:
    patterns = ClickPatterns.of(small_log(rows=300))
    fitted = fit_click_model(name, patterns)
    changed = with_mixture_prior(fitted, patterns)
    for parameter, value in changed.values.items():
        assert ((value >= 0) & (value <= 1)).all()
        if parameter in fitted.global_names:
            np.testing.assert_array_equal(value, fitted.values[parameter])
    assert set(changed.unseen) == set(fitted.unseen)
    assert all(0 < value < 1 for value in changed.unseen.values())


@pytest.mark.parametrize("name", ["pbm", "dcm", "dbn", "ctr-document"])
def test_held_out_sessions_become_more_likely(name: str) -> None:
    """Grades are few kinds of documents."""
    users = "perfect" if name == "ctr-document" else name
    train, held_out = ClickPatterns.of(random_log(users, sessions=3_000)).held_out(3)
    beta, mixture = fit_click_model(name, train), fit_users(name, train)
    assert evaluate_fit(mixture, held_out).log_likelihood > evaluate_fit(beta, held_out).log_likelihood


def test_a_pair_without_sessions_has_the_mean_of_the_prior() -> None:
    patterns = ClickPatterns.of(random_log("dcm", sessions=500))
    without = patterns.select(~(patterns.documents == 7).any(axis=1))
    fitted = fit_users("dcm", without)
    assert fitted.values["attractiveness"][7] == pytest.approx(fitted.unseen["attractiveness"])


def test_parameters_from_features_keep_their_prior() -> None:
    log = random_log("pbm", sessions=500)
    patterns = ClickPatterns.of(log).with_every_document()
    one, same = fit_click_model("pbm", patterns, "features"), fit_users("pbm", patterns, "features")
    np.testing.assert_array_equal(one.values["attractiveness"], same.values["attractiveness"])
