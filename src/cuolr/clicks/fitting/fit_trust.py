"""The position-based model with trust bias, fitted to a log."""

import numpy as np

from cuolr.clicks.click_model import ClickModel
from cuolr.clicks.fitting.cell_fit import CellFit
from cuolr.clicks.fitting.click_model_fit import CLICK_FITS, ClickData, Expectation, Values, of_pairs, sums
from cuolr.clicks.trust import TrustBiasModel
from cuolr.logs.click_patterns import ClickPatterns
from cuolr.logs.last_clicks import PatternCells
from cuolr.types import Bools, Doubles, Ints


@CLICK_FITS.register("trust")
class TrustBiasFit(CellFit):
    """P(C_k = 1) = u_k·α(d) + v_k·(1 − α(d)), u_k = θ_k·ε⁺_k and v_k = θ_k·ε⁻_k; Agarwal et al. 2019.

    θ is not identified apart from ε⁺ and ε⁻, and α has a free scale and origin. They are chosen so that the smallest
    v is 0 and the largest u is 1.
    """

    def start(self) -> dict[str, Doubles]:
        """A relevant document is clicked more often: otherwise the two could change roles."""
        return {
            "attractiveness": np.full(self.pairs, 0.3),
            "click_relevant": np.full(self.k, 0.6),
            "click_irrelevant": np.full(self.k, 0.05),
        }

    def data(self, patterns: ClickPatterns) -> PatternCells:
        """Counts of (document, position)."""
        return patterns.cells.summed(position=True)

    def expect(self, values: Values, data: ClickData) -> Expectation:
        """Relevance is hidden: P(R = 1 | C = 1) = u·α / P(C = 1), P(R = 1 | C = 0) = (1 − u)·α / P(C = 0)."""
        assert isinstance(data, PatternCells)
        relevant, irrelevant = values["click_relevant"][data.position], values["click_irrelevant"][data.position]
        attraction = values["attractiveness"][data.pair]
        chance = relevant * attraction + irrelevant * (1 - attraction)
        skips = data.impressions - data.clicks
        if_click, if_skip = relevant * attraction / chance, (1 - relevant) * attraction / (1 - chance)
        clicks_relevant = data.clicks * if_click
        both = clicks_relevant + skips * if_skip
        hidden = data.clicks * if_click * (1 - if_click) + skips * if_skip * (1 - if_skip)
        return Expectation(
            self.log_likelihood(chance, data),
            {
                "attractiveness": sums(data.pair, both, self.pairs),
                "click_relevant": sums(data.position, clicks_relevant, self.k),
                "click_irrelevant": sums(data.position, data.clicks - clicks_relevant, self.k),
            },
            {
                "attractiveness": sums(data.pair, data.impressions, self.pairs),
                "click_relevant": sums(data.position, both, self.k),
                "click_irrelevant": sums(data.position, data.impressions - both, self.k),
            },
            {"attractiveness": sums(data.pair, hidden, self.pairs)},
        )

    def conditional(self, values: Values, documents: Ints, clicks: Bools) -> Doubles:
        """[M, K] clicks do not depend on each other."""
        return self.marginal(values, documents)

    def affine(self, values: Values, documents: Ints, clicks: Bools) -> tuple[Doubles, Doubles]:
        """[M, K] v_k and u_k − v_k: the affine correction of Vardasbi et al. 2020."""
        relevant, irrelevant = values["click_relevant"], values["click_irrelevant"]
        shown, k = documents >= 0, documents.shape[1]
        return np.where(shown, irrelevant[:k], 0.0), np.where(shown, (relevant - irrelevant)[:k], 0.0)

    def marginal(self, values: Values, documents: Ints) -> Doubles:
        """[M, K] u_k·α(d) + v_k·(1 − α(d))."""
        k = documents.shape[1]
        relevant, irrelevant = values["click_relevant"][:k], values["click_irrelevant"][:k]
        chance: Doubles = irrelevant + (relevant - irrelevant) * of_pairs(values["attractiveness"], documents)
        return chance

    def centred(self, values: Values) -> dict[str, Doubles]:
        """With α = 0 and α = 1 in the middle between the least and greatest α and the bounds of v and u."""
        bounds, attractiveness = _bounds(values), values["attractiveness"]
        if bounds is None:
            return dict(values)
        origin = (bounds[0] + float(attractiveness.min())) / 2
        scale = np.sqrt((bounds[1] - origin) * (float(attractiveness.max()) - origin))
        return _moved(values, origin, float(scale))

    def normalised(self, values: Values) -> dict[str, Doubles]:
        """With 0 as the smallest v and 1 as the largest u."""
        bounds = _bounds(values)
        return dict(values) if bounds is None else _moved(values, bounds[0], bounds[1] - bounds[0])

    def click_model(self, values: Values) -> ClickModel:
        """With θ_k = max(u_k, v_k)."""
        relevant, irrelevant = values["click_relevant"], values["click_irrelevant"]
        examination = np.maximum(relevant, irrelevant)
        return TrustBiasModel(
            examination=tuple(examination.tolist()),
            click_relevant=tuple((relevant / examination).tolist()),
            click_irrelevant=tuple((irrelevant / examination).tolist()),
        )


def _bounds(values: Values) -> tuple[float, float] | None:
    """The α at which the first v would be 0, and the α at which the first u would be 1; None if v > u somewhere."""
    low, slope = values["click_irrelevant"], values["click_relevant"] - values["click_irrelevant"]
    if (slope <= 0).any():
        return None
    return -float((low / slope).min()), float(((1 - low) / slope).min())


def _moved(values: Values, origin: float, scale: float) -> dict[str, Doubles]:
    """The same click probabilities with (α − origin) / scale for α."""
    low, slope = values["click_irrelevant"], values["click_relevant"] - values["click_irrelevant"]
    return {
        "attractiveness": np.clip((values["attractiveness"] - origin) / scale, 0, 1),
        "click_relevant": np.clip(low + slope * (origin + scale), 0, 1),
        "click_irrelevant": np.clip(low + slope * origin, 0, 1),
    }
