import itertools

import numpy as np
import pytest

from cuolr.clicks.cascade import CascadeModel
from cuolr.clicks.ccm import ClickChainModel
from cuolr.clicks.click_model import CLICK_MODELS, relevance_of
from cuolr.clicks.dcm import DependentClickModel
from cuolr.clicks.optimality import MAX_ORDERS, check_optimality, list_values, random_relevance
from cuolr.clicks.pbm import PositionBasedModel
from cuolr.clicks.perfect import PerfectModel
from cuolr.clicks.trust import TrustBiasModel
from cuolr.clicks.ubm import UserBrowsingModel
from cuolr.errors import InputError


def value(model: UserBrowsingModel | ClickChainModel | PerfectModel, relevance: list[float], discount: float) -> float:
    return float(list_values(model, np.array([relevance], np.float32), discount)[0])


def test_the_value_of_a_list_discounts_its_clicks() -> None:
    assert value(PerfectModel(noise=0), [1, 0.5, 0.25], 0.8) == pytest.approx(1 + 0.8 * 0.5 + 0.64 * 0.25)


def test_instances_are_sorted_and_every_second_one_has_grades() -> None:
    relevance = random_relevance(instances=101, documents=6, seed=1)
    assert np.all(np.diff(relevance, axis=1) <= 0)
    assert np.isin(relevance[::2], relevance_of(np.arange(5), 4)).all()
    assert not np.isin(relevance[1::2], relevance_of(np.arange(5), 4)).any()


@pytest.mark.parametrize("model", [PositionBasedModel(), CascadeModel(), DependentClickModel()])
@pytest.mark.parametrize("discount", [1.0, 0.8])
@pytest.mark.parametrize("k", [6, 3])
def test_sorting_is_best_where_theory_says_so(
    model: PositionBasedModel | CascadeModel | DependentClickModel, discount: float, k: int
) -> None:
    done: list[int] = []
    report = check_optimality(model, documents=6, k=k, discount=discount, instances=100, progress=done.append)
    assert report.holds
    assert done == [1] * 100
    assert report.violations == 0
    assert report.largest is None
    assert "optimal in all instances" in report.describe()


def test_a_dependent_click_model_that_continues_more_often_further_down_is_a_counterexample() -> None:
    # Swapping neighbours a > b at positions k, k + 1 changes the chance to get past both by (a − b)(λ_k − λ_{k+1}).
    rising = DependentClickModel(continuation=(0.1, 0.5, 0.9))
    assert check_optimality(rising, documents=4, instances=50).violations > 40
    flat = DependentClickModel(continuation=(0.5,))
    assert check_optimality(flat, documents=4, instances=50).holds


def test_click_chain_neighbours_belong_in_reverse_order_when_both_attract() -> None:
    # For neighbours a > b, sorting gains (a − b)·[1 − γ·α₁ − γ·a·b·(α₂ − α₃)/(1 − ε)].
    model = ClickChainModel()
    first, second = 1.0, 7 / 15
    a, b = 1.0, 0.1 + 0.9 * second
    gain = (a - b) * (1 - 0.9 - a * b * 0.25 / 0.9)
    assert gain < 0
    found = value(model, [first, second], discount=1) - value(model, [second, first], discount=1)
    assert found == pytest.approx(gain, rel=1e-5)


@pytest.mark.parametrize(("discount", "holds"), [(1.0, False), (0.86, False), (0.84, True), (0.8, True)])
def test_sorting_is_best_in_the_click_chain_model_up_to_a_discount(discount: float, holds: bool) -> None:
    # The bracket above is never negative for γ ≤ 1 / (0.9 + 0.25 / 0.9) = 0.849.
    report = check_optimality(ClickChainModel(noise=0.1), documents=5, discount=discount, instances=2000, seed=3)
    assert report.holds is holds


def test_in_the_user_browsing_model_the_best_document_belongs_at_rank_two_of_three() -> None:
    # Ranks 1 and 2 get the same clicks in either order; rank 3 is looked at more after a click at rank 2.
    a, b, c = 0.9, 0.5, 0.3
    model = UserBrowsingModel(noise=0)
    gain = value(model, [b, a, c], discount=1) - value(model, [a, b, c], discount=1)
    assert gain == pytest.approx((1.0 - 0.62) * (a - b) * c, rel=1e-5)


def test_the_largest_counterexample_is_what_a_plain_search_finds() -> None:
    report = check_optimality(UserBrowsingModel(), documents=4, k=3, discount=1, instances=30, seed=0)
    worst = 0.0
    violations = []
    for row in random_relevance(instances=30, documents=4, seed=0).tolist():
        best = max(value(UserBrowsingModel(), list(order), 1) for order in itertools.permutations(row, 3))
        sorted_value = value(UserBrowsingModel(), row[:3], 1)
        violations.append(best > sorted_value + 1e-9)
        worst = max(worst, (best - sorted_value) / best)
    assert report.violations == sum(violations)
    assert report.graded_violations == sum(violations[::2]) != sum(violations[::3])
    assert report.largest is not None
    assert report.largest.share_missed == pytest.approx(worst)
    assert value(UserBrowsingModel(), list(report.largest.best_list), 1) == pytest.approx(report.largest.best_value)
    assert value(UserBrowsingModel(), list(report.largest.sorted_list), 1) == pytest.approx(report.largest.sorted_value)
    assert report.largest.gain > 0


def test_a_counterexample_is_told_in_words() -> None:
    report = check_optimality(TrustBiasModel(), documents=4, k=3, discount=0.8, instances=11, seed=4)
    lines = report.describe().splitlines()
    assert lines[0] == "trust: 4 documents, 3 shown, discount 0.8, 11 random instances (seed 4)"
    assert lines[1].startswith(f"sorting by attractiveness is not optimal in {report.violations}: ")
    assert "of 6 with grades" in lines[1]
    assert "of 5 with continuous relevance" in lines[1]
    assert lines[2].startswith("largest counterexample: ")
    assert len(lines[3].split(": ")[1].split()) == len(lines[4].split(": ")[1].split()) == 3


@pytest.mark.parametrize("name", CLICK_MODELS.names())
def test_the_same_seed_gives_the_same_report_whatever_the_block(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = CLICK_MODELS.get(name)()
    report = check_optimality(model, documents=4, instances=20)
    assert report.click_model == name
    monkeypatch.setattr("cuolr.clicks.optimality.VALUES_PER_BLOCK", 200)
    assert check_optimality(model, documents=4, instances=20) == report


def test_all_bad_arguments_are_reported_at_once() -> None:
    with pytest.raises(InputError) as error:
        check_optimality(PerfectModel(), documents=5, k=6, discount=1.5, instances=0)
    assert error.value.problems == [
        "k: expected 1 to 5, found 6",
        "discount: expected 0 to 1, found 1.5",
        "instances: expected a whole number >= 1, found 0",
    ]


def test_too_many_orders_are_refused() -> None:
    with pytest.raises(InputError, match=f"10 documents, 10 shown, have 3,628,800 orders; at most {MAX_ORDERS:,}"):
        check_optimality(PerfectModel(), documents=10)
