import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cuolr.clicks.cascade import CascadeModel
from cuolr.clicks.click_model import CLICK_MODELS, click_model
from cuolr.clicks.dcm import DependentClickModel
from cuolr.clicks.pbm import EYE_TRACKING, PositionBasedModel
from cuolr.clicks.randomisation import randomise, true_propensities
from cuolr.clicks.simulate import Simulation
from cuolr.data.synthetic import generate
from cuolr.errors import InputError
from cuolr.examination.propensities import Estimate, Propensities
from cuolr.examination.randomised import BINS, estimate_propensities, random_lists
from cuolr.logs.aggregate import aggregate
from cuolr.logs.clicklog import ClickLog
from cuolr.policies.random_policy import UniformLogger
from cuolr.types import Doubles, RankingDataset
from tests.data.small_data import candidates_of, dataset_of, log_of, random_log

# Probabilities are binned, so that the most likely λ is known to about this.
FINE = 2 / BINS


def numbers(estimate: Estimate | None) -> Doubles:
    """The values, NaN where not known."""
    assert estimate is not None
    return np.array(estimate.values, np.float64)


def errors(estimate: Estimate | None) -> Doubles:
    assert estimate is not None
    return np.array(estimate.standard_errors, np.float64)


def estimated(log: ClickLog) -> Propensities:
    return estimate_propensities(lambda: [log])


def repeated(times: Sequence[tuple[int, list[int]]]) -> list[list[int]]:
    return [clicks for number, clicks in times for _ in range(number)]


def worked_log() -> ClickLog:
    """Ten sessions that show documents a and b: a is clicked in 6 of them, b in 2 of these and in 2 of the others."""
    clicks = repeated([(2, [1, 1]), (4, [1, 0]), (2, [0, 1]), (2, [0, 0])])
    return log_of(candidates_of(2, 1), [0] * 10, [[0, 1]] * 10, clicks)


def test_examination_is_the_share_of_clicks_relative_to_the_first_position() -> None:
    assert numbers(estimated(worked_log()).examination) == pytest.approx([6 / 6, (2 + 2) / 6])


def test_positions_that_are_never_shown_together_are_compared_by_their_click_rates() -> None:
    clicks = repeated([(4, [1]), (6, [0]), (2, [1]), (18, [0])])
    log = log_of(candidates_of(1), [0] * 30, [[0]] * 30, clicks)
    log = replace(log, page_position=np.repeat([[0], [1]], [10, 20], axis=0).astype(np.int32))
    examination = estimate_propensities(random_lists(lambda: [log])).examination
    assert numbers(examination) == pytest.approx([1, (2 / 20) / (4 / 10)])
    assert errors(examination)[1] == pytest.approx(0.25 * math.sqrt((1 - 0.1) / 2 + (1 - 0.4) / 4))


def test_lists_that_are_not_marked_as_random_are_left_out() -> None:
    log = worked_log()
    marked = replace(log, randomised=np.arange(10) < 6)  # the sessions with a click on a
    assert numbers(estimate_propensities(random_lists(lambda: [marked])).examination) == pytest.approx([1, 2 / 6])
    assert estimate_propensities(random_lists(lambda: [log])).lists == 10


def test_the_papers_continuation_counts_who_clicked_nothing_more_as_who_stopped() -> None:
    continuation = estimated(worked_log()).continuation["paper"]
    assert continuation.values == (2 / 6, None)


def test_the_most_likely_continuation_allows_for_documents_that_are_skipped() -> None:
    # b is certainly examined where a was not clicked: 4 times, with 2 clicks. Of 6 who clicked a, λ · 1/2 click b.
    continuation = estimated(worked_log()).continuation["mle"]
    assert continuation.values[0] == pytest.approx(2 / 6 / (2 / 4), abs=FINE)


def test_continuation_after_the_last_position_is_not_known() -> None:
    for estimate in estimated(worked_log()).continuation.values():
        assert estimate.values[-1] is None
        assert estimate.standard_errors[-1] is None


def test_lists_that_end_above_a_position_say_nothing_about_it() -> None:
    short = worked_log()
    clicks = np.concatenate([short.clicks, [[1, 0]] * 7]).astype(np.uint8)
    ranking = np.concatenate([short.ranking, [[0, -1]] * 7]).astype(np.int16)
    both = log_of(short.candidates, [0] * 10 + [1] * 7, ranking.tolist(), clicks.tolist())
    assert estimated(both).examination == estimated(short).examination
    assert estimated(both).continuation == estimated(short).continuation
    assert estimated(both).lists == 17


def test_nothing_is_known_without_clicks() -> None:
    log = log_of(candidates_of(3), [0], [[0, 1, 2]], [[0, 0, 0]])
    assert estimated(log).examination == Estimate((None,) * 3, (None,) * 3)
    assert estimated(log).continuation["mle"].values == (None,) * 3


def test_lists_of_one_document_are_no_problem() -> None:
    log = log_of(candidates_of(3), [0, 0], [[0], [1]], [[1], [0]])
    assert estimated(log).examination == Estimate((1.0,), (0.0,))
    assert estimated(log).continuation["mle"].values == (None,)


def test_an_aggregated_log_is_refused() -> None:
    with pytest.raises(InputError, match="estimating propensities needs the clicks of each session"):
        estimated(aggregate(worked_log()))


def most_likely(log: ClickLog, position: int) -> float | None:
    """λ of a position by trying many, with everything counted session by session."""
    examined: dict[tuple[int, int], list[int]] = {}
    sessions = list(zip(log.query.tolist(), log.ranking.tolist(), log.clicks.tolist(), strict=True))
    for query, ranking, clicks in sessions:
        for slot, click in zip(ranking, clicks, strict=True):
            if slot >= 0:
                examined.setdefault((query, slot), []).append(click)
            if click:
                break
    everyone = [click for clicks in examined.values() for click in clicks]
    overall = sum(everyone) / len(everyone)

    def later_chance(query: int, ranking: list[int]) -> float:
        seen = [examined.get((query, slot), [overall]) for slot in ranking[position + 1 :] if slot >= 0]
        return 1 - math.prod(1 - sum(clicks) / len(clicks) for clicks in seen)

    later = [
        (any(clicks[position + 1 :]), later_chance(query, ranking))
        for query, ranking, clicks in sessions
        if clicks[position]
    ]
    informative = [(clicked, chance) for clicked, chance in later if clicked or chance > 0]
    if not informative:
        return None

    def log_likelihood(continuation: float) -> float:
        terms = [continuation if clicked else 1 - continuation * chance for clicked, chance in informative]
        return sum(math.log(max(term, 1e-300)) for term in terms)

    tried: list[float] = np.linspace(0, 1, 1_001).tolist()
    return max(tried, key=log_likelihood)


@settings(max_examples=30)
@given(st.integers(0, 10_000), st.integers(1, 60))
def test_the_most_likely_continuation_is_that_of_trying_many(seed: int, sessions: int) -> None:
    log = random_log(candidates_of(4, 2, 6), sessions, k=4, lists_per_query=5, seed=seed)
    found = estimated(log).continuation["mle"].values
    for position in range(3):
        expected = most_likely(log, position)
        assert (found[position] is None) == (expected is None)
        assert found[position] == pytest.approx(expected, abs=0.002)


@settings(max_examples=50)
@given(st.integers(0, 10_000), st.integers(1, 200))
def test_estimates_are_probabilities_and_the_papers_is_never_the_larger(seed: int, sessions: int) -> None:
    log = random_log(candidates_of(4, 2, 6), sessions, k=4, lists_per_query=5, seed=seed)
    by_method = estimated(log).continuation
    likely, paper = numbers(by_method["mle"]), numbers(by_method["paper"])
    known = ~np.isnan(likely) & ~np.isnan(paper)
    assert ((likely[known] >= 0) & (likely[known] <= 1)).all()
    assert (paper[known] <= likely[known] + FINE).all()
    assert (numbers(estimated(log).examination) >= 0)[~np.isnan(numbers(estimated(log).examination))].all()


def test_the_estimate_does_not_depend_on_how_the_lists_are_cut_into_blocks() -> None:
    simulation = Simulation(dataset_of(12, 3, 30), UniformLogger(), DependentClickModel(), 2_000, k=5)
    expected = estimate_propensities(simulation.blocks)
    for size in (7, 1_000):
        assert estimate_propensities(lambda size=size: simulation.blocks(size)) == expected  # type: ignore[misc]


def test_the_seed_decides_and_randomness_is_not_that_of_a_log_with_the_same_seed() -> None:
    dataset, model = dataset_of(12, 3, 30), PositionBasedModel()
    first, same, other = (randomise(dataset, model, 3_000, seed=seed) for seed in (1, 1, 2))
    assert first == same != other
    assert first != estimate_propensities(Simulation(dataset, UniformLogger(), model, 3_000, seed=1).blocks)


def test_progress_counts_each_list_twice() -> None:
    done: list[int] = []
    randomise(dataset_of(5), PositionBasedModel(), 30_000, progress=done.append)
    assert sum(done) == 60_000


@pytest.mark.parametrize("name", CLICK_MODELS.names())
def test_every_click_model_can_be_estimated(name: str) -> None:
    found = randomise(dataset_of(12, 3, 30, 60), CLICK_MODELS.get(name)(), 20_000)
    assert found.lists == 20_000
    assert np.isfinite(numbers(found.examination)).all()
    assert np.isfinite(numbers(found.continuation["mle"])[:-1]).all()


def test_users_of_the_cascade_model_never_go_on_after_a_click() -> None:
    found = randomise(dataset_of(12, 30), CascadeModel(), 20_000)
    assert found.continuation["mle"].values == (0.0,) * 9 + (None,)


def test_users_who_always_go_on_are_known_as_such() -> None:
    found = randomise(dataset_of(12, 30), DependentClickModel(eta=0), 50_000)
    np.testing.assert_allclose(numbers(found.continuation["mle"])[:-1], 1, atol=0.03)
    assert found.continuation["paper"].values[8] < 0.7  # type: ignore[operator]


@pytest.mark.thorough
def test_estimates_are_within_a_few_standard_errors() -> None:
    dataset = generate("web10k-like", 100, 1)
    ratio = np.array(EYE_TRACKING) / EYE_TRACKING[0]
    examination = randomise(dataset, PositionBasedModel(), 300_000).examination
    assert (np.abs(numbers(examination) - ratio)[1:] < 4 * errors(examination)[1:]).all()
    continuation = randomise(dataset, DependentClickModel(), 300_000).continuation["mle"]
    off = np.abs(numbers(continuation) - EYE_TRACKING)[:-1]
    # Nearly all of it is chance; the attractiveness of each document is not known exactly either.
    assert (off < 4 * errors(continuation)[:-1] + 0.002).all()


@pytest.mark.thorough
@pytest.mark.parametrize("quantity", ["examination", "mle", "paper"])
def test_standard_errors_are_the_spread_over_repetitions(quantity: str) -> None:
    dataset, model = generate("web10k-like", 20, 1), DependentClickModel()

    def estimate(seed: int) -> Estimate | None:
        found = randomise(dataset, model, 30_000, seed=seed)
        return found.examination if quantity == "examination" else found.continuation[quantity]

    runs = [estimate(seed) for seed in range(40)]
    inner = slice(1, 9)
    spread = np.std([numbers(run)[inner] for run in runs], axis=0, ddof=1)
    stated = np.mean([errors(run)[inner] for run in runs], axis=0)
    # With 40 repetitions the spread is known to about 11 %.
    assert (spread / stated).mean() == pytest.approx(1, abs=0.15)


@pytest.mark.slow
def test_ten_million_lists_recover_what_the_users_do() -> None:
    dataset = generate("web10k-like", 2_000, 1)
    ratio = np.array(EYE_TRACKING) / EYE_TRACKING[0]
    examination = numbers(randomise(dataset, PositionBasedModel(), 10_000_000).examination)
    np.testing.assert_allclose(examination, ratio, rtol=0.02)

    by_method = randomise(dataset, DependentClickModel(), 10_000_000).continuation
    np.testing.assert_allclose(numbers(by_method["mle"])[:9], EYE_TRACKING[:9], atol=0.01)
    assert by_method["mle"].values[9] is None
    # The paper's estimate does not come nearer with more lists.
    assert (numbers(by_method["paper"])[:9] < np.array(EYE_TRACKING[:9]) - 0.05).all()


def test_a_mean_attractiveness_for_all_documents_would_not_do() -> None:
    """Why `mle` estimates each document's own: with one for all it is off, however many lists there are."""
    # Every other query has only good documents, α = 0.02 + 0.98 · 1/3, the others none, α = 0.02.
    grades = np.repeat(np.arange(30) % 2, 12).astype(np.int8)
    dataset = RankingDataset(candidates_of(*[12] * 30), grades, max_grade=2)
    simulation = Simulation(dataset, UniformLogger(), DependentClickModel(noise=0.02), 200_000)
    found = numbers(estimate_propensities(simulation.blocks).continuation["mle"])
    sums = np.zeros((2, 10))
    attracted = examined = 0
    for block in simulation.blocks():
        clicks = block.clicks.astype(np.int64)
        up_to_first = np.cumsum(clicks, axis=1) <= clicks
        attracted += int(clicks[up_to_first].sum())
        examined += int(up_to_first.sum())
        later = clicks.sum(axis=1, keepdims=True) > np.cumsum(clicks, axis=1)
        sums += [(clicks * later).sum(axis=0), clicks.sum(axis=0)]
    below = 9 - np.arange(9)
    one_for_all = (sums[0] / sums[1])[:9] / (1 - (1 - attracted / examined) ** below)
    np.testing.assert_allclose(found[:9], EYE_TRACKING[:9], atol=0.02)
    assert np.abs(one_for_all - EYE_TRACKING[:9]).max() > 0.06


def test_the_truth_is_known_where_it_depends_on_the_position_alone() -> None:
    relative = np.array(EYE_TRACKING) / EYE_TRACKING[0]
    truth = {name: true_propensities(click_model(name), 10) for name in CLICK_MODELS.names()}
    known = {name: found.examination for name, found in truth.items() if found.examination is not None}
    assert known.keys() == {"pbm", "perfect"}
    assert numbers(known["pbm"]) == pytest.approx(relative)
    assert numbers(known["perfect"]) == pytest.approx(np.ones(10))
    continuation = {name: found.continuation["true"] for name, found in truth.items() if found.continuation}
    assert continuation.keys() == {"dcm", "cascade"}
    assert numbers(continuation["dcm"]) == pytest.approx(EYE_TRACKING)
    assert numbers(continuation["cascade"]) == pytest.approx(np.zeros(10))


def test_under_trust_bias_the_ratio_of_clicks_is_not_that_of_examination() -> None:
    model = click_model("trust")
    clicks = model.click_probability(np.ones((1, 10), np.float32), np.ones((1, 10), np.bool_))[0]
    assert abs(clicks[9] / clicks[0] - EYE_TRACKING[9] / EYE_TRACKING[0]) > 0.005
    assert true_propensities(model, 10) == Propensities()


def test_the_truth_goes_with_the_severity_and_the_length_of_the_lists() -> None:
    truth = true_propensities(PositionBasedModel(eta=2.0, examination=(0.5, 0.4)), k=3)
    assert numbers(truth.examination) == pytest.approx([1, 0.4**2 / 0.5**2, 0.4**2 / 0.5**2])
    assert true_propensities(PositionBasedModel(examination=(0.0, 1.0)), k=2) == Propensities()
