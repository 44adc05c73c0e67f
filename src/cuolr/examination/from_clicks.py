"""Examination estimated from clicks by maximum likelihood, in the parametrisation of the user browsing model (UBM).

P(C_k = 1 | last click above at j) = χ(k, j) · α(d_k), with a table χ of the position k and of the position j of the
last click above it (Dupret and Piwowarski 2008). PBM, where χ depends on k alone, UBM, and the cascade model, where
nothing is examined after the first click, are special cases. Under DCM the table is exact directly below a click.
Further down, the share of users who continued without another click depends on the documents in between, and the table
holds its mean over lists; likewise under CCM.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from cuolr.data.normalise import Normaliser
from cuolr.errors import InputError
from cuolr.examination.by_context import ROUNDS, fit_by_context
from cuolr.examination.effects import effects_within_documents, effects_within_lists, sample_of_lists
from cuolr.examination.identifiability import MAX_POSITIONS, Identifiability
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.contexts import ContextCurves
from cuolr.logs.counts import ClickCounts
from cuolr.logs.scaled_documents import ScaledDocuments
from cuolr.policies.logging_policy_model import LoggingPolicyModel
from cuolr.progress import Stages, no_stages
from cuolr.random import FIXED_SEED
from cuolr.types import Doubles, Ints

# Number of folds of the logging-policy model.
FOLDS = 2


@dataclass(frozen=True)
class ExaminationModel:
    """Examination by position and last click above.

    Attributes:
        table: [K, K + 1] χ relative to position 1; the second axis is the position of the last click above, from 1,
            and 0 = no click above. NaN where not observed in the log.
        slope: β ≥ 0, the slope of log α on the standardised score of the logging policy.
        by_context: The tables of the levels of context, if the log has several; `table` is that of all together.
    """

    table: Doubles
    slope: float = 0.0
    by_context: ContextCurves | None = None

    @classmethod
    def fit(
        cls, log: ClickLog | ClickCounts, *, cap_at_first_position: bool = True, stages: Stages = no_stages
    ) -> Self:
        """Estimate examination from a log.

        Args:
            log: Raw sessions, or their counts. From an aggregated log, examination is estimated by position only. If
                the log has context, each level has a table of its own; see `by_context`.
            cap_at_first_position: See `from_counts`.
            stages: Receives the progress.
        """
        counts = log if isinstance(log, ClickCounts) else ClickCounts.of(log, stages)
        scores = logging_scores_of(counts, stages)
        return cls.from_counts(counts, scores, cap_at_first_position=cap_at_first_position, stages=stages)

    @classmethod
    def from_counts(
        cls,
        counts: ClickCounts,
        logging_scores: Doubles,
        lists: Ints | None = None,
        *,
        cap_at_first_position: bool = True,
        stages: Stages = no_stages,
    ) -> Self:
        """Maximise the conditional likelihood of `conditional_likelihood`, in three concave steps.

        1. The effect of the last click above, from clicks on one document in one list: groups (list, position).
        2. The effect of the position, from clicks on the documents of one list: groups (list), with the exposure of
           step 1. Documents differ, and the logging policy ranked better ones above. Its score l is a covariate with
           one slope β ≥ 0, which is identified because the scores at one position differ from list to list. A negative
           slope would say that the logging policy ranks worse documents above, and make χ steeper than clicks fall.
        3. For documents shown at several positions, both effects from clicks on one document in all lists: groups
           (document), without l. The table of steps 1 and 2 is the prior mean. This step is skipped if such documents
           are not `informative`, see `Identifiability`: they would add noise.

        With `cap_at_first_position`, a row k with χ(k, no click above) > χ(1) is scaled down as a whole, so that both
        are equal. Users who stop after a click leave lists with a good first document out of the comparison of step 2,
        and the first position would seem worse than it is.

        If the log has several levels of context, the table of each is estimated as well; see `by_context`.

        Deviation: UBM is usually fitted by EM, jointly with α. A network of the documents in place of l explains more
        clicks, but absorbs effects that belong to the table before the table has converged (docs/learners/factored.md).

        Args:
            counts: The counts of the log.
            logging_scores: [L, K] l, or zeros.
            lists: The lists to estimate from; None = all.
            cap_at_first_position: Whether to scale down each row k with χ(k, no click above) > χ(1).
            stages: Receives the positions whose effects were estimated so far; the last two count for steps 2 and 3.
        """
        top = counts.top(MAX_POSITIONS)
        k = top.lists.k
        rounds = 1 if counts.level is None else 1 + ROUNDS
        progress = stages("estimating examination", rounds * (k + 1))
        lists = np.arange(len(top.lists)) if lists is None else lists
        sample = sample_of_lists(top, lists)
        several = Identifiability.of(top, lists).informative

        def effects(counts: ClickCounts) -> tuple[Doubles, Doubles, float]:
            after_click, log_chi, slope = effects_within_lists(counts, logging_scores[:, :k], sample, progress)
            if several:
                table = effects_within_documents(counts, lists, after_click * np.exp(log_chi - log_chi[0])[:, None])
                after_click, log_chi = table / table[:, :1], np.log(table[:, 0])
            progress(1)
            return after_click, log_chi - log_chi[0], slope

        def finished(after_click: Doubles, log_chi: Doubles) -> Doubles:
            table = after_click * np.exp(np.minimum(log_chi, 0.0) if cap_at_first_position else log_chi)[:, None]
            return _extended(np.where(occurs, table, np.nan), counts.lists.k)

        after_click, log_chi, slope = effects(top)
        occurs = np.bincount(top.cells % top.cells_per_list, minlength=after_click.size).reshape(after_click.shape) > 0
        model = cls(finished(after_click, log_chi), slope)
        if counts.level is None:
            return model

        def common(weighted: ClickCounts) -> Doubles:
            after_click, log_chi, _ = effects(weighted)
            return after_click * np.exp(log_chi)[:, None]

        curves = fit_by_context(top, lists, after_click * np.exp(log_chi)[:, None], common)
        tables = np.stack([finished(table / table[:, :1], np.log(table[:, 0])) for table in curves.tables])
        return replace(model, by_context=replace(curves, tables=tables))

    @classmethod
    def full(cls, k: int) -> Self:
        """The model of users who examine all k positions."""
        return cls(np.ones((k, k + 1)))

    def probabilities(self, level: str | None = None) -> Doubles:
        """[K, K + 1] χ by position and last click above, relative to position 1; NaN where not estimated.

        Args:
            level: A level of context, such as "mobile"; None = all together.
        """
        if level is None:
            return self.table
        known = () if self.by_context is None else self.by_context.levels
        if self.by_context is None or level not in known:
            raise InputError(f"level: expected one of {', '.join(known) or 'no level'}, found '{level}'")
        table: Doubles = self.by_context.tables[known.index(level)]
        return table

    def tables_of(self, levels: Sequence[str]) -> Doubles:
        """[number of levels, K, K + 1] χ of these levels, relative to position 1 of all together; 0 where unknown."""
        if self.by_context is None:
            return np.broadcast_to(np.nan_to_num(self.table), (len(levels), *self.table.shape))
        return np.nan_to_num(self.by_context.relative(levels, self.table))

    def expected_examinations(self, counts: ClickCounts, power: int = 1) -> Doubles:
        """[L, K] Σ χ over the sessions of each list: the exposure of each shown document, in units of position 1.

        Args:
            counts: The counts of the log; lists in a level of context have its χ.
            power: Power of χ in the sum.
        """
        of_cells, examinations = self.examinations_of_cells(counts, power), np.empty(len(counts.cells))
        for part in counts.parts():
            examinations[part] = of_cells(part)
        return counts.by_position(examinations)

    def examinations_of_cells(self, counts: ClickCounts, power: int = 1) -> Callable[[slice], Doubles]:
        """A function that returns Σ χ over the sessions of each cell of a part; see `expected_examinations`."""
        tables = self.tables_of(counts.levels).reshape(len(counts.levels), -1) ** power
        of_lists = counts.level_of_list

        def of_cells(part: slice) -> Doubles:
            row, cell = np.divmod(counts.cells[part], counts.cells_per_list)
            examinations: Doubles = counts.impressions[part] * tables[of_lists[row], cell]
            return examinations

        return of_cells

    def as_dict(self) -> dict[str, Any]:
        """The model as JSON values; None where not estimated."""
        values = {"examination": as_lists(self.table), "logging_policy_slope": self.slope}
        return values if self.by_context is None else {**values, "by_context": curves_as_dict(self.by_context)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """The model that `as_dict` describes."""
        curves = None
        if "by_context" in values:
            levels = values["by_context"]
            tables = np.array([level["examination"] for level in levels.values()], np.float64)
            curves = ContextCurves(tuple(levels), tables, np.array([level["scale"] for level in levels.values()]))
        return cls(np.array(values["examination"], np.float64), float(values["logging_policy_slope"]), curves)


def logging_scores_of(counts: ClickCounts, stages: Stages = no_stages) -> Doubles:
    """[L, K] the standardised scores of shown documents, by a model of the logging policy."""
    normaliser = Normaliser.fit("log-min-max", counts.lists.candidates)
    shown = ScaledDocuments.of(counts.lists, normaliser)
    model = LoggingPolicyModel.fit(counts.shown, normaliser, seed=FIXED_SEED, folds=FOLDS, stages=stages)
    return model.scores(shown.parts())[shown.documents]


def as_lists(table: Doubles) -> list[list[float | None]]:
    """A table as JSON values; None where it is NaN."""
    return [[None if np.isnan(value) else float(value) for value in row] for row in table]


def curves_as_dict(curves: ContextCurves) -> dict[str, dict[str, Any]]:
    """The table and the scale of each level of context, as JSON values."""
    return {
        level: {"examination": as_lists(table), "scale": float(scale)}
        for level, table, scale in zip(curves.levels, curves.tables, curves.scale, strict=True)
    }


def _extended(table: Doubles, k: int) -> Doubles:
    """[k, k + 1] the table with its last position repeated for those below, at the same distance to a click."""
    last = len(table) - 1
    positions = np.arange(k)[:, None]
    row = np.minimum(positions, last)
    clicks = np.arange(k + 1)[None, :]
    column = np.where(clicks > 0, np.clip(clicks - (positions - row), 1, last + 1), 0)
    extended = table[row, column]
    unknown = np.isnan(extended) & (positions > last)
    return np.where(unknown, extended[:, :1], extended)
