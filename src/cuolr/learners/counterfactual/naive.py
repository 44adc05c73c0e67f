"""`naive`: clicks as relevance labels, without any correction."""

from cuolr.learners.counterfactual.debiased import DebiasedLearner
from cuolr.learners.rankers.network import NetworkConfig
from cuolr.training.base_learner import LEARNERS


@LEARNERS.register("naive")
class Naive(DebiasedLearner):
    """The softmax list loss on clicks as they are: −Σ_k c_k log softmax(s)_k.

    The loss is linear in clicks, so learning from aggregated lists changes nothing but the cost and the noise.
    """

    Config = NetworkConfig
