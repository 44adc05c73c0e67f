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
        effects, _ = fit_effects(clicks[:, position], exposure, np.zeros(exposure.shape), PRIOR)
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
    corrections, _ = fit_effects(groups.clicks, exposure, np.zeros(exposure.shape), PRIOR)
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
        row, position, _ = counts.coordinates()
        in_lists = np.isin(row, lists)
        row, position = row[in_lists], position[in_lists]
        documents, first, group = np.unique(
            counts.lists.documents[row, position], return_index=True, return_inverse=True
        )
        clicks_on = np.bincount(group, weights=counts.clicks[in_lists], minlength=len(documents))
        items, item = np.unique(counts.cells[in_lists] % counts.cells_per_list, return_inverse=True)
        clicked = np.random.default_rng(FIXED_SEED).permutation(np.flatnonzero(clicks_on > 0))[
            : max(1, MAX_CELLS // max(len(items), 1))
        ]
        number = np.full(len(documents), -1)
        number[clicked] = np.arange(len(clicked))
        kept = number[group] >= 0
        place = number[group[kept]] * len(items) + item[kept]

        def by_document(values: Doubles) -> Doubles:
            sums = np.bincount(place, weights=values[in_lists][kept], minlength=len(clicked) * len(items))
            return sums.astype(np.float64).reshape(len(clicked), len(items))

        query = counts.lists.query[row[first[clicked]]].astype(np.int64)
        return cls(items, by_document(counts.impressions), by_document(counts.clicks), query)
