"""The interface of click models that are fitted to a log."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Self, TypeAlias

import numpy as np

from cuolr.clicks.click_model import ClickModel
from cuolr.logs.click_patterns import ClickPatterns
from cuolr.logs.last_clicks import LastClicks, PatternCells
from cuolr.registry import Registry
from cuolr.types import Bools, Doubles, Ints

CLICK_FITS: Registry[type["ClickModelFit"]] = Registry(
    "fitted click model", package="cuolr.clicks.fitting", entry_points="cuolr.click_fits", base="ClickModelFit"
)

# The probabilities that a model consists of, by name; each array is flat.
Values: TypeAlias = Mapping[str, Doubles]


@dataclass(frozen=True)
class DataByLevel:
    """What the users of each level of context are fitted on."""

    levels: "tuple[ClickData, ...]"

    def weighted(self, weights: Doubles) -> Self:
        """The counts with each unit multiplied by its weight."""
        return type(self)(tuple(level.weighted(weights) for level in self.levels))


# What a model is fitted on.
ClickData: TypeAlias = ClickPatterns | PatternCells | LastClicks | DataByLevel


@dataclass(frozen=True)
class Expectation:
    """The result of an E-step.

    Every parameter is the probability of a yes-or-no event, part of which is hidden. Given the clicks and the current
    values, its expected successes and trials give the M-step, successes / trials, and by Fisher's identity the gradient
    of the log-likelihood in the logit of the parameter, successes − trials · value.

    Attributes:
        log_likelihood: Of the clicks.
        successes: Expected number of successes of each parameter.
        trials: Expected number of trials of each parameter.
        hidden: Variance of successes − trials · value given the clicks, of the parameters by pair; 0 if not there.
    """

    log_likelihood: float
    successes: Values
    trials: Values
    hidden: Values = field(default_factory=dict)

    def evidence(self, name: str, value: Doubles) -> tuple[Doubles, Doubles]:
        """Successes and trials as if all had been seen: with the same gradient and the same observed information.

        By Louis (1982), the observed information in the logit is trials · value · (1 − value) − hidden.
        """
        successes, trials = self.successes[name], self.trials[name]
        if name not in self.hidden:
            return successes, trials
        seen = np.clip(trials - self.hidden[name] / (value * (1 - value)), 0, trials)
        return np.clip(successes - (trials - seen) * value, 0, seen), seen


@dataclass(frozen=True)
class ClickModelFit(ABC):
    """A click model whose parameters are fitted to a log by expectation maximisation.

    A parameter array is either *by pair*, with an entry for each query–document pair, or global. Arguments named
    `documents` are [M, K] indices of pairs, −1 = nothing shown; `clicks` are [M, K] with no click there.

    Attributes:
        k: K, the number of positions.
        pairs: P, the number of query–document pairs.
        by_pair: Names of the parameters by pair.
        is_baseline: Whether it is a click rate, without a model of the user.
        needs_lists: Whether counts by document, position and last click above do not suffice.
    """

    k: int
    pairs: int
    by_pair: ClassVar[tuple[str, ...]] = ("attractiveness",)
    is_baseline: ClassVar[bool] = False
    needs_lists: ClassVar[bool] = True

    def data(self, patterns: ClickPatterns) -> ClickData:
        """The counts that suffice for this model."""
        return patterns

    @abstractmethod
    def start(self) -> dict[str, Doubles]:
        """The values that fitting starts from."""

    @abstractmethod
    def expect(self, values: Values, data: ClickData) -> Expectation:
        """The E-step on the counts of `data`."""

    @abstractmethod
    def conditional(self, values: Values, documents: Ints, clicks: Bools) -> Doubles:
        """[M, K] P(C_k = 1 | the clicks above k); any value where nothing is shown."""

    def affine(self, values: Values, documents: Ints, clicks: Bools) -> tuple[Doubles, Doubles]:
        """[M, K] a and b of P(C_k = 1 | the clicks above k) = a + b · α(d_k); b is the probability of examination."""
        chance = self.conditional(values, documents, clicks)
        examined = np.where(documents >= 0, chance / np.maximum(values["attractiveness"][documents], 1e-300), 0.0)
        return np.zeros(documents.shape), examined

    @abstractmethod
    def marginal(self, values: Values, documents: Ints) -> Doubles:
        """[M, K] P(C_k = 1); any value where nothing is shown."""

    def marginal_with(self, values: Values, rates: Doubles, documents: Ints) -> Doubles:
        """[M, K] P(C_k = 1) with other rates [P] in place of the attractiveness, linear in each of them.

        For unbiased rates, which may be above 1: what else depends on the attractiveness remains as fitted.
        """
        return self.marginal({**values, "attractiveness": rates}, documents)

    def centred(self, values: Values) -> dict[str, Doubles]:
        """The same click probabilities with the free scale of the parameters, if any, in the middle of its range.

        While fitting: otherwise the prior moves the scale to its bound, and there biases what is identified.
        """
        return dict(values)

    def normalised(self, values: Values) -> dict[str, Doubles]:
        """The same click probabilities with the free scale of the parameters, if any, as results are given."""
        return dict(values)

    def prior_groups(self) -> Ints:
        """The group of each entry of a parameter by pair; each group has its own prior."""
        return np.zeros(self.pairs, np.int64)

    def entry_name(self, name: str, place: int) -> str:
        """What an entry of a global parameter is for, in words; by default a position."""
        return f"position {place + 1}"

    def click_model(self, values: Values) -> ClickModel | None:
        """The model with these global parameters, to simulate clicks on labelled documents; None if there is none."""
        return None

    def sample(self, values: Values, documents: Ints, uniforms: Doubles) -> Bools:
        """[M, K] the clicks of one session per list, from the top.

        Args:
            values: The parameters.
            documents: [M, K].
            uniforms: [M, K] from [0, 1).
        """
        clicks = np.zeros(documents.shape, np.bool_)
        for k in range(documents.shape[1]):
            chance = self.conditional(values, documents[:, : k + 1], clicks[:, : k + 1])[:, k]
            clicks[:, k] = (uniforms[:, k] < chance) & (documents[:, k] >= 0)
        return clicks


def of_pairs(values: Doubles, documents: Ints) -> Doubles:
    """[M, K] the value of each document; 0 where nothing is shown."""
    return np.where(documents >= 0, values[documents], 0.0)


def sums(index: Ints, weights: Doubles, size: int) -> Doubles:
    """[size] the sum of the weights of each index."""
    return np.bincount(index.ravel(), weights=weights.ravel(), minlength=size).astype(np.float64, copy=False)
