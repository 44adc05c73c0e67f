"""Is a model ready for users? What the log alone says of it, without labels."""

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from cuolr.data.normalise import Normaliser
from cuolr.errors import InputError
from cuolr.learners.evidence import Looks, ShownLists, pooled
from cuolr.learners.examination import CountedLists, Examination, fit_examination
from cuolr.learners.logged_order import fit_logged_order
from cuolr.policies.base import RankingPolicy
from cuolr.policies.blend import BlendPolicy
from cuolr.policies.linear import LinearPolicy
from cuolr.types import Candidates, ClickLog, Doubles, IntegerArray

Verdict = Literal["ship", "test", "keep"]

# Of a model's documents may never have been shown, if it is to go to users without a test.
MAX_NEVER_SHOWN = 0.2
# Standard errors to either side of a mean, of a 95 % interval.
STANDARD_ERRORS = 1.96
# Documents of which it is seen how much of a score is the logged order.
SOME_QUERIES = 200


@dataclass(frozen=True)
class Readiness:
    """How a model differs from the log, and whether the clicks support it.

    Attributes:
        queries: Of the log, that it was looked at on.
        k: Length of the lists.
        never_shown: Share of the model's top k that the log never shows for their query.
        overlap: Of the model's top k, the share that a session of the log was shown, on average.
        gain: Clicks that shown documents get in the model's order, relative to the logged order: .05 = 5 % more.
        interval: 95 % interval of the gain over queries.
        logged_order: How much of the model's score is the logged order; None = the model does not know it.
    """

    queries: int
    k: int
    never_shown: float
    overlap: float
    gain: float
    interval: tuple[float, float]
    logged_order: float | None

    @property
    def verdict(self) -> Verdict:
        """Ship it, test it on a part of the users, or keep the ranking that there is."""
        if not self.interval[0] > 0:
            return "keep"
        return "test" if self.never_shown > MAX_NEVER_SHOWN else "ship"

    @property
    def reason(self) -> str:
        """Of the verdict, in a line."""
        low, high = self.interval
        sure = f"95 % interval {low:+.1%} to {high:+.1%}" if np.isfinite(low) else "no interval from so few queries"
        gain = f"{self.gain:+.1%} clicks on shown documents ({sure})"
        if self.verdict == "keep":
            return f"{gain}: the log does not show that this model is better than the logged order"
        if self.verdict == "test":
            return f"{gain}, but the log never shows {self.never_shown:.0%} of its top {self.k}: test it on some users"
        return f"{gain}, and the log shows nearly all of its top {self.k}"

    def as_dict(self) -> dict[str, Any]:
        """All of it, as JSON can hold it; an end of the interval is None where it is not known."""
        ends = [end if np.isfinite(end) else None for end in self.interval]
        return {**dataclasses.asdict(self), "interval": ends, "verdict": self.verdict, "reason": self.reason}


def assess(policy: RankingPolicy, log: ClickLog, k: int = 10, queries: IntegerArray | None = None) -> Readiness:
    """Look at a model with the log's eyes.

    What it gains is told from shown documents alone, put in the model's order instead of the logged one: a document
    gets, at a position, as many clicks as users look there, times how often it was clicked when it was looked at.
    Looking is learned from the whole log, by `fit_examination`.

    Args:
        policy: The model.
        log: What it is compared with; raw, or aggregated, where looking then depends on the position alone.
        k: Length of the lists that are compared.
        queries: Of the log, to look at; best those that the model did not learn from. None = all.
    """
    normaliser = Normaliser.fit("log-min-max", log.candidates)
    shown = ShownLists.of(log, normaliser)
    counted = shown.counted
    logged_scores = shown.scores_by(fit_logged_order(log, normaliser, seed=0))
    examination = fit_examination(counted, logged_scores[shown.documents])
    looked = examination.looked(counted)
    pool, looks = pooled(counted, looked, np.zeros(log.candidates.n_documents), 0.0)
    rows = np.arange(len(pool)) if queries is None else np.flatnonzero(np.isin(pool.query, queries))
    if not len(rows):
        raise InputError("expected at least one query of the log to look at, found none")
    pool, looks = pool.select(rows), Looks(looks.clicked[rows], looks.looked[rows])
    never_shown, overlap = _familiarity(policy, counted.lists, pool, k)
    gains, logged = _clicks(policy, counted, examination, pool, looks)
    return Readiness(
        queries=len(pool),
        k=k,
        never_shown=never_shown,
        overlap=overlap,
        gain=float(gains.mean() / logged.mean()) if logged.mean() > 0 else 0.0,
        interval=_interval(gains, float(logged.mean())),
        logged_order=_share_of_logged_order(policy, log.candidates.select(pool.query[:SOME_QUERIES])),
    )


def _familiarity(policy: RankingPolicy, lists: ClickLog, pool: ClickLog, k: int) -> tuple[float, float]:
    """The share of the model's documents that were never shown, and the mean share of sessions that were shown one."""
    candidates = lists.candidates
    row, position = np.nonzero(lists.where)
    documents = candidates.offsets[lists.query[row]] + lists.ranking[row, position]
    shown = np.bincount(documents, weights=lists.count[row], minlength=candidates.n_documents)
    ranking = policy.rank(candidates.select(pool.query), k)
    where = ranking >= 0
    share = shown[np.where(where, candidates.offsets[pool.query, None] + ranking, 0)] / pool.count[:, None]
    return float((share[where] == 0).mean()), float(share[where].mean())


def _clicks(
    policy: RankingPolicy, counted: CountedLists, examination: Examination, pool: ClickLog, looks: Looks
) -> tuple[Doubles, Doubles]:
    """[number of queries] clicks per session that shown documents get: more by the model's order, and by the logged."""
    lists = counted.lists
    looks_at_position = examination.looked(counted).sum(axis=0) / max(lists.count.sum(), 1)
    # A document that was hardly looked at is as attractive as its query's others.
    mean = looks.clicked.sum(axis=1, keepdims=True) / np.maximum(looks.looked.sum(axis=1, keepdims=True), 1e-9)
    attractiveness = np.where(pool.where, (looks.clicked + mean) / (looks.looked + 1), 0.0)

    candidates = lists.candidates
    of_document = np.zeros(candidates.n_documents)
    rows = candidates.offsets[pool.query, None] + pool.ranking
    of_document[rows[pool.where]] = attractiveness[pool.where]
    documents = np.where(lists.where, candidates.offsets[lists.query, None] + lists.ranking, 0)
    clicks = (of_document[documents] * lists.where * looks_at_position).sum(axis=1)
    sessions = np.bincount(lists.query, weights=lists.count, minlength=candidates.n_queries)
    of_sessions = np.bincount(lists.query, weights=clicks * lists.count, minlength=candidates.n_queries)
    logged: Doubles = (of_sessions / np.maximum(sessions, 1))[pool.query]

    shown = _shown_alone(pool)
    ranking = policy.rank(shown, lists.k)
    placed = np.take_along_axis(attractiveness, np.maximum(ranking, 0), axis=1) * (ranking >= 0)
    return (placed * looks_at_position).sum(axis=1) - logged, logged


def _shown_alone(pool: ClickLog) -> Candidates:
    """The queries of the pool with just the documents that they were shown with, in the pool's order."""
    candidates = pool.candidates
    where = pool.where
    rows = (candidates.offsets[pool.query, None] + pool.ranking)[where]
    return Candidates(
        candidates.features[rows],
        np.concatenate([[0], np.cumsum(where.sum(axis=1))]),
        candidates.query_ids[pool.query],
        feature_names=candidates.feature_names,
    )


def _interval(gains: Doubles, logged: float) -> tuple[float, float]:
    if len(gains) < 2 or logged <= 0:
        return (-np.inf, np.inf)
    error = STANDARD_ERRORS * float(gains.std(ddof=1)) / np.sqrt(len(gains))
    return float((gains.mean() - error) / logged), float((gains.mean() + error) / logged)


def _share_of_logged_order(policy: RankingPolicy, candidates: Candidates) -> float | None:
    """By the standard deviation of what each adds to the scores."""
    if not isinstance(policy, BlendPolicy):
        return None
    parts = {True: np.zeros(candidates.n_documents), False: np.zeros(candidates.n_documents)}
    for member, weight in zip(policy.members, policy.weights, strict=True):
        parts[isinstance(member, LinearPolicy)] += weight * member.score(candidates)
    total = parts[True].std() + parts[False].std()
    return float(parts[True].std() / total) if total > 0 else None
