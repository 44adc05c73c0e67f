"""The base class of learners that correct clicks for bias, and then train a ranker on them."""

from typing import ClassVar

from cuolr.errors import InputError
from cuolr.learners.counterfactual.debiased_config import DebiasedConfig
from cuolr.learners.counterfactual.pooled_clicks import PooledClicks, largest_reward
from cuolr.learners.counterfactual.stacked_ensemble import StackedEnsemble
from cuolr.learners.factored.click_rates import ClickRates
from cuolr.learners.rankers.base_ranker import BaseRanker
from cuolr.learners.rankers.ensemble import lightgbm_parameters
from cuolr.learners.rankers.lambdamart import LambdaMartRanker, QueryGroups
from cuolr.learners.rankers.network import NetworkRanker
from cuolr.learners.rankers.ranker_steps import RankerSteps
from cuolr.learners.rankers.targets import batches_of_targets
from cuolr.logs.page_positions import at_page_positions
from cuolr.networks.layers import seeded
from cuolr.policies.logging_policy_model import LoggingPolicyModel
from cuolr.policies.policy import RankingPolicy
from cuolr.training import distributed
from cuolr.training.base_learner import FitTask, Learner, LogForm, SearchSpace
from cuolr.training.batches import Batches, WeightedLists
from cuolr.training.warm_start import load_networks


class DebiasedLearner(Learner):
    """Trains a ranker on clicks or rewards that a subclass corrects for bias: debiasing and ranker are two choices.

    The network has the list-wise softmax loss on the corrected clicks of each list. LambdaMART and the ensemble are
    fitted to the corrected click rate of each document of a query, pooled over all lists that show it, so that they
    learn from the whole log. Validation is the same for all: the softmax loss on corrected clicks of held-out lists.
    """

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
        self._check(task)
        lists = self.weighted_lists(task)
        batches, held_out = task.batches(lists)
        if self.config.ranker == "network":
            ranker: BaseRanker = self._network(task, batches)
        else:
            rates = self.pooled_clicks(task, lists).rates(batches.rows, task.normaliser)
            ranker = (
                self._lambdamart(task, rates) if self.config.ranker == "lambdamart" else self._ensemble(task, rates)
            )
        return task.loop.run(RankerSteps(ranker, held_out))

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

    def _network(self, task: FitTask, batches: Batches) -> NetworkRanker:
        with seeded(task.config.seed):
            n_features = task.log.candidates.n_features + task.normaliser.n_indicators
            ranker = NetworkRanker(n_features, self.config, task.normaliser, batches_of_targets(batches))
        if task.start is not None:
            load_networks(ranker.network, task.start.weights("network"), task.start)
        return ranker

    def _lambdamart(self, task: FitTask, rates: ClickRates) -> LambdaMartRanker:
        parameters = lightgbm_parameters(self.config.rankers, self.config.threads, task.config.seed)
        targets = rates.targets()
        ranker = LambdaMartRanker(QueryGroups.of(targets, float(targets.target.max())), parameters, task.normaliser)
        if task.start is not None:
            ranker.continue_from(task.start.policy)
        return ranker

    def _ensemble(self, task: FitTask, rates: ClickRates) -> StackedEnsemble:
        config, seed = self.config, task.config.seed
        logging_policy = LoggingPolicyModel()
        if config.include_logging_policy:
            log, folds = at_page_positions(task.log), config.rankers.folds
            logging_policy = LoggingPolicyModel.fit(log, task.normaliser, seed, folds, task.stages)
        return StackedEnsemble(rates, config.rankers, logging_policy, seed, config.threads, task.normaliser)

    def _check(self, task: FitTask) -> None:
        ranker = self.config.ranker
        if ranker != "network" and distributed.processes() > 1:
            raise InputError(
                f"learner.ranker: {ranker} cannot be trained by several processes; run it without torchrun"
            )
        if ranker == "ensemble" and task.start is not None:
            raise InputError(
                "warm_start: an ensemble always starts anew; choose network or lambdamart as learner.ranker"
            )
