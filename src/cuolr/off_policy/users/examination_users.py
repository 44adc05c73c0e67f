"""Users whose examination depends on the position, or on the position and the last click above: PBM and UBM."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
import scipy

from cuolr.logs.click_patterns import PatternCells
from cuolr.off_policy.users.forward_clicks import forward_clicks
from cuolr.off_policy.users.fitted_users import FittedUsers, Influence, unbiased_rates
from cuolr.types import Bools, Doubles, Ints

# Relative change of examination at which the fit has converged, and the maximum number of steps.
TOLERANCE, STEPS = 1e-7, 500
# Pseudo-clicks by which the examination after a click is drawn to that of its position, and a level's to that of all.
PRIOR_CLICKS = 1.0


@dataclass(frozen=True)
class ExaminationCells:
    """Counts of (level of context, pair, position, last click above).

    Attributes:
        cells: The counts.
        level: [n] the level of context of each cell.
        levels: Number of levels.
        pairs: P.
        k: K.
    """

    cells: PatternCells
    level: Ints
    levels: int
    pairs: int
    k: int

    @classmethod
    def of_levels(cls, levels: Sequence[PatternCells], pairs: int, k: int) -> Self:
        """The cells of each level of context."""
        names = ("pair", "position", "last_click", "unit", "impressions", "clicks")
        joined = PatternCells(**{name: np.concatenate([getattr(cells, name) for cells in levels]) for name in names})
        level = np.repeat(np.arange(len(levels)), [len(cells.pair) for cells in levels])
        return cls(joined, level, len(levels), pairs, k)


@dataclass(frozen=True)
class ExaminationResponse:
    """P(C_k = 1 | last click above at j) = χ(k, j) · α(d).

    Attributes:
        tables: [levels, K, K + 1] χ.
        share: [levels] share of the sessions.
        attractiveness: [P].
    """

    tables: Doubles
    share: Doubles
    attractiveness: Doubles

    def clicks(self, documents: Ints, attractiveness: Doubles | None = None) -> Doubles:
        """The mean over the levels of context."""
        alpha = self.attractiveness if attractiveness is None else attractiveness
        where = documents >= 0
        of_documents = alpha[documents]
        chances = (
            share * forward_clicks(of_documents, where, table[: documents.shape[1]])
            for share, table in zip(self.share, self.tables, strict=True)
        )
        total: Doubles = sum(chances, np.zeros(documents.shape))
        return total


@dataclass(frozen=True)
class ExaminationUsers(FittedUsers):
    """χ and α by Poisson pseudo-likelihood with an effect of each pair: neither needs a prior on the other.

    α_d = C_d / Σ_c n_dc χ_c and χ_c = C_c / Σ_d n_dc α_d in turn, where n and C are impressions and clicks of pair d in
    the cell c = (level of context, position, last click above). The equations are unbiased however few clicks a pair
    has, and hold whatever the distribution of attractiveness, also where the logging policy put the better documents
    above: only pairs that were shown in several cells say anything about χ.

    Deviation: fitted by maximum likelihood, as in `cuolr fit-clicks`, pairs need a prior, which draws good documents
    at the top and bad ones below to their common mean, and the difference goes into χ.

    Attributes:
        name: `pbm` or `ubm`.
        data: The counts.
        place: [n] the entry of `log_examination` of each cell of the counts.
        log_examination: [p] log χ of the entries that occur.
        prior: [p] pseudo-clicks of each entry, and `prior_examination`, the χ that they are drawn to.
    """

    name: str
    data: ExaminationCells
    place: Ints
    entries: Ints
    log_examination: Doubles
    prior_clicks: Doubles
    prior_examination: Doubles

    @classmethod
    def fit(cls, data: ExaminationCells, by_last_click: bool) -> Self:
        """Fit PBM, then UBM with the examination of each position as prior, then the levels of context."""
        cells = data.cells
        found = cls._fitted("pbm", data, cells.position, None)
        if by_last_click:
            key = cells.position * (data.k + 1) + cells.last_click
            found = cls._fitted("ubm", data, key, found)
        if data.levels > 1:
            key = (data.level * data.k + cells.position) * (data.k + 1) + cells.last_click * by_last_click
            found = cls._fitted(found.name, data, key, found)
        return found

    @classmethod
    def _fitted(cls, name: str, data: ExaminationCells, key: Ints, start: "ExaminationUsers | None") -> Self:
        """χ by key, drawn to that of the coarser `start`."""
        entries, first, place = np.unique(key, return_index=True, return_inverse=True)
        if start is None:
            coarse, pseudo = np.full(len(entries), 0.5), np.full(len(entries), 1e-6)
        else:
            coarse, pseudo = np.exp(start.log_examination[start.place[first]]), np.full(len(entries), PRIOR_CLICKS)
        users = cls(name, data, place, entries, np.log(coarse), pseudo, coarse)
        clicks = np.bincount(place, weights=data.cells.clicks, minlength=len(entries)) + pseudo
        log_examination = users.log_examination
        for _ in range(STEPS):
            attractiveness = users._rates(log_examination)
            expected = users._per_entry(attractiveness) + pseudo / coarse
            following = np.log(clicks / expected)
            following -= following[0] - log_examination[0]
            change = np.abs(following - log_examination).max()
            log_examination = following
            if change < TOLERANCE:
                break
        highest = float(log_examination.max())
        # The free scale: so that the highest is 1, as everywhere.
        return cls(name, data, place, entries, log_examination - highest, pseudo, coarse / np.exp(highest))

    @property
    def size(self) -> int:
        """The entries of χ."""
        return len(self.log_examination)

    @cached_property
    def shown(self) -> Bools:
        """[P]."""
        shown = np.zeros(self.data.pairs, np.bool_)
        shown[self.data.cells.pair] = True
        return shown

    def response(self, shift: Doubles | None = None) -> ExaminationResponse:
        """With log χ moved."""
        data = self.data
        log_examination = self.log_examination if shift is None else self.log_examination + shift
        sessions = np.bincount(data.level, weights=data.cells.impressions, minlength=data.levels)
        return ExaminationResponse(
            self._tables(np.exp(log_examination)), sessions / sessions.sum(), self._rates(log_examination)
        )

    def influence(self, group: Ints, groups: int) -> Influence:
        """Score of entry c: C_c − χ_c · Σ_d n_dc α_d; its derivative in log χ is −(diag(C) − Πᵀ diag(C_d) Π).

        Π_dc = n_dc χ_c / Σ_c n_dc χ_c is the share of the cell in the exposure of the pair.
        """
        cells, examination = self.data.cells, np.exp(self.log_examination)
        expected = cells.impressions * examination[self.place] * self._rates(self.log_examination)[cells.pair]
        key = group[cells.unit] * self.size + self.place
        scores = np.bincount(key, weights=cells.clicks - expected, minlength=groups * self.size)
        pair_clicks = np.bincount(cells.pair, weights=cells.clicks, minlength=self.data.pairs)
        exposure = np.bincount(cells.pair, weights=cells.impressions * examination[self.place])
        share = cells.impressions * examination[self.place] / exposure[cells.pair]
        shape = (self.data.pairs, self.size)
        weighted = scipy.sparse.csr_array((share * np.sqrt(pair_clicks[cells.pair]), (cells.pair, self.place)), shape)
        between = (weighted.T @ weighted).toarray()
        clicks = np.bincount(self.place, weights=cells.clicks, minlength=self.size) + self.prior_clicks
        return Influence(scores.reshape(groups, self.size).astype(np.float64), between - np.diag(clicks))

    def _rates(self, log_examination: Doubles) -> Doubles:
        cells, pairs = self.data.cells, self.data.pairs
        examinations = np.bincount(
            cells.pair, weights=cells.impressions * np.exp(log_examination)[self.place], minlength=pairs
        )
        return unbiased_rates(np.bincount(cells.pair, weights=cells.clicks, minlength=pairs), examinations)

    def _per_entry(self, attractiveness: Doubles) -> Doubles:
        cells = self.data.cells
        weights = cells.impressions * attractiveness[cells.pair]
        return np.bincount(self.place, weights=weights, minlength=len(self.entries)).astype(np.float64)

    def _tables(self, examination: Doubles) -> Doubles:
        """[levels, K, K + 1]; NaN where a last click did not occur."""
        data = self.data
        tables = np.full((data.levels, data.k, data.k + 1), np.nan)
        cells, values = data.cells, examination[self.place]
        tables[data.level, cells.position, cells.last_click] = values
        if self.name == "pbm":
            tables[data.level, cells.position] = values[:, None]
        return tables
