"""The base class of learners that correct clicks for bias, and then train a ranker on them."""

from typing import ClassVar

from cuolr.learners.rankers.network import NetworkConfig, NetworkRanker
from cuolr.learners.rankers.ranker_steps import RankerSteps
from cuolr.learners.rankers.targets import batches_of_targets
from cuolr.networks.layers import seeded
from cuolr.policies.policy import RankingPolicy
from cuolr.training.base_learner import FitTask, Learner, LogForm, SearchSpace
from cuolr.training.batches import WeightedLists
from cuolr.training.warm_start import load_networks


class DebiasedLearner(Learner):
    """Trains a network with the list-wise softmax loss on clicks or rewards weighted by a subclass."""

    config: NetworkConfig
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
        batches, held_out = task.batches(self.weighted_lists(task))
        with seeded(task.config.seed):
            n_features = task.log.candidates.n_features + task.normaliser.n_indicators
            ranker = NetworkRanker(n_features, self.config, task.normaliser, batches_of_targets(batches))
        if task.start is not None:
            load_networks(ranker.network, task.start.weights("network"), task.start)
        return task.loop.run(RankerSteps(ranker, held_out))

    def weighted_lists(self, task: FitTask) -> WeightedLists:
        """The lists, with their corrected clicks or rewards as targets."""
        return WeightedLists.of(task.log)
