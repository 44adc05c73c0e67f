"""The user browsing model: examination depends on the position and on the distance to the last click above it."""

from dataclasses import dataclass

import numpy as np

from cuolr.clicks.click_model import CLICK_MODELS, ClickModel, Probability, Severity
from cuolr.config import SettingError
from cuolr.types import Bools, Doubles, Floats

# A row per rank, with entries by the distance to the last click above; the last entry applies without a click above.
PUBLISHED = (
    (1.0,),
    (0.98, 1.0),
    (1.0, 0.62, 0.95),
    (1.0, 0.77, 0.42, 0.82),
    (1.0, 0.92, 0.55, 0.31, 0.69),
    (1.0, 0.96, 0.63, 0.40, 0.22, 0.54),
    (1.0, 0.99, 0.73, 0.46, 0.29, 0.17, 0.47),
    (1.0, 1.0, 0.89, 0.52, 0.35, 0.24, 0.14, 0.43),
    (1.0, 1.0, 0.95, 0.68, 0.40, 0.29, 0.19, 0.12, 0.41),
    (1.0, 1.0, 1.0, 0.96, 0.52, 0.36, 0.27, 0.18, 0.12, 0.43),
)


@CLICK_MODELS.register("ubm")
@dataclass(frozen=True, kw_only=True)
class UserBrowsingModel(ClickModel):
    """A user who examines position k with a probability that depends on k and on the last clicked position k' above.

    Appendix C: P(E_k = 1 | last click at k') = γ_{k,k'}^η, with k' = 0 where nothing was clicked; Dupret and
    Piwowarski 2008, "A user browsing model to predict search engine click data from past observations".

    Attributes:
        eta: η, the severity of position bias; 0 = every position is examined.
        examination: γ before the power. Row r, for rank r, has r entries, by the distance d = 1..r to the last click;
            d = r, the last entry, means no click above. The last of the R rows applies to further positions: its last
            entry without a click above, else its entry for the distance min(d, R − 1).
    """

    eta: Severity = 1.0
    examination: tuple[tuple[Probability, ...], ...] = PUBLISHED

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.examination) < 2:
            raise SettingError({"examination": "expected two rows or more, found 1"})
        problems = {
            f"examination[{number}]": f"expected {number + 1} entries, found {len(row)}"
            for number, row in enumerate(self.examination)
            if len(row) != number + 1
        }
        if problems:
            raise SettingError(problems)

    def examination_after(self, position: int) -> Doubles:
        """[position + 1] γ^η at this position by the rank of the last click above; 0 = none."""
        rows = len(self.examination)
        row = self.examination[min(position, rows - 1)]
        distances = range(position, 0, -1)
        return np.array([row[-1], *(row[min(distance, rows - 1) - 1] for distance in distances)]) ** self.eta

    def examine(self, relevance: Floats, attracted: Bools, uniforms: Floats) -> Bools:
        """From the top, keeping track of the last click."""
        examination = np.empty(relevance.shape, np.bool_)
        last_click = np.zeros(len(relevance), np.intp)
        for position in range(relevance.shape[1]):
            chance = self.examination_after(position).astype(np.float32)
            examined = uniforms[:, position] < chance.take(last_click)
            examination[:, position] = examined
            last_click[examined & attracted[:, position]] = position + 1
        return examination

    def examination_probability(self, relevance: Doubles) -> Doubles:
        """By dynamic programming over the last click: P(E_k) = Σ_k' P(the last click above k is at k') · γ_{k,k'}^η."""
        sessions, k = relevance.shape
        attractiveness = self.attractiveness(relevance)
        examination = np.empty((sessions, k))
        last_click = np.zeros((k + 1, sessions))  # the probability that it is at rank 0 (none), 1, …
        last_click[0] = 1
        for position in range(k):
            above = last_click[: position + 1]
            examined = above * self.examination_after(position)[:, None]
            clicked = examined * attractiveness[:, position]
            examination[:, position] = examined.sum(axis=0)
            above -= clicked
            last_click[position + 1] = clicked.sum(axis=0)
        return examination
