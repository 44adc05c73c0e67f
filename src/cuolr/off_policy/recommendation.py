"""The result of an off-policy evaluation, with its recommendation: ship, test or keep."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from cuolr.logs.clicklog import Outcome

Recommendation = Literal["ship", "test", "keep"]

# Maximum share of never-shown documents in the top k of a model that is shipped without a test.
MAX_NEVER_SHOWN = 0.2
# With fewer queries, or groups of sessions, the recommendation is to keep the logging policy.
MIN_UNITS = 30
# The lower end of the gain's interval must be above this.
MIN_GAIN = 0.001


@dataclass(frozen=True)
class OffPolicyEvaluation:
    """How a model differs from the logging policy, and whether the logged clicks support it.

    Attributes:
        queries: Number of queries of the log that the model was evaluated on.
        k: Length of the rankings for `never_shown` and `overlap`.
        trained_on_these_queries: Whether the model was trained on the clicks on these queries; its gain is then
            overestimated.
        never_shown: Share of the model's top k that the log never shows for their query.
        overlap: Share of the model's top k that a session of the log shows, on average.
        gain: Relative change in clicks, or in the reward of a log with rewards, when the model re-orders the logged
            lists: 0.05 = 5 % more.
        interval: 95 % confidence interval of the gain; infinite if it cannot be estimated.
        logging_policy_share: Share of the model's score that comes from a model of the logging policy; None = the model
            has no such member.
        logging_policy_overlap: Overlap of that member: how well it reproduces the logging policy.
        identifiable: Whether enough clicks are on documents shown at several positions to separate position bias from
            relevance. Otherwise the gain relies on the logging policy's score.
        held_out: Whether the queries, or the sessions, are those that training held out.
        outcome: What the gain is a gain in: clicks or reward.
        session_groups: Number of groups of sessions that the interval is over, for a log of few queries: it then holds
            for these queries. 0 = it is over queries.
        sessions_during_training: Number of sessions from the time of the training log, which the model may have learned
            from; its gain is then overestimated.
        examination: [K][K + 1] the examination used to estimate the gain, by position and last click above, relative to
            position 1; None where not observed in the log.
        examination_by_context: The same for each level of context, with its scale; empty if the log has one level.
    """

    queries: int
    k: int
    trained_on_these_queries: bool
    never_shown: float
    overlap: float
    gain: float
    interval: tuple[float, float]
    logging_policy_share: float | None
    logging_policy_overlap: float | None
    identifiable: bool
    held_out: bool = False
    outcome: Outcome = "clicks"
    session_groups: int = 0
    sessions_during_training: int = 0
    examination: tuple[tuple[float | None, ...], ...] = ()
    examination_by_context: Mapping[str, Any] = field(default_factory=dict)

    @property
    def recommendation(self) -> Recommendation:
        """Ship the model, test it on part of the traffic, or keep the logging policy."""
        if self._units < MIN_UNITS or not self.interval[0] > MIN_GAIN:
            return "keep"
        return "test" if self._doubts else "ship"

    @property
    def reason(self) -> str:
        """The reason for the recommendation, in one line."""
        if not np.isfinite(self.interval[0]):
            return f"too few clicks or queries ({self.queries:,}) to estimate the gain"
        these = "this query" if self.queries == 1 else f"these {self.queries:,} queries"
        where = f" of {these}" if self.session_groups else ""
        gain = f"{self.gain:+.1%} {self.outcome} on shown documents{where} (95 % interval {self.interval_text})"
        if self._units < MIN_UNITS:
            units = "sessions" if self.session_groups else "queries"
            return f"{gain}, but from only {self._units:,} {units}; at least {MIN_UNITS} are needed"
        if self.recommendation == "keep":
            return f"{gain}: no evidence that the model is better than the logging policy"
        if self._doubts:
            return f"{gain}, but {', and '.join(self._doubts)}: test it on part of the traffic"
        return f"{gain}, and the log shows nearly all of its top {self.k}"

    @property
    def _units(self) -> int:
        """What the interval is over."""
        return self.session_groups or self.queries

    @property
    def _doubts(self) -> list[str]:
        """Reasons not to ship a model with a gain."""
        doubts = []
        if self.trained_on_these_queries:
            doubts.append("the model was trained on these clicks")
        if self.sessions_during_training:
            doubts.append(f"{self.sessions_during_training:,} sessions are from the time of its training")
        if not self.identifiable:
            doubts.append("position bias is not identifiable from this log")
        if self.never_shown > MAX_NEVER_SHOWN:
            doubts.append(f"{self.never_shown:.0%} of its top {self.k} were never shown")
        return doubts

    @property
    def interval_text(self) -> str:
        """The interval in percent, as text."""
        low, high = self.interval
        return f"{low:+.1%} to {high:+.1%}" if np.isfinite(low) else "unknown"

    def as_dict(self) -> dict[str, Any]:
        """The evaluation as JSON values; the ends of an infinite interval are None."""
        return {
            **dataclasses.asdict(self),
            "interval": [end if np.isfinite(end) else None for end in self.interval],
            "examination": [list(row) for row in self.examination],
            "recommendation": self.recommendation,
            "reason": self.reason,
        }
