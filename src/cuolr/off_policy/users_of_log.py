"""The users behind a log: which click models explain it on held-out sessions, fitted once for all models evaluated."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from cuolr.clicks.fitting.click_model_fit import CLICK_FITS
from cuolr.clicks.fitting.compare_fits import FitComparison, compare_by_level, compare_fits
from cuolr.errors import InputError
from cuolr.examination.from_clicks import ExaminationModel
from cuolr.logs.clicklog import ClickLog
from cuolr.off_policy.users.examination_users import ExaminationUsers
from cuolr.off_policy.users.fitted_users import FittedUsers, Influence, UserResponse
from cuolr.off_policy.users.latent_users import LatentUsers, UsersByLevel
from cuolr.off_policy.users.user_counts import HELD_OUT_FOLDS, UserCounts
from cuolr.progress import Stages, no_stages
from cuolr.types import Doubles, Ints

# The click models that are fitted without a prior, by whether they depend on the last click.
BY_EXAMINATION = {"pbm": False, "ubm": True}
# A model that loses less than this share of what the best one gains over the mean click rate explains as much.
NEGLIGIBLE_SHARE = 0.01
# The click rate that what models explain is measured from.
CLICK_RATE = "ctr"


@dataclass(frozen=True)
class PlausibleUsers:
    """The click models that explain held-out sessions not significantly worse than the best.

    Attributes:
        names: Their names, the best first.
        comparison: The comparison; None if the log has no sessions to hold out, so that only PBM can be fitted.
        better_click_rates: The click rates, such as by document, that explain them better than every click model.
    """

    names: tuple[str, ...]
    comparison: FitComparison | None = None
    better_click_rates: tuple[str, ...] = ()

    def fit(self, name: str, counts: UserCounts, start: Doubles | None) -> FittedUsers:
        """The users of one of these models, fitted to all sessions.

        Args:
            name: One of `names`.
            counts: The counts of the log.
            start: Examination where the log does not identify it, see `ExaminationUsers.fit`.
        """
        if name in BY_EXAMINATION:
            return ExaminationUsers.fit(counts.cells, BY_EXAMINATION[name], start)
        assert counts.patterns is not None
        if len(counts.by_level) > 1:
            return UsersByLevel.fit(name, counts.by_level, counts.cells.least)
        return LatentUsers.fit(name, counts.patterns, counts.cells.least)


def plausible_users(counts: UserCounts, progress: Callable[[int], None] | None = None) -> PlausibleUsers:
    """Compare all registered click models and click rates.

    A difference counts as noise if its 95 % interval contains 0, or if it is negligible: on a long log even a model
    that is right up to its prior is significantly worse than one with more parameters.

    A log that counts documents has no lists to run other users over than those who examine by position and last click.

    Args:
        counts: The counts of the log.
        progress: Called with 1 after each model.
    """
    if counts.patterns is None:
        return PlausibleUsers(("pbm",))
    models = user_models()
    names = None
    if counts.patterns.of_documents:
        models = [name for name in models if name in BY_EXAMINATION]
        names = [*models, *(name for name in CLICK_FITS.names() if CLICK_FITS.get(name).is_baseline)]
    if counts.can_hold_out_by_level:
        levels = [of_level.with_shown_documents() for of_level in counts.by_level]
        compared = compare_by_level(levels, HELD_OUT_FOLDS, progress, names)
    else:
        compared = compare_fits(counts.patterns.with_shown_documents(), names, HELD_OUT_FOLDS, progress=progress)
    best = compared.scores[compared.best].log_likelihood
    negligible = NEGLIGIBLE_SHARE * max(best - compared.scores[CLICK_RATE].log_likelihood, 0.0)
    differences = compared.differences
    names = [
        name
        for name in compared.in_order
        if name in models and (not differences[name].is_more_than_noise or differences[name].mean >= -negligible)
    ]
    better = [name for name in compared.better_baselines if differences[name].mean > negligible]
    return PlausibleUsers(tuple(names) if np.isfinite(best) else (compared.best,), compared, tuple(better))


def user_models() -> list[str]:
    """The registered click models, without click rates."""
    return [name for name in CLICK_FITS.names() if not CLICK_FITS.get(name).is_baseline]


@dataclass(frozen=True)
class UsersOfLog:
    """The users of all click models that explain a log.

    Attributes:
        log: The log; each row shows a document.
        counts: What users were fitted to.
        identifiable: Whether the log separates position bias from relevance.
        plausible: The click models.
        fitted: The users of each; none if the log has no clicks, or no sessions to hold out.
        influences: Of the units of the log on each.
        start: Examination where the log does not identify it; None if it does.
    """

    log: ClickLog
    counts: UserCounts
    identifiable: bool
    plausible: PlausibleUsers
    fitted: tuple[FittedUsers, ...]
    influences: tuple[Influence, ...]
    start: Doubles | None

    @classmethod
    def fit(
        cls,
        log: ClickLog,
        queries: Ints | None = None,
        examination: ExaminationModel | None = None,
        stages: Stages = no_stages,
    ) -> Self:
        """Compare click models on held-out sessions, and fit those that explain them.

        Args:
            log: Raw, or aggregated: only position-based users can be fitted then.
            queries: To keep if a log of very many different lists is sampled; None = any.
            examination: Where the log does not identify it; None = estimated from the features and the logging policy.
            stages: Receives the progress.
        """
        log = log.select(np.flatnonzero(log.where.any(axis=1)))
        if not len(log):
            raise InputError("expected a log that shows documents, found none in any session")
        counts = UserCounts.of(log, np.arange(log.candidates.n_queries) if queries is None else queries, stages)
        identifiable = counts.identifiability().verdict in ("yes", "not applicable")
        if not counts.can_hold_out:
            return cls(log, counts, identifiable, PlausibleUsers(()), (), (), None)
        start = None if identifiable else (examination or ExaminationModel.fit(log, stages=stages)).table
        plausible = plausible_users(counts, stages("comparing click models", len(CLICK_FITS.names())))
        progress = stages("fitting users", len(plausible.names))
        fitted, influences = [], []
        for name in plausible.names:
            users = plausible.fit(name, counts, start)
            fitted.append(users)
            influences.append(users.influence(counts.units.group, counts.units.groups))
            progress(1)
        return cls(log, counts, identifiable, plausible, tuple(fitted), tuple(influences), start)

    def response_of(self, name: str) -> UserResponse:
        """The users of one of the click models."""
        return next(users for users in self.fitted if users.name == name).response()

    @cached_property
    def examination(self) -> ExaminationModel:
        """Examination by position and last click above, and by level of context."""
        users = [found for found in self.fitted if isinstance(found, ExaminationUsers) and found.by_last_click]
        ubm = users[0] if users else ExaminationUsers.fit(self.counts.cells, True, self.start)
        return ubm.curves(self.counts.levels)
