"""How well a fitted click model predicts the clicks of held-out sessions."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import stdtrit, xlog1py, xlogy

from cuolr.clicks.fitting.click_model_fit import ClickModelFit, Values
from cuolr.clicks.fitting.fit_by_context import FitByContext
from cuolr.clicks.fitting.fit_model import FittedClicks, as_json
from cuolr.logs.click_patterns import ClickPatterns
from cuolr.types import Doubles, Ints

# Rows of click patterns at a time.
ROWS_AT_A_TIME = 1 << 16
CONFIDENCE = 0.95


@dataclass(frozen=True)
class FitScores:
    """Scores of a click model on held-out sessions.

    The perplexity of position k is 2^(−mean log₂ P(C_k)): 1 is perfect, and 2 is a coin. It is conditional if P is
    given the clicks above. The scores of all positions are their means (Chuklin et al. 2015, section 5.1).

    Attributes:
        log_likelihood: Mean over sessions, in nats; −∞ if a session has probability 0.
        perplexity: Mean over positions; NaN for a log that counts documents, because it depends on those above.
        conditional_perplexity: Mean over positions.
        perplexity_by_position: [K] NaN where nothing was shown.
        conditional_by_position: [K] the same of the conditional perplexity.
        impossible: Share of sessions that have probability 0 under the model.
        log_likelihood_by_unit: [units] the sum over the sessions of each query; in a log of few queries, of each list
            and click pattern.
        sessions_by_unit: [units].
        independent: Whether the sessions of a unit are independent, given the queries: in a log of few queries.
    """

    log_likelihood: float
    perplexity: float
    conditional_perplexity: float
    perplexity_by_position: Doubles
    conditional_by_position: Doubles
    impossible: float
    log_likelihood_by_unit: Doubles
    sessions_by_unit: Doubles
    independent: bool = False

    def as_dict(self) -> dict[str, Any]:
        """The scores as JSON."""
        names = ("log_likelihood", "perplexity", "conditional_perplexity")
        return {
            **{name: as_json(getattr(self, name)) for name in names},
            "perplexity_by_position": as_json(self.perplexity_by_position),
            "conditional_perplexity_by_position": as_json(self.conditional_by_position),
            "impossible_sessions": self.impossible,
        }


def evaluate_fit(fitted: FittedClicks, held_out: ClickPatterns, by_query: bool | None = None) -> FitScores:
    """Score a click model on sessions that it was not fitted to.

    Args:
        fitted: The model.
        held_out: The counts of the sessions.
        by_query: Whether the units are queries; None = if there are many.
    """
    k, few = held_out.k, held_out.few_queries if by_query is None else not by_query
    unit, units = (np.arange(len(held_out)), len(held_out)) if few else (held_out.query, held_out.candidates.n_queries)
    bits = {"marginal": np.zeros(k), "conditional": np.zeros(k)}
    by_unit, impossible = np.zeros(units), 0.0
    for model, values, rows in _parts(fitted, held_out):
        (documents, clicks), count = held_out.as_lists(rows), held_out.count[rows]
        where = documents >= 0
        chances = {} if held_out.of_documents else {"marginal": model.marginal(values, documents)}
        chances["conditional"] = model.conditional(values, documents, clicks)
        for name, chance in chances.items():
            nats = np.where(where, xlogy(clicks, chance) + xlog1py(~clicks, -chance), 0.0)
            bits[name] += count @ nats / np.log(2)
        of_row = nats.sum(axis=1)  # of the conditional probabilities, which are last
        by_unit += np.bincount(unit[rows], weights=count * of_row, minlength=units)
        impossible += float(count[np.isneginf(of_row)].sum())
    by_position = {name: _perplexity(total, held_out.shown) for name, total in bits.items()}
    if held_out.of_documents:
        by_position["marginal"] = np.full(k, np.nan)
    return FitScores(
        log_likelihood=float(by_unit.sum() / held_out.sessions),
        perplexity=np.nan if held_out.of_documents else float(np.nanmean(by_position["marginal"])),
        conditional_perplexity=float(np.nanmean(by_position["conditional"])),
        perplexity_by_position=by_position["marginal"],
        conditional_by_position=by_position["conditional"],
        impossible=impossible / held_out.sessions,
        log_likelihood_by_unit=by_unit,
        sessions_by_unit=_sessions_by_unit(held_out, unit, units, few),
        independent=few,
    )


def _parts(fitted: FittedClicks, held_out: ClickPatterns) -> Iterator[tuple[ClickModelFit, Values, Ints]]:
    """Rows of one level of context, with its users."""
    levels: list[tuple[ClickModelFit, Values, Ints]] = [(fitted.model, fitted.values, np.arange(len(held_out)))]
    if isinstance(fitted.model, FitByContext):
        parts = enumerate(fitted.model.split(fitted.values))
        levels = [(fitted.model.of_level, v, np.flatnonzero(held_out.level == number)) for number, v in parts]
    for model, values, rows in levels:
        for start in range(0, len(rows), ROWS_AT_A_TIME):
            yield model, values, rows[start : start + ROWS_AT_A_TIME]


def _sessions_by_unit(held_out: ClickPatterns, unit: Ints, units: int, few: bool) -> Doubles:
    """[units] the sessions; where a unit is a document, its share of one."""
    sessions = held_out.session_count
    if held_out.of_documents and few:
        sessions = held_out.count * (held_out.sessions / held_out.count.sum())
    return np.bincount(unit, weights=sessions, minlength=units).astype(np.float64)


def pooled_scores(levels: Sequence[FitScores]) -> FitScores:
    """The scores of held-out sessions in several levels of context, each with its own fit of the same model.

    Args:
        levels: Of each level; the units of all are queries, or those of none.
    """
    if len(levels) == 1:
        return levels[0]
    units = zip(*((level.log_likelihood_by_unit, level.sessions_by_unit) for level in levels), strict=True)
    together = np.concatenate if levels[0].independent else np.add.reduce
    by_unit, sessions_by_unit = (together(values) for values in units)
    sessions = np.array([level.sessions_by_unit.sum() for level in levels])

    def mean(name: str) -> Any:
        return np.average([getattr(level, name) for level in levels], axis=0, weights=sessions)

    return FitScores(
        log_likelihood=float(by_unit.sum() / sessions.sum()),
        perplexity=float(mean("perplexity")),
        conditional_perplexity=float(mean("conditional_perplexity")),
        perplexity_by_position=mean("perplexity_by_position"),
        conditional_by_position=mean("conditional_by_position"),
        impossible=float(mean("impossible")),
        log_likelihood_by_unit=by_unit,
        sessions_by_unit=sessions_by_unit,
        independent=levels[0].independent,
    )


@dataclass(frozen=True)
class Difference:
    """The log-likelihood per held-out session of a model minus that of the best.

    Attributes:
        mean: −∞ if a session has probability 0 under the model.
        interval: 95 % confidence interval over queries.
    """

    mean: float
    interval: tuple[float, float]

    @property
    def is_more_than_noise(self) -> bool:
        """Whether the interval is below 0."""
        return self.interval[1] < 0

    def as_dict(self) -> dict[str, Any]:
        """As JSON."""
        return {"difference": as_json(self.mean), "interval": as_json(self.interval)}


def difference_to(best: FitScores, score: FitScores) -> Difference:
    """The difference of a model to the best one, on the same held-out sessions.

    Sessions of one query are not independent: the interval is that of a ratio of sums over queries (delta method, with
    Student's t). In a log of few queries it is over sessions, and holds for these queries only.
    """
    if score is best:
        return Difference(0.0, (0.0, 0.0))
    if np.isneginf(score.log_likelihood):
        return Difference(-np.inf, (-np.inf, -np.inf))
    if np.isneginf(best.log_likelihood):
        return Difference(np.inf, (np.inf, np.inf))
    there = score.sessions_by_unit > 0
    gap, sessions = (score.log_likelihood_by_unit - best.log_likelihood_by_unit)[there], score.sessions_by_unit[there]
    mean, total = float(gap.sum() / sessions.sum()), float(sessions.sum())
    number = total if score.independent else len(sessions)
    if number < 2:
        return Difference(mean, (-np.inf, np.inf))
    squares = (gap - mean * sessions) ** 2 / (sessions if score.independent else 1)
    error = np.sqrt(number / (number - 1) * squares.sum()) / total
    margin = float(stdtrit(number - 1, (1 + CONFIDENCE) / 2) * error)
    return Difference(mean, (mean - margin, mean + margin))


def _perplexity(bits: Doubles, shown: Doubles) -> Doubles:
    """[K] 2^(−bits / sessions)."""
    mean = np.divide(bits, shown, out=np.full(len(bits), np.nan), where=shown > 0)
    perplexity: Doubles = np.exp2(-mean)
    return perplexity
