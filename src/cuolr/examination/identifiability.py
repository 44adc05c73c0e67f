"""Whether documents shown at several positions separate position bias from relevance."""

import numpy as np
from scipy.sparse.csgraph import connected_components

from cuolr.logs.counts import ClickCounts
from cuolr.logs.page_positions import DISTINCT_POSITIONS
from cuolr.types import Bools, Doubles, Ints

# Effective clicks on shared documents that connect two positions: the ratio of their examination is known to ±10 %.
MIN_SHARED_CLICKS = 100
# Minimum share of the clicks at connected positions, for examination to be identifiable.
MIN_JOINED_SHARE = 0.95
# Number of positions whose examination is estimated; positions below have that of the last one.
MAX_POSITIONS = DISTINCT_POSITIONS


def identifiable(counts: ClickCounts, lists: Ints | None = None) -> bool:
    """Whether clicks on documents shown at several positions determine the examination of nearly all positions.

    A document with a clicks at one position and b at another estimates the log ratio of their examination with variance
    1/a + 1/b, so it counts as a·b/(a + b) effective clicks. `MIN_SHARED_CLICKS` of these connect two positions.

    Args:
        counts: The counts of the log.
        lists: The lists to count; None = all.
    """
    top = counts.top(MAX_POSITIONS)
    clicks = top.by_position(top.clicks)
    if lists is not None:
        clicks[np.setdiff1d(np.arange(len(clicks)), lists)] = 0.0
    row, position = np.nonzero(clicks)
    document, group = np.unique(top.lists.documents[row, position], return_inverse=True)
    by_document = np.zeros((len(document), top.lists.k))
    np.add.at(by_document, (group, position), clicks[row, position])
    shared = by_document[(by_document > 0).sum(axis=1) > 1]
    joint = np.empty((top.lists.k, top.lists.k))
    for k, here in enumerate(shared.T):
        both = np.maximum(here[:, None] + shared, 1e-9)
        joint[k] = (here[:, None] * shared / both).sum(axis=0)
    _, component = connected_components(joint >= MIN_SHARED_CLICKS, directed=False)
    of_component = np.bincount(component, weights=by_document.sum(axis=0))
    largest = int(of_component.argmax())
    enough = bool(of_component[largest] >= MIN_JOINED_SHARE * of_component.sum())
    return int((component == largest).sum()) > 1 and enough


def share_at_several_positions(counts: ClickCounts, lists: Ints) -> float:
    """The share of the clicks in these lists that are on documents shown at several positions."""
    in_lists, group, clicks = counts_by_document(counts, lists)
    position = counts.coordinates()[1][in_lists]
    highest, lowest = np.full(len(clicks), -1), np.full(len(clicks), counts.lists.k)
    np.maximum.at(highest, group, position)
    np.minimum.at(lowest, group, position)
    return float(clicks[highest > lowest].sum() / max(clicks.sum(), 1e-9))


def counts_by_document(counts: ClickCounts, lists: Ints) -> tuple[Bools, Ints, Doubles]:
    """The cells of these lists, grouped by the document shown there.

    Returns:
        in_lists: [number of cells] whether the cell belongs to one of the lists.
        group: The document number of each such cell.
        clicks: The number of clicks on each document.
    """
    row, position, _ = counts.coordinates()
    in_lists = np.isin(row, lists)
    documents, group = np.unique(counts.lists.documents[row[in_lists], position[in_lists]], return_inverse=True)
    clicks = np.bincount(group, weights=counts.clicks[in_lists], minlength=len(documents))
    return in_lists, group, clicks.astype(np.float64)
