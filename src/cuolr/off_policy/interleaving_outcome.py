"""What an interleaving test has found: which of two models users prefer, from the log of a service."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import polars as pl
from scipy.stats import binomtest, norm

from cuolr.errors import InputError
from cuolr.logs.served_log import event_rows, shown_rows
from cuolr.off_policy.intervals import CONFIDENCE

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
