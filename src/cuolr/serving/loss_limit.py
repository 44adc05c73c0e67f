"""How many clicks a randomisation costs, and the limit that it must keep."""

from dataclasses import dataclass

import numpy as np

from cuolr.errors import InputError
from cuolr.off_policy.compared_lists import CountedLists
from cuolr.off_policy.users_of_log import UsersOfLog
from cuolr.policies.policy import RankingPolicy, ScoringPolicy, rank_by_score
from cuolr.random import FIXED_SEED
from cuolr.serving.batch_ranker import RankedRequest
from cuolr.serving.served_models import ServedModel
from cuolr.serving.shown_lists import ListRandomisation
from cuolr.types import Candidates, Ints

# Queries that the loss is estimated on, and lists that are drawn in all, at most.
MAX_QUERIES, DRAWN_LISTS = 1_000, 8_192


@dataclass(frozen=True)
class LossLimit:
    """The expected loss of clicks that a randomisation may cause, relative to the model's own lists.

    Without a log, only what holds for all users counts, such as that all other lists are unchanged. With a log, users
    of every click model that explains it are run over the model's lists and over randomised ones; the largest loss
    counts.

    Attributes:
        randomisation: What changes the lists.
        k: Length of the lists.
        max_loss: The limit, a share of the clicks.
        users: The users of a log; None = no log is given.
    """

    randomisation: ListRandomisation
    k: int
    max_loss: float
    users: UsersOfLog | None = None

    def check(self, model: ServedModel) -> str:
        """What the randomisation costs, in words; raises if that may be more than the limit."""
        if self.randomisation.needs_scores and not model.scores:
            raise InputError(
                f"--randomise: expected a model that scores documents, but '{model.name}' gives lists only"
            )
        bound, how = self.loss(model.policy)
        if bound > self.max_loss:
            raise InputError(
                f"--randomise: may cost {bound:.1%} of the clicks of '{model.name}' {how}, which is above --max-loss "
                f"{self.max_loss:.1%}; {self._advice()}"
            )
        return f"--randomise costs at most {bound:.1%} of the clicks of {model.name} {how}"

    def loss(self, policy: RankingPolicy) -> tuple[float, str]:
        """The largest expected loss, and how it is known."""
        bound = self.randomisation.loss_bound
        if self.users is None:
            return bound, "in the worst case"
        name, loss = max(expected_losses(self, policy).items(), key=lambda item: item[1])
        return (bound, "in the worst case") if bound < loss else (loss, f"by the users of the log ({name})")

    def _advice(self) -> str:
        if self.users is None:
            return "estimate it from a log with --safety-log LOG, or randomise less"
        return "randomise less, or raise the limit"


def expected_losses(limit: LossLimit, policy: RankingPolicy) -> dict[str, float]:
    """1 − E[clicks on randomised lists] / E[clicks on the model's lists], by click model.

    Queries count by their sessions in the log. Documents that the log never shows have the mean attractiveness.
    """
    users = limit.users
    assert users is not None
    if not users.fitted:
        raise InputError("--safety-log: expected a log with clicks, to estimate what the randomisation costs")
    lists = users.counts.lists
    assert isinstance(lists, CountedLists), "a log of lists was loaded"
    sessions = np.bincount(lists.query, weights=lists.count, minlength=users.log.candidates.n_queries)
    queries = np.argsort(-sessions, kind="stable")[: min(MAX_QUERIES, int((sessions > 0).sum()))]
    own, drawn = _lists(limit, policy, users.log.candidates.select(queries), min(limit.k, users.counts.cells.k))
    first = users.log.candidates.offsets[queries]
    losses = {}
    for fitted in users.fitted:
        response = fitted.response()
        before, after = (
            float(sessions[queries] @ sum(response.clicks(_pairs(part, first)).sum(axis=1) for part in parts))
            / len(parts)
            for parts in ([own], drawn)
        )
        losses[fitted.name] = 1 - after / max(before, 1e-300)
    return losses


def _lists(limit: LossLimit, policy: RankingPolicy, candidates: Candidates, k: int) -> tuple[Ints, list[Ints]]:
    """[n_queries, k] the model's own lists, and as many randomised ones in each draw."""
    scores = policy.score(candidates) if isinstance(policy, ScoringPolicy) else None
    own = policy.rank(candidates, k) if scores is None else rank_by_score(scores, candidates.offsets, k)
    bounds = zip(candidates.offsets[:-1], candidates.offsets[1:], strict=True)
    ranked = [
        RankedRequest(row[row >= 0], None if scores is None else scores[start:end])
        for row, (start, end) in zip(own, bounds, strict=True)
    ]
    rng = np.random.default_rng(FIXED_SEED)
    drawn = []
    for _ in range(max(1, DRAWN_LISTS // len(ranked))):
        lists = np.full_like(own, -1)
        for row, request in zip(lists, ranked, strict=True):
            order = limit.randomisation.draw(request, k, rng).order
            row[: len(order)] = order
        drawn.append(lists)
    return own, drawn


def _pairs(lists: Ints, first: Ints) -> Ints:
    """[n, k] the rows of documents, of lists of candidate indices."""
    return np.where(lists >= 0, first[:, None] + lists, -1)
