"""What a log can tell: its sessions, whether examination is identified and from what, and what to do."""

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from cuolr.errors import InputError, require_type
from cuolr.examination.curve_intervals import ExaminationCurves, Interval, examination_curves
from cuolr.examination.from_clicks import logging_scores_of
from cuolr.examination.identifiability import Identifiability, ListVariation
from cuolr.examination.swap_advice import PRECISION, SwapAdvisor, SwapPlan, depths
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.counts import ClickCounts
from cuolr.logs.importing.seen_documents import has_features
from cuolr.logs.log_folder import load_click_log
from cuolr.logs.log_info import LogInfo, describe_folder, describe_log
from cuolr.logs.session_info import SessionInfo, describe_sessions, sessions_of_folder
from cuolr.logs.time_window import ALL_TIME, TimeWindow
from cuolr.progress import Stages, no_stages


@dataclass(frozen=True)
class Diagnosis:
    """What a log can tell.

    Attributes:
        info: Its size and click rates.
        sessions: What is odd about its sessions; None for a counted or aggregated log.
        identifiability: Whether documents shown at several positions identify examination.
        variation: How the lists of a query vary; None for a log that counts documents.
        share_with_propensity: Share of the impressions with a logging propensity below 1; None if the log has none.
        features: Number of features of a document; 0 if the log was imported without.
        curves: Examination by position and context, with intervals.
        plans: If examination is not identified: what to swap to know it within ±10 %, for several depths.
        choices: The plan for all positions, by the share of sessions with a swap.
    """

    info: LogInfo
    sessions: SessionInfo | None
    identifiability: Identifiability
    variation: ListVariation | None
    share_with_propensity: float | None
    features: int
    curves: ExaminationCurves
    plans: tuple[SwapPlan, ...] = ()
    choices: tuple[SwapPlan, ...] = ()

    @property
    def source(self) -> str:
        """What the estimate of examination is from."""
        if self.identifiability.verdict == "not applicable":
            return "nothing, there is one position"
        if self.curves.from_documents:
            swaps = self.variation is not None and self.variation.by_swaps
            kind = "swaps of neighbouring documents" if swaps else "documents shown at several positions"
            return kind if self.identifiability.identifiable else f"{kind}, too few clicks to identify it"
        if self.curves.logging_policy_weight is not None:
            return "features alone"
        missing = "no feature differs within lists" if self.features else "the log has no features"
        return f"nothing: {missing}, so that the curve is that of click rates"

    @property
    def not_covered(self) -> str | None:
        """What the intervals of examination do not cover; None if documents were shown at several positions."""
        if self.curves.from_documents:
            return None
        source = "features" if self.curves.logging_policy_weight is not None else "click rates"
        return f"From {source} alone, they do not cover the error of confounding."

    @property
    def sessions_needed(self) -> float | None:
        """Sessions like those of the log after which an identified curve is known within ±10 %; None if it is not."""
        known = [place for place in self.curves.pooled.positions if place is not None]
        if not self.identifiability.identifiable or not known:
            return None
        # Variances are inversely proportional to the number of sessions.
        widest = max(math.log(place.high / place.value) for place in known)
        return self.info.sessions * (widest / math.log(1 + PRECISION)) ** 2

    @property
    def known_depth(self) -> int:
        """The number of positions, from the first on, whose examination is identified and known within ±10 %."""
        if not self.identifiability.identifiable or not self.curves.from_documents:
            return 1
        limit = math.log(1 + PRECISION)
        known = [
            place is not None and math.log(place.high / place.value) <= limit for place in self.curves.pooled.positions
        ]
        return known.index(False) if False in known else len(known)

    @property
    def alarm(self) -> str | None:
        """What the weight of the logging policy says against the estimate, if it is from features alone."""
        weight = self.curves.logging_policy_weight
        if weight is None or self.curves.from_documents or weight.low > 0:
            return None
        if self.identifiability.verdict == "not applicable" or not any(self.identifiability.clicks):
            return None  # there is no position bias, or nothing to estimate it from
        clicked = "are clicked less" if weight.value < 0 else "are not clearly clicked more"
        return (
            f"the logging-policy weight is {weight.value:.2f} ({weight.low:.2f} to {weight.high:.2f}): at the same "
            f"position, documents that the logging policy prefers {clicked}. Position and relevance are confounded, "
            "as by a logging policy that was trained on these queries. Examination from features alone is not to be "
            "trusted"
        )

    @property
    def problems(self) -> list[str]:
        """A sentence for each thing that biases what is learned from the log."""
        alarm = [] if self.alarm is None else [f"{self.alarm}."]
        return alarm + ([] if self.sessions is None else self.sessions.warnings)

    @property
    def what_to_do(self) -> list[str]:
        """Sentences."""
        return list(_what_to_do(self))

    def as_dict(self) -> dict[str, Any]:
        """As JSON values, with positions from 1; the numbers of `info` are on the first level."""
        weight = self.curves.logging_policy_weight
        return {
            **asdict(self.info),
            "session_info": None
            if self.sessions is None
            else {**asdict(self.sessions), "warnings": self.sessions.warnings},
            "identifiability": {
                **self.identifiability.as_dict(),
                "source": self.source,
                "share_of_sessions_with_another_list": None if self.variation is None else self.variation.changed,
                "share_of_these_by_a_swap_of_neighbours": None if self.variation is None else self.variation.swapped,
                "share_with_propensity": self.share_with_propensity,
            },
            "examination": {
                "from_documents": self.curves.from_documents,
                "known_depth": self.known_depth,
                "sessions_needed": self.sessions_needed,
                "logging_policy_weight": None if weight is None else asdict(weight),
                "alarm": self.alarm,
                "all": _curve(self.curves.pooled.positions),
                "by_context": {curve.level: _curve(curve.positions) for curve in self.curves.by_context},
            },
            "what_to_do": {
                "sentences": self.what_to_do,
                "plans": [_plan(plan) for plan in self.plans],
                "by_share": [_plan(plan) for plan in self.choices],
            },
        }


def diagnose(log: ClickLog | Path | str, window: TimeWindow = ALL_TIME, stages: Stages = no_stages) -> Diagnosis:
    """Describe a log, tell whether examination is identified and from what, and what to do.

    Args:
        log: In any form, or the folder of a log.
        window: The sessions of a folder to use.
        stages: Receives the progress.
    """
    if isinstance(log, Path | str):
        folder = Path(log)
        info = describe_folder(folder, window, stages)
        log = load_click_log(folder, window, ids=False, stages=stages, documents=True)
        sessions = sessions_of_folder(folder, window, stages) if log.of_sessions else None
    else:
        require_type("log", log, ClickLog, "load_click_log, import_log and simulate return one")
        if not log.where.any():
            raise InputError("expected a log that shows documents, found none in any session")
        info = describe_log([log])
        sessions = describe_sessions([log], log.timestamp) if log.of_sessions else None
    counts = ClickCounts.of(log, stages)
    diagnosis = Diagnosis(
        info=info,
        sessions=sessions,
        identifiability=Identifiability.of(counts),
        variation=None if log.of_documents else ListVariation.of(counts.lists),
        share_with_propensity=_share_with_propensity(log),
        features=log.candidates.n_features if has_features(log.candidates) else 0,
        curves=examination_curves(counts, logging_scores_of(counts, stages), stages),
    )
    return _with_plans(diagnosis, SwapAdvisor.of(counts, _sessions_per_day(sessions)))


def _with_plans(diagnosis: Diagnosis, advisor: SwapAdvisor) -> Diagnosis:
    if diagnosis.identifiability.identifiable:
        return diagnosis
    plans = tuple(plan for depth in depths(advisor.depth) if (plan := advisor.recommended(depth)).sessions)
    return replace(diagnosis, plans=plans, choices=advisor.plans(plans[-1].depth) if plans else ())


def _sessions_per_day(sessions: SessionInfo | None) -> float | None:
    if sessions is None or not sessions.periods:
        return None
    return sessions.sessions / sum(period.days for period in sessions.periods)


def _share_with_propensity(log: ClickLog) -> float | None:
    if log.logging_propensity is None:
        return None
    random = (log.logging_propensity < 1) & log.where
    return float(log.count @ random.sum(axis=1) / max(float(log.count @ log.where.sum(axis=1)), 1.0))


def _what_to_do(found: Diagnosis) -> Iterator[str]:
    if found.identifiability.verdict == "not applicable":
        yield "Nothing: with one position there is no position bias."
        return
    if (times := found.identifiability.times_as_many) is not None:
        yield (
            "Collect more sessions like these: lists vary enough, and examination would be identified with "
            f"{_rounded(times * found.info.sessions):,} sessions in all, of which there are {found.info.sessions:,}."
        )
    needed = found.sessions_needed
    if needed is not None:
        if needed <= found.info.sessions:
            yield "Nothing: examination is identified, and known within ±10 % at all positions."
        else:
            down = f" to position {found.known_depth}" if found.known_depth > 1 else " at position 1 only"
            yield (
                f"Collect more sessions like these: examination is identified, and known within ±10 %{down}; it would "
                f"be at all positions with {_rounded(needed):,} sessions in all, of which there are "
                f"{found.info.sessions:,}."
            )
    elif not found.plans:
        yield "Log clicks: too few are in the log to plan swaps of documents."
    else:
        yield f"{plan_text(found.plans[-1])}."
        for other in found.plans[:-1]:
            yield f"For positions 1 to {other.depth} alone: {amount_text(other)}, in {100 * other.share:.0f} %."
    if found.info.sessions_in_random_order:
        yield (
            f"{found.info.sessions_in_random_order:,} sessions are in random order: `cuolr propensity LOG "
            "--randomised` estimates examination from them."
        )


def plan_text(plan: SwapPlan) -> str:
    """A plan as a sentence, without a full stop."""
    swaps = ", ".join(f"{swap.first + 1} and {swap.first + 2} in {_percent(swap.share)}" for swap in plan.swaps)
    return (
        f"To know examination within ±{100 * PRECISION:.0f} % at positions 1 to {plan.depth}, swap two neighbouring "
        f"documents in {100 * plan.share:.0f} % of the sessions, for {amount_text(plan)}: positions {swaps}"
    )


def amount_text(plan: SwapPlan) -> str:
    """How long a plan takes, for people."""
    sessions = f"{_rounded(plan.sessions):,} sessions"
    if plan.days is None:
        return sessions
    days = math.ceil(plan.days)
    return f"{days:,} {'day' if days == 1 else 'days'} ({sessions} at the traffic of the log)"


def _rounded(number: float) -> int:
    """A number rounded up to two digits.

    >>> _rounded(129_975)
    130000
    """
    unit: int = 10 ** max(math.floor(math.log10(max(number, 1.0))) - 1, 0)
    return math.ceil(number / unit) * unit


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %" if share >= 0.001 else f"{100 * share:.2f} %"


def _curve(positions: tuple[Interval | None, ...]) -> list[dict[str, float] | None]:
    return [None if place is None else asdict(place) for place in positions]


def _plan(plan: SwapPlan) -> dict[str, Any]:
    swaps = [{"positions": [s.first + 1, s.first + 2], **_without_first(asdict(s))} for s in plan.swaps]
    return {**asdict(plan), "swaps": swaps}


def _without_first(swap: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in swap.items() if name != "first"}
