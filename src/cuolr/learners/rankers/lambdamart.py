"""LambdaMART, grown by LightGBM one tree at a time."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from cuolr.data.memory import give_back_freed
from cuolr.data.normalise import Normaliser
from cuolr.errors import InputError
from cuolr.learners.rankers.base_ranker import BoostedTrees
from cuolr.learners.rankers.targets import Targets
from cuolr.policies.policy import RankingPolicy
from cuolr.policies.trees_policy import RANKING_TREES, TreesPolicy, binned, load_lightgbm
from cuolr.types import Floats, Ints

# Targets become integer grades from 0 to this, with linear gain.
LEVELS = 30
# Documents that are worth one more thread: with fewer, the threads mostly wait for each other.
DOCUMENTS_PER_THREAD = 50_000


@dataclass(frozen=True)
class QueryGroups:
    """Documents with integer grades, list after list, as LightGBM takes them.

    Attributes:
        features: [N, F] scaled; of other documents, too, if `rows` says which.
        grades: [n] integers from 0.
        sizes: [number of lists] the number of documents in each list, at least 1.
        weight: [n] the weight of each document; None = 1.
        position: [n] the position of each document, from 0; if given, LightGBM learns an offset for each position.
        gain: The gain of each grade; None = 2^grade − 1.
        rows: [n] the row of each document in `features`; None = all rows. Rankers of several folds share the features,
            and copy some of theirs at a time while LightGBM bins them.
    """

    features: Floats
    grades: npt.NDArray[np.integer[Any]]
    sizes: Ints
    weight: Floats | None = None
    position: npt.NDArray[np.int32] | None = None
    gain: tuple[float, ...] | None = None
    rows: Ints | None = None

    @classmethod
    def of(cls, targets: Targets, highest: float) -> Self:
        """Convert targets to grades with linear gain, so that ΔnDCG is proportional to the difference of two targets.

        Args:
            targets: The lists; empty ones are left out.
            highest: The target that gets the highest grade.
        """
        where = targets.where
        sizes = where.sum(dim=1)
        return cls(
            features=targets.features.numpy(),
            rows=targets.documents[where].numpy(),
            grades=(LEVELS * targets.target[where] / max(highest, 1e-9)).round().int().numpy(),
            sizes=sizes[sizes > 0].numpy(),
            weight=targets.weight.repeat_interleave(sizes).numpy(),
            gain=tuple(range(LEVELS + 1)),
        )


def graded(rewards: Floats) -> tuple[npt.NDArray[np.integer[Any]], tuple[float, ...] | None]:
    """Integer grades of rewards, and the gain of each grade, so that gains are rewards.

    Clicks, 0 and 1, are grades as they are, with the usual gain. Of more than `LEVELS` distinct rewards above 0, those
    of equal shares of the documents have the same grade, and their mean is its gain.

    >>> graded(np.array([0, 2.5, 0, 10], np.float32))
    (array([0, 1, 0, 2]), (0.0, 2.5, 10.0))

    Args:
        rewards: [n] 0 or more.
    """
    positive = np.unique(rewards[rewards > 0])
    if (positive == 1).all():
        return rewards.astype(np.int8), None
    if len(positive) > LEVELS:
        shares = np.linspace(0, 1, LEVELS + 1)[1:]
        positive = np.unique(np.quantile(rewards[rewards > 0], shares, method="higher"))
    grades = np.where(rewards > 0, 1 + np.searchsorted(positive, rewards), 0)
    sums = np.bincount(grades, weights=rewards, minlength=len(positive) + 1)
    return grades, tuple((sums / np.maximum(np.bincount(grades, minlength=len(sums)), 1)).tolist())


def useful_threads(parameters: Mapping[str, Any], lists: QueryGroups) -> int:
    """The number of threads for so many documents."""
    return min(int(parameters["num_threads"]), 1 + len(lists.grades) // DOCUMENTS_PER_THREAD)


def of_documents(lists: QueryGroups) -> dict[str, Any]:
    """What LightGBM takes beside features and grades."""
    return {"group": lists.sizes, "weight": lists.weight, "position": lists.position}


class LambdaMartRanker(BoostedTrees):
    """LambdaMART (Burges 2010). A step grows one tree, or none where no split is left."""

    def __init__(self, lists: QueryGroups, parameters: Mapping[str, Any], normaliser: Normaliser) -> None:
        """Create a ranker without trees.

        Args:
            lists: The lists to train on.
            parameters: LightGBM's parameters; `num_threads` is an upper limit.
            normaliser: The normaliser that scaled the features, kept in the policy.
        """
        super().__init__(useful_threads(parameters, lists), normaliser)
        gain = {} if lists.gain is None else {"label_gain": list(lists.gain)}
        self._parameters = {**RANKING_TREES, **gain, **parameters, "num_threads": self._threads}
        if self._threads == 1:
            # The same trees to the bit in about the same time, without a second copy of the bins by row.
            self._parameters |= {"force_row_wise": False, "force_col_wise": True}
        self._lgb = load_lightgbm()
        self._lists: QueryGroups | None = lists
        # The trees, once there are any.
        self._grown: Any = None
        self._continues = False

    @property
    def booster(self) -> Any:
        """LightGBM's booster, with the trees grown so far."""
        if self._grown is None:
            # Workers that share trees agree on the bins of all features at once.
            dataset = self._whole() if "machines" in self._parameters else self._binned()
            self._grown = self._lgb.Booster(self._parameters, dataset)
        return self._grown

    def _binned(self) -> Any:
        """The lists as LightGBM takes them: bins, for which some features are copied at a time."""
        lists, normaliser = self._taken_lists(), self._normaliser
        rows = slice(None) if lists.rows is None else lists.rows
        give_back_freed()  # by the steps of other rankers
        dataset = binned(
            lambda columns: normaliser.columns_natively(lists.features, columns, rows),
            lists.features.shape[1] - normaliser.n_indicators,
            lists.grades,
            self._parameters,
            **of_documents(lists),
        )
        give_back_freed()  # by LightGBM
        return dataset

    def _whole(self) -> Any:
        """The lists with all features at once, which other trees to start from have to score."""
        lists = self._taken_lists()
        features = lists.features if lists.rows is None else lists.features[lists.rows]
        values = self._normaliser.natively(features)
        return self._lgb.Dataset(values, lists.grades, params=self._parameters, **of_documents(lists))

    def _taken_lists(self) -> QueryGroups:
        """The lists, which are not kept: LightGBM needs no more than the bins."""
        lists, self._lists = self._lists, None
        assert lists is not None
        return lists

    def continue_from(self, policy: RankingPolicy) -> None:
        """Start with the trees of a model; to be called before the first step."""
        if not isinstance(policy, TreesPolicy):
            raise InputError(f"expected a model of trees to start from, found {type(policy).__name__}")
        self._grown, self._continues = self._lgb.Booster(model_str=policy.trees.lightgbm_text), True

    def grow(self) -> None:
        """Grow one more tree."""
        if self._continues:
            # LightGBM takes other trees to start from only here; it grows the first tree at once.
            self._grown = self._lgb.train(
                self._parameters, self._whole(), 1, init_model=self._grown, keep_training_booster=True
            )
            self._continues = False
        else:
            self.booster.update()
