"""How people look at a list, learned from their clicks, with no click model named.

Every click model of definition 3.1 says P(C_k = 1) = χ(R, k) · α(d_k). Given the clicks above, what is left of χ is a
matter of the position k and of the last click above it: ρ_k for PBM, γ of both for UBM, nothing after the first click
for CASCADE. For DCM it is λ of the last click right below it; further down, those who went on and did not click are
fewer, by the attractiveness of what stands between, and so it is for CCM. The table has the mean over lists there. So χ
is learned as a table of these two, by likelihood; `attractiveness` then has α, with χ known.
"""

from dataclasses import dataclass

import numpy as np
from scipy.sparse.csgraph import connected_components

from cuolr.examination.conditional import fit_effects
from cuolr.logs.counts import CountedLists
from cuolr.types import Bools, Doubles, Ints

# Positions that have a χ of their own.
MAX_POSITIONS = 30
# Numbers of passes by list, position and last click that the table is computed from, at most: 20,000 lists of 10.
MAX_CASES = 2_200_000
# Half the inverse variance of the logarithms of χ before a click is seen.
PRIOR = 0.5
# Clicks on documents that moved that tell two positions from each other: the ratio of their χ is known to a tenth.
ENOUGH_CLICKS = 100
# Of all clicks, the share at positions that are told from each other, for the log to tell them.
NEARLY_ALL = 0.95
# Of all clicks, the share on documents that moved, where comparing the documents of a list is of little help.
MOST = 0.5


@dataclass(frozen=True)
class Examination:
    """How people look.

    Attributes:
        table: [K, K + 1] χ by position and last click above, relative to position 1, which is 1; NaN where the log has
            no such session.
        slope: β, by how much the logarithm of α grows with the logger's score.
    """

    table: Doubles
    slope: float

    def looked(self, counted: CountedLists) -> Doubles:
        """[L, K] Σ χ over sessions: as how many looks at position 1 the looks at each shown document count."""
        chances = np.nan_to_num(self.table).ravel()[counted.cases % counted.cases_of_a_list]
        return counted.by_position(counted.passed * chances)


def fit_examination(
    counted: CountedLists, logged_order: Doubles, learned: Ints | None = None, *, first_is_most: bool = True
) -> Examination:
    """The most likely table, by `conditional`, in steps with one maximum each: no step size is in it.

    1. How χ depends on the last click above: by the clicks on one document in one list, which differ by nothing else.
    2. How it depends on the position: by the clicks in one list, of users who look as in step 1. Its documents differ,
       and the logger put the better ones above, as far as it knew. Its score l explains that with one weight β; what
       tells β from χ is that a document far ahead of the next and one just ahead of it stand at the same position.
    3. Where documents of a query were shown at several positions, both are told from these, with no word of l: by the
       clicks on one document in all lists. The table of steps 1 and 2 is what is believed before. It stays where few
       documents moved and clicks on them are few: they would spoil it, not put it right.

    Nobody who has not clicked yet looks at a position more than at the first. That has to be said: users who stop at a
    click leave lists with a good first document out of the comparison of step 2, and the first position would seem
    worse.

    Documents are explained by l alone in step 2. A network in its place explains more, and the table is worse for it:
    what the network learns before the table has settled, it takes from the table (docs/learners/factored.md has both).

    Args:
        counted: The log.
        logged_order: [L, K] l, or zeros.
        learned: The lists to learn from; None = all.
        first_is_most: Whether position 1 is looked at most.
    """
    head = counted.head(MAX_POSITIONS)
    k = head.lists.k
    learned = np.arange(len(head.lists)) if learned is None else learned
    clicked = np.intersect1d(np.flatnonzero(head.by_position(head.clicked).sum(axis=1) > 0), learned)
    some = np.random.default_rng(0).permutation(clicked)[: max(1, MAX_CASES // head.cases_of_a_list)]
    after, level, slope = _by_lists(head, logged_order[:, :k], some)
    if _share_of_moved_documents(head, learned) >= MOST or told_by_moved_documents(head, learned):
        after, level = _by_moved_documents(head, learned, after, level)
    level = level - level[0]
    table = after * np.exp(np.minimum(level, 0.0) if first_is_most else level)[:, None]
    seen = np.bincount(head.cases % head.cases_of_a_list, minlength=table.size).reshape(table.shape) > 0
    return Examination(_extended(np.where(seen, table, np.nan), counted.lists.k), slope)


def told_by_moved_documents(counted: CountedLists, learned: Ints | None = None) -> bool:
    """Whether documents that were shown at several positions tell how people look at nearly all of them.

    A document with a clicks at one position and b at another tells the logarithm of the ratio of their χ with variance
    1/a + 1/b, so it counts as a·b/(a + b) clicks; as many as that of all documents together join two positions.

    Args:
        counted: The log.
        learned: The lists to look at; None = all.
    """
    head = counted.head(MAX_POSITIONS)
    clicks = head.by_position(head.clicked)
    if learned is not None:
        clicks[np.setdiff1d(np.arange(len(clicks)), learned)] = 0.0
    row, position = np.nonzero(clicks)
    document, group = np.unique(head.lists.documents[row, position], return_inverse=True)
    by_document = np.zeros((len(document), head.lists.k))
    np.add.at(by_document, (group, position), clicks[row, position])
    moved = by_document[(by_document > 0).sum(axis=1) > 1]
    joined = np.empty((head.lists.k, head.lists.k))
    for k, here in enumerate(moved.T):
        both = np.maximum(here[:, None] + moved, 1e-9)
        joined[k] = (here[:, None] * moved / both).sum(axis=0)
    _, part = connected_components(joined >= ENOUGH_CLICKS, directed=False)
    of_part = np.bincount(part, weights=by_document.sum(axis=0))
    largest = int(of_part.argmax())
    return int((part == largest).sum()) > 1 and bool(of_part[largest] >= NEARLY_ALL * of_part.sum())


def _share_of_moved_documents(counted: CountedLists, learned: Ints) -> float:
    """Of the clicks, those on documents that were shown at several positions."""
    ours, group, clicks = _by_document(counted, learned)
    position = counted.parts_of_cases()[1][ours]
    highest, lowest = np.full(len(clicks), -1), np.full(len(clicks), counted.lists.k)
    np.maximum.at(highest, group, position)
    np.minimum.at(lowest, group, position)
    return float(clicks[highest > lowest].sum() / max(clicks.sum(), 1e-9))


def _by_document(counted: CountedLists, learned: Ints) -> tuple[Bools, Ints, Doubles]:
    """The cases of lists to learn from, by what stands there.

    Returns:
        ours: [number of cases] which they are.
        group: The number of the document of each of them.
        clicks: On each document.
    """
    row, position, _ = counted.parts_of_cases()
    ours = np.isin(row, learned)
    documents, group = np.unique(counted.lists.documents[row[ours], position[ours]], return_inverse=True)
    clicks = np.bincount(group, weights=counted.clicked[ours], minlength=len(documents))
    return ours, group, clicks.astype(np.float64)


def _by_lists(counted: CountedLists, logged_order: Doubles, some: Ints) -> tuple[Doubles, Doubles, float]:
    """Steps 1 and 2, from some lists.

    Returns:
        after: [K, K + 1] χ relative to that without a click above.
        level: [K] the logarithm of χ without a click above.
        slope: β.
    """
    k = counted.lists.k
    passed, clicked = (counts.astype(np.float64) for counts in counted.dense(some))
    after = np.ones((k, k + 1))
    for position in range(1, k):
        ours = passed[:, position]
        effects, _ = fit_effects(clicked[:, position], ours, np.zeros(ours.shape), PRIOR)
        after[position] = np.exp(effects - effects[0])
    looked = (passed * after).sum(axis=2)
    effects, slope = fit_effects(clicked.sum(axis=2), looked, logged_order[some], PRIOR)
    return after, effects, slope


def _by_moved_documents(
    counted: CountedLists, learned: Ints, after: Doubles, level: Doubles
) -> tuple[Doubles, Doubles]:
    """Step 3, from all lists to learn from, also those without a click: what `_by_lists` gives, put right."""
    ours, group, clicks = _by_document(counted, learned)
    things, thing = np.unique(counted.cases[ours] % counted.cases_of_a_list, return_inverse=True)
    chosen = np.random.default_rng(0).permutation(np.flatnonzero(clicks > 0))[: max(1, MAX_CASES // len(things))]
    number = np.full(len(clicks), -1)
    number[chosen] = np.arange(len(chosen))
    kept = number[group] >= 0
    place = number[group[kept]] * len(things) + thing[kept]

    def by_document(values: Doubles) -> Doubles:
        sums = np.bincount(place, weights=values[ours][kept], minlength=len(chosen) * len(things))
        return sums.astype(np.float64).reshape(len(chosen), len(things))

    passed, clicked = by_document(counted.passed), by_document(counted.clicked)
    table = after * np.exp(level - level[0])[:, None]
    believed = table.ravel()[things]
    corrections, _ = fit_effects(clicked, passed * believed, np.zeros(passed.shape), PRIOR)
    table.ravel()[things] = believed * np.exp(corrections)
    return table / table[:, :1], np.log(table[:, 0])


def _extended(table: Doubles, k: int) -> Doubles:
    """[k, k + 1] the table; further down users look as at its last position, after a click as far above."""
    last = len(table) - 1
    positions = np.arange(k)[:, None]
    row = np.minimum(positions, last)
    clicks = np.arange(k + 1)[None, :]
    column = np.where(clicks > 0, np.clip(clicks - (positions - row), 1, last + 1), 0)
    extended = table[row, column]
    unknown = np.isnan(extended) & (positions > last)
    return np.where(unknown, extended[:, :1], extended)


def everything(counted: CountedLists) -> Examination:
    """Of users who look at all that they are shown."""
    return Examination(np.ones((counted.lists.k, counted.lists.k + 1)), 0.0)
