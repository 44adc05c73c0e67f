"""The users behind a log, fitted once for all models that are evaluated on it."""

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from cuolr.clicks.fitting.click_model_fit import CLICK_FITS
from cuolr.errors import InputError
from cuolr.examination.from_clicks import ExaminationModel
from cuolr.logs.clicklog import ClickLog
from cuolr.off_policy.plausible_users import PlausibleUsers, plausible_users
from cuolr.off_policy.users.examination_users import ExaminationUsers
from cuolr.off_policy.users.fitted_users import FittedUsers, Influence, UserResponse
from cuolr.off_policy.users.user_counts import UserCounts
from cuolr.progress import Stages, unseen_stages
from cuolr.types import Doubles, Ints


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
        stages: Stages = unseen_stages,
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
