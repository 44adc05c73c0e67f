"""Users whose examination depends on the position, or on the position and the last click above: PBM and UBM."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import scipy

from cuolr.clicks.fitting.click_model_fit import sums
from cuolr.examination.from_clicks import ExaminationModel
from cuolr.logs.contexts import ContextCurves
from cuolr.logs.last_clicks import PatternCells
from cuolr.off_policy.users.fitted_users import MIN_EXAMINATIONS, FittedUsers, Influence, UnbiasedRates
from cuolr.policies.forward_clicks import forward_clicks
from cuolr.types import Doubles, Ints

# Relative change of examination at which the fit has converged, and the maximum number of steps.
TOLERANCE, STEPS = 1e-8, 100
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
        least: [P] the examinations from which a pair is known, or one number for all.
    """

    cells: PatternCells
    level: Ints
    levels: int
    pairs: int
    k: int
    least: Doubles | float = MIN_EXAMINATIONS

    @classmethod
    def of_levels(
        cls, levels: Sequence[PatternCells], pairs: int, k: int, least: Doubles | float = MIN_EXAMINATIONS
    ) -> Self:
        """The cells of each level of context."""
        names = ("pair", "position", "last_click", "unit", "impressions", "clicks")
        joined = PatternCells(**{name: np.concatenate([getattr(cells, name) for cells in levels]) for name in names})
        level = np.repeat(np.arange(len(levels)), [len(cells.pair) for cells in levels])
        return cls(joined, level, len(levels), pairs, k, least)


@dataclass(frozen=True)
class ExaminationResponse:
    """P(C_k = 1 | last click above at j) = χ(k, j) · α(d).

    Attributes:
        tables: [levels, K, K + 1] χ.
        share: [levels] share of the impressions.
        rates: α.
    """

    tables: Doubles
    share: Doubles
    rates: UnbiasedRates

    def clicks(self, documents: Ints, attractiveness: Doubles | None = None) -> Doubles:
        """The mean over the levels of context."""
        alpha = self.rates.attractiveness if attractiveness is None else attractiveness
        where = documents >= 0
        of_documents = alpha[documents]
        chances = (
            share * forward_clicks(of_documents, where, table[: documents.shape[1]])
            for share, table in zip(self.share, self.tables, strict=True)
        )
        total: Doubles = sum(chances, np.zeros(documents.shape))
        return total

    def clicks_given(self, cells: PatternCells, level: Ints, attractiveness: Doubles | None = None) -> Doubles:
        """[n] P(C_k = 1 | last click above) of the cells of the log, in their levels of context."""
        alpha = self.rates.attractiveness if attractiveness is None else attractiveness
        clicks: Doubles = self.tables[level, cells.position, cells.last_click] * alpha[cells.pair]
        return clicks


@dataclass(frozen=True)
class ExaminationUsers(FittedUsers):
    """χ and α by Poisson pseudo-likelihood with an effect of each pair: neither needs a prior on the other.

    α_d = C_d / Σ_c n_dc χ_c and χ_c = C_c / Σ_d n_dc α_d, where n and C are impressions and clicks of pair d in
    the cell c = (level of context, position, last click above). The equations are unbiased however few clicks a pair
    has, and hold whatever the distribution of attractiveness, also where the logging policy put the better documents
    above: only pairs that were shown in several cells say anything about χ.

    Deviation: fitted by maximum likelihood, as in `cuolr fit-clicks`, pairs need a prior, which draws good documents
    at the top and bad ones below to their common mean, and the difference goes into χ.

    Attributes:
        by_last_click: Whether examination depends on the last click above (UBM) or not (PBM).
        data: The counts.
        place: [n] the entry of `log_examination` of each cell of the counts.
        log_examination: [p] log χ of the entries that occur.
        prior_clicks: Pseudo-clicks by which each entry was drawn to a coarser one.
    """

    by_last_click: bool
    data: ExaminationCells
    place: Ints
    log_examination: Doubles
    prior_clicks: float

    @classmethod
    def fit(cls, data: ExaminationCells, by_last_click: bool, start: Doubles | None = None) -> Self:
        """Fit PBM, then UBM with the examination of each position as prior, then the levels of context.

        Args:
            data: The counts.
            by_last_click: Whether examination depends on the last click above (UBM) or not (PBM).
            start: [K, K + 1] examination where the log does not identify it; NaN where not known. None = alike.
        """
        cells = data.cells
        known = np.ones((data.k, data.k + 1)) if start is None else start[: data.k, : data.k + 1]
        of_cells = np.where(np.isnan(known), known[:, :1], known)[cells.position, cells.last_click]
        at_position = _means(cells.position, of_cells, cells.impressions)
        found = cls._fitted(False, data, cells.position, at_position, 1e-6)
        if by_last_click:
            prior = np.exp(found.log_examination)[found.place] * of_cells / np.maximum(at_position, 1e-9)
            key = cells.position * (data.k + 1) + cells.last_click
            found = cls._fitted(True, data, key, prior, PRIOR_CLICKS)
        if data.levels > 1:
            key = (data.level * data.k + cells.position) * (data.k + 1) + cells.last_click * by_last_click
            found = cls._fitted(
                found.by_last_click, data, key, np.exp(found.log_examination)[found.place], PRIOR_CLICKS
            )
        return found

    @classmethod
    def _fitted(
        cls, by_last_click: bool, data: ExaminationCells, key: Ints, prior: Doubles, prior_clicks: float
    ) -> Self:
        """χ by key, from the χ of each cell in `prior` on, and drawn to it.

        By Newton's method. Where few documents change position, alternating between α and χ would take thousands of
        steps. Steps are the shortest that solve the equations: what the log does not identify stays as it was.
        """
        entries, first, place = np.unique(key, return_index=True, return_inverse=True)
        coarse = np.maximum(prior[first], 1e-6)
        users = cls(by_last_click, data, place, np.log(coarse), prior_clicks)
        clicks = sums(place, data.cells.clicks, len(entries)) + prior_clicks
        for _ in range(STEPS):
            log_examination = users.log_examination
            expected = np.exp(log_examination) * (users._per_entry() + prior_clicks / coarse)
            score = clicks - expected
            step = np.clip(-np.linalg.pinv(users._jacobian(expected), rcond=1e-10, hermitian=True) @ score, -1, 1)
            users = cls(by_last_click, data, place, log_examination + step, prior_clicks)
            if np.abs(step - step.mean()).max() < TOLERANCE:
                break
        # The free scale is chosen as everywhere: the highest is 1.
        log_examination = users.log_examination - float(users.log_examination.max())
        return cls(by_last_click, data, place, log_examination, prior_clicks)

    @property
    def name(self) -> str:
        """PBM or UBM."""
        return "ubm" if self.by_last_click else "pbm"

    @property
    def size(self) -> int:
        """The entries of χ."""
        return len(self.log_examination)

    def response(self, shift: Doubles | None = None, weights: Doubles | None = None) -> ExaminationResponse:
        """With log χ moved."""
        data = self.data
        log_examination = self.log_examination if shift is None else self.log_examination + shift
        sessions = np.bincount(data.level, weights=data.cells.impressions, minlength=data.levels)
        tables, share = self._tables(np.exp(log_examination)), sessions / sessions.sum()
        return ExaminationResponse(tables, share, self._rates(log_examination, weights))

    def influence(self, group: Ints, groups: int) -> Influence:
        """Score of entry c: C_c − χ_c · Σ_d n_dc α_d; its derivative in log χ is −(diag(C) − Πᵀ diag(C_d) Π).

        Π_dc = n_dc χ_c / Σ_c n_dc χ_c is the share of the cell in the exposure of the pair.
        """
        cells = self.data.cells
        expected = cells.impressions * np.exp(self.log_examination)[self.place] * self._alpha[cells.pair]
        key = group[cells.unit] * self.size + self.place
        scores = sums(key, cells.clicks - expected, groups * self.size).reshape(groups, self.size)
        clicks = sums(self.place, cells.clicks, self.size) + self.prior_clicks
        return Influence(scores, self._jacobian(clicks))

    def _jacobian(self, clicks: Doubles) -> Doubles:
        """[p, p] the derivative of the scores in log χ, with the expected clicks [p] of each entry."""
        cells, size = self.data.cells, self.size
        exposure = cells.impressions * np.exp(self.log_examination)[self.place]
        of_pair = np.maximum(sums(cells.pair, exposure, self.data.pairs), 1e-300)
        pair_clicks = sums(cells.pair, cells.clicks, self.data.pairs)
        weights = exposure / of_pair[cells.pair] * np.sqrt(pair_clicks[cells.pair])
        shares = scipy.sparse.csr_array((weights, (cells.pair, self.place)), (self.data.pairs, size))
        jacobian: Doubles = (shares.T @ shares).toarray() - np.diag(clicks)
        return jacobian

    def curves(self, levels: Sequence[str]) -> ExaminationModel:
        """χ relative to position 1, of all levels of context together and of each."""
        response = self.response()
        share = np.where(np.isnan(response.tables), 0.0, response.share[:, None, None])
        total = share.sum(axis=0)
        # A last click that occurs in some levels only has their mean.
        mean = (share * np.nan_to_num(response.tables)).sum(axis=0) / np.where(total > 0, total, 1.0)
        pooled = np.where(total > 0, mean, np.nan)
        by_context = None
        if len(levels) > 1:
            first = response.tables[:, :1, :1]
            by_context = ContextCurves(tuple(levels), response.tables / first, (first / pooled[0, 0])[:, 0, 0])
        return ExaminationModel(pooled / pooled[0, 0], by_context=by_context)

    @property
    def _alpha(self) -> Doubles:
        """[P] α of the equations: clicks per examination of every pair, also of those with too few to be known."""
        rates = self._rates(self.log_examination)
        alpha: Doubles = rates.clicks / np.maximum(rates.examinations, 1e-300)
        return alpha

    def _rates(self, log_examination: Doubles, weights: Doubles | None = None) -> UnbiasedRates:
        cells = self.data.cells if weights is None else self.data.cells.weighted(weights)
        pairs = self.data.pairs
        exposure = cells.impressions * np.exp(log_examination)[self.place]
        clicks, examinations = sums(cells.pair, cells.clicks, pairs), sums(cells.pair, exposure, pairs)
        return UnbiasedRates(clicks, examinations, self.data.least)

    def _per_entry(self) -> Doubles:
        """[p] Σ_d n_dc α_d."""
        cells = self.data.cells
        return sums(self.place, cells.impressions * self._alpha[cells.pair], self.size)

    def _tables(self, examination: Doubles) -> Doubles:
        """[levels, K, K + 1]; NaN where a last click did not occur."""
        data = self.data
        tables = np.full((data.levels, data.k, data.k + 1), np.nan)
        cells, values = data.cells, examination[self.place]
        tables[data.level, cells.position, cells.last_click] = values
        if not self.by_last_click:
            tables[data.level, cells.position] = values[:, None]
        return tables


def _means(place: Ints, values: Doubles, weights: Doubles) -> Doubles:
    """[n] the weighted mean of the values at each place."""
    total = np.bincount(place, weights=weights)
    means: Doubles = (np.bincount(place, weights=values * weights) / np.maximum(total, 1e-300))[place]
    return means
