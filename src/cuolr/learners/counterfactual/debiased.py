"""The base classes of learners that correct clicks for bias and then train a ranker on them, and their settings."""

from abc import abstractmethod
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from cuolr.config import Range
from cuolr.data.candidate_store import folder_of
from cuolr.errors import InputError
from cuolr.examination.regression_based_em import EmSettings
from cuolr.learners.counterfactual.pooled_clicks import PooledClicks, largest_reward
from cuolr.learners.counterfactual.stacked_ensemble import EnsembleSteps, StackedEnsemble
from cuolr.learners.factored.click_rates import ClickRates
from cuolr.learners.rankers.base_ranker import RankerSteps
from cuolr.learners.rankers.ensemble import EnsembleConfig, lightgbm_parameters
from cuolr.learners.rankers.lambdamart import LambdaMartRanker, QueryGroups
from cuolr.learners.rankers.network import NetworkConfig, NetworkRanker
from cuolr.learners.rankers.shared_trees import SharedTrees, StoredLists
from cuolr.learners.rankers.targets import batches_of_targets
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.page_positions import at_page_positions
from cuolr.logs.scaled_documents import ScaledDocuments
from cuolr.networks.layers import seeded
from cuolr.policies.logging_policy_model import LoggingPolicyModel
from cuolr.policies.policy import RankingPolicy
from cuolr.training import distributed
from cuolr.training.base_learner import FitTask, Learner, LogForm, SearchSpace
from cuolr.training.batches import Batches, WeightedLists
from cuolr.training.warm_start import load_networks
from cuolr.types import IntegerArray, Ints

RankerName = Literal["network", "lambdamart", "ensemble"]


@dataclass(frozen=True)
class DebiasedConfig(NetworkConfig):
    """Settings of the ranker, in addition to those of `NetworkConfig`, which are for `ranker = "network"`.

    Attributes:
        ranker: The ranker that is trained on the corrected clicks: network, lambdamart or ensemble.
        rankers: Settings of LambdaMART, and of the ensemble of networks, linear rankers and LambdaMART.
        include_logging_policy: Whether a model of the logging policy is a member of the ensemble.
        threads: Maximum number of threads of LightGBM, or of rankers of an ensemble that take a step at the same time.
    """

    ranker: RankerName = "network"
    rankers: EnsembleConfig = field(default_factory=EnsembleConfig)
    include_logging_policy: bool = False
    threads: Annotated[int, Range(1, 1_000)] = 2

    @property
    def without_effect(self) -> frozenset[str]:
        """The settings of other rankers than a network, if it is one; see `to_dict`."""
        others = {"ranker", "rankers", "include_logging_policy", "threads"}
        return frozenset(others) if self.ranker == "network" else frozenset()


def fit_ranker(task: FitTask, config: DebiasedConfig, lists: WeightedLists, pooled: PooledClicks) -> RankingPolicy:
    """Train a ranker on corrected clicks.

    The network has the list-wise softmax loss on the corrected clicks of each list. LambdaMART and the ensemble are
    fitted to the corrected click rate of each document of a query, pooled over all lists that show it, so that they
    learn from the whole log. Without labels, the network and LambdaMART are validated by the softmax loss on corrected
    clicks of held-out lists; an ensemble, whose rankers leave out a fold each, by the clicks of all queries.

    Args:
        task: The input of the learner.
        config: The choice of the ranker, and its settings.
        lists: The lists with their corrected clicks, for the network and for validation.
        pooled: The corrected clicks by document, for the other rankers.
    """
    batches, held_out = task.batches(lists)
    if config.ranker == "network":
        return task.loop.run(RankerSteps(_network(task, config, batches), held_out))
    if config.ranker == "lambdamart" and task.ray is not None:
        return task.loop.run(RankerSteps(_shared_trees(task, config, pooled, batches.rows), held_out))
    rates = pooled.rates(batches.rows, task.normaliser)
    if config.ranker == "lambdamart":
        return task.loop.run(RankerSteps(_lambdamart(task, config, rates), held_out))
    none = rates.select(np.empty(0, np.int64))
    held_out_rates = none if held_out is None else pooled.rates(held_out.rows, task.normaliser)
    return task.loop.run(EnsembleSteps(_ensemble(task, config, rates), held_out_rates))


def check_ranker(task: FitTask, config: DebiasedConfig) -> None:
    """Raise if the ranker cannot be trained in this way."""
    ranker = config.ranker
    if ranker != "network" and distributed.processes() > 1:
        raise InputError(f"learner.ranker: {ranker} cannot be trained by several processes; run it without torchrun")
    if ranker == "network" and task.ray is not None:
        raise InputError(
            "ray: a network is trained by one process; choose lambdamart or ensemble as learner.ranker, or train "
            "without ray"
        )
    if ranker == "ensemble" and task.start is not None:
        raise InputError("warm_start: an ensemble always starts anew; choose network or lambdamart as learner.ranker")


def _network(task: FitTask, config: DebiasedConfig, batches: Batches) -> NetworkRanker:
    with seeded(task.config.seed):
        n_features = task.log.candidates.n_features + task.normaliser.n_indicators
        ranker = NetworkRanker(n_features, config, task.normaliser, batches_of_targets(batches))
    if task.start is not None:
        load_networks(ranker.network, task.start.weights("network"), task.start)
    return ranker


def _lambdamart(task: FitTask, config: DebiasedConfig, rates: ClickRates) -> LambdaMartRanker:
    parameters = lightgbm_parameters(config.rankers, config.threads, task.config.seed)
    targets = rates.targets()
    ranker = LambdaMartRanker(QueryGroups.of(targets, float(targets.target.max())), parameters, task.normaliser)
    if task.start is not None:
        ranker.continue_from(task.start.policy)
    return ranker


def _shared_trees(task: FitTask, config: DebiasedConfig, pooled: PooledClicks, rows: IntegerArray) -> SharedTrees:
    """Trees that are shared by the nodes of a cluster, which read the features; this process does not."""
    folder = folder_of(task.log.candidates)
    if folder is None:
        raise InputError(
            "ray: lambdamart needs a log in a folder, of ten queries or more, with features in the order of the model "
            "that it starts from; train without ray"
        )
    targets = pooled.rates(rows, None).targets()
    lists = QueryGroups.of(targets, float(targets.target.max()))
    lists = replace(lists, rows=np.flatnonzero(pooled.shown(rows))[lists.rows])
    parameters = lightgbm_parameters(config.rankers, config.threads, task.config.seed)
    start = None if task.start is None else task.start.policy
    return SharedTrees(task.ray, StoredLists(folder, lists), parameters, task.normaliser, start)


def _ensemble(task: FitTask, config: DebiasedConfig, rates: ClickRates) -> StackedEnsemble:
    logging_policy, seed = LoggingPolicyModel(), task.config.seed
    if config.include_logging_policy:
        log, folds = at_page_positions(task.log), config.rankers.folds
        logging_policy = LoggingPolicyModel.fit(log, task.normaliser, seed, folds, task.stages)
    return StackedEnsemble(rates, config.rankers, logging_policy, seed, config.threads, task.normaliser, task.ray)


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


@dataclass(frozen=True)
class EmConfig(DebiasedConfig):
    """Settings of regression-based EM, in addition to those of `DebiasedConfig`.

    Attributes:
        em_rounds: Number of rounds of EM.
        em_steps: Number of gradient steps of the regression in each round.
        em_learning_rate: Learning rate of the regression.
        max_weight: Upper limit on the weight of a click.
    """

    em_rounds: Annotated[int, Range(1, 100_000)] = 100
    em_steps: Annotated[int, Range(1, 100_000)] = 5
    em_learning_rate: Annotated[float, Range(0, 1)] = 3e-3
    max_weight: Annotated[float, Range(1)] = 100.0


class EmLearner(ExposureLearner):
    """Estimates bias on the training queries, by position on the page."""

    Config: ClassVar[type[Any]] = EmConfig
    config: EmConfig
    search_space: ClassVar[SearchSpace] = {**ExposureLearner.search_space, "learner.em_learning_rate": (1e-3, 3e-3)}

    def em_input(self, task: FitTask) -> tuple[ClickLog, ScaledDocuments, Ints, EmSettings]:
        """The log by position on the page, its documents, the rows to learn from, and the settings of EM."""
        config, log = self.config, at_page_positions(task.log)
        rows = np.flatnonzero(~np.isin(log.query, task.held_out))
        em = EmSettings(config.em_rounds, config.em_steps, config.em_learning_rate, task.config.seed)
        return log, ScaledDocuments.of(log, task.normaliser), rows, em
