"""`planned`: plans in the ranking MDP, with users and attractiveness estimated from the log."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from scipy.special import expit, logit

from cuolr.config import Range
from cuolr.examination.continuation import Attractiveness, likely_users
from cuolr.learners.factored.click_rates import ClickRates
from cuolr.learners.factored.learner import ClickEstimates, Factored, FactoredConfig, FactoredSteps
from cuolr.logs.click_patterns import ClickPatterns
from cuolr.logs.page_positions import at_page_positions
from cuolr.policies.browsing_users import BrowsingUsers, LastClickUsers
from cuolr.policies.planned_policy import PlannedPolicy
from cuolr.policies.policy import RankingPolicy
from cuolr.training.base_learner import LEARNERS, FitTask
from cuolr.training.steps import Steps
from cuolr.types import Doubles

# Newton steps of the calibration, and the prior on its slope in pseudo-observations.
NEWTON_STEPS, PRIOR = 25, 1.0


@dataclass(frozen=True)
class PlannedConfig(FactoredConfig):
    """Settings of `planned`, in addition to those of `factored`.

    Attributes:
        min_gain: Least relative gain in expected clicks for which a list is not sorted. Attractiveness is an estimate,
            and the best of many lists is one whose estimate is too high.
    """

    min_gain: Annotated[float, Range(0, 10)] = 0.002


@LEARNERS.register("planned")
class Planned(Factored):
    """Shows the list of the most expected clicks, Σ_k P(C_k = 1), which is not always the sorted one.

    The ranking MDP with a model: its state is the position, the clicks above and the documents left, and the
    transitions are those of users who were estimated from the log. They examine by the last click above, with χ from
    stage 1 of `factored`, or they read down until they stop, whichever makes the clicks more likely (`likely_users`).
    Attractiveness is α = sigmoid(a + b · score), calibrated on the scores of `factored`. The list is found by local
    search, from the sorted one on (`best_lists`). Where sorting is optimal, as under PBM, the cascade model and DCM, it
    sorts.

    If the log has rewards, reward rates take the place of α.
    """

    Config = PlannedConfig
    config: PlannedConfig
    takes_documents: ClassVar[bool] = False  # users are estimated from the clicks of each list

    def fit(self, task: FitTask) -> RankingPolicy:
        """Estimate the users up front, then train the rankers of `factored` step by step."""
        found = self.estimates(task)
        users = _users(task, found, self.config.click_rates.prior_strength)
        return task.loop.run(PlannedSteps(self.steps(task, found), users, self.config.min_gain))


class PlannedSteps(Steps):
    """The steps of `factored`, with planning on top."""

    stops_on_plateau = FactoredSteps.stops_on_plateau
    early_validations = FactoredSteps.early_validations

    def __init__(self, steps: FactoredSteps, users: BrowsingUsers, min_gain: float) -> None:
        self._steps = steps
        self._users = users
        self._min_gain = min_gain

    def step(self) -> dict[str, float]:
        """One step of each ranker."""
        return self._steps.step()

    def held_out_score(self) -> float:
        """That of `factored`."""
        return self._steps.held_out_score()

    def policy(self) -> PlannedPolicy:
        """Plans with the current scores."""
        scorer, rates = self._steps.policy(), self._steps.rates
        intercept, slope = calibrated(self._steps.stacked().scores()[rates.where], rates)
        return PlannedPolicy(scorer, self._users, intercept, slope, self._min_gain)

    def state(self) -> dict[str, Any]:
        """That of `factored`."""
        return self._steps.state()

    def load_state(self, state: dict[str, Any]) -> None:
        """Continue from `state`."""
        self._steps.load_state(state)


def _users(task: FitTask, found: ClickEstimates, prior_strength: float) -> BrowsingUsers:
    """The users of the training queries."""
    table = found.examination.probabilities()
    if task.log.aggregated:
        return LastClickUsers(table)
    patterns = ClickPatterns.of(at_page_positions(task.log)).with_every_document()
    patterns = patterns.select(~np.isin(patterns.query, task.held_out))
    rates, where = found.rates, found.rates.where
    # α̂ = (clicks + clicks of the prior) / (examinations + strength of the prior)
    of_prior = rates.rate * (rates.expected_examinations + prior_strength) - rates.rewards
    rate, prior_clicks = np.zeros((2, task.log.candidates.n_documents))
    documents = found.shown.rows[rates.documents[where]]
    rate[documents], prior_clicks[documents] = rates.rate[where], np.maximum(of_prior[where], 0.0)
    return likely_users(patterns, Attractiveness(rate, prior_clicks, prior_strength), table)


def calibrated(scores: Doubles, rates: ClickRates) -> tuple[float, float]:
    """A and b of α = sigmoid(a + b · score) that best explain the click rates, each by its expected examinations.

    By Newton's method. The slope has a prior at 0, so that scores without a relation to clicks change no list.

    Args:
        scores: [n] the scores of the documents of `rates`, query after query.
        rates: The click rates.
    """
    where = rates.where
    rate = np.clip(rates.rate[where], 0, 1)
    weight = rates.expected_examinations[where]
    total = float(weight.sum())
    if total <= 0 or not scores.size:
        return 0.0, 0.0
    mean, spread = float(scores.mean()), float(scores.std()) or 1.0
    standard = np.stack([np.ones_like(scores), (scores - mean) / spread])
    at = np.array([logit(np.clip(float(weight @ rate) / total, 1e-6, 1 - 1e-6)), 0.0])
    prior = np.diag([0.0, PRIOR])
    for _ in range(NEWTON_STEPS):
        chance = expit(at @ standard)
        gradient = standard @ (weight * (rate - chance)) - prior @ at
        information = (standard * (weight * chance * (1 - chance))) @ standard.T + prior
        step = np.linalg.lstsq(information, gradient, rcond=1e-12)[0]
        at = at + np.clip(step, -2, 2)
        if np.abs(step).max() < 1e-9:
            break
    slope = max(float(at[1]), 0.0) / spread
    return float(at[0]) - slope * mean, slope
