"""How people look at a list, learned from their clicks, with no click model named.

Every click model of definition 3.1 says P(C_k = 1) = χ(R, k) · α(d_k). Given the clicks above, what is left of χ is a
matter of the position k and of the last click above it: ρ_k for PBM, γ of both for UBM, nothing after the first click
for CASCADE. For DCM it is λ of the last click right below it; further down, those who went on and did not click are
fewer, by the attractiveness of what stands between, and so it is for CCM. The table has the mean over lists there. So χ
is learned as a table of these two, by likelihood, and then, with χ known, α as a network of the document.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from cuolr.learners.conditional import fit_effects
from cuolr.learners.counted_lists import CountedLists
from cuolr.learners.networks import DocumentNetwork, seeded
from cuolr.types import Doubles, Ints

DOCUMENTS_AT_A_TIME = 1 << 15
# The hidden layers of the network.
HIDDEN = (128, 64)
# A probability is kept this far from 0 and 1, so that one impossible click does not decide the likelihood.
LEAST_PROBABILITY = 1e-5
# Lists that the table is computed from, at most.
MAX_LISTS = 20_000
# Half the inverse variance of the logarithms of χ before a click is seen.
PRIOR = 0.5


@dataclass(frozen=True)
class Examination:
    """How people look.

    Attributes:
        table: [K, K + 1] χ by position and last click above, relative to position 1, which is 1; NaN where the log has
            no such session.
        slope: β, by how much the logarithm of α grows with the logger's score.
    """

    table: Doubles
    slope: float

    def looked(self, counted: CountedLists) -> Doubles:
        """[L, K] Σ χ over sessions: as how many looks at position 1 the looks at each shown document count."""
        chances = np.nan_to_num(self.table).ravel()[counted.cases % counted.cases_of_a_list]
        return counted.by_position(counted.passed * chances)


def fit_examination(counted: CountedLists, logged_order: Doubles) -> Examination:
    """The most likely table, by `conditional`, in two steps with one maximum each: no step size is in it.

    1. How χ depends on the last click above: by the clicks on one document in one list, which differ by nothing else.
    2. How it depends on the position: by the clicks in one list, of users who look as in step 1. Its documents differ,
       and the logger put the better ones above, as far as it knew. Its score l explains that with one weight β; what
       tells β from χ is that a document far ahead of the next and one just ahead of it stand at the same position.
       Nobody who has not clicked yet looks at a position more than at the first. That has to be said: users who stop at
       a click leave lists with a good first document out of the comparison, and the first position would seem worse.

    Documents are explained by l alone in step 2. A network in its place explains more, and the table is worse for it:
    what the network learns before the table has settled, it takes from the table (docs/learners/factored.md has both).

    Args:
        counted: The log.
        logged_order: [L, K] l, or zeros.
    """
    k = counted.lists.k
    some = np.flatnonzero(counted.by_position(counted.clicked).any(axis=1))
    some = np.random.default_rng(0).permutation(some)[:MAX_LISTS]
    passed, clicked = (counts.astype(np.float64) for counts in counted.dense(some))
    after = np.ones((k, k + 1))
    for position in range(1, k):
        ours = passed[:, position]
        effects, _ = fit_effects(clicked[:, position], ours, np.zeros(ours.shape), PRIOR)
        after[position] = np.exp(effects - effects[0])
    looked = (passed * after).sum(axis=2)
    effects, slope = fit_effects(clicked.sum(axis=2), looked, logged_order[some], PRIOR)
    table = after * np.exp(np.minimum(effects - effects[0], 0.0))[:, None]
    seen = np.bincount(counted.cases % counted.cases_of_a_list, minlength=table.size).reshape(table.shape) > 0
    return Examination(np.where(seen, table, np.nan), slope)


def everything(counted: CountedLists) -> Examination:
    """Of users who look at all that they are shown."""
    return Examination(np.ones((counted.lists.k, counted.lists.k + 1)), 0.0)


def fit_attractiveness(
    counted: CountedLists,
    examination: Examination,
    features: Tensor,
    logged_order: Doubles,
    documents: Ints,
    steps: int,
    learning_rate: float,
    batch_size: int,
    seed: int,
) -> Doubles:
    """What the features say of documents: max Σ c log(χ α) + (n − c) log(1 − χ α), α = σ(a network + β·l), χ known.

    Args:
        counted: The log.
        examination: χ and β.
        features: [n, F] of documents, scaled.
        logged_order: [n] l, the logger's score of each, or zeros.
        documents: [L, K] the row of `features` of each shown document; any row where nothing was shown.
        steps: Of Adam.
        learning_rate: Of it.
        batch_size: Lists of a step.
        seed: Of the network and of the batches.

    Returns:
        [n] α of each document, times χ of position 1.
    """
    with seeded(seed):
        network = DocumentNetwork(features.shape[1], HIDDEN)
    optimiser = torch.optim.Adam(network.parameters(), lr=learning_rate, foreach=True)
    generator = torch.Generator().manual_seed(seed)
    rows = torch.from_numpy(documents)
    known = torch.from_numpy(_mean_logit(counted, documents, logged_order, examination.slope)).float()
    looks = torch.from_numpy(np.nan_to_num(examination.table)).float()

    def attractiveness(some: Tensor) -> Tensor:
        logits: Tensor = known[some] + network(features[some])
        return logits.sigmoid()

    for _ in range(steps):
        batch = torch.randint(len(rows), (batch_size,), generator=generator)
        passed, clicked = (torch.from_numpy(counts) for counts in counted.dense(batch.numpy()))
        chance = attractiveness(rows[batch]).unsqueeze(2) * looks
        loss = -_likelihood(chance, passed, clicked)
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    with torch.no_grad():
        parts = torch.split(torch.arange(len(features)), DOCUMENTS_AT_A_TIME)
        found: Doubles = torch.cat([attractiveness(part) for part in parts]).double().numpy()
    return found


def _mean_logit(counted: CountedLists, documents: Ints, logged_order: Doubles, slope: float) -> Doubles:
    """[n] where the network starts: β·l, and at position 1 the mean click rate."""
    first, clicked = (counted.by_position(counts)[:, 0] for counts in (counted.passed, counted.clicked))
    rate = (clicked.sum() + 1) / (first.sum() + 2)
    mean = float(logged_order[documents[:, 0]] @ first / max(first.sum(), 1))
    logits: Doubles = np.log(rate / (1 - rate)) + slope * (logged_order - mean)
    return logits


def _likelihood(chance: Tensor, passed: Tensor, clicked: Tensor) -> Tensor:
    """[] the mean over sessions."""
    chance = chance.clamp(LEAST_PROBABILITY, 1 - LEAST_PROBABILITY)
    total = (clicked * chance.log() + (passed - clicked) * (1 - chance).log()).sum()
    return total / passed[:, 0].sum().clamp(min=1)
