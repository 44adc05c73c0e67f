"""Users of all click models, fitted to logs of themselves: what they say of other lists, and how sure it is."""

from dataclasses import replace

import numpy as np
import pytest

from cuolr.clicks.click_model import click_model, relevance_of
from cuolr.clicks.simulate import Simulation, simulate
from cuolr.clicks.simulated_context import SimulatedContext
from cuolr.data.synthetic import generate
from cuolr.logs.click_patterns import ClickPatterns
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.last_clicks import PatternCells
from cuolr.off_policy.compared_lists import ComparedLists, CountedLists
from cuolr.off_policy.intervals import Units
from cuolr.off_policy.list_distributions import target_lists
from cuolr.off_policy.user_gain import UserGain, user_gain
from cuolr.off_policy.users.examination_users import ExaminationCells, ExaminationUsers
from cuolr.off_policy.users.fitted_users import MIN_EXAMINATIONS, FittedUsers, UnbiasedRates, least_examinations
from cuolr.off_policy.users.latent_users import LatentUsers, UsersByLevel
from cuolr.off_policy.users.user_counts import UserCounts
from cuolr.off_policy.users_of_log import plausible_users
from cuolr.policies.plackett_luce import StochasticLogger
from cuolr.supervised.ranksvm import fit_ranksvm
from cuolr.types import Doubles, Ints

K = 4
DATA = generate("tiny", 120, seed=5)
WEAK, BETTER = fit_ranksvm(DATA, 0.02, 1), fit_ranksvm(DATA, 1.0, 1)
LOGGER = StochasticLogger(WEAK, float(np.std(WEAK.score(DATA.candidates))))
MODELS = ("pbm", "ubm", "cascade", "dcm", "sdbn", "dbn", "ccm", "trust")


def log_of(model: str, sessions: int = 24_000, seed: int = 1) -> ClickLog:
    return simulate(DATA, LOGGER, click_model(model), sessions, k=K, seed=seed)


def patterns_of(log: ClickLog) -> ClickPatterns:
    return ClickPatterns.of(log).with_every_document()


def users_of(model: str, patterns: ClickPatterns) -> FittedUsers:
    if model in ("pbm", "ubm"):
        cells = ExaminationCells.of_levels([patterns.cells], len(patterns.pairs), patterns.k)
        return ExaminationUsers.fit(cells, by_last_click=model == "ubm")
    return LatentUsers.fit(model, patterns)


def gain_of(users: FittedUsers, compared: ComparedLists, log: ClickLog) -> UserGain:
    units = Units.of(log)
    return user_gain(users, users.influence(units.group, units.groups), compared, units)


def comparison_of(log: ClickLog, patterns: ClickPatterns) -> ComparedLists:
    logged = CountedLists(patterns.query, patterns.documents, patterns.count)
    reward = np.bincount(log.query, weights=log.clicks.sum(axis=1), minlength=log.candidates.n_queries)
    return ComparedLists(
        target=target_lists(BETTER, log.candidates, logged),
        baseline=logged,
        logged=logged,
        n_queries=log.candidates.n_queries,
        reward=reward.astype(np.float64),
        sessions=np.bincount(log.query, minlength=log.candidates.n_queries).astype(np.float64),
        worth=np.ones(log.candidates.n_documents),
        clicks=np.bincount(log.documents[log.clicks > 0], minlength=log.candidates.n_documents).astype(np.float64),
        query_of_pair=log.candidates.query_of_document,
    )


def true_clicks(model: str, documents: Ints) -> Doubles:
    relevance = relevance_of(DATA.relevance[np.maximum(documents, 0)], DATA.max_grade)
    total: Doubles = click_model(model).click_probability(relevance, documents >= 0).sum(axis=1)
    return total


@pytest.mark.thorough
@pytest.mark.parametrize("model", MODELS)
def test_users_of_a_model_tell_the_true_gain_of_another_ranker(model: str) -> None:
    log = log_of(model)
    patterns = patterns_of(log)
    compared = comparison_of(log, patterns)
    found = gain_of(users_of(model, patterns), compared, log)
    value = true_clicks(model, compared.target.documents) @ compared.target.count
    production = true_clicks(model, patterns.documents) @ patterns.count
    truth = value / production - 1
    assert truth > 0.01
    # The truth of these queries: of the interval over queries, a part is due to the queries.
    low, high = found.interval
    assert low < truth < high
    assert low < found.gain < high
    assert found.calibration == pytest.approx(1, abs=0.01)


@pytest.mark.thorough
@pytest.mark.parametrize("model", ["pbm", "ubm", "dcm", "ccm", "trust"])
def test_the_interval_is_that_of_a_bootstrap_which_fits_the_users_again(model: str) -> None:
    """The plain version: queries drawn with replacement, users fitted anew to each sample."""
    log = log_of(model, sessions=12_000)
    patterns, n_queries = patterns_of(log), log.candidates.n_queries
    compared = comparison_of(log, patterns)
    found = gain_of(users_of(model, patterns), compared, log)
    rng, gains = np.random.default_rng(0), []
    for _ in range(40):
        weights = rng.multinomial(n_queries, np.full(n_queries, 1 / n_queries)).astype(np.float64)
        rows = weights[patterns.query] > 0
        users = users_of(model, patterns.select(rows).weighted(weights))
        by_query = compared.by_query(compared.target, users.response()) - compared.by_query(
            compared.baseline, users.response()
        )
        gains.append(weights @ by_query / (weights @ compared.reward))
    half = (found.interval[1] - found.interval[0]) / 2
    assert half == pytest.approx(1.98 * np.std(gains, ddof=1), rel=0.35)


def test_examination_is_right_although_production_put_better_documents_above() -> None:
    """A strong logging policy with a few swaps: a prior on documents would mistake relevance for examination."""
    strong = StochasticLogger(BETTER, float(np.std(BETTER.score(DATA.candidates))) * 0.3)
    log = simulate(DATA, strong, click_model("pbm"), 60_000, k=K, seed=2)
    users = users_of("pbm", patterns_of(log))
    assert isinstance(users, ExaminationUsers)
    table = users.curves(("",)).table
    np.testing.assert_allclose(table[:, 0], np.array([0.68, 0.61, 0.48, 0.34]) / 0.68, rtol=0.06)


def test_a_few_swaps_of_neighbours_suffice_for_all_positions() -> None:
    """Expected counts: each document at its position, and in 5 % of the sessions swapped with a neighbour."""
    k, queries, sessions = 10, 50, 1_000.0
    examination, rng = 1 / np.arange(1, k + 1), np.random.default_rng(0)
    rows = []
    for pair in range(queries * k):
        home, rate = pair % k, rng.uniform(0.1, 0.9)
        for position in {max(home - 1, 0), home, min(home + 1, k - 1)}:
            shown = sessions * (0.95 if position == home else 0.025)
            rows.append((pair, position, 0, pair // k, shown, shown * examination[position] * rate))
    table = np.array(rows)
    whole = table[:, :4].astype(np.int64)
    cells = PatternCells(whole[:, 0], whole[:, 1], whole[:, 2], whole[:, 3], table[:, 4], table[:, 5])
    users = ExaminationUsers.fit(ExaminationCells.of_levels([cells], queries * k, k), by_last_click=False)
    np.testing.assert_allclose(np.exp(users.log_examination), examination, rtol=1e-6)


def test_noise_of_few_sessions_does_not_bias_users_who_stop_after_relevant_documents() -> None:
    """CCM: whether they continue depends on the attractiveness, too, in which noise would count twice."""
    ratios = []
    for seed in range(6):
        log = log_of("ccm", sessions=1_800, seed=seed)
        patterns = patterns_of(log)
        response, compared = users_of("ccm", patterns).response(), comparison_of(log, patterns)
        value = compared.by_query(compared.target, response).sum()
        ratios.append(value / (true_clicks("ccm", compared.target.documents) @ compared.target.count))
    assert np.mean(ratios) == pytest.approx(1, abs=0.06)


def test_what_the_log_says_nothing_about_is_worst_on_one_side_and_best_on_the_other() -> None:
    log = log_of("pbm", sessions=3_000)
    patterns = patterns_of(log)
    plain, users = comparison_of(log, patterns), users_of("pbm", patterns)
    unknown = np.flatnonzero(~users.response().rates.known)
    query = log.candidates.query_of_document[unknown]
    [first, second] = unknown[query == np.argmax(np.bincount(query))][:2]
    lists = np.full((2, 1, K), -1)
    lists[0, 0, 0], lists[1, 0, 0] = first, second
    one, other = (CountedLists(log.candidates.query_of_document[[first]], row, np.array([100.0])) for row in lists)
    found = gain_of(users, replace(plain, target=one, baseline=other), log)
    assert found.gain == pytest.approx(0)
    low, high = found.bounds
    assert low == pytest.approx(-high)
    assert high > 0.001


def test_what_the_log_does_not_identify_stays_as_given() -> None:
    log = simulate(DATA, WEAK, click_model("pbm"), 6_000, k=K, seed=2)
    patterns = patterns_of(log)
    given = np.array([1.0, 0.5, 0.4, 0.2])[:, None] * np.ones(K + 1)
    cells = ExaminationCells.of_levels([patterns.cells], len(patterns.pairs), K)
    users = ExaminationUsers.fit(cells, by_last_click=False, start=given)
    np.testing.assert_allclose(np.exp(users.log_examination), given[:, 0], rtol=1e-4)


@pytest.mark.parametrize("by_last_click", [False, True])
def test_documents_with_few_examinations_say_as_much_about_examination_as_others(by_last_click: bool) -> None:
    """From how many examinations on a document counts as known is about its own rate, not about that of positions."""
    patterns = patterns_of(log_of("pbm", sessions=3_000))
    some, all_of_them = (
        ExaminationUsers.fit(
            ExaminationCells.of_levels([patterns.cells], len(patterns.pairs), K, least), by_last_click=by_last_click
        )
        for least in (5.0, MIN_EXAMINATIONS)
    )
    assert 0 < some.response().rates.known.sum() < all_of_them.response().rates.known.sum()
    np.testing.assert_array_equal(some.log_examination, all_of_them.log_examination)


def test_the_jacobian_is_the_derivative_of_the_scores() -> None:
    patterns = patterns_of(log_of("ubm", sessions=6_000))
    cells = ExaminationCells.of_levels([patterns.cells], len(patterns.pairs), K)
    users = ExaminationUsers.fit(cells, by_last_click=True)
    everything = np.zeros(DATA.candidates.n_queries, np.int64)
    # The prior is one pseudo-click.
    jacobian = users.influence(everything, 1).jacobian + users.prior_clicks * np.eye(users.size)
    for entry in range(users.size):
        shift = np.zeros(users.size)
        shift[entry] = 1e-4
        moved = [
            ExaminationUsers(True, cells, users.place, users.log_examination + sign * shift, users.prior_clicks)
            .influence(everything, 1)
            .scores[0]
            for sign in (1, -1)
        ]
        np.testing.assert_allclose((moved[0] - moved[1]) / 2e-4, jacobian[:, entry], rtol=1e-3, atol=1)


def test_a_rate_is_clicks_over_examinations_and_the_mean_where_there_are_none() -> None:
    rates = UnbiasedRates(np.array([3.0, 1.0, 0.0]), np.array([4.0, 0.5, 0.0]))
    mean = (1 * (3 / 4) + 0.5 * (1 / 0.5)) / 1.5
    assert rates.attractiveness.tolist() == [3 / 4, 1 / 0.5, mean]
    assert rates.known.tolist() == [True, True, False]


def test_a_click_on_a_known_document_counts_for_two_hundred_sessions_at_most() -> None:
    least = least_examinations(np.array([2.0, 100.0, 200.0, 5_000.0]))
    assert least.tolist() == [2 / 200, 100 / 200, 1, 1]
    rates = UnbiasedRates(np.array([0.0, 2.0, 1.0]), np.array([0.3, 4.0, 0.9]), np.array([0.01, 1.0, 1.0]))
    assert rates.known.tolist() == [True, True, False]
    mean = (0.3 * 0 + 1 * (2 / 4)) / 1.3
    assert rates.attractiveness.tolist() == [0, 2 / 4, pytest.approx(mean)]


def test_levels_of_context_have_their_own_examination() -> None:
    users = click_model("pbm")
    severe = click_model("pbm", eta=3.0)
    logs = [simulate(DATA, LOGGER, model, 30_000, k=K, seed=3) for model in (users, severe)]
    cells = ExaminationCells.of_levels([patterns_of(log).cells for log in logs], DATA.candidates.n_documents, K)
    curves = ExaminationUsers.fit(cells, by_last_click=False).curves(("desktop", "mobile")).by_context
    assert curves is not None
    ratio = 0.48 / 0.68
    np.testing.assert_allclose(curves.tables[:, 2, 0], [ratio, ratio**3], rtol=0.1)


def test_a_last_click_that_one_level_does_not_have_is_that_of_the_others() -> None:
    log = log_of("ubm")
    unclicked = log.select(np.flatnonzero(log.clicks[:, 0] == 0))
    levels = [patterns_of(part).cells for part in (log, unclicked)]
    cells = ExaminationCells.of_levels(levels, DATA.candidates.n_documents, K)
    found = ExaminationUsers.fit(cells, by_last_click=True).curves(("desktop", "mobile"))
    assert found.by_context is not None
    assert np.isnan(found.by_context.tables[1, 1:, 1]).all()
    below = np.tri(K, K, dtype=bool)  # the last click above position k is at 0 to k − 1
    assert np.isfinite(found.table[:, :K][below]).all()
    desktop = found.by_context.tables[0, 1:, 1] * found.by_context.scale[0]
    np.testing.assert_allclose(found.table[1:, 1], desktop)


@pytest.mark.thorough
@pytest.mark.parametrize("model", ["pbm", "dcm"])
def test_the_interval_of_few_queries_is_that_of_a_jackknife_which_fits_the_users_again(model: str) -> None:
    """The plain version: the log without each group of sessions, evaluated anew."""
    few = DATA.select(np.arange(4))
    log = simulate(few, LOGGER, click_model(model), 6_000, k=K, seed=4)
    units, counts = Units.of(log), UserCounts.of(log, np.arange(4))
    assert counts.patterns is not None
    assert units.of_sessions

    def gain(part: ClickLog) -> UserGain:
        found = UserCounts.of(part, np.arange(4))
        assert found.patterns is not None
        users = users_of(model, found.patterns)
        rows = np.arange(len(part))
        rewards = found.units.sums(part.clicks.sum(axis=1).astype(np.float64), rows)
        sessions = found.units.sums(np.ones(len(part)), rows)
        clicks = found.clicks_by_pair()
        assert isinstance(counts.lists, CountedLists)
        target, ones = target_lists(BETTER, few.candidates, counts.lists), np.ones(few.candidates.n_documents)
        compared = ComparedLists(
            target, counts.lists, counts.lists, 4, rewards, sessions, ones, clicks, few.candidates.query_of_document
        )
        return gain_of(users, compared, part)

    total = log.clicks.sum()
    without = []
    for group in range(units.groups):
        part = log.select(np.flatnonzero(units.of_row != group))
        without.append(gain(part).gain * part.clicks.sum() / total)  # the same traffic
    error = np.sqrt((units.groups - 1) / units.groups * np.sum((np.array(without) - np.mean(without)) ** 2))
    low, high = gain(log).interval
    assert (high - low) / 2 == pytest.approx(2.1 * error, rel=0.4)


def test_position_based_users_are_ips_and_doubly_robust_with_any_model_of_the_clicks() -> None:
    """Click by click: ρ_d · (C − χ_k · m_d) plus the model m on the policy's lists, ρ_d the ratio of the exposures."""
    log = log_of("pbm", sessions=3_000)
    patterns = patterns_of(log)
    users, compared = users_of("pbm", patterns), comparison_of(log, patterns)
    assert isinstance(users, ExaminationUsers)
    chi = np.exp(users.log_examination)
    logged, target = np.zeros(log.candidates.n_documents), np.zeros(log.candidates.n_documents)
    np.add.at(logged, log.documents, np.broadcast_to(chi, log.documents.shape))
    for documents, count in zip(compared.target.documents, compared.target.count, strict=True):
        target[documents] += chi * count
    shown = logged > 0
    target[~shown] = 0.0
    weight = np.where(shown, target / np.where(shown, logged, 1), 0.0)
    ips = (weight[log.documents] * log.clicks).sum()
    model = np.random.default_rng(3).uniform(0, 1, len(target))  # any
    robust = target @ model + (weight[log.documents] * (log.clicks - chi * model[log.documents])).sum()
    rates = users.response().rates
    by_users = compared.by_query(compared.target, users.response(), np.where(rates.known, rates.attractiveness, 0.0))
    assert by_users.sum() == pytest.approx(ips)
    assert robust == pytest.approx(ips)


def test_levels_of_context_share_the_attractiveness_and_have_their_own_parameters() -> None:
    """The same sessions in both levels are as one; other users in one of them are a mean of both."""
    patterns = [patterns_of(log_of("dcm", sessions=6_000)), patterns_of(log_of("cascade", sessions=6_000))]
    documents = patterns[0].documents[:50]
    one = LatentUsers.fit("dcm", patterns[0])
    twice = UsersByLevel.fit("dcm", [patterns[0], patterns[0]])
    np.testing.assert_allclose(twice.response().clicks(documents), one.response().clicks(documents))
    assert twice.influence(np.zeros(len(DATA.candidates.offsets), np.int64), 1).jacobian.shape == (2 * one.size,) * 2
    both = UsersByLevel.fit("dcm", patterns)
    response = both.response()
    clicks = [level.clicks(documents, response.rates.attractiveness) for level in response.levels]
    np.testing.assert_allclose(response.clicks(documents), (clicks[0] + clicks[1]) / 2)
    # Users who stop at the first click examine less below it.
    assert clicks[1].sum() < 0.9 * clicks[0].sum()
    moved = both.response(np.concatenate([np.zeros(both.levels[0].size), np.full(both.levels[1].size, 0.1)]))
    np.testing.assert_array_equal(moved.levels[0].values["attractiveness"].shape, (DATA.candidates.n_documents,))


@pytest.mark.thorough
def test_a_level_of_context_is_not_mistaken_for_users_who_react_to_clicks() -> None:
    """Users look far down the list on one device and hardly on the other: a click low in the list tells which."""
    device = SimulatedContext("device", ("desktop", "mobile"), (0.5, 0.5), (0.3, 3.0))
    log = Simulation(DATA, LOGGER, click_model("pbm"), 12_000, k=K, seed=3, contexts=(device,)).log()
    by_device = plausible_users(UserCounts.of(log, np.arange(120)))
    together = plausible_users(UserCounts.of(replace(log, context={}), np.arange(120)))
    assert "pbm" in by_device.names
    assert "pbm" not in together.names
