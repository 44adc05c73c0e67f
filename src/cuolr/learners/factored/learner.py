"""`factored`: learns how people look, then what they like, then a ranking from clicks that looking explains."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from torch import Tensor

from cuolr.errors import InputError
from cuolr.examination.from_clicks import everything, fit_examination
from cuolr.learners.counterfactual.listwise import ListwiseConfig, softmax_loss
from cuolr.learners.factored.click_rates import Evidence, ShownLists, pooled
from cuolr.learners.factored.prior import fit_attractiveness
from cuolr.learners.factored.stacking import least_trust, weigh
from cuolr.learners.rankers.rankers_ import FittedRanker, NetworkRanker, TreeRanker
from cuolr.logs.clicklog import ClickLog
from cuolr.networks.layers import seeded
from cuolr.policies.ensemble_policy import BlendPolicy
from cuolr.policies.logging_policy import Imitation, LoggedOrder, imitate_logger
from cuolr.policies.policy import RankingPolicy
from cuolr.training.base_learner import LEARNERS, FitTask, Learner, SearchSpace
from cuolr.training.batches import SessionBatch, WeightedLists
from cuolr.training.steps import Steps
from cuolr.types import Ints

RankerKind = Literal["network", "linear", "trees"]


@dataclass(frozen=True)
class FactoredConfig(ListwiseConfig):
    """Settings on top of those of `ListwiseConfig`, which are of the networks. A step of training is one more tree.

    Attributes:
        learn_examination: Whether looking is learned at all; else all sessions look at all that they are shown.
        first_is_most: Whether nobody who has not clicked yet looks at a position more than at the first.
        attractiveness_steps: Steps of the network that says what documents are like that are seldom looked at.
        attractiveness_learning_rate: Of that network.
        prior_looks: As how many looks at a document counts what it says.
        rankers: What learns attractiveness: networks, linear rankers, trees, or some of these.
        parts: Of the queries; each model learns from all but one of them, and is tried on that one.
        linear_learning_rate: Of the linear rankers.
        lists_per_step: Queries that a network, or a linear ranker, learns from in a step.
        leaves: Per tree, at most.
        tree_learning_rate: Shrinkage of each tree.
        min_documents_per_leaf: Fewer make no leaf.
        feature_share: Of the features that a tree may use.
        logged_order: Whether the order in the log is a ranker among the others.
        trust_steps: After this many steps the logged order has at least the weight of all that was learned from clicks;
            after twice as many, half of it, and so on.
        trust_clicks: With this many clicks per query, likewise.
        max_documents: Documents to learn from, at most; those of a random sample of the queries.
        threads: How many LightGBM uses.
    """

    learn_examination: bool = True
    first_is_most: bool = True
    attractiveness_steps: int = 400
    attractiveness_learning_rate: float = 1e-3
    prior_looks: float = 30.0
    rankers: tuple[RankerKind, ...] = ("network", "linear", "trees")
    parts: int = 3
    linear_learning_rate: float = 3e-3
    lists_per_step: int = 128
    leaves: int = 7
    tree_learning_rate: float = 0.05
    min_documents_per_leaf: int = 20
    feature_share: float = 0.5
    logged_order: bool = True
    trust_steps: float = 25.0
    trust_clicks: float = 10.0
    max_documents: int = 1_000_000
    threads: int = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.rankers or len(set(self.rankers)) < len(self.rankers):
            raise InputError(f"setting 'learner.rankers': expected some, each once, found {list(self.rankers)}")


@LEARNERS.register("factored")
class Factored(Learner, Steps):
    """Ranks by attractiveness, with examination learned from the log and no click model named.

    In every click model of definition 3.1 the value of an action is Q(s, a) = χ(s)·α(a) + γ·V(s′). Where the order by α
    is the best one, as under PBM, CASCADE and DCM (`docs/optimality.md`), the factor α is all that a policy needs:

    1. χ(s), a table of the position and the last click above it, is fitted to the sessions by likelihood (see
       `examination`), and then, with χ known, α(a), a network of the document (see `attractiveness`).
    2. What is known of a document is then α̂ = (clicks + m·α(d)) / (looks + m), looks = Σ χ over the sessions that were
       shown it: how often it was clicked when it was looked at, and where that is few times, what the network says.
    3. List-wise rankers learn α̂: LambdaMART, and a network and a linear ranker with the softmax loss. The queries are
       in parts, and each ranker learns from all parts but one.
    4. The logged order is a ranker, too, learned from what was shown above what: linear, or trees where the logger is
       none that a linear ranker can imitate.
    5. The policy is a weighted sum of all. The weights are those that best explain the clicks on queries that a ranker
       did not learn from, none below 0 (see `conditional`).
    6. Clicks tell shown documents from each other; of those never shown it is only known that they were not. So the
       weight of the logged order, against all that was learned from clicks, is never less than `trust_steps` over the
       steps made, and `trust_clicks` over the clicks per query. Training leaves the logged order step by step, and
       validation can stop it on the way.

    Deviation: not in the paper, whose critic is one network for both factors, and whose actor is asked anew at each
    state; here one order serves all states.
    """

    Config = FactoredConfig
    config: FactoredConfig
    log_form = "sessions"
    search_space: ClassVar[SearchSpace] = {
        "learner.prior_looks": (3.0, 10.0, 30.0),
        "learner.leaves": (7, 15),
        "learner.learning_rate": (1e-4, 3e-4),
        "learner.trust_steps": (0.0, 25.0),
    }

    def fit(self, task: FitTask) -> RankingPolicy:
        """Learn how people look, then what they like, then run the loop."""
        config = self.config
        self._seed = task.config.seed
        self._normaliser = task.normaliser
        n_features = task.log.candidates.n_features
        with seeded(self._seed):
            of_kind = {
                "network": (config.hidden, config.learning_rate),
                "linear": ((), config.linear_learning_rate),
            }
            self.networks = [
                [
                    NetworkRanker(n_features, *of_kind[kind], config.max_gradient_norm, task.normaliser)
                    for _ in range(config.parts)
                ]
                for kind in config.rankers
                if kind != "trees"
            ]
        self._held_out_queries = task.held_out
        self.trees: list[TreeRanker] = []
        self.logged_order = LoggedOrder()
        self._step = 0
        self._weighed: tuple[int, list[tuple[FittedRanker, float]]] | None = None
        prepared = self._prepare(task.log)
        batches, self._held_out_batches = task.batches(WeightedLists.of(prepared))
        rows = affordable(prepared, batches.rows.astype(np.int64), config.max_documents, self._seed)
        evidence = Evidence.of_log(prepared, rows, self._looks, self._normaliser)
        part = self.logged_order.part
        self._start(evidence, None if part is None else part[prepared.query[rows]])
        return task.loop.run(self)

    def _prepare(self, log: ClickLog) -> ClickLog:
        """A row for each query, with all documents that it was shown with, and α̂ for clicks."""
        config = self.config
        shown = ShownLists.of(log, self._normaliser)
        counted = shown.counted
        if config.logged_order:
            self.logged_order = imitate_logger(counted.lists, self._normaliser, self._seed, config.parts)
        logged_scores = self.logged_order.scores(shown.features)
        learned = np.flatnonzero(~np.isin(counted.lists.query, self._held_out_queries))
        if config.learn_examination:
            examination = fit_examination(
                counted, logged_scores[shown.documents], learned, first_is_most=config.first_is_most
            )
        else:
            examination = everything(counted)
        attractiveness = fit_attractiveness(
            shown,
            examination,
            logged_scores,
            learned,
            steps=config.attractiveness_steps,
            learning_rate=config.attractiveness_learning_rate,
            batch_size=config.lists_per_step,
            seed=self._seed,
        )
        prior = np.zeros(log.candidates.n_documents)
        prior[shown.used] = attractiveness
        prepared, self._looks = pooled(counted, examination.looked(counted), prior, config.prior_looks)
        return prepared

    def step(self) -> dict[str, float]:
        """A step of each network and linear ranker, and one more tree beside them."""
        losses = []
        for number, rows in enumerate(self._learned):
            rng = np.random.default_rng((self._seed, self._step, number))
            drawn = rng.choice(rows, self.config.lists_per_step)
            losses += [kind[number].descend(self._evidence, drawn) for kind in self.networks]
        for trees in self.trees:
            trees.grow()
        self._step += 1
        return {"loss": float(np.mean(losses)) if losses else 0.0, "trees": len(self.trees) * self._step}

    def held_out_score(self) -> float:
        """The mean over held-out queries."""
        assert self._held_out_batches is not None
        return self._held_out_batches.mean(self.held_out_scores)

    def held_out_scores(self, batch: SessionBatch) -> Tensor:
        """[B] Σ_d α̂_d log softmax(s)_d."""
        documents = batch.features[batch.where]
        scores = torch.zeros(batch.where.shape, dtype=torch.float64)
        for ranker, weight in self._rankers() if len(documents) else []:
            scores[batch.where] += weight * torch.from_numpy(ranker.score(documents))
        return -softmax_loss(scores.float(), batch.clicks, batch.where)

    def policy(self) -> BlendPolicy:
        """All rankers, each with its weight."""
        rankers = self._rankers()
        return BlendPolicy(
            [ranker.policy() for ranker, _ in rankers],
            [weight for _, weight in rankers],
            imitations=[i for i, (ranker, _) in enumerate(rankers) if isinstance(ranker, Imitation)],
        )

    def state(self) -> dict[str, Any]:
        """Of the networks, and the number of trees: the log and the seed decide all else."""
        return {"step": self._step, "networks": {str(i): n.state() for i, n in enumerate(chain(*self.networks))}}

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on from `state`; the trees are grown anew, on what `begin` was given."""
        for i, network in enumerate(chain(*self.networks)):
            network.load_state(state["networks"][str(i)])
        for _ in range(state["step"] - self._step):
            for trees in self.trees:
                trees.grow()
        self._step = state["step"]

    def _start(self, evidence: Evidence, parts: Ints | None = None) -> None:
        self._evidence = evidence
        if parts is None:
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
        if "trees" not in config.rankers:
            return
        self.trees = [
            TreeRanker(evidence, rows, {**parameters, "seed": self._seed + number}, self._normaliser)
            for number, rows in enumerate(self._learned)
        ]

    def _rankers(self) -> list[tuple[FittedRanker, float]]:
        """Every ranker with its weight; the networks alone, and all alike, while there is nothing to weigh by."""
        if self._weighed is None or self._weighed[0] != self._step:
            self._weighed = self._step, self._weigh(self._evidence)
        return self._weighed[1]

    def _weigh(self, evidence: Evidence) -> list[tuple[FittedRanker, float]]:
        config = self.config
        learned: list[Sequence[FittedRanker]] = [*self.networks]
        if self.trees:
            learned.append(self.trees)
        trust = least_trust(evidence, self._step, config.trust_steps, config.trust_clicks)
        return weigh(learned, self.logged_order.imitations, trust, evidence, self._held_out, self._seed)


def affordable(log: ClickLog, rows: Ints, max_documents: int, seed: int) -> Ints:
    """The rows of the log to learn from: all, or a random sample with so many documents together at most."""
    documents = log.where[rows].sum(axis=1)
    if documents.sum() <= max_documents:
        return rows
    order = np.random.default_rng(seed).permutation(len(rows))
    return np.sort(rows[order[np.cumsum(documents[order]) <= max_documents]])
