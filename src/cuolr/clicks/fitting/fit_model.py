"""Fit a click model to a log: parameters, their priors, and intervals of the global ones."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

import numpy as np

from cuolr.clicks.fitting.beta_prior import BetaPrior, FeatureMean
from cuolr.clicks.fitting.click_model_fit import ClickModelFit
from cuolr.clicks.fitting.em import Converged, Stopping, maximise
from cuolr.clicks.fitting.fit_by_context import FitByContext, fit_for
from cuolr.logs.click_patterns import ClickPatterns
from cuolr.random import DEFAULT_SEED
from cuolr.types import Doubles

DocumentParameters: TypeAlias = Literal["pair", "features", "both"]

# Relative change of the pseudo-counts of a prior below which they are no longer updated.
PRIOR_TOLERANCE = 0.05
# The likelihood is maximised less exactly as long as the prior changes.
FIRST_TOLERANCE, FIRST_CYCLES = 1e-5, 5
# Half the width of a 95 % interval, in standard errors.
NORMAL_95 = 1.96


@dataclass(frozen=True)
class FittedClicks:
    """A click model with its parameters.

    Attributes:
        name: The registered name of the model.
        model: The model.
        values: The parameters; those with a free scale are normalised.
        unseen: The value of each parameter by pair for a pair without sessions: the mean of its learned prior.
        priors: The prior of each parameter, in the scale of fitting.
        trials: The expected trials of each parameter: how much the log says about it.
        objective: The penalised log-likelihood by cycle.
        finished: Whether fitting converged.
        errors: Standard errors of the global parameters, if estimated; NaN where the log says nothing.
    """

    name: str
    model: ClickModelFit
    values: Mapping[str, Doubles]
    unseen: Mapping[str, float]
    priors: Mapping[str, BetaPrior]
    trials: Mapping[str, Doubles]
    objective: tuple[float, ...]
    finished: bool
    errors: Mapping[str, Doubles] = field(default_factory=dict)

    @property
    def global_names(self) -> list[str]:
        """The parameters that are not by pair."""
        return [name for name in self.values if name not in self.model.by_pair]

    def interval(self, name: str) -> tuple[Doubles, Doubles]:
        """95 % intervals of a global parameter; NaN where not estimated."""
        value, margin = self.values[name], NORMAL_95 * self.errors[name]
        return np.clip(value - margin, 0, 1), np.clip(value + margin, 0, 1)

    def as_dict(self) -> dict[str, Any]:
        """The global parameters as JSON, by context a list for each level, and those of unseen pairs."""
        parameters = {}
        for name in self.global_names:
            shape = (len(self.model.levels), -1) if isinstance(self.model, FitByContext) else (-1,)
            value = np.where(self.trials[name] > 0, self.values[name], np.nan)
            parameters[name] = {"values": as_json(value.reshape(shape))}
            if name in self.errors:
                parameters[name]["interval"] = [as_json(bounds.reshape(shape)) for bounds in self.interval(name)]
        return {"parameters": parameters, "unseen": dict(self.unseen)}


def fit_click_model(
    name: str,
    patterns: ClickPatterns,
    documents: DocumentParameters = "pair",
    stopping: Stopping | None = None,
) -> FittedClicks:
    """Fit the click model of this name by maximum likelihood.

    Parameters by pair have a Beta prior, which is learned: EM and the update of the prior alternate until the prior
    changes little.

    Args:
        name: A name in `CLICK_FITS`.
        patterns: The counts of the log; if they are by context, so are the global parameters.
        documents: The parameters of documents: `pair`, one for each pair, with the same prior mean for all; `features`,
            a logistic regression on features; `both`, one for each pair, with that regression as prior mean.
        stopping: When fitting stops.
    """
    stopping = stopping or Stopping()
    model = fit_for(name, patterns)
    data = model.data(patterns)
    values = model.start()
    priors = {parameter: BetaPrior.weak() for parameter in values}
    update = _PriorUpdate(model, documents, patterns)
    rough = replace(
        stopping,
        tolerance=max(stopping.tolerance, FIRST_TOLERANCE),
        cycles=min(stopping.cycles, FIRST_CYCLES),
    )
    for _ in range(stopping.rounds if model.by_pair else 0):
        found = maximise(model, values, data, priors, rough)
        values, learned = found.values, update.learned(found)
        unchanged = all(_close(priors[parameter], prior) for parameter, prior in learned.items())
        priors |= learned
        if unchanged:
            break
    return _fitted(name, model, maximise(model, values, data, priors, stopping), priors)


def with_errors(
    fitted: FittedClicks,
    patterns: ClickPatterns,
    samples: int = 20,
    seed: int = DEFAULT_SEED,
    progress: Callable[[int], None] | None = None,
) -> FittedClicks:
    """Add standard errors of the global parameters, by the bootstrap over queries.

    Each sample draws as many queries as there are, with replacement, and fits again from the estimate, with the same
    prior. In a log of few queries the folds of their sessions are drawn, see `ClickPatterns.unit`.

    Args:
        fitted: What `fit_click_model` returned.
        patterns: The counts that it was fitted to.
        samples: Number of bootstrap samples, 2 or more.
        seed: Seed of the samples.
        progress: Called with 1 after each sample.
    """
    model, rng = fitted.model, np.random.default_rng(seed)
    data, there = model.data(patterns), np.unique(patterns.unit)
    names = fitted.global_names
    drawn: dict[str, list[Doubles]] = {name: [] for name in names}
    for _ in range(samples if names else 0):
        weights = np.zeros(patterns.units)
        weights[there] = rng.multinomial(len(there), np.full(len(there), 1 / len(there)))
        found = maximise(model, fitted.values, data.weighted(weights), fitted.priors, Stopping())
        values = model.normalised(found.values)
        for name in names:
            drawn[name].append(values[name])
        if progress is not None:
            progress(1)
    errors = {name: np.std(drawn[name], axis=0, ddof=1) for name in names}
    known = {name: np.where(fitted.trials[name] > 0, error, np.nan) for name, error in errors.items()}
    return replace(fitted, errors=known)


class _PriorUpdate:
    """Learns the priors of the parameters by pair."""

    def __init__(self, model: ClickModelFit, documents: DocumentParameters, patterns: ClickPatterns) -> None:
        self.model = model
        self.documents = documents
        # A model with a parameter for each document and position has no use for features of documents.
        by_features = documents != "pair" and len(model.prior_groups()) == model.pairs
        self.means = {name: FeatureMean.of(patterns) for name in model.by_pair} if by_features else {}

    def learned(self, found: Converged) -> dict[str, BetaPrior]:
        """The priors that fit the expected counts."""
        return {name: self._prior(name, found) for name in self.model.by_pair}

    def _prior(self, name: str, found: Converged) -> BetaPrior:
        successes, trials = found.expectation.evidence(name, found.values[name])
        if name not in self.means:
            return BetaPrior.learned(successes, trials, self.model.prior_groups())
        if self.documents == "both":
            return BetaPrior.around(self.means[name].fit_across(successes, trials), successes, trials)
        # Here the regression is what is fitted, and this is its M-step.
        return BetaPrior.exactly(
            self.means[name].fit(found.expectation.successes[name], found.expectation.trials[name])
        )


def _fitted(name: str, model: ClickModelFit, found: Converged, priors: Mapping[str, BetaPrior]) -> FittedClicks:
    # The prior mean is normalised as one pair more.
    means = {parameter: priors[parameter].mean.mean(keepdims=True) for parameter in model.by_pair}
    longer = {p: np.concatenate([v, means[p]]) if p in means else v for p, v in found.values.items()}
    values = model.normalised(longer)
    return FittedClicks(
        name=name,
        model=model,
        values={p: value[:-1] if p in means else value for p, value in values.items()},
        unseen={p: float(values[p][-1]) for p in means},
        priors=priors,
        trials=found.expectation.trials,
        objective=found.objective,
        finished=found.finished,
    )


def as_json(values: Any) -> Any:
    """Numbers as JSON has them: None is not finite."""
    if isinstance(values, float | int):
        return values if np.isfinite(values) else None
    return [as_json(value) for value in np.asarray(values).tolist()]


def _close(old: BetaPrior, new: BetaPrior) -> bool:
    def near(one: Doubles, other: Doubles) -> bool:
        return bool((np.abs(one - other) <= PRIOR_TOLERANCE * np.maximum(one, other)).all())

    return near(old.successes, new.successes) and near(old.failures, new.failures)
