"""The features of the documents of a call, as a model takes them."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import polars as pl

from cuolr.data.encode_features import apply_recipe
from cuolr.errors import InputError, InputWarning
from cuolr.policies.policy import RankingPolicy
from cuolr.registry import did_you_mean
from cuolr.types import FeatureColumn, FeatureRecipe, Floats

NUMBERS = frozenset({float, int, bool, type(None)})
SCALARS = NUMBERS | {str}
LARGEST = float(np.finfo(np.float32).max)


@dataclass(frozen=True)
class DocumentFeatures:
    """How the features of a document become numbers.

    Attributes:
        columns: What a document must have, in the order of the numbers.
        dropped: What it may have: columns that training left out.
        numbered: Whether the model knows no names: features are then named by their number from 1, as in LETOR files,
            where a number that is not given is 0.
    """

    columns: tuple[FeatureColumn, ...]
    dropped: tuple[str, ...] = ()
    numbered: bool = False

    @classmethod
    def of(cls, policy: RankingPolicy) -> Self:
        """What a policy takes."""
        if policy.recipe is not None:
            return cls(policy.recipe.columns, policy.recipe.dropped)
        names = getattr(getattr(policy, "normaliser", None), "feature_names", None)
        if names is not None:
            return cls(tuple(FeatureColumn(str(name)) for name in names))
        numbers = range(1, (policy.n_features or 0) + 1)
        return cls(tuple(FeatureColumn(str(number)) for number in numbers), numbered=True)

    def numbers(self, ids: Sequence[str], documents: Sequence[Mapping[str, Any] | Sequence[Any]]) -> Floats:
        """[n, F] the numbers of each document; NaN = missing.

        Args:
            ids: Of the documents, for messages.
            documents: The features of each, by name or as a list; None = missing.

        Raises:
            InputError: If features are missing, new, or not of their kind.
        """
        rows = [self._row(name, features) for name, features in zip(ids, documents, strict=True)]
        kinds = {type(value) for row in rows for value in row}
        if kinds - SCALARS:
            raise InputError("features: expected numbers, texts, true, false or null, found a list or an object")
        if kinds <= NUMBERS and all(column.kind in ("number", "boolean") for column in self.columns):
            return self._plain_numbers(ids, rows)
        return self._encoded(ids, rows)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(column.name for column in self.columns)

    def _row(self, document: str, features: Mapping[str, Any] | Sequence[Any]) -> Sequence[Any]:
        """The values of one document in the order of the columns."""
        if not isinstance(features, Mapping):
            if len(features) != len(self.columns):
                raise InputError(f"document '{document}': expected {len(self.columns)} features, found {len(features)}")
            return features
        given = {**self._zeros, **features}
        if given.keys() != self._known:
            self._check_names(document, given)
        return [given[name] for name in self.names]

    @cached_property
    def _zeros(self) -> dict[str, float]:
        """What features that are not given are; empty if all must be given."""
        return dict.fromkeys(self.names, 0.0) if self.numbered else {}

    @cached_property
    def _known(self) -> frozenset[str]:
        return frozenset(self.names)

    def _check_names(self, document: str, given: Mapping[str, Any]) -> None:
        """Raise if a feature is missing, or the model does not know it."""
        unknown = [name for name in given if name not in self._known and name not in self.dropped]
        for name in self.names:
            if name not in given:
                guess = did_you_mean(name, unknown)
                advice = "if its value is not known, send null"
                raise InputError(f"document '{document}': feature '{name}' is missing{guess}; {advice}")
        if unknown:
            guess = did_you_mean(unknown[0], self.names)
            raise InputError(f"document '{document}': feature '{unknown[0]}' is not one of the model{guess}")

    def _plain_numbers(self, ids: Sequence[str], rows: Sequence[Sequence[Any]]) -> Floats:
        """[n, F] rows of numbers, without the detour over columns."""
        try:
            wide = np.array(rows, np.float64).reshape(len(rows), len(self.columns))
        except OverflowError:
            raise InputError("features: expected numbers in the range of float32, found a larger one") from None
        outside = np.argwhere(np.abs(wide) > LARGEST)
        if len(outside):
            row, column = outside[0]
            place = f"document '{ids[row]}': feature '{self.columns[column].name}'"
            raise InputError(f"{place}: expected a finite number in float32, found {rows[row][column]!r}")
        return wide.astype(np.float32)

    def _encoded(self, ids: Sequence[str], rows: Sequence[Sequence[Any]]) -> Floats:
        """[n, F] by the recipe of the model; a level that training did not have is none of the levels."""
        table = pl.DataFrame([self._series(number, rows) for number in range(len(self.columns))])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InputWarning)
            return apply_recipe(FeatureRecipe(self.columns), table, lambda row: f"document '{ids[row]}'")

    def _series(self, number: int, rows: Sequence[Sequence[Any]]) -> pl.Series:
        """A column of the call; one of several types as text."""
        values = [row[number] for row in rows]
        kinds = {type(value) for value in values} - {type(None)}
        if kinds <= {int, float}:
            if any(abs(value) > LARGEST for value in values if value is not None):
                raise InputError(f"column '{self.columns[number].name}': expected finite numbers in float32")
            whole = kinds == {int} and all(abs(value) < 2**63 for value in values if value is not None)
            return pl.Series(self.columns[number].name, values, pl.Int64() if whole else pl.Float64(), strict=False)
        if len(kinds) > 1:
            values = [None if value is None else str(value) for value in values]
        return pl.Series(self.columns[number].name, values)
