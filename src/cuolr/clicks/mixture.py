"""A mixture of click models: each session follows one of them."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cuolr.clicks.click_model import CLICK_MODELS, ClickModel, click_model
from cuolr.config import SettingError
from cuolr.types import Bools, Doubles, Floats


@CLICK_MODELS.register("mixture")
@dataclass(frozen=True, kw_only=True)
class MixtureModel(ClickModel):
    """Each session follows one of several click models, chosen uniformly at random: χ = mean_i χ_i.

    Deviation: not in the paper, whose claim covers any click model.

    Attributes:
        models: Names of click models; they have their default parameters, except for the noise.
    """

    models: tuple[str, ...] = ("pbm", "cascade", "ubm", "dcm", "ccm")

    def __post_init__(self) -> None:
        super().__post_init__()
        for model in self.components:
            if isinstance(model, MixtureModel) or type(model).click_if_examined is not ClickModel.click_if_examined:
                name = self.models[self.components.index(model)]
                raise SettingError({"models": f"expected models that differ in examination only, found '{name}'"})

    @cached_property
    def components(self) -> tuple[ClickModel, ...]:
        """The click models."""
        return tuple(click_model(name, noise=self.noise) for name in self.models)

    def examine(self, relevance: Floats, attracted: Bools, uniforms: Floats) -> Bools:
        """The leading digits of a session's first random number choose the model; the rest is again uniform."""
        count = len(self.components)
        scaled = uniforms[:, 0] * count
        user = np.minimum(scaled.astype(np.int64), count - 1)
        uniforms = uniforms.copy()
        uniforms[:, 0] = scaled - user
        examined = np.empty(relevance.shape, np.bool_)
        for i, model in enumerate(self.components):
            rows = user == i
            examined[rows] = model.examine(relevance[rows], attracted[rows], uniforms[rows])
        return examined

    def examination_probability(self, relevance: Doubles) -> Doubles:
        """The mean over the click models."""
        chances: Doubles = np.mean([model.examination_probability(relevance) for model in self.components], axis=0)
        return chances
