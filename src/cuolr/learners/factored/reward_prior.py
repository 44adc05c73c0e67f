"""The prior of stage 2 for logs with rewards: the mean reward of a click, predicted from features."""

import numpy as np
import torch

from cuolr.learners.factored.click_rate_prior import DOCUMENTS_AT_A_TIME, HIDDEN, PriorFit
from cuolr.logs.counts import ClickCounts
from cuolr.logs.scaled_documents import ScaledDocuments
from cuolr.networks.layers import DocumentNetwork, seeded
from cuolr.types import Doubles, Ints

# Number of clicked documents in a batch.
DOCUMENTS_PER_STEP = 4_096
# Rewards of a click are predicted between these factors of their mean.
MIN_LOG, MAX_LOG = -5.0, 5.0
# From this information on, each click has the same reward, but for rounding.
CONSTANT = 1 - 1e-6


def fit_reward_prior(counts: ClickCounts, shown: ScaledDocuments, lists: Ints, fit: PriorFit) -> Doubles:
    """Maximise Σ R log v − C·v over documents with C clicks and the reward R, v = exp(f(x)), f a network.

    This is the quasi-likelihood of a Poisson count: consistent for the mean reward of a click, whatever its
    distribution.

    Args:
        counts: The counts of the log, with rewards in units of the mean reward of a click.
        shown: The documents shown in the log.
        lists: The lists to train on; if empty, no steps are taken.
        fit: Settings of the training.

    Returns:
        [n] v of each shown document; 1 if the log has no rewards, or the same for each click.
    """
    if counts.reward is None or counts.information > CONSTANT:
        return np.ones(len(shown.rows))
    clicks, rewards = (_by_document(counts, values, lists)[shown.rows] for values in (counts.clicks, counts.reward))
    features = torch.from_numpy(shown.features)
    with seeded(fit.seed):
        network = DocumentNetwork(features.shape[1], HIDDEN)
    optimiser = torch.optim.Adam(network.parameters(), lr=fit.learning_rate, foreach=True)
    generator = torch.Generator().manual_seed(fit.seed)
    clicked = torch.from_numpy(np.flatnonzero(clicks > 0))
    clicks_on, rewards_on = torch.from_numpy(clicks).float(), torch.from_numpy(rewards).float()
    for _ in range(fit.steps if len(clicked) else 0):
        batch = clicked
        if len(clicked) > DOCUMENTS_PER_STEP:
            batch = clicked[torch.randint(len(clicked), (DOCUMENTS_PER_STEP,), generator=generator)]
        logarithm = network(features[batch]).clamp(MIN_LOG, MAX_LOG)
        likelihood = (rewards_on[batch] * logarithm - clicks_on[batch] * logarithm.exp()).sum()
        loss = -likelihood / clicks_on[batch].sum()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    with torch.no_grad():
        parts = torch.split(torch.arange(len(shown.rows)), DOCUMENTS_AT_A_TIME)
        fitted = [network(features[part]).clamp(MIN_LOG, MAX_LOG).exp() for part in parts]
        means: Doubles = torch.cat(fitted).double().numpy()
    return means


def _by_document(counts: ClickCounts, values: Doubles, lists: Ints) -> Doubles:
    """[n_documents] the sum over these lists."""
    by_position = counts.by_position(values)
    chosen = np.zeros_like(by_position)
    chosen[lists] = by_position[lists]
    return counts.by_document(chosen)
