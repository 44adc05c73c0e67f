"""The result of an off-policy evaluation, with its recommendation: ship, test or keep."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from cuolr.logs.clicklog import Outcome
from cuolr.off_policy.gain_estimate import MIN_GAIN, GainByEstimator

Recommendation = Literal["ship", "test", "keep"]

# With fewer queries, or groups of sessions, the recommendation is to keep the logging policy.
MIN_UNITS = 30
# Largest relative difference between the reward of the logged lists by fitted users, and the logged one.
MAX_MISFIT = 0.05


@dataclass(frozen=True)
class ChangedQuery:
    """A query on which the model and production differ.

    Attributes:
        query_id: The query.
        sessions: Its sessions in the log.
        change: Estimated change in clicks or reward, over all of them.
    """

    query_id: str
    sessions: int
    change: float


@dataclass(frozen=True)
class OffPolicyEvaluation:
    """How a model differs from the logging policy, and whether the logged clicks support it.

    Attributes:
        queries: Number of queries of the log that the model was evaluated on.
        k: Length of the evaluated lists.
        trained_on_these_queries: Whether the model was trained on the clicks on these queries; its gain is then
            overestimated.
        never_shown: Share of the model's top k that the log never shows for their query.
        overlap: Share of the model's top k that a session of the log shows, on average.
        gain: Relative change in clicks, or in the reward of a log with rewards, if the model's own top k is shown: 0.05
            = 5 % more. Under the users that explain the log best, of those whose gain is known.
        interval: From the lowest to the highest end of the intervals under all users that explain the log about as
            well and whose gain is known, with the worst and the best case of documents that were never shown; infinite
            if none is.
        estimates: The estimators behind it, the best users first.
        logging_policy_share: Share of the model's score that comes from a model of the logging policy; None = the model
            has no such member.
        logging_policy_overlap: Overlap of that member: how well it reproduces the logging policy.
        identifiable: Whether enough clicks are on documents shown at several positions to separate position bias from
            relevance. Otherwise the gain relies on the features and on the logging policy's score.
        against: What the gain is over: production, or another model.
        held_out: Whether the queries, or the sessions, are those that training held out.
        outcome: What the gain is a gain in: clicks or reward.
        position_weights: What a click or a reward at each position counts; empty = 1.
        session_groups: Number of groups of sessions that the interval is over, for a log of few queries: it then holds
            for these queries. 0 = it is over queries.
        sessions_during_training: Number of sessions from the time of the training log, which the model may have learned
            from; its gain is then overestimated.
        sessions_for_test: Number of sessions in each arm of an A/B test that finds the estimated gain with a power of
            80 %; None = there is no gain to find.
        sessions_for_interleaving: Number of sessions of a team-draft interleaving test that does.
        better_click_rates: Click rates, such as by document, that explain held-out sessions better than every click
            model: no fitted users are those of the log.
        changed: The queries on which the two differ most, by traffic times change.
        examination: [K][K + 1] examination by position and last click above, relative to position 1, as fitted without
            regard to context; None where not observed in the log.
        examination_by_context: The same for each level of context, with its scale; empty if the log has one level.
    """

    queries: int
    k: int
    trained_on_these_queries: bool
    never_shown: float
    overlap: float
    gain: float
    interval: tuple[float, float]
    estimates: tuple[GainByEstimator, ...]
    logging_policy_share: float | None
    logging_policy_overlap: float | None
    identifiable: bool
    against: str = "production"
    held_out: bool = False
    outcome: Outcome = "clicks"
    position_weights: tuple[float, ...] = ()
    session_groups: int = 0
    sessions_during_training: int = 0
    sessions_for_test: int | None = None
    sessions_for_interleaving: int | None = None
    better_click_rates: tuple[str, ...] = ()
    changed: tuple[ChangedQuery, ...] = ()
    examination: tuple[tuple[float | None, ...], ...] = ()
    examination_by_context: Mapping[str, Any] = field(default_factory=dict)

    @property
    def recommendation(self) -> Recommendation:
        """Ship the model, test it on part of the traffic, or keep the logging policy."""
        if self._units < MIN_UNITS or not self._has_evidence:
            return "keep"
        return "test" if self._doubts else "ship"

    @property
    def reason(self) -> str:
        """The reason for the recommendation, in one line."""
        if not self.can_estimate:
            outcome = "clicks" if self.outcome == "clicks" else "clicks with a reward"
            return f"too few {outcome} or queries ({self.queries:,}) to estimate the gain"
        these = "this query" if self.queries == 1 else f"these {self.queries:,} queries"
        where = f" on {these}" if self.session_groups else ""
        gain = f"{self.gain:+.1%} {self.outcome_name}{where} (95 % interval {self.interval_text})"
        if self._units < MIN_UNITS:
            units = "groups of sessions" if self.session_groups else "queries"
            return f"{gain}, but from only {self._units:,} {units}; at least {MIN_UNITS} are needed"
        if self.never_shown == 1:
            return f"the log shows none of the documents in the model's top {self.k}, so its gain cannot be estimated"
        if self.recommendation == "keep":
            return f"{gain}: no evidence that the model is better than {self._baseline}"
        if self._doubts:
            return f"{gain}, but {', and '.join(self._doubts)}: test it on part of the traffic{self._test_size}"
        users = [e.estimator for e in self.estimates if e.effective_sample_size is None]
        sampled = [e.estimator for e in self.estimates if e.effective_sample_size is not None and e.is_decisive]
        by_sampling = f" and by {' and '.join(sampled)}" if sampled else ""
        return f"{gain}, under all users that explain the log ({', '.join(users)}){by_sampling}"

    @property
    def outcome_name(self) -> str:
        """What the gain is a gain in, as text."""
        return f"discounted {self.outcome}" if self.position_weights else self.outcome

    @property
    def can_estimate(self) -> bool:
        """Whether there are users for which the gain is known."""
        return self._best is not None

    @property
    def _best(self) -> GainByEstimator | None:
        """By the users that explain the log best, of those for which it is known."""
        by_users = (estimate for estimate in self.estimates if estimate.effective_sample_size is None)
        return next((estimate for estimate in by_users if estimate.is_known), None)

    @property
    def _baseline(self) -> str:
        return "the logging policy" if self.against == "production" else self.against

    @property
    def _test_size(self) -> str:
        tests = []
        if self.sessions_for_test is not None:
            tests.append(f"an A/B test of {self.sessions_for_test:,} sessions in each arm")
        if self.sessions_for_interleaving is not None:
            tests.append(f"team-draft interleaving of {self.sessions_for_interleaving:,}")
        return f" ({', or '.join(tests)} finds this gain)" if tests else ""

    @property
    def _units(self) -> int:
        """What the interval is over."""
        return self.session_groups or self.queries

    @property
    def _has_evidence(self) -> bool:
        """Whether the users that explain the log best like the model better, some of whose documents were shown."""
        return self._best is not None and self._best.interval[0] > MIN_GAIN and self.never_shown < 1

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
        counting = [estimate for estimate in self.estimates if estimate.is_decisive and estimate.is_known]
        unknown = [e.estimator for e in self.estimates if e.is_decisive and not e.is_known]
        if unknown:
            doubts.append(f"this log cannot say what users of {' and '.join(unknown)} would do")
        if any(e.difference is None and e.calibration is not None for e in counting):
            doubts.append("an aggregated log cannot tell click models apart: position-based users are assumed")
        if self.better_click_rates:
            rates = " and ".join(self.better_click_rates)
            doubts.append(f"click rates ({rates}) explain held-out sessions better than every click model")
        against = [e.estimator for e in self.estimates if e.finds_no_gain]
        if against:
            doubts.append(f"there is no gain by {' and '.join(against)}")
        elif any(not e.bounds[0] > MIN_GAIN for e in counting):
            doubts.append(f"documents that the log hardly shows may cost the gain ({self._share_never_shown})")
        refuted = [e.estimator for e in counting if e.is_refuted]
        if refuted:
            users = " and ".join(refuted)
            doubts.append(
                f"logged lists that are better for users of {users} have fewer {self.outcome_name} than they should"
            )
        unconfirmed = [e.estimator for e in counting if e.is_unconfirmed and not e.is_refuted]
        if unconfirmed and not against:
            users = " and ".join(unconfirmed)
            doubts.append(
                f"logged lists differ too little to show that better ones for users of {users} have more "
                f"{self.outcome_name}"
            )
        misfits = [e for e in counting if e.calibration is not None and abs(e.calibration - 1) > MAX_MISFIT]
        if misfits:
            users, share = misfits[0].estimator, misfits[0].calibration
            doubts.append(f"users of {users} expect {share:.0%} of the logged {self.outcome_name} on the logged lists")
        return doubts

    @property
    def _share_never_shown(self) -> str:
        return f"{self.never_shown:.0%} of its top {self.k} were never shown"

    @property
    def interval_text(self) -> str:
        """The interval in percent, as text."""
        return interval_text(self.interval) if self.can_estimate else "unknown"

    def as_dict(self) -> dict[str, Any]:
        """The evaluation as JSON values; infinite ends of an interval are None."""
        return {
            **_finite(dataclasses.asdict(self)),
            "examination": [list(row) for row in self.examination],
            "recommendation": self.recommendation,
            "reason": self.reason,
        }


def interval_text(interval: tuple[float, float]) -> str:
    """An interval in percent, as text."""
    low, high = interval
    return f"{low:+.1%} to {high:+.1%}" if np.isfinite(low) and np.isfinite(high) else "unknown"


def _finite(value: Any) -> Any:
    """The same JSON values, with None for numbers that are not finite."""
    if isinstance(value, dict):
        return {name: _finite(of_name) for name, of_name in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value
