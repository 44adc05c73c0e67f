"""SAC and CQL written plainly, loss by loss and position by position: what the fast ones must equal."""

from collections.abc import Callable
from typing import cast

import torch
from torch import Tensor

from cuolr.learners.rl.cql import CQL
from cuolr.learners.rl.sac import SAC
from cuolr.networks.layers import PairNetwork
from cuolr.training.batches import SessionBatch


def plain_losses(learner: SAC, batch: SessionBatch) -> dict[str, Tensor]:
    """The losses of a batch by the learner's own networks, each by itself."""
    losses = {
        "critic_loss": mean_over_positions(batch, lambda t: squared_error(learner, batch, t)),
        "actor_loss": mean_over_positions(batch, lambda t: actor_loss(learner, batch, t)),
    }
    if isinstance(learner, CQL):
        losses["conservative_loss"] = mean_over_positions(batch, lambda t: conservative_loss(learner, batch, t))
    return losses


def mean_over_positions(batch: SessionBatch, loss_at: Callable[[int], Tensor]) -> Tensor:
    """The mean over the positions at which a document was shown; `loss_at` gives [B] for a position."""
    total = torch.tensor(0.0)
    for t in range(batch.features.shape[1]):
        shown = batch.where[:, t]
        total = total + (batch.weight[shown] * loss_at(t)[shown]).sum()
    return total / batch.where.sum()


def squared_error(learner: SAC, batch: SessionBatch, t: int) -> Tensor:
    """[B] ½ (Q(s, a) − r − γ V(s′))², summed over the critics."""
    state = state_before(learner, batch, t)
    documents, _ = what_is_left(learner, batch, t)
    target = batch.rewards[:, t] + learner.config.discount * next_value(learner, batch, t)
    q_1, q_2 = (score(critic, state, documents)[:, 0] for critic in learner.critics)
    return 0.5 * (q_1 - target) ** 2 + 0.5 * (q_2 - target) ** 2


def next_value(learner: SAC, batch: SessionBatch, t: int) -> Tensor:
    """[B] V(s′) = Σ_a π(a | s′) [min_i Q′_i(s′, a) − w log π(a | s′)], 0 where the list ends with document t."""
    if t + 1 == batch.features.shape[1]:
        return torch.zeros(len(batch.weight))
    with torch.no_grad():
        state = state_before(learner, batch, t + 1)
        documents, left = what_is_left(learner, batch, t + 1)
        policy, log_policy = choice(learner.actor, state, documents, left)
        q_1, q_2 = (score(target, state, documents) for target in learner.targets)
        soft_q = torch.minimum(q_1, q_2) - learner.entropy.weight * log_policy
        return torch.where(batch.where[:, t + 1], (policy * soft_q).sum(dim=1), 0.0)


def actor_loss(learner: SAC, batch: SessionBatch, t: int) -> Tensor:
    """[B] Σ_a π(a | s) [w log π(a | s) − min_i Q_i(s, a)]."""
    state = state_before(learner, batch, t)
    documents, left = what_is_left(learner, batch, t)
    with torch.no_grad():
        q_1, q_2 = (score(critic, state, documents) for critic in learner.critics)
    if learner.config.encoder_learns_from == "critics":
        state = state.detach()
    policy, log_policy = choice(learner.actor, state, documents, left)
    return (policy * (learner.entropy.weight * log_policy - torch.minimum(q_1, q_2))).sum(dim=1)


def conservative_loss(learner: CQL, batch: SessionBatch, t: int) -> Tensor:
    """[B] weight · (log Σ_a exp Q(s, a) − Q(s, a_logged)), or less the mean Q, summed over the critics."""
    state = state_before(learner, batch, t)
    documents, left = what_is_left(learner, batch, t)
    total = torch.zeros(len(batch.weight))
    for critic in learner.critics:
        q = score(critic, state, documents)
        mean_q = torch.where(left, q, 0.0).sum(dim=1) / left.sum(dim=1)
        baseline = q[:, 0] if learner.config.conservative_term == "logged" else mean_q
        total = total + torch.where(left, q, -1e30).logsumexp(dim=1) - baseline
    return learner.config.conservative_weight * total


def state_before(learner: SAC, batch: SessionBatch, t: int) -> Tensor:
    """[B, S] from the documents placed so far."""
    return cast(Tensor, learner.encoder(batch.features[:, :t])[:, -1])


def what_is_left(learner: SAC, batch: SessionBatch, t: int) -> tuple[Tensor, Tensor]:
    """[B, n, F] the documents that are not placed yet, the logged one first, and [B, n] which are real."""
    documents, where = batch.features[:, t:], batch.where[:, t:]
    if learner.config.candidates == "all":
        assert batch.unshown is not None
        assert batch.unshown_where is not None
        documents = torch.cat([documents, batch.unshown], dim=1)
        where = torch.cat([where, batch.unshown_where], dim=1)
    return documents, where


def score(network: PairNetwork, state: Tensor, documents: Tensor) -> Tensor:
    """[B, S] and [B, n, F] → [B, n] by the network as the paper writes it, over [state ; document]."""
    pairs = torch.cat([state[:, None].expand(-1, documents.shape[1], -1), documents], dim=2)
    hidden = network.second(network.first(pairs).relu()).relu()
    return cast(Tensor, network.output(hidden).squeeze(-1))


def choice(actor: PairNetwork, state: Tensor, documents: Tensor, left: Tensor) -> tuple[Tensor, Tensor]:
    """[B, n] π(a | s), and its logarithm where it is above 0."""
    scores = torch.where(left, score(actor, state, documents), -1e30)
    log_policy = torch.where(left, scores.log_softmax(dim=1), 0.0)
    return torch.where(left, log_policy.exp(), 0.0), log_policy
