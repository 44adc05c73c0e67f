"""Examination by level of context, such as device, with partial pooling.

A click on document d at position k in level l, with the last click above at j, has probability
χ_l(k, j) · exp(b_l) · α(d), with log χ_l(k, j) = log χ(k, j) + s_l·log χ(k, j) + u_l(k) + v_l(k, j): a table χ that all
levels have in common, and deviations from it. Both are estimated in turn.

The deviations: within a group (document, k, j), χ and α are the same for all levels. Given the number of clicks of the
group, they fall on the levels by softmax_l(log n + b_l + s_l·log χ + u_l + v_l), n the impressions. This conditional
likelihood (see `conditional_likelihood`) needs no document at several positions, and is concave. Deviations have normal
priors with mean 0, so that a level with few clicks has the common table. s_l, by which position bias is more severe in
level l, takes up most of a difference with few clicks; u and v take up the rest. Their standard deviations are
estimated along with them, by expectation maximisation on the marginal likelihood, with a diagonal approximation of the
posterior (empirical Bayes).

The common table: estimated as in a log without context, with the impressions of each level weighted by its deviations.

Attractiveness may differ between levels by a factor exp(b_l); that it does not otherwise is an assumption.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from cuolr.logs.contexts import ContextCurves
from cuolr.logs.counts import ClickCounts
from cuolr.types import Doubles, Ints

# Maximum number of groups × levels.
MAX_ITEMS = 1_000_000
# Standard deviation of the prior of b, and first and limiting values of those of s, u and v.
SCALE_DEVIATION = 1.0
FIRST_DEVIATION = 0.3
MIN_DEVIATION, MAX_DEVIATION = 0.01, 1.0
# Number of times that the common table is estimated, given the deviations.
ROUNDS = 2
# Number of updates of the standard deviations.
UPDATES = 3
# Examination below this counts as this, because its logarithm is taken.
MIN_EXAMINATION = 1e-3


@dataclass(frozen=True)
class _Groups:
    """Groups (document, position, last click above) with a click, shown in several levels.

    Attributes:
        cell: [G] the cell k·(K + 1) + j of each group.
        impressions: [G, levels].
        clicks: [G, levels].
    """

    cell: Ints
    impressions: Doubles
    clicks: Doubles

    @classmethod
    def of(cls, counts: ClickCounts, lists: Ints) -> "_Groups":
        row, position, _ = counts.coordinates()
        inside = np.isin(row, lists)
        row, position = row[inside], position[inside]
        cell = counts.cells[inside] % counts.cells_per_list
        document = counts.lists.documents[row, position]
        keys, group = np.unique(document * counts.cells_per_list + cell, return_inverse=True)
        levels = len(counts.levels)
        place = group * levels + counts.level_of_list[row]

        def spread(values: Doubles) -> Doubles:
            sums = np.bincount(place, weights=values[inside], minlength=len(keys) * levels)
            return sums.astype(np.float64).reshape(len(keys), levels)

        impressions, clicks = spread(counts.impressions), spread(counts.clicks)
        kept = np.flatnonzero((clicks.sum(axis=1) > 0) & ((impressions > 0).sum(axis=1) > 1))
        kept = np.random.default_rng(0).permutation(kept)[: MAX_ITEMS // levels]
        return cls(keys[kept] % counts.cells_per_list, impressions[kept], clicks[kept])


@dataclass(frozen=True)
class _Design:
    """Sums b + s·z + u + v of parameters, and back: [levels, cells] of [number of parameters].

    Attributes:
        z: [cells] log χ.
        levels: Number of levels.
        k: Number of positions.
    """

    z: Doubles
    levels: int
    k: int

    @property
    def sizes(self) -> tuple[int, int, int, int]:
        """The numbers of parameters b, s, u and v."""
        return self.levels, self.levels, self.levels * self.k, self.levels * len(self.z)

    def split(self, values: Doubles) -> tuple[Doubles, Doubles, Doubles, Doubles]:
        """The parameters b [levels], s [levels], u [levels, K] and v [levels, cells]."""
        b, s, u, v = np.split(values, np.cumsum(self.sizes)[:-1])
        return b, s, u.reshape(self.levels, self.k), v.reshape(self.levels, -1)

    def deviations(self, values: Doubles) -> Doubles:
        """[levels, cells] s·z + u + v; 0 at position 1, to which examination is relative."""
        _, s, u, v = self.split(values)
        sums: Doubles = s[:, None] * self.z + np.repeat(u, self.k + 1, axis=1) + v
        sums[:, : self.k + 1] = 0.0
        return sums

    def back(self, by_cell: Doubles, power: int = 1) -> Doubles:
        """The gradient of the parameters from that of the sums; with power 2, the diagonal of the curvature."""
        below = by_cell.copy()
        below[:, : self.k + 1] = 0.0
        by_position = below.reshape(self.levels, self.k, self.k + 1).sum(axis=2)
        return np.concatenate([by_cell.sum(axis=1), below @ self.z**power, by_position.ravel(), below.ravel()])


@dataclass(frozen=True)
class _Posterior:
    """The maximum a posteriori parameters, and the standard deviations of the priors of b, s, u and v."""

    values: Doubles
    deviations: Doubles

    @classmethod
    def first(cls, levels: int, k: int) -> "_Posterior":
        size = sum(_Design(np.zeros(k * (k + 1)), levels, k).sizes)
        return cls(np.zeros(size), np.array([SCALE_DEVIATION, *[FIRST_DEVIATION] * 3]))


def fit_by_context(
    counts: ClickCounts, lists: Ints, pooled: Doubles, common: Callable[[ClickCounts], Doubles]
) -> ContextCurves:
    """Estimate the table of each level.

    Args:
        counts: The counts of the log, with several levels.
        lists: The lists to estimate from.
        pooled: [K, K + 1] χ of a log without context.
        common: Returns [K, K + 1] χ, estimated from counts with weighted impressions.
    """
    k, levels = counts.lists.k, len(counts.levels)
    groups, table, posterior = _Groups.of(counts, lists), pooled, _Posterior.first(levels, k)
    level = counts.level_of_list[counts.cells // counts.cells_per_list]
    for _ in range(ROUNDS):
        design = _Design(np.log(np.maximum(table, MIN_EXAMINATION)).ravel(), levels, k)
        posterior = _most_likely(groups, design, posterior)
        deviation, scale = np.exp(design.deviations(posterior.values)), np.exp(posterior.values[:levels])
        weight = (scale[:, None] * deviation)[level, counts.cells % counts.cells_per_list]
        table = common(replace(counts, impressions=counts.impressions * weight))
    first = np.bincount(counts.level_of_list[lists], weights=counts.lists.count[lists], minlength=levels)
    mean = first @ scale / max(float(first.sum()), 1.0)
    return ContextCurves(counts.levels, deviation.reshape(levels, k, k + 1) * table, scale / mean)


def _most_likely(groups: _Groups, design: _Design, start: _Posterior) -> _Posterior:
    """The maximum a posteriori parameters, with the standard deviations of the priors of s, u and v estimated, too."""
    if not len(groups.cell):
        return start
    values, deviations = start.values, start.deviations.copy()
    bounds = np.cumsum((0, *design.sizes))
    for update in range(UPDATES):
        precision = np.repeat(deviations**-2.0, design.sizes)
        values = _maximise(groups, design, precision, values)
        if update == UPDATES - 1:
            break
        variance = 1 / (design.back(_curvature(groups, design, values), power=2) + precision)
        informed = variance * precision < 1 - 1e-9  # parameters without data say nothing about the prior
        for i in (1, 2, 3):
            part = slice(bounds[i], bounds[i + 1])
            if informed[part].any():
                second = (values[part] ** 2 + variance[part])[informed[part]].mean()
                deviations[i] = np.clip(np.sqrt(second), MIN_DEVIATION, MAX_DEVIATION)
    return _Posterior(values, deviations)


def _shares(groups: _Groups, design: _Design, values: Doubles) -> tuple[Doubles, Doubles]:
    """[G, levels] the probability that a click of a group is in a level, and its logarithm."""
    with np.errstate(divide="ignore"):
        logits = np.log(groups.impressions) + values[: design.levels]
    logits = logits + design.deviations(values)[:, groups.cell].T
    logits = logits - logits.max(axis=1, keepdims=True)
    odds = np.exp(logits)
    sums = odds.sum(axis=1, keepdims=True)
    return odds / sums, logits - np.log(sums)


def _by_cell(values: Doubles, groups: _Groups, cells: int) -> Doubles:
    """[levels, cells] the sums over groups."""
    return np.stack([np.bincount(groups.cell, weights=column, minlength=cells) for column in values.T])


def _curvature(groups: _Groups, design: _Design, values: Doubles) -> Doubles:
    share, _ = _shares(groups, design, values)
    return _by_cell(groups.clicks.sum(axis=1, keepdims=True) * share * (1 - share), groups, len(design.z))


def _maximise(groups: _Groups, design: _Design, precision: Doubles, start: Doubles) -> Doubles:
    """The maximum a posteriori parameters for given priors, by L-BFGS-B."""
    from scipy.optimize import minimize  # takes half a second to load

    of_group = groups.clicks.sum(axis=1, keepdims=True)
    total = float(of_group.sum())

    def loss(values: Doubles) -> tuple[float, Doubles]:
        share, logarithm = _shares(groups, design, values)
        likelihood = (groups.clicks * np.where(groups.clicks > 0, logarithm, 0.0)).sum()
        gradient = design.back(_by_cell(groups.clicks - of_group * share, groups, len(design.z)))
        penalty = (precision * values**2).sum() / 2
        return (penalty - likelihood) / total, (precision * values - gradient) / total

    solution: Doubles = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 500}).x
    return solution
