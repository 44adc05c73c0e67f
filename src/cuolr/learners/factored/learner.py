"""`factored`: learns to rank by examination-corrected click rates, with a cross-fitted ensemble."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar

import numpy as np

from cuolr.config import Range, check_ranges
from cuolr.data.memory import give_back_freed
from cuolr.examination.from_clicks import ExaminationModel
from cuolr.learners.factored.click_rate_prior import PriorFit, fit_click_rate_prior, fit_reward_prior
from cuolr.learners.factored.click_rates import ClickRates, ClickRatesConfig, sums_of_documents
from cuolr.learners.factored.first_clicks import FirstClicks
from cuolr.learners.factored.logging_policy_weight import LoggingPolicyConfig, weigh_against_logging_policy
from cuolr.learners.factored.stacking import EARLY_VALIDATIONS, Stack, stack
from cuolr.learners.rankers.base_ranker import ScoringRanker
from cuolr.learners.rankers.ensemble import CrossFittedEnsemble, EnsembleConfig
from cuolr.logs.counts import ClickCounts
from cuolr.logs.reward_scale import information
from cuolr.logs.scaled_documents import ScaledDocuments
from cuolr.policies.ensemble_policy import EnsemblePolicy
from cuolr.policies.logging_policy_model import ClonedRanker, LoggingPolicyModel
from cuolr.policies.policy import RankingPolicy
from cuolr.progress import Stages
from cuolr.training.base_learner import LEARNERS, FitTask, Learner, LogForm, SearchSpace
from cuolr.training.hold_out import sample_rows
from cuolr.training.steps import Steps
from cuolr.types import Doubles, Ints

# Name of the stage.
CLICK_RATES = "estimating click rates"


@dataclass(frozen=True)
class ExaminationConfig:
    """Settings of the examination model.

    Attributes:
        estimate: Whether to estimate examination; otherwise every shown document counts as examined.
        cap_at_first_position: Whether to cap examination (with no click above) at that of position 1.
    """

    estimate: bool = True
    cap_at_first_position: bool = True


@dataclass(frozen=True)
class FactoredConfig:
    """Settings of `factored`, by stage. A training step is one step of each ranker.

    Attributes:
        examination: Settings of stage 1, the examination model.
        click_rates: Settings of stage 2, the corrected click rates.
        rankers: Settings of stage 3, the ensemble of rankers.
        logging_policy: Settings of stage 5, the weight of the logging policy.
        max_documents: Maximum number of training documents; if exceeded, queries are subsampled.
        threads: Maximum number of rankers that take a step at the same time, on a thread each.
    """

    examination: ExaminationConfig = field(default_factory=ExaminationConfig)
    click_rates: ClickRatesConfig = field(default_factory=ClickRatesConfig)
    rankers: EnsembleConfig = field(default_factory=EnsembleConfig)
    logging_policy: LoggingPolicyConfig = field(default_factory=LoggingPolicyConfig)
    max_documents: Annotated[int, Range(1_000, 100_000_000)] = 1_000_000
    threads: Annotated[int, Range(1, 1_000)] = 2

    def __post_init__(self) -> None:
        check_ranges(self)


@LEARNERS.register("factored")
class Factored(Learner):
    """Ranks by attractiveness α, where P(C_k = 1) = χ · α(d_k), with χ and α estimated from the log.

    This is a model-based learner. The parameters of the click model are not given but estimated; there are no states,
    value functions or Bellman backups, and all users get the same ranking. It assumes UBM's family of click models (χ
    depends on the position and the last click above), in which ranking by α is optimal under PBM, CASCADE and DCM
    (`docs/optimality.md`).

    A model of the logging policy is fitted first, by behaviour cloning. Then:

    1. Examination: χ, in UBM's parametrisation, by maximum likelihood.
    2. Corrected click rates: α̂ = (clicks + m·prior) / (expected examinations + m), with a prior from features; or
       rates of rewards, if the log has them, with the prior times the mean reward of a click, from features, too.
       Examination is estimated from clicks: a reward needs a click.
    3. Rankers: a cross-fitted ensemble of networks, linear rankers and LambdaMART, fitted list-wise to α̂.
    4. Stacking: non-negative weights that best explain the clicks, from out-of-fold scores. A model of the logging
       policy is also a member.
    5. Whether to leave the logging policy: the click-fitted rankers are weighed against its model, by clicks on other
       queries; where these show no gain, the model alone is kept.

    Only the rankers and a non-linear model of the logging policy are cross-fitted. χ, its slope β on the logging
    policy's score, and the prior of the click rates are fitted on all training folds.
    """

    Config = FactoredConfig
    config: FactoredConfig
    log_form: ClassVar[LogForm] = "sessions"
    takes_documents: ClassVar[bool] = True
    cold_start: ClassVar[str] = (
        "it estimates everything from the counts of a log, and counts add up: merge the logs and train on all of them"
    )
    search_space: ClassVar[SearchSpace] = {
        "learner.click_rates.prior_strength": (3.0, 10.0, 30.0),
        "learner.rankers.leaves": (7, 15),
        "learner.rankers.learning_rate": (1e-4, 3e-4),
        "learner.logging_policy.pessimism": (0.0, 1.0),
    }

    def fit(self, task: FitTask) -> RankingPolicy:
        """Estimate examination and click rates up front, then train the rankers step by step."""
        return task.loop.run(self.steps(task, self.estimates(task)))

    def steps(self, task: FitTask, found: "ClickEstimates") -> "FactoredSteps":
        """Stages 3 to 5."""
        return FactoredSteps(self.config, task, found)

    def estimates(self, task: FitTask) -> "ClickEstimates":
        """Stages 1 and 2, and the model of the logging policy."""
        config, seed = self.config, task.config.seed
        counts = replace(ClickCounts.of(task.log, task.stages), information=information(task.log, task.held_out))
        logging_policy = LoggingPolicyModel()
        if config.logging_policy.include:
            folds = config.rankers.folds
            logging_policy = LoggingPolicyModel.fit(counts.shown, task.normaliser, seed, folds, task.stages)
        # Their features are scaled after examination is estimated, so that not both are in memory.
        shown = ScaledDocuments.of(counts.lists, task.normaliser)
        scores = logging_policy.scores(shown.parts())
        lists = np.flatnonzero(~np.isin(counts.lists.query, task.held_out))
        examination = self._examination(counts, scores[shown.documents], lists, task.stages)
        task.stages(CLICK_RATES, None)
        rates = self._click_rates(counts, shown, examination, scores, lists, seed)
        first_clicks = FirstClicks.of(counts, shown, lists)
        return ClickEstimates(shown, logging_policy, examination, rates, first_clicks)

    def _examination(
        self, counts: ClickCounts, logging_scores: Doubles, lists: Ints, stages: Stages
    ) -> ExaminationModel:
        """Stage 1."""
        if not self.config.examination.estimate:
            return ExaminationModel.full(counts.lists.k)
        cap = self.config.examination.cap_at_first_position
        return ExaminationModel.from_counts(counts, logging_scores, lists, cap_at_first_position=cap, stages=stages)

    def _click_rates(
        self,
        counts: ClickCounts,
        shown: ScaledDocuments,
        examination: ExaminationModel,
        logging_scores: Doubles,
        lists: Ints,
        seed: int,
    ) -> ClickRates:
        """Stage 2, for all queries; the prior is not trained on the held-out ones."""
        config = self.config.click_rates
        fit = PriorFit(config.prior_steps, config.prior_learning_rate, self.config.rankers.lists_per_step, seed)
        prior = fit_click_rate_prior(counts, shown, examination, logging_scores, lists, fit)
        prior = prior * fit_reward_prior(counts, shown, lists, fit)
        exposure = sums_of_documents(counts, examination.examinations_of_cells(counts))[shown.rows]
        return ClickRates.of(counts, shown, exposure, prior, config.prior_strength)


@dataclass(frozen=True)
class ClickEstimates:
    """What is estimated before the first step.

    Attributes:
        shown: The documents shown in the log.
        logging_policy: The model of the logging policy.
        examination: Stage 1.
        rates: Stage 2, of all queries.
        first_clicks: What stage 5 weighs the logging policy by.
    """

    shown: ScaledDocuments
    logging_policy: LoggingPolicyModel
    examination: ExaminationModel
    rates: ClickRates
    first_clicks: FirstClicks


class FactoredSteps(Steps):
    """Stages 3 to 5: each step trains the rankers; weights are computed when a policy is needed.

    Attributes:
        rates: The click rates of the training queries.
        fold: [R] the fold of each training query.
        ensemble: The rankers.
    """

    stops_on_plateau = True
    early_validations = EARLY_VALIDATIONS

    def __init__(self, config: FactoredConfig, task: FitTask, found: ClickEstimates) -> None:
        rates = found.rates
        held_out = np.isin(rates.query, task.held_out)
        self._config = config
        self._seed = task.config.seed
        self._first_clicks = found.first_clicks
        self._logging_policy = found.logging_policy
        self._examination = found.examination
        validation = sample_rows(np.flatnonzero(held_out), task.config.max_held_out, self._seed)
        self._held_out = rates.select(validation)
        self.rates = rates.select(np.flatnonzero(~held_out)).sample(config.max_documents, self._seed)
        self.fold = self._folds()
        self.ensemble = CrossFittedEnsemble(
            self.rates.targets(), self.fold, config.rankers, self._seed, config.threads, task.normaliser, task.ray
        )
        self._step = 0
        self._stacked: tuple[int, Stack] | None = None

    def step(self) -> dict[str, float]:
        """Stage 3: one step of each ranker."""
        values = self.ensemble.step()
        self._step += 1
        return values

    def members(self) -> list[tuple[ScoringRanker, float]]:
        """Stages 4 and 5: each ranker with its weight, after the steps taken so far."""
        return self.stacked().members()

    def stacked(self) -> Stack:
        """Stages 4 and 5, after the steps taken so far."""
        if self._stacked is None or self._stacked[0] != self._step:
            clones = self._logging_policy.rankers
            kinds: list[Sequence[ScoringRanker]] = [*self.ensemble.kinds, *([clones] if clones else [])]
            stacked = stack(kinds, self.rates, self.fold, self._seed)
            give_back_freed()  # by scoring
            if clones:
                pessimism = self._config.logging_policy.pessimism
                stacked = weigh_against_logging_policy(stacked, self.rates, self._first_clicks, pessimism, self._seed)
            self._stacked = self._step, stacked
        return self._stacked[1]

    def held_out_score(self) -> float:
        """How well clicks are explained on all queries; the prior of the click rates has no part in it."""
        return self.stacked().clicks_explained(self.rates, self._held_out)

    def policy(self) -> EnsemblePolicy:
        """The ensemble of all rankers, each with its weight."""
        members = self.members()
        return EnsemblePolicy(
            [ranker.policy() for ranker, _ in members],
            [weight for _, weight in members],
            logging_policy_members=[i for i, (ranker, _) in enumerate(members) if isinstance(ranker, ClonedRanker)],
            examination=self._examination.probabilities() if self._config.examination.estimate else None,
            by_context=self._examination.by_context,
        )

    def state(self) -> dict[str, Any]:
        """The rankers' state; everything else is determined by the log, the settings and the seed."""
        return {"step": self._step, "rankers": self.ensemble.state()}

    def load_state(self, state: dict[str, Any]) -> None:
        """Continue from `state`; trees are grown again."""
        self.ensemble.load_state(state["rankers"])
        self._step = state["step"]
        self._stacked = None

    def _folds(self) -> Ints:
        """[R] the fold of each query: the logging-policy model's folds if it is cross-fitted, else random."""
        if self._logging_policy.fold is not None:
            return self._logging_policy.fold[self.rates.query]
        return np.random.default_rng(self._seed).permutation(len(self.rates)) % self._config.rankers.folds
