"""`naive`: treats clicks as relevance labels, without bias correction."""

from cuolr.learners.counterfactual.debiased import DebiasedLearner
from cuolr.learners.rankers.network import NetworkConfig
from cuolr.training.base_learner import LEARNERS


@LEARNERS.register("naive")
class Naive(DebiasedLearner):
    """The list-wise softmax loss on uncorrected clicks: −Σ_k c_k log softmax(s)_k.

    The loss is linear in clicks, so training on aggregated lists changes only the cost and the noise.
    """

    Config = NetworkConfig
