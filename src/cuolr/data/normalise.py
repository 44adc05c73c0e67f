"""Feature scaling, fitted on training data and stored with every model."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, Self, get_args

import numpy as np
import numpy.typing as npt

from cuolr.data.memory import give_back_pages
from cuolr.data.missing_values import MissingValues
from cuolr.errors import InputError
from cuolr.registry import unknown_name
from cuolr.types import Bools, Candidates, Doubles, FeatureRecipe, Floats, Ints, Strings

Normalising = Literal["min-max", "log-min-max", "query-min-max", "none"]

# Rows that are widened to float64 at a time, to bound memory.
ROWS_AT_A_TIME = 2_048
# Queries that are scaled together if the caller does not need all at once.
QUERIES_AT_A_TIME = 64


@dataclass(frozen=True)
class Normaliser:
    """Scales each feature to [−1, 1].

    `min-max`: linear between the minimum and maximum in training.
    `log-min-max`: sign(x)·log(1 + |x|) first, for raw features of very different scales, such as MSLR's.
    `query-min-max`: between the minimum and maximum among the query's candidates; nothing is fitted.
    `none`: features unchanged.

    Values outside the fitted range are clipped. A constant feature becomes 0. NaN is a missing value: it becomes the
    median, and indicators are added as further columns, see `MissingValues`.

    >>> train = Candidates(np.array([[0.0], [4.0]], np.float32), np.array([0, 2]), np.array(["q"]))
    >>> Normaliser.fit("min-max", train).transform(np.array([[1.0], [99.0]], np.float32)).ravel().tolist()
    [-0.5, 1.0]
    """

    kind: Normalising
    low: Doubles  # [F], or [0] where nothing is fitted
    high: Doubles
    feature_names: Strings | None = None  # [F] of the training candidates, where they have names
    missing: MissingValues | None = None  # None = missing values stay NaN
    recipe: FeatureRecipe | None = None  # how the training features were made from the columns of a table

    def __post_init__(self) -> None:
        if self.kind not in get_args(Normalising):
            raise unknown_name("normalising", str(self.kind), get_args(Normalising))

    @classmethod
    def fit(cls, kind: str, candidates: Candidates) -> Self:
        """Fit on training candidates."""
        nothing = cls(kind, np.empty(0), np.empty(0), candidates.feature_names)  # type: ignore[arg-type]
        low, high = (reduce(candidates.features, axis=0).astype(np.float64) for reduce in (np.min, np.max))
        if np.isnan(low).any():
            low, high = (reduce.reduce(candidates.features, axis=0).astype(np.float64) for reduce in (np.fmin, np.fmax))
        if problems := list(_range_problems(low, high, candidates.feature_names)):
            raise InputError(problems)
        nothing = replace(nothing, missing=MissingValues.fit(candidates.features), recipe=candidates.recipe)
        give_back_pages(candidates.features)
        if kind in ("query-min-max", "none"):
            return nothing
        # The map is increasing, so the range of the mapped values is the mapped range.
        if kind == "log-min-max":
            low, high = _signed_log(low), _signed_log(high)
        return replace(nothing, low=low, high=high)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The range of each feature, and the rule for missing values, to be saved."""
        missing = {} if self.missing is None else self.missing.arrays()
        return {"normaliser.low": self.low, "normaliser.high": self.high, **missing}

    def settings(self) -> dict[str, Any]:
        """The kind, the features' names, and how they were made, to be saved."""
        names = None if self.feature_names is None else self.feature_names.tolist()
        recipe = None if self.recipe is None else self.recipe.to_dict()
        return {"normalising": self.kind, "feature_names": names, "recipe": recipe}

    @classmethod
    def from_parts(cls, arrays: Mapping[str, npt.NDArray[Any]], settings: Mapping[str, Any]) -> Self:
        """The normaliser that `arrays` and `settings` were taken from."""
        names, recipe = settings["feature_names"], settings.get("recipe")
        if names is not None and not all(isinstance(name, str) for name in names):
            raise ValueError("feature_names: expected texts")
        low, high = arrays["normaliser.low"], arrays["normaliser.high"]
        for bound in (low, high):
            if bound.shape != (len(low),) or bound.dtype != np.float64 or not np.isfinite(bound).all():
                raise ValueError(f"normaliser: expected finite float64 numbers, found {bound.dtype} {bound.shape}")
        return cls(
            settings["normalising"],
            low,
            high,
            None if names is None else np.array(list(names), np.str_),
            MissingValues.from_arrays(arrays),
            None if recipe is None else FeatureRecipe.from_dict(recipe),
        )

    @property
    def n_indicators(self) -> int:
        """M, the number of columns that mark missing values."""
        return 0 if self.missing is None else self.missing.n_indicators

    def as_fitted(self, candidates: Candidates, n_features: int) -> Candidates:
        """The candidates with features in the order of the training data, matched by name if both have names.

        Args:
            candidates: Candidates to rank.
            n_features: F, the number of features in training.
        """
        if self.recipe is not None and candidates.recipe is not None:
            problems = [
                f"column '{name}' was encoded in another way than in training; read its table again with the recipe of "
                "the model (import-log --features-as MODEL, in Python recipe=policy.recipe)"
                for name in self.recipe.differing(candidates.recipe)
            ]
            if problems:
                raise InputError(problems)
        known, found = self.feature_names, candidates.feature_names
        if known is not None and found is not None and not np.array_equal(known, found):
            problems = [f"feature '{name}' is missing" for name in known if name not in found]
            problems += [f"feature '{name}' was not in the training data" for name in found if name not in known]
            if problems:
                raise InputError(problems)
            order = [found.tolist().index(name) for name in known]
            return replace(candidates, features=candidates.features[:, order], feature_names=known)
        if candidates.n_features != n_features:
            raise InputError(
                f"expected documents with {n_features} features, as in training, found {candidates.n_features}"
            )
        return candidates

    def transform(self, features: Floats, offsets: Ints | None = None) -> Floats:
        """Scale the documents of whole queries.

        Args:
            features: [n, F].
            offsets: Where each query's rows begin, and n at the end; None = all rows belong to one query.

        Returns:
            [n, F + M], a new array, with M indicators of missing values.
        """
        if self.missing is None:
            return self._scaled(features, features, offsets)
        where = np.isnan(features)
        filled = self.missing.filled(features, where) if where.any() else features
        return self.missing.with_indicators(self._scaled(filled, features, offsets), where)

    def transform_natively(self, features: Floats) -> Floats:
        """[n, F] the documents of one query scaled for trees: `natively(transform(features))`, without the detour."""
        if self.kind != "none":
            return self.natively(self.transform(features))
        if self.missing is None or not np.isnan(features).any():
            return features
        known_missing = np.zeros(features.shape[1], np.bool_)
        known_missing[self.missing.indicated] = True
        return self.missing.filled(features, np.isnan(features) & ~known_missing)

    def natively(self, scaled: Floats) -> Floats:
        """[n, F] scaled documents [n, F + M] for trees, which take missing values as NaN."""
        return scaled if self.missing is None else self.missing.natively(scaled)

    def columns_natively(self, scaled: Floats, columns: slice, rows: Ints | slice = slice(None)) -> Floats:
        """[n, number of columns] these rows and columns of `natively(scaled)`, without a copy of the others.

        Args:
            scaled: [N, F + M].
            columns: Columns from 0 to F, with a start and a stop.
            rows: The rows.
        """
        if self.missing is None:
            return scaled[:, columns][rows]
        return self.missing.columns_natively(scaled, columns, rows)

    def _scaled(self, features: Floats, known: Floats, offsets: Ints | None) -> Floats:
        """[n, F] a new array; `known` has NaN where a value is missing, so that queries are scaled by known values."""
        if self.kind == "none":
            return features.copy()
        if self.kind == "query-min-max":
            return _scale_within_queries(features, known, np.array([0, len(features)]) if offsets is None else offsets)
        if features.shape[1] != len(self.low):
            raise InputError(f"expected documents with {len(self.low)} features, found {features.shape[1]}")
        scaled = np.empty(features.shape, np.float32)
        for start in range(0, len(features), ROWS_AT_A_TIME):
            rows = slice(start, start + ROWS_AT_A_TIME)
            values = features[rows].astype(np.float64)
            scaled[rows] = _scale(_signed_log(values) if self.kind == "log-min-max" else values, self.low, self.high)
        return scaled

    def in_parts(self, candidates: Candidates, used: Bools | None = None) -> Iterator[tuple[slice, Floats]]:
        """Rows with their scaled features, some queries at a time, so that not all documents are copied.

        Args:
            candidates: Candidates to scale.
            used: [n_documents] the rows that features are yielded of; parts without any are skipped. None = all.
        """
        for first in range(0, candidates.n_queries, QUERIES_AT_A_TIME):
            offsets = candidates.offsets[first : first + QUERIES_AT_A_TIME + 1]
            rows = slice(int(offsets[0]), int(offsets[-1]))
            features, offsets = candidates.features[rows], offsets - offsets[0]
            if used is None:
                yield rows, self.transform(features, offsets)
            elif used[rows].any():
                yield rows, self._transform_used(features, offsets, used[rows])
            give_back_pages(candidates.features)

    def _transform_used(self, features: Floats, offsets: Ints, used: Bools) -> Floats:
        """The used documents of whole queries, scaled; alone, unless scaling needs all documents of a query."""
        if self.kind == "query-min-max":
            return self.transform(features, offsets)[used]
        return self.transform(features[used])

    def apply(self, candidates: Candidates) -> Candidates:
        """The same candidates with their features scaled."""
        features = self.transform(candidates.features, candidates.offsets)
        names = candidates.feature_names
        if names is not None and self.missing is not None and self.n_indicators:
            names = np.concatenate([names, [f"{name} is missing" for name in names[self.missing.indicated]]])
        return replace(candidates, features=features, feature_names=names)


# Leaves features as they are.
UNSCALED = Normaliser("none", np.empty(0), np.empty(0))


def _range_problems(low: Doubles, high: Doubles, names: Strings | None) -> Iterator[str]:
    for j in np.flatnonzero(~np.isfinite(low + high)):
        feature = f"feature {j + 1}" if names is None else f"feature '{names[j]}'"
        if np.isnan(low[j]):
            yield f"{feature} has no value in any document; remove it"
        else:
            yield f"{feature}: expected finite numbers, found infinity"


def _signed_log(values: Doubles) -> Doubles:
    logs: Doubles = np.copysign(np.log1p(np.abs(values)), values)
    return logs


def _scale(values: Doubles, low: Doubles, high: Doubles) -> Doubles:
    """Maps low to −1 and high to 1, linear in between and clipped beyond; 0 where both are equal."""
    half = (high - low) / 2
    scaled: Doubles = np.clip((values - (low + half)) / np.where(half > 0, half, 1), -1, 1) * (half > 0)
    return scaled


def _scale_within_queries(features: Floats, known: Floats, offsets: Ints) -> Floats:
    filled = np.diff(offsets) > 0  # reduceat would take a neighbour's row for an empty query
    starts, sizes = offsets[:-1][filled], np.diff(offsets)[filled]
    scaled = np.empty(features.shape, np.float32)
    if not len(starts):
        return scaled
    low, high = (reduce.reduceat(known, starts, axis=0).astype(np.float64) for reduce in (np.minimum, np.maximum))
    if np.isnan(low).any():  # of a query without any value, all are 0
        bounds = (reduce.reduceat(known, starts, axis=0).astype(np.float64) for reduce in (np.fmin, np.fmax))
        low, high = (np.nan_to_num(bound, nan=0.0) for bound in bounds)
    query = np.repeat(np.arange(len(starts)), sizes)
    for start in range(0, len(features), ROWS_AT_A_TIME):
        rows = slice(start, start + ROWS_AT_A_TIME)
        scaled[rows] = _scale(features[rows].astype(np.float64), low[query[rows]], high[query[rows]])
    return scaled
