import math
from dataclasses import replace

import numpy as np
import pytest

from cuolr.clicks.click_model import click_model
from cuolr.clicks.pbm import PositionBasedModel
from cuolr.clicks.simulate import simulate
from cuolr.data.synthetic import generate
from cuolr.examination.curve_intervals import examination_curves
from cuolr.examination.swap_advice import DAYS, TARGET_VARIANCE, SwapAdvisor, depths
from cuolr.logs.counts import ClickCounts
from cuolr.supervised.ranksvm import fit_ranksvm
from tests.examination.swapping import with_swaps
from tests.small_log import small_log

REPEATED = np.full(10, 1e9)


def advisor(clicks: list[float], links: list[float], sessions_per_day: float | None = None) -> SwapAdvisor:
    """For rare clicks on queries that are repeated so often that each swap can be compared."""
    return SwapAdvisor(np.array(clicks), np.zeros(len(clicks)), np.array(links), REPEATED, sessions_per_day)


def test_the_sessions_for_one_pair_worked_by_hand() -> None:
    """Of 1 % of the sessions, I ≈ 2 · 0.01 · √(c₁·c₂) effective clicks, and 1.96²/(log 1.1)² are needed."""
    plan = advisor([0.2, 0.05], [0.0]).plan(2, 0.01)
    needed = (1.96 / math.log(1.1)) ** 2
    assert plan.sessions == pytest.approx(needed / (2 * 0.01 * math.sqrt(0.2 * 0.05)), rel=0.02)
    assert plan.days is None
    (swap,) = plan.swaps
    assert swap.first == 0
    assert swap.share == pytest.approx(0.01)


def test_the_worst_ratio_of_examination_is_taken() -> None:
    """A plain version: the effective clicks of a document with a and b clicks, for many ratios."""
    upper, lower, share = 0.3, 0.1, 0.2
    worst = np.inf
    for ratio in np.geomspace(0.05, 2, 2_000):
        total = 0.0
        for here, there in ((upper * (1 - share), upper * ratio * share), (lower * (1 - share), lower / ratio * share)):
            total += here * there / (here + there)
        worst = min(worst, total)
    plan = advisor([upper, lower], [0.0]).plan(2, share)
    assert plan.sessions == pytest.approx(1 / (TARGET_VARIANCE * worst), rel=1e-3)


def test_swaps_are_spread_so_that_the_variances_add_up_to_the_target() -> None:
    """Pairs with fewer clicks are swapped more; a pair that the log knows is not swapped; known clicks count."""
    found = advisor([0.3, 0.3, 0.1, 0.01], [1e9, 50.0, 0.0])
    plan = found.plan(4, 0.01)
    assert [swap.first for swap in plan.swaps] == [1, 2]
    assert plan.swaps[0].share < plan.swaps[1].share
    assert sum(swap.share for swap in plan.swaps) == pytest.approx(0.01)
    variance = 1e-9
    for swap in plan.swaps:
        upper, lower = found.clicks[swap.first], found.clicks[swap.first + 1]
        gained = plan.sessions * swap.share * 2 * math.sqrt(upper * lower)
        variance += 1 / (swap.effective_clicks + gained)
    assert variance == pytest.approx(TARGET_VARIANCE, rel=0.02)


def test_no_other_split_needs_fewer_swaps() -> None:
    found = advisor([0.4, 0.2, 0.02], [30.0, 5.0])
    best = found.plan(3, 0.01)
    for share in np.linspace(0.05, 0.95, 50):
        gains = [2 * math.sqrt(found.clicks[k] * found.clicks[k + 1]) for k in (0, 1)]
        swaps = best.sessions * 0.01 * np.array([share, 1 - share])
        assert (1 / (found.links + swaps * gains)).sum() >= TARGET_VARIANCE * 0.98


def test_a_curve_that_is_known_needs_no_swaps() -> None:
    plan = advisor([0.3, 0.2, 0.1], [1e6, 1e6], 100.0).recommended(3)
    assert (plan.sessions, plan.days, plan.swaps) == (0, 0, ())


def test_the_smallest_share_that_is_quick_enough_is_recommended() -> None:
    busy, slow, timeless = (advisor([0.3, 0.2], [0.0], traffic) for traffic in (1e6, 1_000.0, None))
    plan = busy.recommended(2)
    assert plan.share == 0.01
    assert plan.days is not None
    assert plan.days <= DAYS
    chosen = slow.recommended(2)
    assert chosen.share > 0.01
    smaller = [plan for plan in slow.plans(2) if plan.share < chosen.share]
    assert all(plan.days is not None and plan.days > DAYS for plan in smaller)
    assert timeless.recommended(2).share == 0.1


def test_queries_that_are_rarely_repeated_need_more_sessions() -> None:
    often = replace(advisor([0.3, 0.2], [0.0]), sessions_of_query=np.full(100, 1_000.0)).plan(2, 0.1)
    rarely = replace(advisor([0.3, 0.2], [0.0]), sessions_of_query=np.full(50_000, 2.0)).plan(2, 0.1)
    assert rarely.sessions == pytest.approx(2 * often.sessions, rel=0.02), "half of two sessions can be compared"


def test_documents_that_are_clicked_nearly_always_need_fewer_sessions() -> None:
    """n sessions with click probability p count as n·p/(1 − p) clicks; p of the lower position is taken."""
    rare = advisor([0.3, 0.2], [0.0])
    sure = replace(rare, click_probability=np.array([0.9, 0.5]))
    assert sure.plan(2, 0.1).sessions == pytest.approx(rare.plan(2, 0.1).sessions / 2)


def test_the_click_rates_and_links_are_those_of_the_log() -> None:
    log = small_log(rows=300)
    counts = ClickCounts.of(log)
    found = SwapAdvisor.of(counts)
    before = counts.coordinates()[2] == 0
    clicks, shown = (counts.by_position(values * before) for values in (counts.clicks, counts.impressions))
    for k in range(counts.lists.k):
        squares = sum(
            c * (c - 1) / (n - 1) for c, n in zip(clicks[:, k].tolist(), shown[:, k].tolist(), strict=True) if n > 1
        )
        assert found.clicks[k] == pytest.approx(clicks[:, k].sum() / len(log))
        assert found.click_probability[k] == pytest.approx(squares / clicks[:, k].sum())
    assert found.sessions_of_query.sum() == len(log)
    assert len(found.links) == counts.lists.k - 1


def test_positions_without_clicks_are_not_planned_for() -> None:
    assert advisor([0.2, 0.1, 0.0, 0.1], [0.0, 0.0, 0.0]).depth == 2
    assert advisor([0.2, 0.1], [0.0]).depth == 2
    assert depths(0) == depths(1) == []
    assert depths(12) == [3, 5, 10, 12]


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "runs"), [("pbm", 20), ("cascade", 10)])
def test_after_following_the_advice_the_curve_is_known_within_ten_percent(name: str, runs: int) -> None:
    """In 90 % of the runs, at the first three positions together; users of the cascade model go on until a click."""
    users = click_model(name)
    truth = users.examination if isinstance(users, PositionBasedModel) else np.ones(10)
    within = []
    for seed in range(runs):
        data = generate("tiny", 100, seed=seed + 1)
        policy = fit_ranksvm(data, 0.05, 1)
        log = simulate(data, policy, users, 5_000, seed=seed)
        plan = SwapAdvisor.of(ClickCounts.of(log)).plan(3, 0.1)
        swapped = with_swaps(data, policy, users, math.ceil(plan.sessions), list(plan.swaps), seed)
        counts = ClickCounts.of(swapped)
        found = examination_curves(counts, np.zeros(counts.lists.where.shape))
        assert found.from_documents
        ratios = [found.pooled.positions[k].value / truth[k] * truth[0] for k in range(3)]  # type: ignore[union-attr]
        within.append(max(abs(math.log(ratio)) for ratio in ratios) <= math.log(1.1))
    assert np.mean(within) >= 0.9
