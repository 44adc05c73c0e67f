"""The features of the documents of a call, as a model takes them."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from cuolr.errors import InputError, InputWarning
from cuolr.policies.named_documents import NamedDocuments, expected_columns
from cuolr.policies.policy import RankingPolicy
from cuolr.types import FeatureColumn, Floats

NESTED = frozenset({list, dict})


@dataclass(frozen=True)
class DocumentFeatures:
    """How the features of a document become numbers.

    Attributes:
        policy: The model.
    """

    policy: RankingPolicy

    @cached_property
    def columns(self) -> tuple[FeatureColumn, ...]:
        """What documents must have, in the order of the numbers; empty if the model takes any documents."""
        return () if self.policy.n_features is None else expected_columns(self.policy).columns

    def numbers(self, ids: Sequence[str], documents: Sequence[Mapping[str, Any] | Sequence[Any]]) -> Floats:
        """[n, F] the numbers of each document; NaN = missing.

        Args:
            ids: Of the documents, for messages.
            documents: The features of each, by name or as a list; None = missing.

        Raises:
            InputError: If features are missing, new, or not of their kind.
        """
        if not self.columns:
            return np.empty((len(documents), 0), np.float32)
        named = [self._named(name, features) for name, features in zip(ids, documents, strict=True)]
        with warnings.catch_warnings():
            # A level that training did not have is none of the levels.
            warnings.simplefilter("ignore", InputWarning)
            numbers = NamedDocuments.of_dictionaries(self.policy, named, ids).features
        infinite = np.argwhere(np.isinf(numbers))
        if len(infinite):
            raise InputError(
                f"document '{ids[infinite[0, 0]]}': expected finite numbers in float32, found a larger one"
            )
        return numbers

    def _named(self, document: str, features: Mapping[str, Any] | Sequence[Any]) -> Mapping[str, Any]:
        """The features by name; the values are those that JSON has, but for lists and objects."""
        if not isinstance(features, Mapping):
            if len(features) != len(self.columns):
                raise InputError(f"document '{document}': expected {len(self.columns)} features, found {len(features)}")
            features = {column.name: value for column, value in zip(self.columns, features, strict=True)}
        if not NESTED.isdisjoint(map(type, features.values())):
            name = next(name for name, value in features.items() if type(value) in NESTED)
            raise InputError(f"document '{document}': feature '{name}': expected a value, found a list or an object")
        return features
