"""A shop's log of tail queries: many queries with few sessions each, and a ranker that knows part of the features.

Attractiveness is a logistic function of eight features with a product of two of them; production is linear in three.
The default learner learns from the log, without labels, and is measured on fresh queries by nDCG@10 with the true
attractiveness as gain.

Run: python -m studies.shop [--queries 10000] [--sessions 20000]
"""

from dataclasses import dataclass

import numpy as np
import torch
import tyro

from cuolr import ClickLog, Ranker, click_model
from cuolr.cli.terminal import show_table
from cuolr.data.normalise import Normaliser
from cuolr.policies.linear_policy import LinearPolicy
from cuolr.policies.policy import RankingPolicy
from cuolr.types import Candidates, Doubles, Floats, Ints

DOCUMENTS = 20
K = 10
# The weight of each feature in the logit of attractiveness; production knows the first three.
WEIGHTS = (0.6, 0.5, 0.4, 0.9, -0.8, 0.7, 0.5, 0.3)
KNOWN = 3
# The weight of the product of features 4 and 5, and the intercept.
PRODUCT, INTERCEPT = 0.8, -2.0
# Streams of random queries: those of the log, those of the measure, and the sessions.
LOGGED, MEASURED, SESSIONS = 1, 2, 3


@dataclass(frozen=True)
class Shop:
    """Queries with the true attractiveness of their documents.

    Attributes:
        candidates: The documents.
        attractiveness: [n_documents].
    """

    candidates: Candidates
    attractiveness: Floats

    @classmethod
    def draw(cls, queries: int, seed: int, stream: int) -> "Shop":
        """Queries of a stream; each stream has fresh ones."""
        rng = np.random.default_rng([seed, stream])
        features = rng.standard_normal((queries * DOCUMENTS, len(WEIGHTS)), dtype=np.float32)
        logits = INTERCEPT + features @ np.array(WEIGHTS, np.float32) + PRODUCT * features[:, 3] * features[:, 4]
        offsets = np.arange(queries + 1) * DOCUMENTS
        candidates = Candidates(features, offsets, np.arange(queries).astype(np.str_))
        return cls(candidates, (1 / (1 + np.exp(-logits))).astype(np.float32))

    def production(self) -> LinearPolicy:
        """A linear ranker of the first features, with their true weights."""
        weights = np.where(np.arange(len(WEIGHTS)) < KNOWN, WEIGHTS, 0).astype(np.float32)
        return LinearPolicy(weights, Normaliser.fit("none", self.candidates))

    def log(self, users: str, sessions: int, seed: int) -> ClickLog:
        """Sessions of random queries, shown as production ranks them."""
        rng = np.random.default_rng([seed, SESSIONS])
        query = rng.integers(self.candidates.n_queries, size=sessions).astype(np.int32)
        ranking = self.production().rank(self.candidates, K)[query]
        shown = self.attractiveness[self.candidates.offsets[query, None] + ranking]
        clicks, _ = click_model(users, noise=0.0).sample(shown, ranking >= 0, rng)
        count: Ints = np.ones(sessions, np.int64)
        return ClickLog(self.candidates, query, ranking, clicks.view(np.uint8), count)

    def ndcg(self, policy: RankingPolicy) -> Doubles:
        """[n_queries] nDCG@10 with attractiveness as gain."""
        gains = self.attractiveness.reshape(-1, DOCUMENTS)
        discount = 1 / np.log2(np.arange(K) + 2)
        ranked = np.take_along_axis(gains, policy.rank(self.candidates, K), axis=1)
        ideal = -np.sort(-gains, axis=1)[:, :K]
        ratio: Doubles = (ranked @ discount) / (ideal @ discount)
        return ratio


def main(queries: int = 10_000, sessions: int = 20_000, users: str = "pbm", seed: int = 1) -> None:
    """Learn from a shop's log of tail queries.

    Args:
        queries: Number of queries of the log.
        sessions: Number of sessions.
        users: Click model of the users.
        seed: Seed of the queries, the sessions and the training.
    """
    torch.set_num_threads(1)
    shop, fresh = (Shop.draw(number, seed, stream) for number, stream in ((queries, LOGGED), (2_000, MEASURED)))
    log = shop.log(users, sessions, seed)
    naive = {"learner.examination.estimate": False}
    rows = [["production", f"{fresh.ndcg(shop.production()).mean():.3f}"]]
    for name, settings in (("factored", {}), ("factored, naive targets", naive)):
        policy = Ranker("factored", seed=seed, settings=settings).fit(log).policy_
        rows.append([name, f"{fresh.ndcg(policy).mean():.3f}"])
    show_table("nDCG@10 on fresh queries, true attractiveness as gain", ["", "nDCG@10"], rows, left=(0,))


if __name__ == "__main__":
    tyro.cli(main)
