"""`unbiased-lambdamart`: LambdaMART on pairs of clicked and skipped documents, with pairwise debiasing."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Self

import numpy as np

from cuolr.config import Range, SettingError, check_ranges
from cuolr.data.normalise import Normaliser
from cuolr.errors import InputError
from cuolr.learners.counterfactual.debiased import RankerName
from cuolr.learners.rankers.base_ranker import BoostedTrees, RankerSteps
from cuolr.learners.rankers.ensemble import EnsembleConfig, lightgbm_parameters
from cuolr.logs.aggregate import aggregate
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.page_positions import at_page_positions
from cuolr.logs.scaled_documents import ScaledDocuments
from cuolr.policies.policy import RankingPolicy
from cuolr.policies.trees_policy import RANKING_TREES, load_lightgbm
from cuolr.training.base_learner import LEARNERS, FitTask, Learner, SearchSpace
from cuolr.training.batches import WeightedLists
from cuolr.types import Doubles, Floats, IntegerArray, Ints

# Sessions whose pairs are made at a time.
SESSIONS_AT_A_TIME = 1 << 16


@dataclass(frozen=True)
class ClickPairs:
    """P pairs of positions in L lists.

    Attributes:
        first: [L] a session that shows each list.
        list: [P] the list.
        clicked: [P] the position of the clicked document, from 0.
        skipped: [P] the position of the document that was not clicked.
        weight: [P] Σ over the sessions with this pair of the reward of the click / the ideal DCG of the clicks.
    """

    first: Ints
    list: Ints
    clicked: Ints
    skipped: Ints
    weight: Doubles

    @classmethod
    def of(cls, log: ClickLog) -> Self:
        """Count the pairs of sessions, raw or counted. A session without a click, or without a skip, has none."""
        _, first, of_session = np.unique(
            np.column_stack([log.query, log.ranking]), axis=0, return_index=True, return_inverse=True
        )
        of_session, k = of_session.ravel(), log.k
        ideal = np.concatenate([[1.0], np.cumsum(1 / np.log2(np.arange(k) + 2))])
        parts = []
        for start in range(0, len(log), SESSIONS_AT_A_TIME):
            rows = slice(start, start + SESSIONS_AT_A_TIME)
            clicks = log.clicks[rows] > 0
            session, clicked = np.nonzero(clicks)
            of_click, skipped = np.nonzero((log.where[rows] & ~clicks)[session])
            rewards = log.rewards[rows][session, clicked] * log.count[rows][session]
            weight = (rewards / ideal[clicks.sum(axis=1)[session]])[of_click]
            of_list = of_session[rows][session][of_click].astype(np.int64)
            parts.append(_summed((of_list * k + clicked[of_click]) * k + skipped, weight.astype(np.float64)))
        pair, weight = _summed(*(np.concatenate(values) for values in zip(*parts, strict=True)))
        place, skipped = np.divmod(pair, k)
        return cls(first, *np.divmod(place, k), skipped, weight)


def _summed(pair: Ints, weight: Doubles) -> tuple[Ints, Doubles]:
    distinct, place = np.unique(pair, return_inverse=True)
    return distinct, np.bincount(place, weights=weight, minlength=len(distinct)).astype(np.float64)


@dataclass(frozen=True)
class PairwiseLists:
    """Lists with their pairs.

    Attributes:
        features: [n, F] the scaled features of all documents.
        documents: [L, K] the row in `features` of each document; n where there is none.
        pairs: The pairs of clicked and skipped documents.
    """

    features: Floats
    documents: IntegerArray
    pairs: ClickPairs


class UnbiasedTrees(BoostedTrees):
    """Minimises Σ |ΔnDCG_ij| log(1 + exp(s_j − s_i)) / (t⁺_i t⁻_j) over pairs (i clicked, j skipped), by boosting.

    Hu et al. 2019, "Unbiased LambdaMART: an unbiased pairwise learning-to-rank algorithm". With L_ij the loss of
    a pair without its biases, after each tree t⁺_i = [Σ_j L_ij / t⁻_j]^(1/(p+1)) and
    t⁻_j = [Σ_i L_ij / t⁺_i]^(1/(p+1)), each relative to the first position.

    Attributes:
        click_bias: [K] t⁺.
        skip_bias: [K] t⁻.
    """

    def __init__(
        self, lists: PairwiseLists, parameters: Mapping[str, Any], regularisation: float, normaliser: Normaliser
    ) -> None:
        """Create a ranker without trees.

        Args:
            lists: The lists to train on.
            parameters: LightGBM's parameters.
            regularisation: p; the larger, the closer the biases are to 1.
            normaliser: The normaliser that scaled the features, kept in the policy.
        """
        super().__init__(int(parameters["num_threads"]), normaliser)
        self._lists = lists
        self._exponent = 1 / (regularisation + 1)
        self.click_bias, self.skip_bias = np.ones((2, lists.documents.shape[1]))
        lgb, of_trees = load_lightgbm(), {**RANKING_TREES, **parameters, "objective": "none"}
        dataset = lgb.Dataset(normaliser.natively(lists.features), np.zeros(len(lists.features)), params=of_trees)
        self._booster = lgb.Booster(of_trees, dataset)

    @property
    def booster(self) -> Any:
        """LightGBM's booster."""
        return self._booster

    def grow(self) -> None:
        """Grow one more tree, and update the biases."""
        self._booster.update(fobj=lambda scores, _: self.gradients(scores))

    def gradients(self, scores: Doubles) -> tuple[Doubles, Doubles]:
        """[n] the first and second derivative by each document's score; updates the biases."""
        pairs, documents = self._lists.pairs, self._lists.documents
        of_list = np.append(scores, -np.inf)[documents]
        # The rank of each document in its list by score; of equal scores, as shown.
        rank = np.argsort(np.argsort(-of_list, axis=1, kind="stable"), axis=1)
        discount = 1 / np.log2(rank + 2)
        better, worse = (pairs.list, pairs.clicked), (pairs.list, pairs.skipped)
        gain = pairs.weight * np.abs(discount[better] - discount[worse])
        margin = of_list[better] - of_list[worse]
        unbiased = gain / (self.click_bias[pairs.clicked] * self.skip_bias[pairs.skipped])
        wrong = np.exp(-np.logaddexp(0, margin))

        def by_document(of_better: Doubles, of_worse: Doubles) -> Doubles:
            return _sums(documents[better], of_better, len(scores)) + _sums(documents[worse], of_worse, len(scores))

        slope, curvature = wrong * unbiased, wrong * (1 - wrong) * unbiased
        self._update_biases(gain * np.logaddexp(0, -margin))
        return by_document(-slope, slope), by_document(curvature, curvature)

    def _update_biases(self, losses: Doubles) -> None:
        pairs, k = self._lists.pairs, len(self.click_bias)
        clicked = _sums(pairs.clicked, losses / self.skip_bias[pairs.skipped], k)
        skipped = _sums(pairs.skipped, losses / self.click_bias[pairs.clicked], k)
        self.click_bias, self.skip_bias = (relative_bias(sums, self._exponent) for sums in (clicked, skipped))


def relative_bias(sums: Doubles, exponent: float) -> Doubles:
    """[K] (s_k / s_1)^exponent; 1 where there is no loss, at the position or at the first.

    >>> relative_bias(np.array([4.0, 1.0, 0.0]), 0.5)
    array([1. , 0.5, 1. ])
    """
    known = (sums > 0) & (sums[0] > 0)
    return np.where(known, sums / np.where(known, sums[0], 1.0), 1.0) ** exponent


def _sums(place: IntegerArray, values: Doubles, size: int) -> Doubles:
    return np.bincount(place, weights=values, minlength=size).astype(np.float64)


@dataclass(frozen=True)
class UnbiasedLambdaMartConfig:
    """Settings of Unbiased LambdaMART. A training step grows one tree.

    Attributes:
        ranker: The ranker; pairwise debiasing has lambdamart only.
        rankers: Settings of LambdaMART: leaves, tree_learning_rate, min_documents_per_leaf and feature_fraction.
        bias_regularisation: p, the regularisation of the position biases; the larger, the closer they are to 1.
        threads: Number of threads of LightGBM.
    """

    ranker: RankerName = "lambdamart"
    rankers: EnsembleConfig = field(default_factory=EnsembleConfig)
    bias_regularisation: Annotated[float, Range(0, 1e6)] = 0.0
    threads: Annotated[int, Range(1, 1_000)] = 2

    def __post_init__(self) -> None:
        check_ranges(self)
        if self.ranker != "lambdamart":
            raise SettingError(
                {"ranker": f"pairwise debiasing weights the pairs of LambdaMART; use lambdamart, found '{self.ranker}'"}
            )


@LEARNERS.register("unbiased-lambdamart")
class UnbiasedLambdaMart(Learner):
    """LambdaMART on pairs (clicked i, skipped j) of a session, each divided by t⁺_i and t⁻_j; see `UnbiasedTrees`.

    Hu et al. 2019, "Unbiased LambdaMART: an unbiased pairwise learning-to-rank algorithm". Both biases are learned
    along with the trees. All sessions are learned from: equal pairs of a list are one pair with their sum as weight. A
    pair has the reward of its click as gain.

    Deviation: held-out queries are scored by their clicks as they are; the biases are of pairs, and correct no click.
    """

    Config = UnbiasedLambdaMartConfig
    config: UnbiasedLambdaMartConfig
    role = "baseline"
    log_form = "sessions"
    cold_start: ClassVar[str] = "its position biases are learned along with the trees, from the first one on"
    search_space: ClassVar[SearchSpace] = {
        "learner.rankers.tree_learning_rate": (0.02, 0.05, 0.1),
        "learner.rankers.leaves": (7, 15, 31),
        "learner.bias_regularisation": (0.0, 1.0),
    }

    def fit(self, task: FitTask) -> RankingPolicy:
        """Count the pairs, then grow trees step by step."""
        if task.ray is not None:
            raise InputError("ray: the trees of unbiased-lambdamart are grown by one process; train without ray")
        log = at_page_positions(task.log)
        _, held_out = task.batches(WeightedLists.of(aggregate(log)))
        learned_from = log.select(np.flatnonzero(~np.isin(log.query, task.held_out)))
        parameters = lightgbm_parameters(self.config.rankers, self.config.threads, task.config.seed)
        shown, pairs = ScaledDocuments.of(learned_from, task.normaliser), ClickPairs.of(learned_from)
        lists = PairwiseLists(shown.features[:-1], shown.documents[pairs.first], pairs)
        ranker = UnbiasedTrees(lists, parameters, self.config.bias_regularisation, task.normaliser)
        return task.loop.run(RankerSteps(ranker, held_out))
