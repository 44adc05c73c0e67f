"""A ranker under the loop: what is held out is scored by the softmax loss, and processes share batches."""

import torch

from cuolr.learners.rankers.base_ranker import RankerSteps, softmax_loss
from cuolr.learners.rankers.network import NetworkConfig, NetworkRanker
from cuolr.learners.rankers.targets import batches_of_targets
from cuolr.networks.layers import seeded
from cuolr.training.batches import Batches, WeightedLists
from tests.learners.lists import no_scaling, random_batch
from tests.small_log import counted_log


def network_on(batches: Batches) -> NetworkRanker:
    with seeded(1):
        return NetworkRanker(4, NetworkConfig((8,)), no_scaling(), batches_of_targets(batches))


def test_the_held_out_score_is_the_softmax_loss_turned_round() -> None:
    batches = Batches(WeightedLists.of(counted_log()), no_scaling(), 8, seed=1)
    ranker = network_on(batches)
    batch = random_batch(lengths=(4, 0, 2), n_features=4)
    expected = -softmax_loss(ranker.network(batch.features), batch.rewards, batch.where)
    torch.testing.assert_close(RankerSteps(ranker, None).held_out_scores(batch), expected.detach())
    steps = RankerSteps(ranker, batches)
    assert steps.held_out_score() == batches.mean(steps.held_out_scores)


def test_a_step_takes_the_batch_of_its_number() -> None:
    batches = Batches(WeightedLists.of(counted_log()), no_scaling(), 8, seed=1)
    steps, by_hand = RankerSteps(network_on(batches), None), network_on(batches)
    for number in range(3):
        assert steps.step() == {"loss": by_hand.descend(batches_of_targets(batches)(number))}
    for name, values in steps.policy().arrays().items():
        assert (values == by_hand.policy().arrays()[name]).all()
