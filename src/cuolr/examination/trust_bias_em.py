"""Position and trust bias by regression-based EM: users also click documents that are not relevant, more at the top.

Agarwal et al. 2019, "Addressing trust bias for unbiased learning-to-rank".
"""

from dataclasses import dataclass

import numpy as np

from cuolr.examination.regression_based_em import MIN_PROBABILITY, EmSettings, RelevanceRegression, ShownCells
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.scaled_documents import ScaledDocuments
from cuolr.types import Doubles, Ints

# Click probabilities before the first round. Relevant documents are clicked more often: otherwise both could change
# roles.
CLICK_RELEVANT, CLICK_IRRELEVANT = 0.6, 0.05


@dataclass(frozen=True)
class TrustBias:
    """P(C = 1 | k) = β_k + α_k·γ(q, d), with γ from 0 to 1.

    In the notation of the trust-bias model, α_k = θ_k (ε⁺_k − ε⁻_k) and β_k = θ_k ε⁻_k. γ has a free origin and scale.
    The origin is chosen so that the smallest β is 0; α is relative to the first position.

    Attributes:
        slope: [K] α / α_1.
        intercept: [K] β.
    """

    slope: Doubles
    intercept: Doubles

    @classmethod
    def of(cls, relevant: Doubles, irrelevant: Doubles) -> "TrustBias":
        """From the probability of a click on a relevant and on an irrelevant document at each position.

        Where an irrelevant document is clicked as often, the slope is the least that is above 0.

        >>> bias = TrustBias.of(np.array([0.9, 0.5]), np.array([0.3, 0.1]))
        >>> bias.slope.round(3), bias.intercept.round(3)  # 0.1 / 0.4 below γ = 0, the second has no clicks
        (array([1.   , 0.667]), array([0.15, 0.  ]))
        """
        slope = np.maximum(relevant - irrelevant, MIN_PROBABILITY)
        intercept = irrelevant - slope * float((irrelevant / slope).min())
        return cls(slope / slope[0], intercept)


def fit_trust_bias(log: ClickLog, shown: ScaledDocuments, rows: Ints, em: EmSettings) -> TrustBias:
    """α and β by EM with γ = σ(f(x)), f a network of the document's features.

    With u_k = θ_k ε⁺_k and v_k = θ_k ε⁻_k, E-step: P(R = 1 | C = 1) = uγ / (uγ + v(1 − γ)) and
    P(R = 1 | C = 0) = (1 − u)γ / (1 − uγ − v(1 − γ)). M-step: u is the click rate where R = 1, v where R = 0, and f is
    fitted to P(R = 1 | C) by cross-entropy. Positions that no row fills are as the last filled one.

    Deviation: the paper has examination as a hidden variable, too. It is not identified apart from ε⁺ and ε⁻, and the
    affine correction does not need it. The regression is as in `fit_examination`.

    Args:
        log: Raw or aggregated, by position on the page.
        shown: The scaled documents of all rows.
        rows: The rows to learn from.
        em: Settings.
    """
    cells = ShownCells.of(log, shown, rows)
    regression = RelevanceRegression(shown.features, em)
    u, v = np.full(log.k, CLICK_RELEVANT), np.full(log.k, CLICK_IRRELEVANT)
    skips = cells.impressions - cells.clicks
    weight = cells.by_document(cells.impressions)

    def by_position(values: Doubles) -> Doubles:
        return np.bincount(cells.position, weights=values, minlength=log.k).astype(np.float64)

    def rate(clicks: Doubles, of: Doubles, otherwise: Doubles) -> Doubles:
        limited: Doubles = np.clip(
            np.divide(clicks, of, out=otherwise.copy(), where=of > 0), MIN_PROBABILITY, 1 - MIN_PROBABILITY
        )
        return limited

    for _ in range(em.rounds if len(rows) else 0):
        gamma = regression.predict(cells.documents)[cells.place]
        if_click, if_skip = relevance_given(u[cells.position], v[cells.position], gamma)
        clicks_relevant = cells.clicks * if_click
        relevant = clicks_relevant + skips * if_skip
        u, v = (
            rate(by_position(clicks_relevant), by_position(relevant), u),
            rate(by_position(cells.clicks - clicks_relevant), by_position(cells.impressions - relevant), v),
        )
        regression.fit(cells.documents, cells.by_document(relevant) / weight, weight)
    last = int(np.max(cells.position, initial=0))
    u[last + 1 :], v[last + 1 :] = u[last], v[last]
    return TrustBias.of(u, v)


def relevance_given(u: Doubles, v: Doubles, gamma: Doubles) -> tuple[Doubles, Doubles]:
    """P(R = 1 | C = 1) and P(R = 1 | C = 0).

    Args:
        u: P(C = 1 | R = 1).
        v: P(C = 1 | R = 0).
        gamma: P(R = 1).
    """
    click = u * gamma + v * (1 - gamma)
    return u * gamma / click, (1 - u) * gamma / (1 - click)
