"""The gain of a policy over production, by an estimator or by fitted users, and how far it can be relied on."""

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

# What an estimator must find for a model to be shipped: a gain, no loss, or nothing.
Requirement = Literal["must gain", "must not lose", "none"]
# A correction of a relative gain, with its 95 % confidence interval.
Correction: TypeAlias = tuple[float, tuple[float, float]]

# The lower end of the gain's interval must be above this.
MIN_GAIN = 0.001
# A wider interval says nothing: from half of the clicks to twice as many and more.
MAX_WIDTH = 2.0
# Fewer effective sessions than this give intervals that are too short, because a few weights decide.
MIN_EFFECTIVE_SESSIONS = 100
# Share of the policy's list positions that the log need not support.
MAX_UNSUPPORTED = 0.001
# Standard errors by which the mean weight may differ from 1.
MAX_ERRORS_OF_MEAN_WEIGHT = 4.0


@dataclass(frozen=True)
class GainEstimate:
    """The reward per session of a policy's own lists, against that of the logged ones. Intervals are of 95 %.

    Attributes:
        estimator: Registered name of the estimator.
        units: Number of queries, or of groups of sessions, that intervals are over.
        sessions: Number of sessions.
        production: Mean reward of the logged sessions.
        value: Estimated mean reward of the policy; that of production if there is no overlap.
        value_interval: Its interval.
        gain: value − production, paired: both are from the same sessions.
        interval: Interval of the gain; infinite if it cannot be estimated.
        relative_gain: gain / production.
        relative_interval: Its interval.
        control_variate: β* by which the gain was corrected; 0 if the estimator does not take one.
        effective_sample_size: (Σ w)² / Σ w², the smallest over positions with a weight; 0 = no overlap.
        mean_weights: [K] mean importance weight at each position; 1 is expected if the log supports the policy's lists.
        errors_of_mean_weights: [K] how many standard errors it is from 1; 0 where fewer than 100 effective sessions
            cannot tell.
        max_weight: Weights were clipped to it; None = no clipping.
        share_clipped: Share of sessions with a clipped weight.
        never_shown: Share of the policy's documents that the log never shows for their query; None = not known.
        unobserved: Share of what the estimator needs to see of the policy's lists that this log does not show; None =
            not known.
        unsupported: Share of it that no log of this logging policy would show, or whose documents were never shown.
        reward_limits: Lowest and highest reward of an unsupported document at the first position.
        worst_case: The gain if all unsupported rewards are the lowest.
        best_case: The gain if they are the highest.
    """

    estimator: str
    units: int
    sessions: int
    production: float
    value: float
    value_interval: tuple[float, float]
    gain: float
    interval: tuple[float, float]
    relative_gain: float
    relative_interval: tuple[float, float]
    control_variate: float
    effective_sample_size: float
    mean_weights: tuple[float, ...]
    errors_of_mean_weights: tuple[float, ...]
    max_weight: float | None
    share_clipped: float
    never_shown: float | None
    unobserved: float | None
    unsupported: float
    reward_limits: tuple[float, float]
    worst_case: float
    best_case: float

    @property
    def overlap(self) -> bool:
        """Whether any logged session counts."""
        return self.effective_sample_size > 0

    @property
    def bounds(self) -> tuple[float, float]:
        """The interval of the gain with what the log cannot say: its lower end in the worst case, upper in the best."""
        low, high = self.interval
        return low + self.worst_case - self.gain, high + self.best_case - self.gain

    @property
    def doubts(self) -> list[str]:
        """Reasons not to rely on the estimate, a line each."""
        if not self.overlap:
            return ["no logged session shows what the policy would show: the log cannot tell its gain"]
        doubts = []
        if self.effective_sample_size < MIN_EFFECTIVE_SESSIONS:
            size = f"{self.effective_sample_size:,.0f} of {self.sessions:,} sessions"
            doubts.append(f"the effective sample size is {size}: the interval is not reliable")
        furthest = int(np.argmax(np.abs(self.errors_of_mean_weights)))
        if abs(self.errors_of_mean_weights[furthest]) > MAX_ERRORS_OF_MEAN_WEIGHT and self.share_clipped == 0:
            mean = f"the mean weight at position {furthest + 1} is {self.mean_weights[furthest]:.3f}, expected 1"
            doubts.append(f"{mean}: propensities are wrong, or the log does not support the policy's lists")
        if self.unsupported > MAX_UNSUPPORTED:
            doubts.append(f"the log cannot say the reward of {self.unsupported:.1%} of the policy's list positions")
        if self.share_clipped > 0:
            doubts.append(f"weights of {self.share_clipped:.1%} of the sessions were clipped to {self.max_weight:g}")
        return doubts

    def as_dict(self) -> dict[str, Any]:
        """The estimate as JSON values; the ends of an infinite interval are None."""
        values = dataclasses.asdict(self) | {"bounds": self.bounds, "doubts": self.doubts}
        return {name: _plain(value) for name, value in values.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value


@dataclass(frozen=True)
class GainByEstimator:
    """The gain by one estimator, relative to the logged clicks or reward.

    Attributes:
        estimator: The click model of the fitted users, or the name of an importance-sampling estimator.
        gain: The estimate: 0.05 = 5 % more.
        interval: Its 95 % confidence interval.
        bounds: The interval with the worst and the best case of documents that the log cannot say anything about.
        calibration: Fitted users: the reward of the logged lists by them, over the logged one.
        difference: Fitted users: log-likelihood per held-out session, minus that of the best; None = not compared.
        effective_sample_size: Importance sampling: number of sessions that count; None for fitted users.
        requirement: What it must find for a model to be shipped, if it is reliable.
        doubts: Importance sampling: reasons not to rely on it.
        corrections: Fitted users: what of the gain the logged lists refute, by those most like the model's, and by
            those that should have more clicks than others; intervals are infinite if lists do not differ.
    """

    estimator: str
    gain: float
    interval: tuple[float, float]
    bounds: tuple[float, float]
    calibration: float | None = None
    difference: float | None = None
    effective_sample_size: float | None = None
    requirement: Requirement = "must gain"
    doubts: tuple[str, ...] = ()
    corrections: tuple[Correction, ...] = ()

    @property
    def is_reliable(self) -> bool:
        """Whether enough sessions count."""
        return self.effective_sample_size is None or self.effective_sample_size >= MIN_EFFECTIVE_SESSIONS

    @property
    def is_decisive(self) -> bool:
        """Whether a model must gain by it to be shipped."""
        return self.is_reliable and self.requirement == "must gain"

    @property
    def finds_no_gain(self) -> bool:
        """Whether it speaks against shipping: its interval is not above the least gain or, if it need not be, below."""
        low, high = self.interval
        if not self.is_reliable or not self.is_known or self.requirement == "none":
            return False
        return not low > MIN_GAIN if self.requirement == "must gain" else high < MIN_GAIN

    @property
    def is_refuted(self) -> bool:
        """Whether logged lists earn significantly less than fitted users expect, so that no gain may be left.

        The lower end of a correction counts: on the sessions that users were fitted to, corrections are too small.
        """
        return any(high < 0 and not self.bounds[0] + low > MIN_GAIN for _, (low, high) in self.corrections)

    @property
    def is_unconfirmed(self) -> bool:
        """Whether lists differ, but too little to show that those that should have more clicks have them.

        The last correction then need not be significant. Lists that differ by a swap refute hardly any users, also
        those whose clicks do not depend on the list, or less than fitted users expect.
        """
        _, (low, high) = self.corrections[-1] if self.corrections else (0.0, (-np.inf, np.inf))
        return bool(high >= 0 and np.isfinite(low) and not self.bounds[0] + low > MIN_GAIN)

    @property
    def is_known(self) -> bool:
        """Whether the interval is narrow enough to say anything."""
        low, high = self.interval
        return bool(high - low <= MAX_WIDTH)
