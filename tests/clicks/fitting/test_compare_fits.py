from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from cuolr.clicks.click_model import click_model, relevance_of
from cuolr.clicks.fitting.click_model_fit import CLICK_FITS
from cuolr.clicks.fitting.compare_fits import compare_fits
from cuolr.clicks.fitting.evaluate_fit import FitScores, difference_to, evaluate_fit
from cuolr.clicks.fitting.fit_model import FittedClicks, fit_click_model
from cuolr.errors import InputError
from cuolr.logs.click_patterns import ClickPatterns
from cuolr.types import Candidates, Doubles
from studies.click_fit_error import MODELS, true_values
from tests.clicks.fitting.every_outcome import dataset_of, every_outcome, patterns_of, random_log
from tests.small_log import small_log

# The models that contain another one as a special case. In simulated logs satisfaction is linear in attractiveness,
# which makes DBN and SDBN a CCM.
CONTAINING = {
    "pbm": {"trust", "ubm"},
    "cascade": {"dcm", "ccm", "dbn", "sdbn", "ubm"},
    "sdbn": {"dbn", "ccm"},
    "dbn": {"ccm"},
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", MODELS)
def test_the_best_model_is_the_simulated_one_or_one_that_contains_it(name: str) -> None:
    compared = compare_fits(ClickPatterns.of(random_log(name, sessions=8_000, **MODELS[name])))
    possible = {name} | CONTAINING.get(name, set())
    assert compared.best in possible
    assert set(compared.as_good) <= possible
    assert not compared.better_baselines
    for other in set(compared.scores) - possible:
        assert compared.differences[other].is_more_than_noise, other


def test_models_are_ordered_by_their_likelihood_and_compared_with_the_best() -> None:
    compared = compare_fits(ClickPatterns.of(random_log("dcm", sessions=3_000)), ["pbm", "ctr", "dcm", "pbm"])
    assert compared.in_order == ["dcm", "pbm", "ctr"]
    assert compared.best == "dcm"
    assert compared.differences["dcm"].mean == 0
    gap = compared.scores["pbm"].log_likelihood - compared.scores["dcm"].log_likelihood
    assert compared.differences["pbm"].mean == pytest.approx(gap)
    assert compared.train_sessions + compared.held_out_sessions == 3_000


def test_a_baseline_is_the_best_only_among_baselines() -> None:
    patterns = ClickPatterns.of(random_log("perfect", sessions=3_000))
    assert compare_fits(patterns, ["ctr-document", "cascade"]).best == "cascade"
    assert compare_fits(patterns, ["ctr-document", "cascade"]).better_baselines == ["ctr-document"]
    assert compare_fits(patterns, ["ctr-document", "ctr"]).best == "ctr-document"


def test_every_model_is_compared_unless_names_are_given() -> None:
    assert sorted(compare_fits(ClickPatterns.of(small_log(rows=200))).fits) == CLICK_FITS.names()


def test_progress_is_told_after_each_model() -> None:
    done: list[int] = []
    compare_fits(ClickPatterns.of(small_log(rows=200)), ["pbm", "ctr"], progress=done.append)
    assert done == [1, 1]


def test_a_log_without_clicks_or_with_too_few_sessions_is_refused() -> None:
    log = small_log(rows=200)
    with pytest.raises(InputError, match="no clicks"):
        compare_fits(ClickPatterns.of(replace(log, clicks=np.zeros_like(log.clicks))))
    with pytest.raises(InputError, match="expected sessions to fit to and to hold out, found 1 in all"):
        compare_fits(ClickPatterns.of(log.select(slice(0, 1))))
    with pytest.raises(InputError, match="unknown fitted click model 'pmb'"):
        compare_fits(ClickPatterns.of(log), ["pmb"])


def with_values(name: str, k: int, pairs: int, values: dict[str, Doubles]) -> FittedClicks:
    model = CLICK_FITS.get(name)(k, pairs)
    return FittedClicks(name, model, values, {}, {}, values, (0.0,), True)


def test_hand_worked_scores() -> None:
    """Rates 1/2 and 1/4 at the two positions; three sessions of one click pattern, one of another."""
    fitted = with_values("ctr-position", 2, 2, {"rate": np.array([0.5, 0.25])})
    scores = evaluate_fit(fitted, patterns_of([[0, 1], [0, 1]], [[1, 0], [0, 1]], [3, 1]))
    first = 2 ** -np.log2(0.5)
    second = 2 ** -((3 * np.log2(0.75) + np.log2(0.25)) / 4)
    assert scores.perplexity_by_position == pytest.approx([first, second])
    assert scores.perplexity == pytest.approx((first + second) / 2)
    assert scores.conditional_perplexity == scores.perplexity
    assert scores.log_likelihood == pytest.approx(np.log(0.5) + (3 * np.log(0.75) + np.log(0.25)) / 4)
    assert scores.impossible == 0


def test_positions_count_only_where_something_was_shown() -> None:
    fitted = with_values("ctr-position", 3, 2, {"rate": np.array([0.5, 0.25, 0.5])})
    scores = evaluate_fit(fitted, patterns_of([[0, 1, -1], [0, -1, -1]], [[1, 0, 0], [0, 0, 0]]))
    assert scores.perplexity_by_position[:2] == pytest.approx([2, 1 / 0.75])
    assert np.isnan(scores.perplexity_by_position[2])
    assert scores.perplexity == pytest.approx((2 + 1 / 0.75) / 2)


@pytest.mark.parametrize("name", CLICK_FITS.names())
def test_the_likelihood_of_a_session_is_that_of_all_hidden_outcomes(name: str) -> None:
    rng = np.random.default_rng(1)
    model = CLICK_FITS.get(name)(3, 3)
    values = {parameter: rng.uniform(0.1, 0.9, len(value)) for parameter, value in model.start().items()}
    scores = evaluate_fit(with_values(name, 3, 3, values), patterns_of([[0, 1, 2], [2, -1, 0]], [[0, 1, 0], [1, 0, 0]]))
    plain = {parameter: value.tolist() for parameter, value in values.items()}
    first = every_outcome(name, (3, 3), plain, [0, 1, 2])[False, True, False].probability
    second = every_outcome(name, (3, 3), plain, [2, -1, 0])[True, False, False].probability
    assert scores.log_likelihood == pytest.approx((np.log(first) + np.log(second)) / 2)


@pytest.mark.parametrize("name", CLICK_FITS.names())
def test_documents_that_are_never_shown_do_not_change_the_scores(name: str) -> None:
    shown = ClickPatterns.of(random_log("ubm", sessions=1_000))
    candidates = shown.candidates
    more = Candidates(np.repeat(candidates.features, 3, axis=0), 3 * candidates.offsets, candidates.query_ids)
    every = replace(shown, candidates=more).with_every_document()
    assert len(every.pairs) == 3 * candidates.n_documents
    one, other = (compare_fits(patterns, [name]).scores[name] for patterns in (shown, every))
    assert other.log_likelihood == pytest.approx(one.log_likelihood, rel=1e-4)
    assert other.perplexity_by_position == pytest.approx(one.perplexity_by_position, rel=1e-3)


def test_sessions_of_several_clicks_are_impossible_under_the_cascade_model() -> None:
    fitted = with_values("cascade", 2, 2, {"attractiveness": np.array([0.5, 0.5])})
    scores = evaluate_fit(fitted, patterns_of([[0, 1], [0, 1]], [[1, 1], [1, 0]], [1, 3]))
    assert scores.log_likelihood == -np.inf
    assert scores.impossible == 1 / 4
    assert np.isfinite(scores.perplexity)
    assert difference_to(scores, scores).mean == 0
    other = evaluate_fit(with_values("ctr", 2, 2, {"rate": np.array([0.5])}), patterns_of([[0, 1]], [[1, 0]]))
    assert difference_to(other, scores).is_more_than_noise


@pytest.mark.thorough
@pytest.mark.parametrize("name", MODELS)
def test_no_other_model_predicts_better_than_the_truth(name: str) -> None:
    """True parameters have the lowest conditional perplexity on average; another model may win by noise only."""
    dataset, users = dataset_of(), click_model(name, **MODELS[name])
    train, held_out = ClickPatterns.of(random_log(name, sessions=4_000, **MODELS[name])).held_out(5)
    relevance = relevance_of(dataset.relevance[train.pairs], dataset.max_grade).astype(np.float64)
    model = CLICK_FITS.get(name)(train.k, len(train.pairs))
    values = {n: np.nan_to_num(v, nan=0.5) for n, v in true_values(name, users, model, relevance).items()}
    truth = evaluate_fit(with_values(name, train.k, len(train.pairs), values), held_out)
    for other in ("ctr-document-position", "pbm", "ubm", "dcm", "ccm"):
        scores = evaluate_fit(fit_click_model(other, train), held_out)
        assert difference_to(truth, scores).interval[0] < 0
        assert truth.conditional_perplexity < scores.conditional_perplexity + 0.002


def scores_of(by_unit: list[float], sessions: list[float]) -> FitScores:
    totals, counts = np.array(by_unit), np.array(sessions)
    nothing = np.zeros(1)
    return FitScores(float(totals.sum() / counts.sum()), 1, 1, nothing, nothing, 0, totals, counts)


def test_the_interval_of_a_difference_is_that_of_a_ratio_over_queries() -> None:
    """Queries of equal size: the interval of a mean by Student's t; a query without sessions does not count."""
    best = scores_of([-1.0, -2.0, -3.0, 0.0], [2, 2, 2, 0])
    other = scores_of([-1.2, -2.6, -3.4, 0.0], [2, 2, 2, 0])
    found = difference_to(best, other)
    gaps = np.array([-0.1, -0.3, -0.2])
    margin = 4.30265273 * gaps.std(ddof=1) / np.sqrt(3)
    assert found.mean == pytest.approx(-0.2)
    assert found.interval == pytest.approx((-0.2 - margin, -0.2 + margin))
    assert not found.is_more_than_noise


def test_one_query_says_nothing_about_others() -> None:
    found = difference_to(scores_of([-1.0], [2]), scores_of([-1.2], [2]))
    assert found.interval == (-np.inf, np.inf)


def test_in_a_log_of_few_queries_the_interval_is_that_of_the_mean_over_sessions() -> None:
    train, held_out = ClickPatterns.of(random_log("dcm", sessions=600, queries=4)).held_out(4)
    best, other = (evaluate_fit(fit_click_model(name, train), held_out) for name in ("dcm", "pbm"))
    difference = difference_to(best, other)
    gap = (other.log_likelihood_by_unit - best.log_likelihood_by_unit) / held_out.count
    of_sessions = np.repeat(gap, held_out.count.astype(int))
    expected = stats.ttest_1samp(of_sessions, 0).confidence_interval(0.95)
    assert difference.mean == pytest.approx(of_sessions.mean())
    assert difference.interval == pytest.approx((expected.low, expected.high))
