"""`factored`: learns how people look and what they like together, then a ranking from clicks that looking explains."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from cuolr.data.normalise import Normaliser
from cuolr.learners.base import LEARNERS, Learner
from cuolr.learners.batch import SessionBatch
from cuolr.learners.batches import Batches, scaled_documents
from cuolr.learners.evidence import Evidence, Looks, pooled
from cuolr.learners.examination import count_lists, fit_examination
from cuolr.learners.gradient import expect
from cuolr.learners.listwise import ListwiseConfig, softmax_loss
from cuolr.learners.logged_order import fit_logged_order
from cuolr.learners.networks import seeded
from cuolr.learners.rankers import LoggedOrder, NetworkRanker, Ranker, TreeRanker
from cuolr.learners.stacking import stacking_weights
from cuolr.policies.blend import BlendPolicy
from cuolr.types import ClickLog, Ints

# Documents by which the scores of a model are brought to a standard deviation of 1.
SCALE_DOCUMENTS = 5_000


@dataclass(frozen=True)
class FactoredConfig(ListwiseConfig):
    """Settings on top of those of `ListwiseConfig`, which are of the networks. A step of training is one more tree.

    Attributes:
        examination_steps: Steps of learning how people look.
        attractiveness_learning_rate: Of the network that goes with it.
        table_learning_rate: Of χ.
        examination_lists: Lists of a step of it.
        prior_looks: As how many looks at a document counts what that network says of it.
        parts: Of the queries; each model learns from all but one of them, and is tried on that one.
        lists_per_step: Queries that a network learns from in a step.
        leaves: Per tree, at most.
        tree_learning_rate: Shrinkage of each tree.
        min_documents_per_leaf: Fewer make no leaf.
        feature_share: Of the features that a tree may use.
        logged_order: Whether the order in the log is a ranker among the others.
        max_documents: Documents to learn from, at most; those of a random sample of the queries.
        threads: How many LightGBM uses.
    """

    examination_steps: int = 400
    attractiveness_learning_rate: float = 1e-3
    table_learning_rate: float = 3e-2
    examination_lists: int = 128
    prior_looks: float = 10.0
    parts: int = 3
    lists_per_step: int = 128
    leaves: int = 7
    tree_learning_rate: float = 0.05
    min_documents_per_leaf: int = 20
    feature_share: float = 0.5
    logged_order: bool = True
    max_documents: int = 1_000_000
    threads: int = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        expect(
            self,
            examination_steps=(0, 1_000_000),
            attractiveness_learning_rate=(0, 1),
            table_learning_rate=(0, 1),
            examination_lists=(1, 1_000_000),
            prior_looks=(0, 1e9),
            parts=(2, 100),
            lists_per_step=(1, 1_000_000),
            leaves=(2, 100_000),
            tree_learning_rate=(0, 1),
            min_documents_per_leaf=(1, 1_000_000),
            feature_share=(0.01, 1),
            max_documents=(1_000, 100_000_000),
            threads=(1, 1_000),
        )


@LEARNERS.register("factored")
class Factored(Learner):
    """Ranks by attractiveness, with examination learned from the log and no click model named.

    In every click model of definition 3.1 the value of an action is Q(s, a) = χ(s)·α(a) + γ·V(s′). Where the order by α
    is the best one, as under PBM, CASCADE and DCM (`docs/optimality.md`), the factor α is all that a policy needs:

    1. χ(s), a table of the position and the last click above it, and α(a), a network of the document, are fitted to the
       sessions by likelihood (see `examination`).
    2. What is known of a document is then α̂ = (clicks + m·α(d)) / (looks + m), looks = Σ χ over the sessions that were
       shown it: how often it was clicked when it was looked at, and where that is few times, what the network says.
    3. List-wise rankers learn α̂: LambdaMART, and a network with the softmax loss. The queries are in parts, and each
       ranker learns from all parts but one.
    4. The logged order is a ranker, too: linear, learned from what was shown above what.
    5. The policy is a weighted sum of all. The weights are those that best explain the clicks on queries that a ranker
       did not learn from, none below 0 (see `stacking`). So the policy stays near the logged order where the clicks do
       not support a change.

    Deviation: not in the paper, whose critic is one network for both factors, and whose actor is asked anew at each
    state; here one order serves all states.
    """

    Config = FactoredConfig
    config: FactoredConfig
    needs_sessions = True

    def __init__(self, config: FactoredConfig, n_features: int, k: int, seed: int, normaliser: Normaliser) -> None:
        self.config = config
        self._seed = seed
        self._normaliser = normaliser
        with seeded(seed):
            self.networks = [
                NetworkRanker(n_features, config.hidden, config.learning_rate, config.max_gradient_norm, normaliser)
                for _ in range(config.parts)
            ]
        self.trees: list[TreeRanker] = []
        self.logged_order: LoggedOrder | None = None
        self._looks: Looks | None = None
        self._evidence: Evidence | None = None
        self._step = 0
        self._weighed: tuple[int, list[tuple[Ranker, float]]] | None = None

    def prepare(self, log: ClickLog) -> ClickLog:
        """A row for each query, with all documents that it was shown with, and α̂ for clicks."""
        config = self.config
        if config.logged_order and (linear := fit_logged_order(log, self._normaliser, self._seed)):
            self.logged_order = LoggedOrder(linear)
        counted = count_lists(log)
        lists = counted.lists
        documents = np.where(lists.where, lists.candidates.offsets[lists.query, None] + lists.ranking, 0)
        used = np.zeros(log.candidates.n_documents, np.bool_)
        used[documents[lists.where]] = True
        found = fit_examination(
            counted,
            scaled_documents(log.candidates, self._normaliser, used),
            np.where(lists.where, (np.cumsum(used) - 1)[documents], used.sum()),
            config.examination_steps,
            config.attractiveness_learning_rate,
            config.table_learning_rate,
            config.examination_lists,
            self._seed,
        )
        prior = np.zeros(log.candidates.n_documents)
        prior[used] = found.attractiveness[:-1]
        prepared, self._looks = pooled(counted, found.looked(counted), prior, config.prior_looks)
        return prepared

    def begin(self, batches: Batches) -> None:
        """Take what there is to learn from, and split the queries."""
        rows = affordable(batches, self.config.max_documents, self._seed)
        self._start(Evidence.of_log(batches.log, rows, self._looks, self._normaliser))

    def update(self, batch: SessionBatch) -> dict[str, float]:
        """A step of each network, and one more tree beside each; the batch does not matter."""
        if self._evidence is None:
            self._start(Evidence.of_batch(batch))
        assert self._evidence is not None
        losses = []
        for number, (network, rows) in enumerate(zip(self.networks, self._learned, strict=True)):
            rng = np.random.default_rng((self._seed, self._step, number))
            losses.append(network.descend(self._evidence, rng.choice(rows, self.config.lists_per_step)))
        for trees in self.trees:
            trees.grow()
        self._step += 1
        return {"loss": float(np.mean(losses)), "trees": self._step}

    def held_out_score(self, batch: SessionBatch) -> Tensor:
        """[B] Σ_d α̂_d log softmax(s)_d."""
        documents = batch.features[batch.where]
        scores = torch.zeros(batch.where.shape, dtype=torch.float64)
        for ranker, weight in self._rankers() if len(documents) else []:
            scores[batch.where] += weight * torch.from_numpy(ranker.score(documents))
        return -softmax_loss(scores.float(), batch.clicks, batch.where)

    def policy(self) -> BlendPolicy:
        """All rankers, each with its weight."""
        rankers = self._rankers()
        return BlendPolicy([ranker.policy() for ranker, _ in rankers], [weight for _, weight in rankers])

    def state(self) -> dict[str, Any]:
        """Of the networks, and the number of trees: the log and the seed decide all else."""
        return {"step": self._step, "networks": {str(i): n.state() for i, n in enumerate(self.networks)}}

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on from `state`; the trees are grown anew, on what `begin` was given."""
        for i, network in enumerate(self.networks):
            network.load_state(state["networks"][str(i)])
        for _ in range(state["step"] - self._step):
            for trees in self.trees:
                trees.grow()
        self._step = state["step"]

    def _start(self, evidence: Evidence) -> None:
        self._evidence = evidence
        parts = np.random.default_rng(self._seed).permutation(len(evidence)) % self.config.parts
        self._held_out = [np.flatnonzero(parts == i) for i in range(self.config.parts)]
        # With one query alone, there is nothing else to learn from.
        learned = [np.flatnonzero(parts != i) for i in range(self.config.parts)]
        self._learned = [rows if len(rows) else np.arange(len(evidence)) for rows in learned]
        config = self.config
        parameters = {
            "num_leaves": config.leaves,
            "learning_rate": config.tree_learning_rate,
            "min_data_in_leaf": config.min_documents_per_leaf,
            "feature_fraction": config.feature_share,
            "num_threads": config.threads,
        }
        self.trees = [
            TreeRanker(evidence, rows, {**parameters, "seed": self._seed + number}, self._normaliser)
            for number, rows in enumerate(self._learned)
        ]

    def _rankers(self) -> list[tuple[Ranker, float]]:
        """Every ranker with its weight; the networks alone, and all alike, while there is nothing to weigh by."""
        if self._evidence is None:
            return [(network, 1.0) for network in self.networks]
        if self._weighed is None or self._weighed[0] != self._step:
            self._weighed = self._step, self._weigh(self._evidence)
        return self._weighed[1]

    def _weigh(self, evidence: Evidence) -> list[tuple[Ranker, float]]:
        """The rankers of a kind share the kind's weight, each in units of its own standard deviation."""
        kinds: list[list[Ranker]] = [[*self.networks], [*self.trees]]
        if self.logged_order is not None:
            kinds.append([self.logged_order] * self.config.parts)
        some = np.random.default_rng(self._seed).permutation(len(evidence.features))[:SCALE_DOCUMENTS]
        scale = [[1 / max(ranker.score(evidence.features[some]).std(), 1e-12) for ranker in kind] for kind in kinds]
        scores = np.zeros((len(kinds), *evidence.where.shape))
        for part, rows in enumerate(self._held_out):
            where = evidence.where[rows]
            documents = evidence.features[evidence.documents[rows][where]]
            for number, kind in enumerate(kinds):
                scored = np.zeros(where.shape)
                scored[where.numpy()] = kind[part].score(documents) * scale[number][part] if len(documents) else 0.0
                scores[number, rows] = scored
        weights = stacking_weights(scores, evidence.clicked, evidence.looked, evidence.where.numpy())
        weighed = [
            (ranker, float(weight * factor / len(kind)))
            for kind, factors, weight in zip(kinds[:2], scale, weights, strict=False)
            for ranker, factor in zip(kind, factors, strict=True)
        ]
        if self.logged_order is not None:
            weighed.append((self.logged_order, float(weights[2] * scale[2][0])))
        return weighed


def affordable(batches: Batches, max_documents: int, seed: int) -> Ints:
    """The rows of the log to learn from: all, or a random sample with so many documents together at most."""
    rows = batches.rows.astype(np.int64)
    documents = batches.log.where[rows].sum(axis=1)
    if documents.sum() <= max_documents:
        return rows
    order = np.random.default_rng(seed).permutation(len(rows))
    return np.sort(rows[order[np.cumsum(documents[order]) <= max_documents]])
