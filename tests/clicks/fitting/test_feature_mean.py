from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from cuolr.clicks.fitting.beta_prior import FeatureMean, scaled_features
from cuolr.clicks.fitting.evaluate_fit import evaluate_fit
from cuolr.clicks.fitting.fit_model import DocumentParameters, fit_click_model
from cuolr.errors import InputError
from cuolr.logs.click_patterns import ClickPatterns
from cuolr.types import Bools, Doubles
from tests.clicks.fitting.small_patterns import dataset_of, random_log


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
