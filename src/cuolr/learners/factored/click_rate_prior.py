"""The prior of stage 2: click rates, or rewards of a click, predicted from features, for documents examined little."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from cuolr.examination.from_clicks import ExaminationModel
from cuolr.examination.identifiability import MAX_POSITIONS
from cuolr.logs.counts import ClickCounts
from cuolr.logs.scaled_documents import ScaledDocuments
from cuolr.networks.layers import DocumentNetwork, seeded
from cuolr.types import Doubles, IntegerArray, Ints

# Sizes of the network's hidden layers.
HIDDEN = (128, 64)
# Probabilities are clipped to this distance from 0 and 1, so that one impossible click does not dominate.
MIN_PROBABILITY = 1e-5


@dataclass(frozen=True)
class PriorFit:
    """Settings of the network's training.

    Attributes:
        steps: Number of Adam steps.
        learning_rate: Adam's learning rate.
        batch_size: Number of lists in a batch; all lists if there are fewer.
        seed: Seed of the initial weights and of the batches.
    """

    steps: int
    learning_rate: float
    batch_size: int
    seed: int


def fit_click_rate_prior(
    counts: ClickCounts,
    shown: ScaledDocuments,
    examination: ExaminationModel,
    logging_scores: Doubles,
    lists: Ints,
    fit: PriorFit,
) -> Doubles:
    """Maximise Σ c log(χ α) + (n − c) log(1 − χ α) over cells, α = σ(f(x) + β·l), f a network, χ and β known.

    Args:
        counts: The counts of the log; the first `MAX_POSITIONS` positions are used.
        shown: The documents shown in the log.
        examination: The model with χ and β.
        logging_scores: [n + 1] l, the logging policy's score of each shown document, or zeros.
        lists: The lists to train on; if empty, no steps are taken.
        fit: Settings of the training.

    Returns:
        [n] α of each shown document, times the examination of position 1.
    """
    features = torch.from_numpy(shown.features)
    with seeded(fit.seed):
        network = DocumentNetwork(features.shape[1], HIDDEN)
    optimiser = torch.optim.Adam(network.parameters(), lr=fit.learning_rate, foreach=True)
    generator = torch.Generator().manual_seed(fit.seed)
    top = counts.top(MAX_POSITIONS)
    k = top.lists.k
    documents = torch.from_numpy(shown.documents[:, :k])
    first = shown.documents[lists, 0]
    offset = torch.from_numpy(_offset(counts, lists, logging_scores, first, examination.slope)).float()
    chi = torch.from_numpy(examination.tables_of(counts.levels)[:, :k, : k + 1].copy()).float()
    level = counts.level_of_list

    def attractiveness(rows: Tensor) -> Tensor:
        logits: Tensor = offset[rows] + network(features[rows])
        return logits.sigmoid()

    for _ in range(fit.steps if len(lists) else 0):
        batch = lists
        if len(lists) > fit.batch_size:
            batch = lists[torch.randint(len(lists), (fit.batch_size,), generator=generator).numpy()]
        impressions, clicks = (torch.from_numpy(values) for values in top.dense(batch))
        probability = attractiveness(documents[batch].long()).unsqueeze(2) * chi[level[batch]]
        loss = -_log_likelihood(probability, impressions, clicks) / _sessions(impressions, top.documents is not None)
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    with torch.no_grad():
        fitted: Doubles = (offset + network.in_parts(features)).sigmoid().double().numpy()
    return fitted[:-1]


def _offset(counts: ClickCounts, lists: Ints, logging_scores: Doubles, first: IntegerArray, slope: float) -> Doubles:
    """[n + 1] the network's logit offset: β·l, centred so that the average document at position 1 has the mean rate."""
    impressions, clicks = (counts.by_position(values)[lists, 0] for values in (counts.impressions, counts.clicks))
    rate = (clicks.sum() + 1) / (impressions.sum() + 2)
    mean = float(logging_scores[first] @ impressions / max(impressions.sum(), 1))
    logits: Doubles = np.log(rate / (1 - rate)) + slope * (logging_scores - mean)
    return logits


def _log_likelihood(probability: Tensor, impressions: Tensor, clicks: Tensor) -> Tensor:
    """[] the log-likelihood of all sessions."""
    probability = probability.clamp(MIN_PROBABILITY, 1 - MIN_PROBABILITY)
    return (clicks * probability.log() + (impressions - clicks) * (1 - probability).log()).sum()


def _sessions(impressions: Tensor, stacked: bool) -> Tensor:
    """[] the number of sessions of lists, or of stacked lists, which have other sessions at each position."""
    of_lists = impressions.sum(dim=2).amax(dim=1) if stacked else impressions[:, 0]
    return of_lists.sum().clamp(min=1)


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
        means: Doubles = network.in_parts(features).clamp(MIN_LOG, MAX_LOG).exp().double().numpy()
    return means[:-1]


def _by_document(counts: ClickCounts, values: Doubles, lists: Ints) -> Doubles:
    """[n_documents] the sum over these lists."""
    by_position = counts.by_position(values)
    chosen = np.zeros_like(by_position)
    chosen[lists] = by_position[lists]
    return counts.by_document(chosen)
