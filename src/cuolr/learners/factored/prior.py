"""What features say of documents that few have looked at, once it is known how people look."""

import numpy as np
import torch
from torch import Tensor

from cuolr.examination.from_clicks import MAX_POSITIONS, Examination
from cuolr.learners.factored.click_rates import ShownLists
from cuolr.networks.layers import DocumentNetwork, seeded
from cuolr.types import Doubles, Ints

DOCUMENTS_AT_A_TIME = 1 << 15
# The hidden layers of the network.
HIDDEN = (128, 64)
# A probability is kept this far from 0 and 1, so that one impossible click does not decide the likelihood.
LEAST_PROBABILITY = 1e-5


def fit_attractiveness(
    shown: ShownLists,
    examination: Examination,
    logged_order: Doubles,
    learned: Ints,
    *,
    steps: int,
    learning_rate: float,
    batch_size: int,
    seed: int,
) -> Doubles:
    """Maximise Σ c log(χ α) + (n − c) log(1 − χ α), α = σ(a network + β·l), χ known.

    Args:
        shown: The log.
        examination: χ and β.
        logged_order: [n + 1] l, the logger's score of each shown document, or zeros.
        learned: The lists to learn from, by their first `MAX_POSITIONS`; where these are none, nothing is learned.
        steps: Of Adam.
        learning_rate: Of it.
        batch_size: Lists of a step.
        seed: Of the network and of the batches.

    Returns:
        [n] α of each shown document, times χ of position 1.
    """
    features = shown.features
    with seeded(seed):
        network = DocumentNetwork(features.shape[1], HIDDEN)
    optimiser = torch.optim.Adam(network.parameters(), lr=learning_rate, foreach=True)
    generator = torch.Generator().manual_seed(seed)
    head = shown.counted.head(MAX_POSITIONS)
    k = head.lists.k
    documents = torch.from_numpy(shown.documents[:, :k])
    known = torch.from_numpy(_mean_logit(shown, logged_order, learned, examination.slope)).float()
    looks = torch.from_numpy(np.nan_to_num(examination.table[:k, : k + 1])).float()

    def attractiveness(some: Tensor) -> Tensor:
        logits: Tensor = known[some] + network(features[some])
        return logits.sigmoid()

    for _ in range(steps if len(learned) else 0):
        batch = learned[torch.randint(len(learned), (batch_size,), generator=generator).numpy()]
        passed, clicked = (torch.from_numpy(counts) for counts in head.dense(batch))
        chance = attractiveness(documents[batch]).unsqueeze(2) * looks
        loss = -_likelihood(chance, passed, clicked)
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    with torch.no_grad():
        parts = torch.split(torch.arange(len(features)), DOCUMENTS_AT_A_TIME)
        found: Doubles = torch.cat([attractiveness(part) for part in parts]).double().numpy()
    return found[:-1]


def _mean_logit(shown: ShownLists, logged_order: Doubles, learned: Ints, slope: float) -> Doubles:
    """[n + 1] where the network starts: β·l, and at position 1 the mean click rate."""
    counted = shown.counted
    first, clicked = (counted.by_position(counts)[learned, 0] for counts in (counted.passed, counted.clicked))
    rate = (clicked.sum() + 1) / (first.sum() + 2)
    mean = float(logged_order[shown.documents[learned, 0]] @ first / max(first.sum(), 1))
    logits: Doubles = np.log(rate / (1 - rate)) + slope * (logged_order - mean)
    return logits


def _likelihood(chance: Tensor, passed: Tensor, clicked: Tensor) -> Tensor:
    """[] the mean over sessions."""
    chance = chance.clamp(LEAST_PROBABILITY, 1 - LEAST_PROBABILITY)
    total = (clicked * chance.log() + (passed - clicked) * (1 - chance).log()).sum()
    return total / passed[:, 0].sum().clamp(min=1)
