"""Expectation maximisation of the penalised log-likelihood, with acceleration."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from cuolr.clicks.fitting.beta_prior import BetaPrior
from cuolr.clicks.fitting.click_model_fit import ClickData, ClickModelFit, Expectation, Values
from cuolr.config import Range, check_ranges
from cuolr.types import Doubles

# Bounds of parameters, so that no click has probability 0 by rounding.
LEAST = 1e-9


@dataclass(frozen=True, kw_only=True)
class Stopping:
    """When fitting stops.

    Attributes:
        tolerance: Smallest relative increase of the penalised log-likelihood, over a cycle of three E-steps.
        cycles: Maximum number of cycles.
        rounds: Maximum number of updates of the prior of the pairs.
    """

    tolerance: Annotated[float, Range(above=0)] = 1e-7
    cycles: Annotated[int, Range(1)] = 200
    rounds: Annotated[int, Range(0)] = 10

    def __post_init__(self) -> None:
        check_ranges(self)


@dataclass(frozen=True)
class Converged:
    """Where expectation maximisation ended.

    Attributes:
        values: The parameters, centred.
        expectation: The E-step at these parameters.
        objective: The penalised log-likelihood at the start of each cycle.
        finished: Whether it converged within the maximum number of cycles.
    """

    values: dict[str, Doubles]
    expectation: Expectation
    objective: tuple[float, ...]
    finished: bool


def em_step(
    model: ClickModelFit, values: Values, data: ClickData, priors: Mapping[str, BetaPrior]
) -> tuple[dict[str, Doubles], float, Expectation]:
    """One E-step and M-step.

    Returns:
        The next parameters; the penalised log-likelihood of the given ones; the E-step.
    """
    found = model.expect(values, data)
    penalty = sum(priors[name].log_density(values[name]) for name in values)
    following = {name: priors[name].posterior(found.successes[name], found.trials[name]) for name in values}
    return bounded(following), found.log_likelihood + penalty, found


def maximise(
    model: ClickModelFit, values: Values, data: ClickData, priors: Mapping[str, BetaPrior], stopping: Stopping
) -> Converged:
    """Expectation maximisation, accelerated by SQUAREM, scheme S3, in logits (Varadhan and Roland 2008).

    Two steps are extrapolated. If the result has a lower penalised log-likelihood than the first step, it is dropped.
    After every step the free scale is centred; this leaves the likelihood as it is, and changes that of the prior a
    little.
    """

    def step(at: Values) -> tuple[dict[str, Doubles], float, Expectation]:
        following, at_start, expectation = em_step(model, at, data, priors)
        return bounded(model.centred(following)), at_start, expectation

    current = bounded(model.centred(values))
    objective: list[float] = []
    while True:
        first, at_current, expectation = step(current)
        objective.append(at_current)
        gain = abs(objective[-1] - objective[-2]) if len(objective) > 1 else np.inf
        finished = bool(gain <= stopping.tolerance * abs(at_current))
        if finished or len(objective) > stopping.cycles:
            return Converged(current, expectation, tuple(objective), finished)
        second, at_first, _ = step(first)
        after_jump, at_jump, _ = step(_extrapolated(current, first, second))
        current = after_jump if at_jump >= at_first else second


def bounded(values: Values) -> dict[str, Doubles]:
    """The values, none of which is 0 or 1."""
    return {name: np.clip(value, LEAST, 1 - LEAST) for name, value in values.items()}


def _extrapolated(start: Values, first: Values, second: Values) -> dict[str, Doubles]:
    points = [{name: _logit(value) for name, value in values.items()} for values in (start, first, second)]
    change = {name: points[1][name] - points[0][name] for name in start}
    bend = {name: points[2][name] - points[1][name] - change[name] for name in start}
    length, curvature = (np.sqrt(sum(float(v @ v) for v in vector.values())) for vector in (change, bend))
    step = max(1.0, length / curvature) if curvature > 0 else 1.0
    moved = {name: points[0][name] + 2 * step * change[name] + step**2 * bend[name] for name in start}
    return bounded({name: 1 / (1 + np.exp(-np.clip(logit, -30, 30))) for name, logit in moved.items()})


def _logit(values: Doubles) -> Doubles:
    logits: Doubles = np.log(values) - np.log1p(-values)
    return logits
