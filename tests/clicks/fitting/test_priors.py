from dataclasses import replace

import numpy as np
import pytest
from scipy.special import betaln
from sklearn.linear_model import LogisticRegression

from cuolr.clicks.fitting import mixture_prior
from cuolr.clicks.fitting.beta_prior import BetaPrior, FeatureMean, scaled_features
from cuolr.clicks.fitting.click_model_fit import CLICK_FITS
from cuolr.clicks.fitting.evaluate_fit import evaluate_fit
from cuolr.clicks.fitting.fit_model import DocumentParameters, fit_click_model
from cuolr.clicks.fitting.mixture_prior import GRID, MixturePrior, fit_users, with_mixture_prior
from cuolr.errors import InputError
from cuolr.logs.click_patterns import ClickPatterns
from cuolr.types import Bools, Doubles
from tests.clicks.fitting.every_outcome import dataset_of, random_log
from tests.small_log import small_log


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


def counts(pairs: int = 400, seed: int = 1) -> tuple[FeatureMean, Doubles, Doubles]:
    """Counts of pairs whose logit is linear in the first of three features."""
    rng = np.random.default_rng(seed)
    features = np.concatenate([rng.uniform(-1, 1, (pairs, 3)), np.ones((pairs, 1))], axis=1)
    trials = rng.integers(0, 30, pairs).astype(np.float64)
    chance = 1 / (1 + np.exp(-(2 * features[:, 0] - 1)))
    successes = rng.binomial(trials.astype(np.int64), chance).astype(np.float64)
    return FeatureMean(features, rng.integers(0, 2, pairs)), successes, trials


def scikit_learn(x: Doubles, successes: Doubles, trials: Doubles, ridge: float) -> LogisticRegression:
    weights, labels = np.concatenate([successes, trials - successes]), np.repeat([1, 0], len(x))
    model = LogisticRegression(C=1 / (2 * ridge), tol=1e-8, max_iter=1_000)
    return model.fit(np.concatenate([x, x])[:, :-1], labels, sample_weight=weights)


def test_the_regression_is_that_of_scikit_learn() -> None:
    mean, successes, trials = counts()
    found = mean.fit(successes, trials)
    expected = scikit_learn(mean.features, successes, trials, mean.ridge)
    assert found == pytest.approx(expected.predict_proba(mean.features[:, :-1])[:, 1], abs=1e-3)


def test_the_mean_of_a_pair_with_trials_is_from_the_queries_of_other_folds() -> None:
    mean, successes, trials = counts()
    found = mean.fit_across(successes, trials)
    for fold in (0, 1):
        inside, others = mean.fold == fold, (mean.fold != fold) & (trials > 0)
        model = scikit_learn(mean.features[others], successes[others], trials[others], mean.ridge)
        expected = model.predict_proba(mean.features[:, :-1])[:, 1]
        seen = inside & (trials > 0)
        assert found[seen] == pytest.approx(expected[seen], abs=1e-3)
    unseen: Bools = trials == 0
    assert found[unseen] == pytest.approx(mean.fit(successes, trials)[unseen])


def test_noise_gets_a_strong_ridge_and_a_clear_effect_a_weak_one() -> None:
    clear, successes, trials = counts(pairs=4_000)
    clear.fit(successes, trials)
    noise, successes, trials = counts(pairs=300)
    successes = np.random.default_rng(2).binomial(trials.astype(np.int64), 0.2).astype(np.float64)
    noise.fit(successes, trials)
    assert noise.ridge > clear.ridge


@pytest.mark.parametrize("name", ["pbm", "dcm", "ctr-document"])
def test_features_help_where_pairs_have_few_sessions(name: str) -> None:
    patterns = ClickPatterns.of(random_log("pbm", sessions=600)).with_every_document()
    train, held_out = patterns.held_out(5)
    kinds: tuple[DocumentParameters, ...] = ("pair", "both")
    scores = {
        documents: evaluate_fit(fit_click_model(name, train, documents), held_out).log_likelihood for documents in kinds
    }
    assert scores["both"] > scores["pair"]


def test_a_document_that_was_never_shown_has_the_mean_of_its_features() -> None:
    dataset = dataset_of()
    patterns = ClickPatterns.of(random_log("perfect", sessions=2_000)).with_every_document()
    rows = np.flatnonzero(~(patterns.documents == 3).any(axis=1))
    kept = np.zeros(len(patterns), np.bool_)
    kept[rows] = True
    fitted = fit_click_model("ctr-document", patterns.select(kept), "both")
    assert fitted.trials["rate"][3] == 0
    assert fitted.values["rate"][3] == pytest.approx(fitted.priors["rate"].mean[3])
    relevant = dataset.relevance == dataset.max_grade
    assert fitted.priors["rate"].mean[relevant].mean() > fitted.priors["rate"].mean[~relevant].mean() + 0.1


def test_documents_without_features_are_refused() -> None:
    log = random_log("pbm", sessions=50)
    for features in (np.zeros_like(log.candidates.features), log.candidates.features[:, :0]):
        without = replace(log, candidates=replace(log.candidates, features=features, feature_names=None))
        with pytest.raises(InputError, match="no features that differ"):
            scaled_features(ClickPatterns.of(without))


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
