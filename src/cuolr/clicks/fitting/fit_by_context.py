"""A click model with parameters of its own in each level of context, such as the device; those of pairs are common."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from cuolr.clicks.click_model import ClickModel
from cuolr.clicks.fitting.click_model_fit import (
    CLICK_FITS,
    ClickData,
    ClickModelFit,
    DataByLevel,
    Expectation,
    Values,
)
from cuolr.logs.click_patterns import ClickPatterns
from cuolr.types import Bools, Doubles, Ints


@dataclass(frozen=True)
class FitByContext(ClickModelFit):
    """The sessions of each level have their own global parameters; documents are the same for all.

    Given the parameters, the levels are independent: their expected counts of a pair add up, and EM increases the
    likelihood of all sessions together. An array of a global parameter has the entries of the first level, then those
    of the second one, and so on.

    A session whose level is not known is of each with the probability `share`, and its clicks say more.

    Attributes:
        of_level: The click model of one level.
        levels: The names of the levels.
        share: The share of the sessions in each.
    """

    of_level: ClickModelFit
    levels: tuple[str, ...]
    share: tuple[float, ...]

    @property
    def by_pair(self) -> tuple[str, ...]:  # type: ignore[override]
        """Those of the click model."""
        return self.of_level.by_pair

    @property
    def is_baseline(self) -> bool:  # type: ignore[override]
        """Whether the click model is one."""
        return self.of_level.is_baseline

    def data(self, patterns: ClickPatterns) -> DataByLevel:
        """The counts of each level."""
        return DataByLevel(tuple(self.of_level.data(level) for level in patterns.by_level()))

    def start(self) -> dict[str, Doubles]:
        """The levels are alike."""
        start = self.of_level.start()
        return {n: v if n in self.by_pair else np.tile(v, len(self.levels)) for n, v in start.items()}

    def split(self, values: Values) -> list[dict[str, Doubles]]:
        """The parameters of each level."""
        parts = {
            name: [value] * len(self.levels) if name in self.by_pair else np.split(value, len(self.levels))
            for name, value in values.items()
        }
        return [{name: part[level] for name, part in parts.items()} for level in range(len(self.levels))]

    def expect(self, values: Values, data: ClickData) -> Expectation:
        """The E-step of each level."""
        assert isinstance(data, DataByLevel)
        found = [self.of_level.expect(*level) for level in zip(self.split(values), data.levels, strict=True)]
        return Expectation(
            sum(level.log_likelihood for level in found),
            self._joined([level.successes for level in found]),
            self._joined([level.trials for level in found]),
            self._joined([level.hidden for level in found]),
        )

    def _joined(self, levels: list[Values]) -> Mapping[str, Doubles]:
        """Counts of pairs are added up."""
        return {
            name: (np.add.reduce if name in self.by_pair else np.concatenate)([level[name] for level in levels])
            for name in levels[0]
        }

    def conditional(self, values: Values, documents: Ints, clicks: Bools) -> Doubles:
        """[M, K] Σ_l P(level l | the clicks above) · P(C_k = 1 | the clicks above, l)."""
        chances = np.stack([self.of_level.conditional(part, documents, clicks) for part in self.split(values)])
        seen = np.where(documents >= 0, np.where(clicks, chances, 1 - chances), 1.0)
        weights = np.broadcast_to(np.array(self.share)[:, None, None], chances.shape).copy()
        weights[:, :, 1:] *= np.cumprod(seen[:, :, :-1], axis=2)
        mean: Doubles = (weights * chances).sum(axis=0) / np.maximum(weights.sum(axis=0), 1e-300)
        return mean

    def marginal(self, values: Values, documents: Ints) -> Doubles:
        """[M, K] the mean over the levels."""
        chances = [self.of_level.marginal(part, documents) for part in self.split(values)]
        mean: Doubles = np.average(chances, axis=0, weights=self.share)
        return mean

    def centred(self, values: Values) -> dict[str, Doubles]:
        """The levels have one scale."""
        return self.of_level.centred(values)

    def normalised(self, values: Values) -> dict[str, Doubles]:
        """The levels have one scale."""
        return self.of_level.normalised(values)

    def prior_groups(self) -> Ints:
        """Those of the click model."""
        return self.of_level.prior_groups()

    def entry_name(self, name: str, place: int) -> str:
        """The level, and the entry of the click model."""
        size = len(self.of_level.start()[name])
        entry = f", {self.of_level.entry_name(name, place % size)}" if size > 1 else ""
        return f"{self.levels[place // size]}{entry}"

    def click_model(self, values: Values) -> ClickModel | None:
        """That of the level with the most sessions."""
        return self.of_level.click_model(self.split(values)[int(np.argmax(self.share))])


def fit_for(name: str, patterns: ClickPatterns) -> ClickModelFit:
    """The click model of this name for these counts, by context if these are."""
    model = CLICK_FITS.get(name)(patterns.k, len(patterns.pairs))
    if patterns.level is None:
        return model
    sessions = np.bincount(patterns.level, weights=patterns.session_count, minlength=len(patterns.levels))
    share = tuple((sessions / sessions.sum()).tolist())
    return FitByContext(model.k, model.pairs, model, patterns.levels, share)
