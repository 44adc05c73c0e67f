"""Users of one click model whose parameters depend on the level of context, such as the device."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import scipy

from cuolr.logs.click_patterns import ClickPatterns
from cuolr.off_policy.users.fitted_users import MIN_EXAMINATIONS, FittedUsers, Influence, UnbiasedRates
from cuolr.off_policy.users.latent_users import LatentResponse, LatentUsers
from cuolr.types import Doubles, Ints


@dataclass(frozen=True)
class ResponseByLevel:
    """The mean over levels of context, with the same attractiveness in each.

    Attributes:
        levels: The response of each level.
        share: [levels] share of the sessions.
        rates: α̂ of all levels: Σ (clicks − a) / Σ b, with a and b of the level.
    """

    levels: tuple[LatentResponse, ...]
    share: Doubles
    rates: UnbiasedRates

    def clicks(self, documents: Ints, attractiveness: Doubles | None = None) -> Doubles:
        """The mean of the levels' marginal click probabilities."""
        alpha = self.rates.attractiveness if attractiveness is None else attractiveness
        chances = (share * level.clicks(documents, alpha) for share, level in zip(self.share, self.levels, strict=True))
        total: Doubles = sum(chances, np.zeros(documents.shape))
        return total


@dataclass(frozen=True)
class UsersByLevel(FittedUsers):
    """A click model that is fitted to each level of context, but for the attractiveness, which all levels share.

    Attributes:
        levels: The users of each level.
        share: [levels] share of the sessions.
    """

    levels: tuple[LatentUsers, ...]
    share: Doubles

    @classmethod
    def fit(cls, name: str, levels: Sequence[ClickPatterns], least: Doubles | float = MIN_EXAMINATIONS) -> Self:
        """Fit the click model of this name to the counts of each level that has clicks."""
        fitted = tuple(LatentUsers.fit(name, patterns, least) for patterns in levels if patterns.clicks.any())
        sessions = np.array([users.patterns.sessions for users in fitted])
        return cls(fitted, sessions / sessions.sum())

    @property
    def name(self) -> str:
        """The click model."""
        return self.levels[0].name

    @property
    def size(self) -> int:
        """The parameters of all levels."""
        return sum(users.size for users in self.levels)

    def response(self, shift: Doubles | None = None, weights: Doubles | None = None) -> ResponseByLevel:
        """With the parameters of all levels moved."""
        ends = np.cumsum([users.size for users in self.levels])[:-1]
        shifts = [None] * len(self.levels) if shift is None else np.split(shift, ends)
        responses = tuple(users.response(part, weights) for users, part in zip(self.levels, shifts, strict=True))
        clicks, examinations = (
            np.sum([getattr(response.rates, name) for response in responses], axis=0)
            for name in ("clicks", "examinations")
        )
        return ResponseByLevel(responses, self.share, UnbiasedRates(clicks, examinations, self.levels[0].least))

    def influence(self, group: Ints, groups: int) -> Influence:
        """Each level's parameters depend on its own sessions."""
        of_levels = [users.influence(group, groups) for users in self.levels]
        scores = np.concatenate([level.scores for level in of_levels], axis=1)
        return Influence(scores, scipy.linalg.block_diag(*(level.jacobian for level in of_levels)))
