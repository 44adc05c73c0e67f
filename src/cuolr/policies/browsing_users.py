"""Users that lists are planned for: the expected clicks on a list, by the attractiveness of its documents."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from cuolr.config import Range, check_ranges
from cuolr.policies.forward_clicks import forward_clicks
from cuolr.types import Bools, Doubles

# Name of the table of examination in the file of a model.
EXAMINATION = "users"

Probability: TypeAlias = Annotated[float, Range(0, 1)]


@dataclass(frozen=True)
class LastClickUsers:
    """Users who examine position k by the last click above: P(C_k = 1 | last click at j) = χ(k, j) · α(d_k).

    The user browsing model (Dupret and Piwowarski 2008), and what it includes: PBM and the cascade model.

    Attributes:
        examination: [K, K + 1] χ, as in `ExaminationModel`.
    """

    examination: Doubles

    @property
    def positions(self) -> int:
        """K, the positions that are planned."""
        return len(self.examination)

    def expected_clicks(self, attractiveness: Doubles, where: Bools) -> Doubles:
        """[B] the expected clicks on lists [B, k], k at most K: the return of the ranking MDP."""
        total: Doubles = forward_clicks(attractiveness, where, self.examination[: attractiveness.shape[1]]).sum(axis=1)
        return total


@dataclass(frozen=True)
class TopDownUsers:
    """Users who examine from the top and may stop after each document, the click chain model (Guo et al. 2009).

    They continue with probability α₁ after a skip, and with α₂·(1 − α(d)) + α₃·α(d) after a click on d. This includes
    the cascade model (1, 0, 0), and users who stop when satisfied (SDBN, DBN), if attractive documents satisfy.

    Attributes:
        positions: K, the positions that are planned.
        after_skip: α₁.
        after_irrelevant: α₂, after a click on a document that is never clicked when examined.
        after_relevant: α₃, after a click on a document that is always clicked when examined.
    """

    positions: Annotated[int, Range(1)]
    after_skip: Probability
    after_irrelevant: Probability
    after_relevant: Probability

    def __post_init__(self) -> None:
        check_ranges(self)

    def after_click(self, attractiveness: Doubles) -> Doubles:
        """The probability to continue after a click on documents with this attractiveness."""
        onward: Doubles = self.after_irrelevant + (self.after_relevant - self.after_irrelevant) * attractiveness
        return onward

    def expected_clicks(self, attractiveness: Doubles, where: Bools) -> Doubles:
        """[B] Σ_k α_k Π_{i<k} (α₁·(1 − α_i) + α_i · after_click(α_i)) of lists [B, k]; a gap is passed."""
        alpha = np.where(where, attractiveness, 0.0)
        onward = np.where(where, self.after_skip * (1 - alpha) + alpha * self.after_click(alpha), 1.0)
        reached = np.ones(alpha.shape)
        np.cumprod(onward[:, :-1], axis=1, out=reached[:, 1:])
        total: Doubles = (alpha * reached).sum(axis=1)
        return total


BrowsingUsers: TypeAlias = LastClickUsers | TopDownUsers


def users_as_parts(users: BrowsingUsers) -> tuple[dict[str, npt.NDArray[Any]], dict[str, float]]:
    """Arrays and numbers to save."""
    if isinstance(users, LastClickUsers):
        return {EXAMINATION: users.examination}, {}
    return {}, dict(vars(users))


def users_from_parts(arrays: Mapping[str, npt.NDArray[Any]], numbers: Mapping[str, Any]) -> BrowsingUsers:
    """The users of `users_as_parts`; raises `ValueError` or a setting's error for what cannot be."""
    if EXAMINATION not in arrays:
        return TopDownUsers(**numbers)
    table = arrays[EXAMINATION]
    if table.ndim != 2 or table.shape[1] != table.shape[0] + 1 or not len(table):
        raise ValueError(f"{EXAMINATION}: expected an array of K rows and K + 1 columns, found {table.shape}")
    if np.isinf(table).any() or (table < 0).any():
        raise ValueError(f"{EXAMINATION}: expected finite numbers from 0 up")
    return LastClickUsers(table.astype(np.float64))
