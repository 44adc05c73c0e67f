"""Team-draft interleaving of two models: what a test would see under users fitted to a log, and what one has found."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import polars as pl
from scipy.stats import binomtest, norm

from cuolr.errors import InputError
from cuolr.logs.served_log import event_rows, shown_rows
from cuolr.off_policy.compared_lists import ComparedLists, CountedLists
from cuolr.off_policy.intervals import CONFIDENCE
from cuolr.off_policy.position_discount import weights_in_lists
from cuolr.off_policy.users.fitted_users import UserResponse
from cuolr.random import FIXED_SEED
from cuolr.types import Bools, Doubles, Ints

# Lists that are interleaved, at most, and interleavings of all of them.
MAX_LISTS, INTERLEAVINGS = 4_096, 1 << 16


def interleaving_preference(compared: ComparedLists, users: UserResponse) -> tuple[float, float]:
    """Mean and variance of a session's preference S = Σ_k t_k · v_k · C_k for the policy over the baseline.

    Team-draft interleaving (Radlinski, Kurup and Joachims 2008): t_k = 1 if the policy contributed the document at
    position k, −1 if the baseline did. v_k is what a click there is worth. With p_k the users' click probability on
    the interleaved list,

        E[S] = E[Σ_k t_k v_k p_k],   Var S = E[Σ_k v_k² p_k] − 2 E[Σ_{rounds j, j + 1} v_j v_{j+1} p_j p_{j+1}] − E[S]².

    The expectations are over the sessions' lists and the coins, half of which are the opposite of the other half. The
    two documents of a round are of opposite teams; their clicks are taken as independent, given the list. The coins of
    different rounds are independent: such pairs add a product of two preferences, which is left out.
    """
    assert isinstance(compared.baseline, CountedLists)
    baseline = compared.baseline.sample(MAX_LISTS)
    target = _same_sessions(compared.target, baseline)
    filled = baseline.documents >= 0
    first, second = (_shown_first(documents) for documents in (target, baseline.documents))
    pairs = max(1, INTERLEAVINGS // (2 * len(first)))
    count, filled = np.tile(baseline.count, pairs), np.tile(filled, (pairs, 1))
    first, second = np.tile(first, (pairs, 1)), np.tile(second, (pairs, 1))
    coins = np.random.default_rng(FIXED_SEED).random(first.shape) < 0.5
    mean = square = 0.0
    for heads in (coins, ~coins):
        ranking, of_rank = team_draft(first, second, heads)
        documents, team = (_on_page(values, filled) for values in (ranking, of_rank))
        worth = _worth(compared, documents)
        clicks = users.clicks(documents)
        mean += float(count @ (clicks * worth * team).sum(axis=1))
        square += float(count @ ((clicks * worth**2).sum(axis=1) - 2 * _of_rounds(clicks * worth, filled)))
    draws = 2 * float(count.sum())
    return mean / draws, square / draws - (mean / draws) ** 2


def team_draft(first: Ints, second: Ints, coins: Bools) -> tuple[Ints, Ints]:
    """Interleave rankings: in each round of two positions a coin says which team is the first to add its best document.

    Args:
        first: [M, K] distinct documents, −1 = no more.
        second: [M, K] as many of them.
        coins: [M, K] whether the first team begins the round; that of the round's first position counts.

    Returns:
        documents: [M, K] the interleaved ranking, −1 = no more.
        team: [M, K] 1 if the first team contributed the document, −1 if the second did, 0 where there is none.
    """
    documents, team = np.full_like(first, -1), np.zeros_like(first)
    rankings = np.stack([first, second])
    free, every = rankings >= 0, np.arange(len(first))
    # Where the other team has the same document; in one more column, if it has not.
    place = [_places(first, second), _places(second, first)]
    free = np.concatenate([free, np.zeros((*free.shape[:2], 1), np.bool_)], axis=2)
    for position in range(first.shape[1]):
        begins = coins[:, position - position % 2] ^ bool(position % 2)
        turn = np.where(begins, 0, 1)
        best = free[turn, every].argmax(axis=1)
        some = free[turn, every, best]
        best = np.where(some, best, 0)
        documents[:, position] = np.where(some, rankings[turn, every, best], -1)
        team[:, position] = np.where(some, np.where(begins, 1, -1), 0)
        other = np.where(begins, place[0][every, best], place[1][every, best])
        free[turn, every, best] &= ~some
        free[1 - turn, every, other] &= ~some
    return documents, team


def _places(documents: Ints, others: Ints) -> Ints:
    """[M, K] the place among the others [M, K] of each document; K = none."""
    same = documents[:, :, None] == others[:, None, :]
    places: Ints = np.where(same.any(axis=2), same.argmax(axis=2), others.shape[1])
    return places


def _of_rounds(values: Doubles, filled: Bools) -> Doubles:
    """[L] the sum over rounds of the product of their two documents' values."""
    order = np.argsort(~filled, axis=1, kind="stable")
    in_order = np.take_along_axis(values, order, axis=1)
    rounds = values.shape[1] // 2
    products: Doubles = (in_order[:, : 2 * rounds : 2] * in_order[:, 1 : 2 * rounds : 2]).sum(axis=1)
    return products


def _same_sessions(target: CountedLists, baseline: CountedLists) -> Ints:
    """[L, K] the policy's list for the query of each list of the baseline, on as many positions of the page."""
    keys = [
        np.column_stack([lists.query, np.packbits(lists.documents >= 0, axis=1)]).astype(np.int64)
        for lists in (target, baseline)
    ]
    _, key = np.unique(np.concatenate(keys), axis=0, return_inverse=True)
    of_target, of_baseline = np.split(key.ravel(), [len(target.query)])
    row = np.full(int(key.max()) + 1, -1)
    row[of_target] = np.arange(len(target.query))
    found = row[of_baseline]
    # A policy with fewer documents than the page has places adds what it has.
    by_query = np.zeros(int(max(target.query.max(), baseline.query.max())) + 1, np.int64)
    by_query[target.query] = np.arange(len(target.query))
    return target.documents[np.where(found >= 0, found, by_query[baseline.query])]


def _shown_first(documents: Ints) -> Ints:
    """[L, K] the documents of a page in their order, −1 after the last."""
    order = np.argsort(documents < 0, axis=1, kind="stable")
    return np.take_along_axis(documents, order, axis=1)


def _on_page(ranking: Ints, filled: Bools) -> Ints:
    """[L, K] a ranking at the filled positions of pages; −1 elsewhere."""
    place = np.maximum(np.cumsum(filled, axis=1) - 1, 0)
    return np.where(filled, np.take_along_axis(ranking, place, axis=1), -1)


def _worth(compared: ComparedLists, documents: Ints) -> Doubles:
    """[L, K] what a click counts."""
    worth: Doubles = compared.worth[documents]
    if compared.position_weights is not None:
        worth = worth * weights_in_lists(documents >= 0, compared.position_weights)
    return worth


CLICK = "click"


@dataclass(frozen=True)
class InterleavingOutcome:
    """Sessions of lists to which two models contributed (team-draft interleaving, Radlinski et al. 2008).

    A session is won by the model whose documents have more clicks. The sign test is exact: without a preference, the
    wins of the second model are binomial with probability 1/2 among the sessions that are decided. Its interval is that
    of Clopper and Pearson.

    Attributes:
        first: Name of the model that is the service's default.
        second: Name of the model that it is compared with.
        sessions: Number of interleaved lists so far.
        with_clicks: Those with a click.
        first_wins: Sessions won by the first model.
        second_wins: Sessions won by the second model.
        share: Of the decided sessions, those won by the second model; NaN if none is decided.
        share_interval: 95 % confidence interval of it.
        p_value: Two-sided, of the sign test.
        preference: Clicks on the second model's documents minus those on the first's, per session.
        preference_interval: 95 % confidence interval of it, by the normal approximation.
    """

    first: str
    second: str
    sessions: int
    with_clicks: int
    first_wins: int
    second_wins: int
    share: float
    share_interval: tuple[float, float]
    p_value: float
    preference: float
    preference_interval: tuple[float, float]

    @property
    def ties(self) -> int:
        """Sessions that neither model won, with and without clicks."""
        return self.sessions - self.first_wins - self.second_wins

    @property
    def preferred(self) -> str | None:
        """The model that users prefer significantly; None if the test is not decided."""
        if not self.p_value < 1 - CONFIDENCE:
            return None
        return self.second if self.second_wins > self.first_wins else self.first

    def as_dict(self) -> dict[str, Any]:
        """As JSON can hold it."""
        found = {**asdict(self), "ties": self.ties, "preferred": self.preferred}
        return {**found, "share": None if np.isnan(self.share) else self.share}


def interleaving_outcomes(rows: pl.DataFrame) -> list[InterleavingOutcome]:
    """The outcome of each test in the log of a service.

    Args:
        rows: The rows of all parts.
    """
    shown = shown_rows(rows).filter(pl.col("team").is_not_null())
    if not len(shown):
        raise InputError("expected interleaved lists, found none; start the service with --interleave MODEL_B")
    clicked = event_rows(rows).filter((pl.col("event") == CLICK) & (pl.col("value") > 0))
    clicked = clicked.select("request_id", "doc_id", pl.lit(1).alias(CLICK)).unique()
    shown = shown.join(clicked, on=["request_id", "doc_id"], how="left").with_columns(pl.col(CLICK).fill_null(0))
    return list(_by_test(shown))


def _by_test(shown: pl.DataFrame) -> Iterator[InterleavingOutcome]:
    """The second model is the one that is not the list's own; a list may be of the first alone."""
    second = pl.col("team").filter(pl.col("team") != pl.col("model")).first()
    of_second = pl.col("team") != pl.col("model")
    sessions = shown.group_by("request_id").agg(
        pl.col("model").first(),
        second.alias("second"),
        pl.col(CLICK).filter(~of_second).sum().alias("first_clicks"),
        pl.col(CLICK).filter(of_second).sum().alias("second_clicks"),
    )
    sessions = sessions.with_columns(
        pl.col("second").fill_null(pl.col("second").drop_nulls().mode().first().over("model"))
    )
    for (first, other), test in sorted(sessions.drop_nulls("second").group_by("model", "second")):
        clicks = [test[name].to_numpy().astype(np.float64) for name in ("first_clicks", "second_clicks")]
        yield outcome_of(str(first), str(other), clicks[1] - clicks[0], int(((clicks[0] + clicks[1]) > 0).sum()))


def outcome_of(first: str, second: str, differences: "np.ndarray[Any, Any]", with_clicks: int) -> InterleavingOutcome:
    """The tests of one pair of models.

    >>> found = outcome_of("a", "b", np.array([1.0, 1.0, 2.0, -1.0, 0.0]), with_clicks=4)
    >>> found.first_wins, found.second_wins, found.ties, found.share, found.p_value
    (1, 3, 1, 0.75, 0.625)
    >>> found.preference
    0.6

    Args:
        first: Name of the first model.
        second: Name of the second.
        differences: [sessions] clicks on the second model's documents minus those on the first's.
        with_clicks: Number of sessions with a click.
    """
    wins, losses, sessions = int((differences > 0).sum()), int((differences < 0).sum()), len(differences)
    decided = wins + losses
    test = binomtest(wins, decided) if decided else None
    interval = (0.0, 1.0) if test is None else tuple(map(float, test.proportion_ci(CONFIDENCE, "exact")))
    mean = float(differences.mean())
    error = float(differences.std(ddof=1)) / np.sqrt(sessions) if sessions > 1 else np.inf
    reach = float(norm.ppf((1 + CONFIDENCE) / 2)) * error
    return InterleavingOutcome(
        first=first,
        second=second,
        sessions=sessions,
        with_clicks=with_clicks,
        first_wins=losses,
        second_wins=wins,
        share=wins / decided if decided else float("nan"),
        share_interval=(interval[0], interval[1]),
        p_value=1.0 if test is None else float(test.pvalue),
        preference=mean,
        preference_interval=(mean - reach, mean + reach),
    )
