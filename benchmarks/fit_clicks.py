"""Fitting users who examine from the top: an E-step by (list, last click) against one by click pattern."""

import time
from collections.abc import Callable

import numpy as np

from benchmarks.table import Row
from cuolr.clicks.dbn import DynamicBayesianModel
from cuolr.clicks.fitting.click_model_fit import Values, sums
from cuolr.clicks.fitting.fit_top_down import DynamicBayesianFit
from cuolr.clicks.simulate import simulate
from cuolr.data.synthetic import generate
from cuolr.logs.click_patterns import ClickPatterns
from cuolr.policies.policy import RankingPolicy
from cuolr.policies.random_policy import RandomPolicy, UniformLogger
from cuolr.types import Doubles

QUERIES, SESSIONS, K = 200, 40_000, 10
REPEATS = 10
# Click patterns at a time: their arrays fit a core's cache.
ROWS_AT_A_TIME = 1 << 12


def run() -> list[Row]:
    """Measure a log of one list per query, and one of a list per session."""
    return [_speed_up("one list per query", RandomPolicy(), 20), _speed_up("a list per session", UniformLogger(), 3)]


def _speed_up(what: str, logger: RankingPolicy | UniformLogger, goal: float) -> Row:
    dataset = generate("web10k-like", QUERIES, seed=1)
    patterns = ClickPatterns.of(simulate(dataset, logger, DynamicBayesianModel(), SESSIONS, K, seed=1))
    model = DynamicBayesianFit(patterns.k, len(patterns.pairs))
    values, data = model.start(), model.data(patterns)
    ours, plain = model.expect(values, data).log_likelihood, by_pattern(values, patterns)
    assert abs(ours - plain) < 1e-9 * abs(plain)
    ratio = _seconds(lambda: by_pattern(values, patterns)) / _seconds(lambda: model.expect(values, data).log_likelihood)
    return Row(f"E-step of dbn by last click, {what}: speed-up", ratio, "×", f"≥ {goal:.0f}", ratio >= goal)


def _seconds(job: Callable[[], float]) -> float:
    seconds = []
    for _ in range(REPEATS):
        start = time.process_time()
        job()
        seconds.append(time.process_time() - start)
    return min(seconds)


def by_pattern(values: Values, patterns: ClickPatterns) -> float:
    """The log-likelihood and the expected counts of each click pattern, without gaps in the lists."""
    size = len(patterns.pairs)
    counts = {name: np.zeros((3, size)) for name in ("attractiveness", "satisfaction")}
    perseverance, likelihood = np.zeros(2), 0.0
    for start in range(0, len(patterns), ROWS_AT_A_TIME):
        rows = slice(start, start + ROWS_AT_A_TIME)
        documents, clicks, count = patterns.documents[rows], patterns.clicks[rows], patterns.count[rows, None]
        examined, log_likelihood = _examined(values, patterns, rows)
        likelihood += float(count[:, 0] @ log_likelihood)
        reached, onward = examined[:, :-1], examined[:, 1:]
        attractiveness, satisfaction = (values[name][documents] for name in counts)
        hidden = attractiveness**2 * reached * (1 - reached)
        for place, number in enumerate((clicks.astype(np.float64), reached, hidden)):
            counts["attractiveness"][place] += sums(documents, number * count, size)
        below = np.arange(patterns.k) < patterns.k - 1
        reached, onward = reached * below, onward * below
        clicked, stopped = reached * clicks, (reached - onward) * clicks
        satisfied = stopped * satisfaction / (1 - values["perseverance"][0] * (1 - satisfaction))
        for place, number in enumerate((satisfied, clicked, satisfied * (clicked - satisfied))):
            counts["satisfaction"][place] += sums(documents, number * count, size)
        perseverance += (onward * count).sum(), ((reached - satisfied) * count).sum()
    return likelihood


def _examined(values: Values, patterns: ClickPatterns, rows: slice) -> tuple[Doubles, Doubles]:
    """[M, K + 1] P(E_k = 1 | all clicks), and [M] the log-likelihood, forward and backward through all positions."""
    documents, clicks = patterns.documents[rows], patterns.clicks[rows]
    attractiveness, perseverance = values["attractiveness"][documents], values["perseverance"][0]
    after_click = perseverance * (1 - values["satisfaction"][documents])
    none, examined = np.ones((len(documents), patterns.k + 1)), np.ones((len(documents), patterns.k + 1))
    for k in range(patterns.k - 1, -1, -1):
        none[:, k] = (1 - attractiveness[:, k]) * ((1 - perseverance) + perseverance * none[:, k + 1])
    later = np.zeros(clicks.shape, np.bool_)
    later[:, :-1] = np.logical_or.accumulate(clicks[:, :0:-1], axis=1)[:, ::-1]
    likelihood = np.where(clicks.any(axis=1), 0.0, np.log(none[:, 0]))
    for k in range(patterns.k):
        click, more = clicks[:, k], later[:, k]
        onward = np.where(click, after_click[:, k], perseverance)
        on = onward * none[:, k + 1]
        rest = on + (1 - onward)
        examined[:, k + 1] = np.where(more, 1.0, examined[:, k] * on / rest)
        chance = np.where(click, attractiveness[:, k], 1 - attractiveness[:, k])
        likelihood += np.where(click | more, np.log(chance * np.where(more, onward, rest)), 0.0)
    return examined, likelihood
