"""Thresholds for Solr, which adds 10⁻⁶ to each of them."""

import numpy as np

from cuolr.types import Bools, Doubles, Floats, Ints

# `MultipleAdditiveTreesModel` compares with threshold + SLACK, in float32.
SLACK = np.float32(1e-6)
# From this number on, the slack is less than half of the distance to either float32 number beside it.
LARGE = 64.0
# Numbers around t − SLACK that are tried.
TRIED = 8
# The least standard deviation that is a normal float32 number is 2⁻¹²⁶.
MAX_EXPONENT = 126


def written_thresholds(threshold: Floats) -> tuple[Floats, Bools]:
    """[S] numbers that become these thresholds when Solr adds the slack, and whether there is such a number."""
    with np.errstate(over="ignore"):
        return _written(threshold)


def _written(threshold: Floats) -> tuple[Floats, Bools]:
    written = threshold - SLACK
    found = written + SLACK == threshold
    below = above = written
    for _ in range(TRIED):
        below, above = np.nextafter(below, np.float32(-np.inf)), np.nextafter(above, np.float32(np.inf))
        for tried in (below, above):
            better = ~found & (tried + SLACK == threshold)
            written, found = np.where(better, tried, written), found | better
    return written, found


def small_thresholds(feature: Ints, threshold: Doubles) -> dict[int, int]:
    """The features with thresholds that cannot be written, and the power of two that makes them large enough.

    A multiplication by a power of two is exact.

    Args:
        feature: [S] the feature of each threshold.
        threshold: [S] the thresholds, float32 numbers.
    """
    _, fits = written_thresholds(threshold.astype(np.float32))
    lowest = {j: float(np.abs(threshold[~fits & (feature == j)]).min()) for j in np.unique(feature[~fits]).tolist()}
    return {j: min(MAX_EXPONENT, int(np.ceil(np.log2(LARGE / value)))) for j, value in lowest.items()}
