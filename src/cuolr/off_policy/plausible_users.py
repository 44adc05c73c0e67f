"""Which users explain a log: click models compared on held-out sessions."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cuolr.clicks.fitting.click_model_fit import CLICK_FITS
from cuolr.clicks.fitting.compare_fits import FitComparison, compare_by_level, compare_fits
from cuolr.off_policy.users.examination_users import ExaminationUsers
from cuolr.off_policy.users.fitted_users import FittedUsers
from cuolr.off_policy.users.latent_users import LatentUsers
from cuolr.off_policy.users.user_counts import HELD_OUT_FOLDS, UserCounts
from cuolr.off_policy.users.users_by_level import UsersByLevel
from cuolr.types import Doubles

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
        compared = compare_by_level(counts.by_level, HELD_OUT_FOLDS, progress, names)
    else:
        compared = compare_fits(counts.patterns, names, HELD_OUT_FOLDS, progress=progress)
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
