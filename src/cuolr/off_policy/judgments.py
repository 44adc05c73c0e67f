"""Judgments: examination-corrected click or reward rates of documents, as ratings for evaluating a search engine.

They are made of clicks and measure by clicks: no learner takes them.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl
from scipy import stats

from cuolr.config import Range, check_arguments
from cuolr.data.feature_tables import first_variants, logged_ids
from cuolr.errors import InputError
from cuolr.examination.from_clicks import ExaminationModel
from cuolr.examination.identifiability import Identifiability
from cuolr.logs.clicklog import ClickLog, Outcome
from cuolr.logs.counts import ClickCounts
from cuolr.off_policy.intervals import CONFIDENCE
from cuolr.progress import Stages, no_stages
from cuolr.types import Doubles

Scale = Literal["0-1", "0-3", "0-4"]
HIGHEST_GRADE: dict[Scale, int] = {"0-3": 3, "0-4": 4}
# Expected examinations from which a document is judged.
MIN_EXAMINATIONS = 10.0
# As good as none, whatever the user asks for: a rate would divide by it.
NO_EXAMINATIONS = 1e-9
# Quantile of the rates of clicked documents that gets the highest rating.
TOP_QUANTILE = 0.9


@dataclass(frozen=True)
class Judgments:
    """Ratings of documents, and how far they can be relied on.

    Attributes:
        table: A row per judged document: query_id, doc_id, impressions, clicks, examinations (expected, in units of
            position 1), rate, low, high, rating; and reward, if the log has rewards.
        left_out: Shown documents with too few expected examinations.
        identifiable: Whether documents shown at several positions separate position bias from relevance.
        top_rate: The rate from which a document has the highest rating; 0 = no clicks.
        outcome: What the rates are rates of: clicks or reward.
    """

    table: pl.DataFrame
    left_out: int
    identifiable: bool
    top_rate: float
    outcome: Outcome = "clicks"


def judgments(
    log: ClickLog,
    *,
    min_examinations: float = MIN_EXAMINATIONS,
    scale: Scale = "0-1",
    examination: ExaminationModel | None = None,
) -> pl.DataFrame:
    """Rate the documents of a click log; see `judge`.

    Returns:
        A row per judged document, the best of each query first: query_id, doc_id, impressions, clicks, examinations,
        rate, low, high (95 % interval of the rate), rating; and reward, if the log has rewards.
    """
    return judge(log, min_examinations=min_examinations, scale=scale, examination=examination).table


def judge(
    log: ClickLog,
    *,
    min_examinations: float = MIN_EXAMINATIONS,
    scale: Scale = "0-1",
    examination: ExaminationModel | None = None,
    stages: Stages = no_stages,
) -> Judgments:
    """Rate the documents of a click log by clicks / expected examinations.

    The rate estimates α(d)·χ(1): how often users click the document where they examine as at position 1. The rating is
    r = min(1, rate / top_rate) on the scale 0-1, and the grade min(G, ⌊(G + 1)·r⌋) on a scale 0-G. `top_rate` is the
    0.9 quantile of the rates of judged documents with a click. Ratings never fall as the rate grows, over all queries.
    If the log has rewards, the rate is reward / expected examinations. Variants of a document, which differ in features
    of the impression, are one document.

    Args:
        log: Raw or aggregated.
        min_examinations: Documents with fewer expected examinations are left out.
        scale: Of the ratings.
        examination: As known from elsewhere; None = estimated from the log.
        stages: Receives the progress.
    """
    check_arguments(min_examinations=(min_examinations, Range(0)))
    if scale != "0-1" and scale not in HIGHEST_GRADE:
        raise InputError(f"scale: expected 0-1, {', '.join(HIGHEST_GRADE)}, found '{scale}'")
    counts = ClickCounts.of(log, stages)
    model = ExaminationModel.fit(counts, stages=stages) if examination is None else examination
    table, shown = _rates(counts, model)
    table = table.filter(pl.col("examinations") >= min_examinations)
    top = table.filter(pl.col("rate") > 0)["rate"].quantile(TOP_QUANTILE, "linear") or 0.0
    rated = table.with_columns(rating=pl.Series(ratings(table["rate"].to_numpy(), top, scale)))
    rated = rated.sort("query", "rate", "doc_id", descending=[False, True, False]).drop("query")
    return Judgments(rated, shown - len(table), Identifiability.of(counts).identifiable, top, log.outcome)


def ratings(rate: Doubles, top_rate: float, scale: Scale) -> Doubles:
    """[n] the rating of each rate, on a scale.

    >>> ratings(np.array([0.0, 0.1, 0.2, 0.3, 0.4, 0.9]), 0.4, "0-3").tolist()
    [0.0, 1.0, 2.0, 3.0, 3.0, 3.0]
    """
    relative = np.minimum(1.0, rate / top_rate) if top_rate > 0 else np.zeros(len(rate))
    if scale == "0-1":
        return relative
    highest = HIGHEST_GRADE[scale]
    # 3 · 0.1 is a little more than 0.3: a rate on the border of two grades must not fall below it by rounding.
    return np.minimum(highest, np.floor((highest + 1) * relative + 1e-9)).astype(np.float64)


def score_interval(clicks: Doubles, examinations: Doubles, squares: Doubles) -> tuple[Doubles, Doubles]:
    """Low and high end of the interval of the rate α at `CONFIDENCE`; [n] each.

    Clicks are independent with probability χ_i·α, so their number C has mean α·E and variance α·E − α²·Q with E = Σ χ_i
    and Q = Σ χ_i². The ends solve (C − α·E)² = z²·(α·E − α²·Q), as Wilson's do for χ = 1, where Q = E. With Wilson's
    own variance, α·E − α²·E, intervals would be too narrow wherever examination is below 1; with that of a Poisson
    count, α·E, too wide where it is near 1.

    Deviation: χ is taken as known. Its error is shared by all documents and is not in the interval.

    Args:
        clicks: C.
        examinations: E, above 0.
        squares: Q, at most E where χ ≤ 1.
    """
    z2 = float(stats.norm.ppf((1 + CONFIDENCE) / 2)) ** 2
    a = examinations**2 + z2 * squares
    b = 2 * clicks * examinations + z2 * examinations
    root = np.sqrt(np.maximum(b**2 - 4 * a * clicks**2, 0.0))
    return np.maximum((b - root) / (2 * a), 0.0), (b + root) / (2 * a)


def rates_with_intervals(
    counts: ClickCounts, rewards: Doubles, examinations: Doubles, squares: Doubles
) -> tuple[Doubles, Doubles, Doubles]:
    """The rates of these documents with both ends of their intervals, [n] each.

    Rewards R in units of the mean reward of a click have mean α·E and variance α·E / i − α²·Q, i their `information`:
    quasi-likelihood with one dispersion for all documents. So i·R has the variance of a count with examinations i·E and
    squares i²·Q. Where the rate is so high that this is not positive, α²·Q is left out.

    Args:
        counts: The counts of the log.
        rewards: [n] the rewards, or clicks, of each document.
        examinations: [n] its expected examinations E, above 0.
        squares: [n] Q.
    """
    total = float(counts.rewards.sum())
    unit = total / float(counts.clicks.sum()) if counts.reward is not None and total > 0 else 1.0
    known = counts.information
    counted, examined, squared = rewards / unit * known, examinations * known, squares * known**2
    if counts.reward is not None:
        squared = np.where(counted * squared < examined**2, squared, 0.0)
    low, high = score_interval(counted, examined, squared)
    return rewards / examinations, low * unit, high * unit


def _rates(counts: ClickCounts, model: ExaminationModel) -> tuple[pl.DataFrame, int]:
    """A row per examined document, with the columns of `Judgments.table` but the rating, and `query`, its number.

    And how many documents were shown.
    """
    candidates = counts.lists.candidates
    first = first_variants(candidates)

    def by_document(values: Doubles) -> Doubles:
        """[n_documents] sums over the variants of a document, at the first; 0 at others."""
        return np.bincount(first, counts.by_document(values), len(first)).astype(np.float64)

    impressions, clicks = (by_document(counts.by_position(c)) for c in (counts.impressions, counts.clicks))
    examinations = by_document(model.expected_examinations(counts))
    squares = by_document(model.expected_examinations(counts, power=2))
    rewards = by_document(counts.by_position(counts.rewards))
    # A document that was shown only where examination is not known has no rate.
    rows = np.flatnonzero(examinations > NO_EXAMINATIONS)
    rate, low, high = rates_with_intervals(counts, rewards[rows], examinations[rows], squares[rows])
    query = candidates.query_of_document[rows]
    reward = {} if counts.reward is None else {"reward": rewards[rows]}
    table = pl.DataFrame(
        {
            "query": query,
            "query_id": np.asarray(candidates.query_ids)[query],
            "doc_id": logged_ids(candidates)[rows],
            "impressions": np.rint(impressions[rows]).astype(np.int64),
            "clicks": clicks[rows],
            **reward,
            "examinations": examinations[rows],
            "rate": rate,
            "low": low,
            "high": high,
        }
    )
    return table, int(np.count_nonzero(impressions))
