"""The interface of exporters, and what can be exported: a weighted sum of rankers that score a document by itself."""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Self, TypeAlias, TypeGuard, Union

import numpy as np

from cuolr.data.normalise import Normaliser
from cuolr.policies.ensemble_policy import EnsemblePolicy
from cuolr.policies.linear_policy import LinearPolicy
from cuolr.policies.policy import POLICIES, RankingPolicy, ScaledScoringPolicy
from cuolr.policies.trees_policy import TreesPolicy
from cuolr.types import Candidates, Doubles, FeatureColumn, Floats

if TYPE_CHECKING:
    from cuolr.policies.network_policy import NetworkPolicy


def engine_names(names: Sequence[str]) -> list[str]:
    """Names of ASCII letters, digits and underscores that start with a letter or an underscore; all are different.

    Search engines use names of features in expressions, URLs and JSON without quotes.

    >>> engine_names(["price", "brand=Acme & Co", "brand=Acme_&_Co", "2nd"])
    ['price', 'brand_Acme_Co', 'brand_Acme_Co_2', '_2nd']
    """
    taken: set[str] = set()
    safe = []
    for name in names:
        base = re.sub(r"[^A-Za-z0-9_]+", "_", name)
        base = re.sub(r"_{2,}", "_", base) if base != name else base
        base = base if re.match(r"[A-Za-z_]", base) else f"_{base}"
        number, unique = 1, base
        while unique in taken:
            number += 1
            unique = f"{base}_{number}"
        taken.add(unique)
        safe.append(unique)
    return safe


def latest_date(column: FeatureColumn) -> datetime:
    """The latest date of a column in the training data, in UTC."""
    return datetime.fromisoformat(column.latest).replace(tzinfo=UTC)


Member: TypeAlias = Union[TreesPolicy, LinearPolicy, "NetworkPolicy"]


# What a target is said not to take.
WORDS = {"ranksvm": "a linear model", "network": "a network", "trees": "trees"}


class CannotHold(Exception):  # noqa: N818 – a refusal, which becomes an InputError with advice
    """Why a target cannot hold a model."""


@dataclass(frozen=True)
class PointwiseModel:
    """Σ_i w_i · s_i(x), where x is the raw features of a document.

    Attributes:
        policy: The policy, whose scores the exported model must give.
        members: The rankers s with a weight other than 0.
        weights: Their weights w.
    """

    policy: ScaledScoringPolicy
    members: Sequence[Member]
    weights: Sequence[float]

    @classmethod
    def of(cls, policy: RankingPolicy) -> Self:
        """Raises `CannotHold` if a document's score depends on other documents, or is not known."""
        if not isinstance(policy, ScaledScoringPolicy):
            raise CannotHold(f"a '{_kind(policy)}' model does not score documents one by one")
        weighted = list(_flat(policy, 1.0))
        if not weighted:
            raise CannotHold("all members of the ensemble have weight 0")
        if any(member.normaliser.kind == "query-min-max" for member, _ in weighted):
            raise CannotHold("its features are scaled within each query (query-min-max)")
        return cls(policy, [member for member, _ in weighted], [weight for _, weight in weighted])

    @property
    def n_features(self) -> int:
        """F."""
        return self.policy.n_features

    @property
    def normaliser(self) -> Normaliser:
        """How features are scaled."""
        return self.policy.normaliser

    @cached_property
    def feature_names(self) -> list[str]:
        """[F] as in training; `feature_1` and so on if the training data has no names."""
        names = self.normaliser.feature_names
        return [f"feature_{j + 1}" for j in range(self.n_features)] if names is None else names.tolist()

    @cached_property
    def names(self) -> list[str]:
        """[F] names that every engine accepts, see `engine_names`."""
        return engine_names(self.feature_names)

    @cached_property
    def columns(self) -> list[tuple[FeatureColumn, int]]:
        """[F] the column of the feature table that each feature comes from, and its number within it."""
        recipe = self.normaliser.recipe
        if recipe is None:
            return [(FeatureColumn(name), 0) for name in self.feature_names]
        return [(column, i) for column in recipe.columns for i in range(len(column.feature_names))]

    def derived_name(self, feature: int, suffix: str) -> str:
        """A name for what is made of a feature, which no feature has."""
        name = f"{self.names[feature]}{suffix}"
        while name in self.names:
            name += "_"
        return name

    @property
    def kinds(self) -> set[str]:
        """The kinds of its members."""
        return {_kind(member) for member in self.members}

    @property
    def described(self) -> str:
        """Its members, in words."""
        return " and ".join(WORDS[kind] for kind in sorted(self.kinds, reverse=True))

    def score(self, features: Floats) -> Doubles:
        """[n] the policy's scores of raw documents [n, F]."""
        ids = np.array(["1"])
        candidates = Candidates(features, np.array([0, len(features)]), ids)
        return self.policy.score(candidates).astype(np.float64)


def layers_of(member: "LinearPolicy | NetworkPolicy") -> list[tuple[Floats, Floats]]:
    """The weights [out, in] and the bias [out] of each layer on scaled features, with ReLU between layers."""
    if isinstance(member, LinearPolicy):
        return [(member.weights[None, :], np.zeros(1, np.float32))]
    layers = [*member.network.layers, member.network.output]
    return [(layer.weight.detach().numpy(), layer.bias.detach().numpy()) for layer in layers]


def _flat(policy: ScaledScoringPolicy, weight: float) -> Iterator[tuple[Member, float]]:
    if isinstance(policy, EnsemblePolicy):
        for member, own in zip(policy.members, policy.weights, strict=True):
            if own:
                yield from _flat(member, weight * float(np.float32(own)))
    elif isinstance(policy, TreesPolicy | LinearPolicy) or _is_network(policy):
        yield policy, weight
    else:
        raise CannotHold(f"the form of a '{_kind(policy)}' model is not known")


def _is_network(policy: ScaledScoringPolicy) -> TypeGuard["NetworkPolicy"]:
    return _kind(policy) == "network"


def _kind(policy: RankingPolicy) -> str:
    return POLICIES.name_of(type(policy))


# [n, F] raw features, NaN = missing → [n] scores.
Scores: TypeAlias = Callable[[Floats], Doubles]


@dataclass(frozen=True)
class ExportedModel:
    """A model in the format of a target.

    Attributes:
        form: What the target calls it, such as `model/xgboost+json`.
        content: The model file.
        score: The scores of documents as the target computes them, by reading `content`.
        suffixes: How the name of the model file may end.
        companions: Further files by what replaces the suffix of the model file, such as `.features.json`.
        warnings: What the user should know about versions of the engine.
    """

    form: str
    content: bytes
    score: Scores
    suffixes: Sequence[str]
    companions: Mapping[str, bytes] = field(default_factory=dict)
    warnings: Sequence[str] = ()


class Exporter(ABC):
    """Writes models in the format of one target.

    Attributes:
        student: The kind of model that `cuolr distil` should make of a model that the target cannot hold.
    """

    student: ClassVar[str] = "trees"

    @abstractmethod
    def export(self, model: PointwiseModel, name: str) -> ExportedModel:
        """The model in the target's format.

        Args:
            model: The model to export; raises `CannotHold` if the target cannot represent it.
            name: The name of the model in the engine.
        """
