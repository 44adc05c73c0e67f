"""`naive`: treats clicks or rewards as relevance labels, without bias correction."""

from cuolr.learners.counterfactual.debiased import DebiasedConfig, DebiasedLearner
from cuolr.training.base_learner import LEARNERS


@LEARNERS.register("naive")
class Naive(DebiasedLearner):
    """The list-wise softmax loss on uncorrected clicks: −Σ_k c_k log softmax(s)_k.

    If the log has rewards, they are c. The loss is linear in them, so training on aggregated lists changes only the
    cost and the noise.
    """

    Config = DebiasedConfig
