"""Is a model ready for users? What the log alone says of it, without labels."""

import dataclasses
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from scipy import stats

from cuolr.data.normalise import Normaliser
from cuolr.errors import InputError
from cuolr.examination.from_clicks import fit_examination, told_by_moved_documents
from cuolr.learners.factored.click_rates import Looks, ShownLists, pooled
from cuolr.logs.clicklog import ClickLog
from cuolr.policies.ensemble_policy import BlendPolicy
from cuolr.policies.logging_policy import imitate_logger
from cuolr.policies.policy import RankingPolicy, ScoringPolicy
from cuolr.policies.sequential_policy import SequentialPolicy
from cuolr.training.hold_out import held_out_queries
from cuolr.types import Candidates, Doubles, IntegerArray, Ints

Verdict = Literal["ship", "test", "keep"]

# Share of a model's documents that may never have been shown, if it is to go to users without a test.
MAX_NEVER_SHOWN = 0.2
# With fewer queries no model leaves the house.
MIN_QUERIES = 30
# A gain that nobody would notice.
LEAST_GAIN = 0.001
# Of the interval of a gain.
CONFIDENCE = 0.95
# The usual length of the lists that are compared; shorter where the log's are.
USUAL_K = 10
# Of the queries, for what imitates the logger.
PARTS = 2
# Queries by whose documents it is seen how much of a score is the logged order.
SOME_QUERIES = 200
# A model that ranks lists, not documents by themselves, has the features of so many at once.
LISTS_AT_A_TIME = 4_096


@dataclass(frozen=True)
class Readiness:
    """How a model differs from the log, and whether the clicks support it.

    Attributes:
        queries: Of the log, that it was looked at on.
        k: Length of the lists by which `never_shown` and `overlap` are counted.
        learned: Whether the model has learned from the clicks on these queries; its gain is then flattering.
        never_shown: Share of the model's top k that the log never shows for their query.
        overlap: Of the model's top k, the share that a session of the log was shown, on average over queries.
        gain: Clicks that the lists get in the model's order, relative to the logged order: .05 = 5 % more.
        interval: 95 % interval of the gain; infinite where there is nothing to tell it from.
        logged_order: How much of the model's score is a ranker that imitates the logged order; None = none is in it.
        imitated: Of that ranker's top k, the share that a session of the log was shown: how well it knows the logger.
        positions_told: Whether the log tells how people look from what they like: enough clicks are on documents that
            were shown at several positions. If not, the gain rests on what the logged order's score explains.
    """

    queries: int
    k: int
    learned: bool
    never_shown: float
    overlap: float
    gain: float
    interval: tuple[float, float]
    logged_order: float | None
    imitated: float | None
    positions_told: bool

    @property
    def verdict(self) -> Verdict:
        """Ship it, test it on a part of the users, or keep the ranking that there is."""
        if self.queries < MIN_QUERIES or not self.interval[0] > LEAST_GAIN:
            return "keep"
        return "test" if self._doubts else "ship"

    @property
    def reason(self) -> str:
        """Of the verdict, in a line."""
        if not np.isfinite(self.interval[0]):
            return f"too few clicks or queries ({self.queries:,}) to tell whether this model is better"
        gain = f"{self.gain:+.1%} clicks on shown documents (95 % interval {self.interval_text})"
        if self.verdict == "keep" and self.queries < MIN_QUERIES:
            return f"{gain}, from {self.queries:,} queries; expected at least {MIN_QUERIES} to tell by"
        if self.verdict == "keep":
            return f"{gain}: the log does not show that this model is better than the logged order"
        if self._doubts:
            return f"{gain}, but {' and '.join(self._doubts)}: test it on some users"
        return f"{gain}, and the log shows nearly all of its top {self.k}"

    @property
    def _doubts(self) -> list[str]:
        """What speaks against shipping a model that gains."""
        doubts = []
        if self.learned:
            doubts.append("the model has learned from these clicks")
        if not self.positions_told:
            doubts.append("too few clicks are on documents that moved, to tell how people look")
        if self.never_shown > MAX_NEVER_SHOWN:
            doubts.append(f"the log never shows {self.never_shown:.0%} of its top {self.k}")
        return doubts

    @property
    def interval_text(self) -> str:
        """For people."""
        low, high = self.interval
        return f"{low:+.1%} to {high:+.1%}" if np.isfinite(low) else "not known"

    def as_dict(self) -> dict[str, Any]:
        """All of it, as JSON can hold it; an end of the interval is None where it is not known."""
        ends = [end if np.isfinite(end) else None for end in self.interval]
        return {**dataclasses.asdict(self), "interval": ends, "verdict": self.verdict, "reason": self.reason}


def assess(
    policy: RankingPolicy,
    log: ClickLog,
    k: int | None = None,
    queries: IntegerArray | None = None,
    learned: bool = False,
) -> Readiness:
    """Look at a model with the log's eyes.

    What it gains is told from each logged list, its documents put in the model's order instead of the logged one, at
    the same positions: a document gets there as many clicks as users look at the position, times how often it was
    clicked when it was looked at. Looking is learned from the whole log, by `fit_examination`. A query counts as often
    as it has sessions.

    Args:
        policy: The model.
        log: What it is compared with; raw, or aggregated, where looking then depends on the position alone.
        k: How many of the model's documents are looked for in the log; None = 10, or as many as its lists have.
        queries: Of the log, to look at; best those that the model did not learn from. None = all.
        learned: Whether the model has learned from the clicks on these queries.
    """
    k = min(USUAL_K, log.k) if k is None else min(k, int(log.candidates.sizes.max()))
    normaliser = Normaliser.fit("log-min-max", log.candidates)
    shown = ShownLists.of(log, normaliser)
    counted = shown.counted
    logged_scores = imitate_logger(counted.lists, normaliser, 0, PARTS).scores(shown.features)
    looked = fit_examination(counted, logged_scores[shown.documents]).looked(counted)
    pool, looks = pooled(counted, looked, np.zeros(log.candidates.n_documents), 0.0)
    rows = np.arange(len(pool)) if queries is None else np.flatnonzero(np.isin(pool.query, queries))
    if not len(rows):
        raise InputError("expected at least one query of the log to look at, found none")
    pool, looks = pool.select(rows), Looks(looks.clicked[rows], looks.looked[rows])
    never_shown, overlap = _familiarity(policy, counted.lists, pool, k)
    logged, by_model = _clicks(policy, counted.lists, looked, pool, looks)
    gain, interval = _gain(by_model - logged, logged)
    return Readiness(
        queries=len(pool),
        k=k,
        learned=learned,
        never_shown=never_shown,
        overlap=overlap,
        gain=gain,
        interval=interval,
        logged_order=_share_of_logged_order(policy, log.candidates.select(pool.query[:SOME_QUERIES])),
        imitated=_imitated(policy, counted.lists, pool, k),
        positions_told=told_by_moved_documents(counted),
    )


def digest_of_clicks(log: ClickLog) -> str:
    """By it a model knows its own log: the same for all orders of the sessions, and for the aggregated log."""
    clicks_of_row = log.clicks.sum(axis=1) * log.count
    counts = [np.bincount(log.query, of_row, log.candidates.n_queries) for of_row in (log.count, clicks_of_row)]
    digest = hashlib.sha256("\n".join(map(str, log.candidates.query_ids)).encode())
    digest.update(np.rint(counts).astype(np.int64).data)
    return digest.hexdigest()


def assess_on_own_log(
    policy: RankingPolicy, log: ClickLog, settings: Mapping[str, Any], k: int | None = None
) -> Readiness:
    """Look at a model with the eyes of the log that it was trained from.

    Just at the queries that training held out; where labels chose the model none were, and it is looked at on all.

    Args:
        policy: The model.
        log: The log.
        settings: Of the run, as in the model's provenance.
        k: As for `assess`.
    """
    if "held_out_queries" not in settings["validated_by"]:
        return assess(policy, log, k, learned=True)
    training = settings["training"]
    return assess(policy, log, k, held_out_queries(log, training["held_out"], training["seed"]))


def _familiarity(policy: RankingPolicy, lists: ClickLog, pool: ClickLog, k: int) -> tuple[float, float]:
    """The share of the model's documents that were never shown, and the mean share of sessions that were shown one."""
    candidates = lists.candidates
    row, _ = np.nonzero(lists.where)
    documents = lists.documents[lists.where]
    shown = np.bincount(documents, weights=lists.count[row], minlength=candidates.n_documents)
    ranking = policy.rank(candidates.select(pool.query), k)
    where = ranking >= 0
    share = shown[np.where(where, candidates.offsets[pool.query, None] + ranking, 0)] / pool.count[:, None]
    return float((share[where] == 0).mean()), float(share[where].mean())


def _clicks(
    policy: RankingPolicy, lists: ClickLog, looked: Doubles, pool: ClickLog, looks: Looks
) -> tuple[Doubles, Doubles]:
    """[number of queries of the pool] clicks on all lists of a query: in the logged order, and in the model's."""
    sessions = lists.where * lists.count[:, None]
    looks_of_a_session = looked.sum(axis=0) / np.maximum(sessions.sum(axis=0), 1)
    # A document that was hardly looked at is as attractive as its query's others.
    mean = looks.clicked.sum(axis=1, keepdims=True) / np.maximum(looks.looked.sum(axis=1, keepdims=True), 1e-9)
    attractiveness = (looks.clicked + mean) / (looks.looked + 1)

    of_document = np.zeros(lists.candidates.n_documents)
    of_document[pool.documents[pool.where]] = attractiveness[pool.where]

    row = np.full(lists.candidates.n_queries, -1)
    row[pool.query] = np.arange(len(pool))
    lists = lists.select(np.flatnonzero(row[lists.query] >= 0))
    documents = lists.documents
    positions = np.argsort(~lists.where, axis=1, kind="stable")  # those that the list has, from the top
    has = np.take_along_axis(lists.where, positions, axis=1)
    by_model = _models_order(policy, lists, pool, positions)

    def clicks(order: Ints) -> Doubles:
        clicked = of_document[np.take_along_axis(documents, order, axis=1)] * looks_of_a_session[positions] * has
        of_lists = clicked.sum(axis=1) * lists.count
        return np.bincount(row[lists.query], weights=of_lists, minlength=len(pool)).astype(np.float64)

    return clicks(positions), clicks(by_model)


def _models_order(policy: RankingPolicy, lists: ClickLog, pool: ClickLog, positions: Ints) -> Ints:
    """[L, K] the positions of each list in the order in which the model would put what stands there.

    Args:
        policy: The model.
        lists: L lists.
        pool: Their queries, with all documents of theirs.
        positions: [L, K] those that a list has, from the top; then the others.
    """
    candidates = lists.candidates
    if isinstance(policy, ScoringPolicy):  # a score does not depend on the list, so each document has one
        scores = np.zeros(candidates.n_documents)
        scores[candidates.rows_of(pool.query)] = policy.score(candidates.select(pool.query))
        return np.argsort(np.where(lists.where, -scores[lists.documents], np.inf), axis=1, kind="stable")
    if isinstance(policy, SequentialPolicy) and policy.normaliser.kind == "query-min-max":
        # Scaled with all that a query has, not with what stands in a list alone.
        scaled = policy.normaliser.apply(policy.normaliser.as_fitted(candidates, policy.n_features))
        policy, lists = policy.of_scaled(), replace(lists, candidates=scaled)
    order = positions.copy()
    for start in range(0, len(lists), LISTS_AT_A_TIME):
        part = slice(start, start + LISTS_AT_A_TIME)
        places = policy.rank(_shown_alone(lists.select(part)), lists.k)
        by_model = np.take_along_axis(positions[part], np.maximum(places, 0), axis=1)
        order[part] = np.where(places >= 0, by_model, positions[part])
    return order


def _shown_alone(log: ClickLog) -> Candidates:
    """A query for each row, with just the documents that it shows."""
    candidates, where = log.candidates, log.where
    return Candidates(
        candidates.features[log.documents[where]],
        np.concatenate([[0], np.cumsum(where.sum(axis=1))]),
        candidates.query_ids[log.query],
        feature_names=candidates.feature_names,
    )


def _gain(more: Doubles, logged: Doubles) -> tuple[float, tuple[float, float]]:
    """Σ more / Σ logged, and its interval over queries.

    The variance is that of a ratio, to the first order. Queries with many clicks count for more, so there are in effect
    (Σ logged)² / Σ logged² of them, and Student's t has that many degrees of freedom, less one.
    """
    total = float(logged.sum())
    if total <= 0:
        return 0.0, (-np.inf, np.inf)
    gain = float(more.sum()) / total
    freedom = total**2 / float((logged**2).sum()) - 1
    if freedom <= 0:
        return gain, (-np.inf, np.inf)
    number = len(more)
    error = float(np.sqrt(number / (number - 1) * ((more - gain * logged) ** 2).sum())) / total
    error *= float(stats.t.ppf((1 + CONFIDENCE) / 2, freedom))
    return gain, (gain - error, gain + error)


def _imitated(policy: RankingPolicy, lists: ClickLog, pool: ClickLog, k: int) -> float | None:
    """The overlap with the log of what stands for the logged order in a blend."""
    if not isinstance(policy, BlendPolicy) or not policy.imitations:
        return None
    members = [policy.members[i] for i in policy.imitations]
    return _familiarity(BlendPolicy(members, [1.0] * len(members)), lists, pool, k)[1]


def _share_of_logged_order(policy: RankingPolicy, candidates: Candidates) -> float | None:
    """By the standard deviation of what each adds to the scores."""
    if not isinstance(policy, BlendPolicy) or not policy.imitations:
        return None
    parts = {True: np.zeros(candidates.n_documents), False: np.zeros(candidates.n_documents)}
    for number, (member, weight) in enumerate(zip(policy.members, policy.weights, strict=True)):
        parts[number in policy.imitations] += weight * member.score(candidates)
    total = parts[True].std() + parts[False].std()
    return float(parts[True].std() / total) if total > 0 else None
