"""The bootstrap over queries that fits the users again each time, and the interval that `assess` has instead."""

import time

import numpy as np

from benchmarks.table import Row
from cuolr.clicks.click_model import click_model
from cuolr.clicks.simulate import simulate
from cuolr.data.synthetic import generate
from cuolr.off_policy.compared_lists import ComparedLists
from cuolr.off_policy.gain_on_log import GainOnLog, lists_to_compare
from cuolr.off_policy.user_gain import user_gain
from cuolr.off_policy.users.examination_users import ExaminationCells, ExaminationUsers
from cuolr.off_policy.users_of_log import UsersOfLog
from cuolr.policies.random_policy import RandomPolicy, UniformLogger
from cuolr.types import Doubles

QUERIES, SESSIONS, K, REFITS = 1_000, 60_000, 10, 200
# CPU seconds that the refits may take: a minute on two cores.
GOAL = 120.0
# How far the half width of the interval may be from that of the bootstrap: its own error of 200 refits is 5 %.
WITHIN = 0.2


def run() -> list[Row]:
    """Refit the position-based users of a log of 1,000 queries 200 times, with the gain of another ranker each time."""
    log = simulate(generate("tiny", QUERIES, seed=1), UniformLogger(), click_model("pbm"), SESSIONS, K, seed=1)
    users = UsersOfLog.fit(log)
    compared = lists_to_compare(GainOnLog(RandomPolicy(3), users, np.arange(QUERIES), K))
    cells = users.counts.cells
    start = time.process_time()
    gains = [_gain(cells, compared, weights) for weights in _weights()]
    refits = time.process_time() - start
    start = time.process_time()
    fitted = ExaminationUsers.fit(cells, by_last_click=False)
    units = users.counts.units
    low, high = user_gain(fitted, fitted.influence(units.group, units.groups), compared, units).interval
    once = time.process_time() - start
    ratio = (high - low) / 2 / (1.96 * float(np.std(gains, ddof=1)))
    return [
        Row(f"{REFITS} refits of pbm, {QUERIES:,} queries", refits, "CPU s", f"≤ {GOAL:.0f}", refits <= GOAL),
        Row("the interval of assess: speed-up over them", refits / once, "×", "≥ 20", refits / once >= 20),
        Row("… its width over that of the bootstrap", ratio, "", "1 ± 0.2", abs(ratio - 1) <= WITHIN),
    ]


def _weights() -> Doubles:
    """[REFITS, QUERIES] how often each query is drawn."""
    rng = np.random.default_rng(0)
    return rng.multinomial(QUERIES, np.full(QUERIES, 1 / QUERIES), size=REFITS).astype(np.float64)


def _gain(cells: ExaminationCells, compared: ComparedLists, weights: Doubles) -> float:
    """The relative gain on a sample of the queries, by users fitted to it."""
    sample = ExaminationCells.of_levels([cells.cells.weighted(weights)], cells.pairs, cells.k, cells.least)
    response = ExaminationUsers.fit(sample, by_last_click=False).response()
    both = [compared.by_query(lists, response) for lists in (compared.target, compared.baseline)]
    return float(weights @ (both[0] - both[1]) / (weights @ compared.reward))
