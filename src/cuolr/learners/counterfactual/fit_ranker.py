"""Trains the ranker that a learner's settings choose on corrected clicks, step by step."""

import numpy as np

from cuolr.errors import InputError
from cuolr.learners.counterfactual.debiased_config import DebiasedConfig
from cuolr.learners.counterfactual.pooled_clicks import PooledClicks
from cuolr.learners.counterfactual.stacked_ensemble import EnsembleSteps, StackedEnsemble
from cuolr.learners.factored.click_rates import ClickRates
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
from cuolr.training.base_learner import FitTask
from cuolr.training.batches import Batches, WeightedLists
from cuolr.training.warm_start import load_networks


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
    if ranker != "ensemble" and task.ray is not None:
        raise InputError(f"ray: {ranker} is a single ranker; choose ensemble as learner.ranker, or train without ray")
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


def _ensemble(task: FitTask, config: DebiasedConfig, rates: ClickRates) -> StackedEnsemble:
    logging_policy, seed = LoggingPolicyModel(), task.config.seed
    if config.include_logging_policy:
        log, folds = at_page_positions(task.log), config.rankers.folds
        logging_policy = LoggingPolicyModel.fit(log, task.normaliser, seed, folds, task.stages)
    return StackedEnsemble(rates, config.rankers, logging_policy, seed, config.threads, task.normaliser, task.ray)
