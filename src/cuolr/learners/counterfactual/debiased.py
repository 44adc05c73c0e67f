"""The base classes of learners that correct clicks for bias, and then train a ranker on them."""

from abc import abstractmethod
from typing import ClassVar

from cuolr.learners.counterfactual.debiased_config import DebiasedConfig
from cuolr.learners.counterfactual.fit_ranker import check_ranker, fit_ranker
from cuolr.learners.counterfactual.pooled_clicks import PooledClicks, largest_reward
from cuolr.policies.policy import RankingPolicy
from cuolr.training.base_learner import FitTask, Learner, LogForm, SearchSpace
from cuolr.training.batches import WeightedLists


class DebiasedLearner(Learner):
    """Trains a ranker on clicks or rewards that a subclass corrects for bias: debiasing and ranker are two choices."""

    config: DebiasedConfig
    role = "baseline"
    log_form: ClassVar[LogForm] = "lists"
    data_parallel = True
    cold_start = ""
    search_space: ClassVar[SearchSpace] = {
        "learner.learning_rate": (1e-4, 3e-4, 1e-3, 3e-3),
        "training.batch_size": (64, 256),
    }

    def fit(self, task: FitTask) -> RankingPolicy:
        """Correct the clicks, then train the ranker step by step."""
        check_ranker(task, self.config)
        return fit_ranker(task, self.config, *self.corrected_clicks(task))

    def corrected_clicks(self, task: FitTask) -> tuple[WeightedLists, PooledClicks]:
        """The corrected clicks by list, and by document."""
        lists = self.weighted_lists(task)
        return lists, self.pooled_clicks(task, lists)

    def weighted_lists(self, task: FitTask) -> WeightedLists:
        """The lists, with their corrected clicks or rewards as targets."""
        return WeightedLists.of(task.log)

    def pooled_clicks(self, task: FitTask, lists: WeightedLists) -> PooledClicks:
        """The corrected clicks of each list and the exposure that they come from, to be pooled by document.

        By default each corrected click counts as one of a user who examined the whole list.

        Args:
            task: The input of the learner.
            lists: As `weighted_lists` returns them.
        """
        return PooledClicks.of(lists, largest_reward(task.log, task.held_out))


class ExposureLearner(DebiasedLearner):
    """Estimates the exposure of each shown document, and trains a ranker on clicks / exposure.

    The ratio is of sums over all sessions that show a document, also for the network: a document has the same target in
    all lists of its query. Where each query has one list, this is the inverse propensity weighting of each click.
    """

    def corrected_clicks(self, task: FitTask) -> tuple[WeightedLists, PooledClicks]:
        """The corrected clicks by list, and by document."""
        pooled = self.exposed_clicks(task)
        return pooled.weighted_lists(), pooled

    @abstractmethod
    def exposed_clicks(self, task: FitTask) -> PooledClicks:
        """The clicks of each list, and their exposure."""
