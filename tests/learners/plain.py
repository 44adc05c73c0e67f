"""SAC and CQL written plainly, position by position: what the fast ones must equal."""

from typing import cast

import torch
from torch import Tensor

from cuolr.learners.batch import SessionBatch
from cuolr.learners.cql import ConservativeQLearning
from cuolr.learners.networks import PairNetwork
from cuolr.learners.sac import SoftActorCritic


def plain_losses(learner: SoftActorCritic, batch: SessionBatch) -> dict[str, Tensor]:
    """The losses of a batch by the learner's own networks."""
    config = learner.config
    entropy_weight = learner.entropy.weight
    positions = batch.where.sum()
    total = {"critic_loss": torch.tensor(0.0), "conservative_loss": torch.tensor(0.0), "actor_loss": torch.tensor(0.0)}
    for t in range(batch.features.shape[1]):
        weight = batch.weight * batch.where[:, t]
        state = state_before(learner, batch, t)
        documents, left = what_is_left(learner, batch, t)

        # V(s′), 0 where the list ends with this document
        next_value = torch.zeros(len(weight))
        if t + 1 < batch.features.shape[1]:
            with torch.no_grad():
                next_state = state_before(learner, batch, t + 1)
                next_documents, next_left = what_is_left(learner, batch, t + 1)
                policy, log_policy = choice(learner.actor, next_state, next_documents, next_left)
                targets = [score(target, next_state, next_documents) for target in learner.targets]
                soft_q = torch.minimum(targets[0], targets[1]) - entropy_weight * log_policy
                next_value = (policy * soft_q).sum(dim=1) * batch.where[:, t + 1]

        # critics
        target = batch.clicks[:, t] + config.discount * next_value
        qs = [score(critic, state, documents) for critic in learner.critics]
        for q in qs:
            logged_q = q[:, 0]
            total["critic_loss"] = total["critic_loss"] + (weight * 0.5 * (logged_q - target) ** 2).sum() / positions
            if isinstance(learner, ConservativeQLearning):
                of_all = torch.where(left, q, -1e30).logsumexp(dim=1)
                if learner.config.conservative_term == "logged":
                    baseline = logged_q
                else:
                    baseline = torch.where(left, q, 0.0).sum(dim=1) / left.sum(dim=1)
                # a padded position has nothing left and weighs nothing
                gap = torch.where(batch.where[:, t], of_all - baseline, 0.0)
                conservative_loss = learner.config.conservative_weight * (weight * gap).sum() / positions
                total["conservative_loss"] = total["conservative_loss"] + conservative_loss

        # actor
        actor_state = state if config.encoder_learns_from == "critics and actor" else state.detach()
        policy, log_policy = choice(learner.actor, actor_state, documents, left)
        least_q = torch.minimum(qs[0], qs[1]).detach()
        loss = (policy * (entropy_weight * log_policy - least_q)).sum(dim=1)
        total["actor_loss"] = total["actor_loss"] + (weight * loss).sum() / positions
    if not isinstance(learner, ConservativeQLearning):
        del total["conservative_loss"]
    return total


def state_before(learner: SoftActorCritic, batch: SessionBatch, t: int) -> Tensor:
    """[B, S] from the documents placed so far."""
    return cast(Tensor, learner.encoder(batch.features[:, :t])[:, -1])


def what_is_left(learner: SoftActorCritic, batch: SessionBatch, t: int) -> tuple[Tensor, Tensor]:
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
