"""The effects of position and last click above on clicks: the steps of `ExaminationModel.from_counts`."""

from dataclasses import dataclass, replace

import numpy as np

from cuolr.examination.conditional_likelihood import fit_effects
from cuolr.logs.counts import ClickCounts
from cuolr.progress import Progress
from cuolr.random import FIXED_SEED
from cuolr.types import Doubles, Ints

# Maximum number of cells that the likelihood is computed from: 20,000 lists of 10.
MAX_CELLS = 2_200_000
# Half the inverse variance of the normal prior on log χ.
PRIOR = 0.5


def sample_of_lists(counts: ClickCounts, lists: Ints) -> Ints:
    """Those of these lists that have clicks, or a random sample of them."""
    clicked = np.intersect1d(np.flatnonzero(counts.by_position(counts.clicks).sum(axis=1) > 0), lists)
    return np.random.default_rng(FIXED_SEED).permutation(clicked)[: max(1, MAX_CELLS // counts.cells_per_list)]


def without_click_above(counts: ClickCounts) -> ClickCounts:
    """The impressions without a click above."""
    kept = counts.coordinates()[2] == 0
    reward = None if counts.reward is None else counts.reward[kept]
    return replace(
        counts,
        cells=counts.cells[kept],
        impressions=counts.impressions[kept],
        clicks=counts.clicks[kept],
        reward=reward,
    )


def effects_within_lists(
    counts: ClickCounts, logging_scores: Doubles, lists: Ints, progress: Progress
) -> tuple[Doubles, Doubles, float]:
    """Steps 1 and 2.

    Returns:
        after_click: [K, K + 1] χ relative to that without a click above.
        level: [K] log χ without a click above.
        slope: β.
    """
    k = counts.lists.k
    impressions, clicks = (values.astype(np.float64) for values in counts.dense(lists))
    after_click = np.ones((k, k + 1))
    for position in range(1, k):
        exposure = impressions[:, position]
        effects, _ = fit_effects(clicks[:, position], exposure, None, PRIOR)
        after_click[position] = np.exp(effects - effects[0])
        progress(1)
    exposure = (impressions * after_click).sum(axis=2)
    level, slope = fit_effects(clicks.sum(axis=2), exposure, logging_scores[lists], PRIOR, min_slope=0.0)
    progress(1)
    return after_click, level, slope


def effects_within_documents(counts: ClickCounts, lists: Ints, table: Doubles) -> Doubles:
    """Step 3, which also uses lists without clicks: [K, K + 1] the corrected table of `effects_within_lists`."""
    groups = DocumentGroups.of(counts, lists)
    prior_mean = table.ravel()[groups.items]
    exposure = groups.impressions * prior_mean
    corrections, _ = fit_effects(groups.clicks, exposure, None, PRIOR)
    corrected = table.copy()
    corrected.ravel()[groups.items] = prior_mean * np.exp(corrections)
    return corrected


@dataclass(frozen=True)
class DocumentGroups:
    """The clicks on each document with clicks, or on each of a random sample of them, in all lists.

    Attributes:
        items: [M] the cells k·(K + 1) + j in which documents were shown.
        impressions: [G, M] of each document in each of these cells.
        clicks: [G, M].
        query: [G] the query of each document.
    """

    items: Ints
    impressions: Doubles
    clicks: Doubles
    query: Ints

    @classmethod
    def of(cls, counts: ClickCounts, lists: Ints) -> "DocumentGroups":
        """The documents of these lists."""
        candidates, in_lists = counts.lists.candidates, np.zeros(len(counts.lists), np.bool_)
        in_lists[lists] = True
        parts = list(counts.parts())
        clicks_on, occurs = np.zeros(candidates.n_documents), np.zeros(counts.cells_per_list, np.bool_)
        for part in parts:
            row, position, _ = counts.coordinates(part)
            of_lists = in_lists[row]
            documents = counts.document(row, position)[of_lists]
            clicks_on += np.bincount(documents, counts.clicks[part][of_lists], len(clicks_on))
            occurs[counts.cells[part][of_lists] % counts.cells_per_list] = True
        items = np.flatnonzero(occurs)
        clicked = np.random.default_rng(FIXED_SEED).permutation(np.flatnonzero(clicks_on > 0))[
            : max(1, MAX_CELLS // max(len(items), 1))
        ]
        number = np.full(candidates.n_documents, -1)
        number[clicked] = np.arange(len(clicked))
        impressions, clicks = np.zeros((2, len(clicked) * len(items)))
        for part in parts:
            row, position, _ = counts.coordinates(part)
            group = number[counts.document(row, position)]
            kept = in_lists[row] & (group >= 0)
            place = group[kept] * len(items) + np.searchsorted(items, counts.cells[part][kept] % counts.cells_per_list)
            impressions += np.bincount(place, counts.impressions[part][kept], len(impressions))
            clicks += np.bincount(place, counts.clicks[part][kept], len(clicks))
        shape = (len(clicked), len(items))
        return cls(items, impressions.reshape(shape), clicks.reshape(shape), candidates.query_of_document[clicked])
