"""An ensemble of rankers as one ranker: cross-fitted, with stacking weights."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from cuolr.data.normalise import Normaliser
from cuolr.learners.factored.click_rates import ClickRates
from cuolr.learners.factored.stacking import EARLY_VALIDATIONS, Stack, stack
from cuolr.learners.rankers.base_ranker import BaseRanker, RankerSteps, ScoringRanker
from cuolr.learners.rankers.ensemble import CrossFittedEnsemble, EnsembleConfig
from cuolr.policies.ensemble_policy import EnsemblePolicy
from cuolr.policies.logging_policy_model import ClonedRanker, LoggingPolicyModel
from cuolr.types import Doubles, Floats


class StackedEnsemble(BaseRanker):
    """Networks, linear rankers and LambdaMART fitted to corrected click rates, with non-negative stacking weights.

    These are stages 3 and 4 of `factored`, on the rates of any debiasing. The weights are those that best explain the
    corrected clicks of queries that a ranker was not trained on. A model of the logging policy is a member like the
    others; there is no pessimism. Weights are computed when scores are needed.
    """

    def __init__(
        self,
        rates: ClickRates,
        config: EnsembleConfig,
        logging_policy: LoggingPolicyModel,
        seed: int,
        threads: int,
        normaliser: Normaliser,
        ray: Any = None,
    ) -> None:
        """Create rankers that have not taken a step.

        Args:
            rates: The corrected click rates of the training queries.
            config: Settings of the ensemble.
            logging_policy: A model of the logging policy; an empty one is no member.
            seed: Seed of the folds and the rankers.
            threads: Maximum number of rankers that take a step at the same time.
            normaliser: The normaliser that scaled the features.
            ray: See `CrossFittedEnsemble`.
        """
        self._rates, self._seed = rates, seed
        self._clones = logging_policy.rankers
        self._fold = np.random.default_rng(seed).permutation(len(rates)) % config.folds
        if logging_policy.fold is not None:
            self._fold = logging_policy.fold[rates.query]
        self._rankers = CrossFittedEnsemble(rates.targets(), self._fold, config, seed, threads, normaliser, ray)
        self._stacked: Stack | None = None

    def step(self) -> dict[str, float]:
        """One step of each ranker."""
        self._stacked = None
        return self._rankers.step()

    def members(self) -> list[tuple[ScoringRanker, float]]:
        """Each ranker with its weight, after the steps taken so far."""
        return self._stack().members()

    def clicks_explained(self, held_out: ClickRates) -> float:
        """How well corrected clicks are explained; see `Stack.clicks_explained`."""
        return self._stack().clicks_explained(self._rates, held_out)

    def _stack(self) -> Stack:
        if self._stacked is None:
            kinds: list[Sequence[ScoringRanker]] = [*self._rankers.kinds, *([self._clones] if self._clones else [])]
            self._stacked = stack(kinds, self._rates, self._fold, self._seed)
        return self._stacked

    def score(self, features: Floats) -> Doubles:
        """[n] the weighted sum of the rankers' scores."""
        scores = np.zeros(len(features))
        for ranker, weight in self.members():
            scores += weight * ranker.score(features)
        return scores

    def policy(self) -> EnsemblePolicy:
        """The ensemble of all rankers, each with its weight."""
        members = self.members()
        clones = [i for i, (ranker, _) in enumerate(members) if isinstance(ranker, ClonedRanker)]
        return EnsemblePolicy([ranker.policy() for ranker, _ in members], [weight for _, weight in members], clones)

    def state(self) -> dict[str, Any]:
        """The rankers' state; everything else is determined by the rates, the settings and the seed."""
        return self._rankers.state()

    def load_state(self, state: dict[str, Any]) -> None:
        """Continue from `state`; trees are grown again."""
        self._rankers.load_state(state)
        self._stacked = None


class EnsembleSteps(RankerSteps):
    """Trains an ensemble; without labels, it is validated as `factored` is."""

    stops_on_plateau = True
    early_validations = EARLY_VALIDATIONS
    ranker: StackedEnsemble

    def __init__(self, ranker: StackedEnsemble, held_out: ClickRates) -> None:
        super().__init__(ranker, None)
        self._held_out_rates = held_out

    def held_out_score(self) -> float:
        """How well corrected clicks are explained on all queries."""
        return self.ranker.clicks_explained(self._held_out_rates)
