"""Documents of one query with named features, as numbers in the order of training."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Self

import numpy as np

from cuolr.errors import InputError
from cuolr.policies.policy import RankingPolicy
from cuolr.registry import did_you_mean
from cuolr.types import FeatureColumn, FeatureRecipe, Floats

DOC_ID, QUERY_ID = "doc_id", "query_id"
# Values that are numbers as they are; text is read by the recipe.
PLAIN = frozenset({int, float, bool, type(None), np.float32, np.float64, np.int64})


@dataclass(frozen=True)
class NamedDocuments:
    """The numbers of each document.

    Attributes:
        features: [n, F]; NaN = missing.
        ids: [n] the value of `doc_id`; None if the documents have none.
    """

    features: Floats
    ids: Sequence[Any] | None = None

    @classmethod
    def of_dictionaries(
        cls, policy: RankingPolicy, documents: Sequence[Mapping[str, Any]], names: Sequence[str] | None = None
    ) -> Self:
        """The numbers of dictionaries; a feature that only some of them have is missing in the others.

        Args:
            policy: The model.
            documents: The features of each, by name.
            names: Of the documents, for messages; None = `doc_id`, or their number.
        """
        recipe = expected_columns(policy)
        columns = [column.name for column in recipe.columns]
        if not documents:
            return cls(np.empty((0, len(recipe.feature_names)), np.float32))
        ids = _ids_of(documents)
        # 0 where LETOR, which numbers features, leaves a number out.
        default = None if policy.feature_names is not None or policy.recipe is not None else 0.0
        rows = _rows(documents, columns, recipe.dropped, default, has_ids=ids is not None)
        plain = all(column.kind in ("number", "boolean") for column in recipe.columns)
        if plain and {type(value) for row in rows for value in row} <= PLAIN:
            return cls(_numbers(rows), ids)
        values = {name: [row[i] for row in rows] for i, name in enumerate(columns)}
        return cls(_encoded(recipe, values, ids if names is None else names), ids)

    @classmethod
    def of_frame(cls, policy: RankingPolicy, frame: Any) -> Self:
        """The numbers of a data frame; `query_id`, if it has one, is the same in all rows."""
        from cuolr.data.encode_features import apply_recipe, check_columns
        from cuolr.data.frames import to_polars

        table = to_polars(frame, "documents")
        if QUERY_ID in table.columns and table[QUERY_ID].n_unique() > 1:
            raise InputError("documents: expected those of one query, found several values of query_id; use rank")
        ids = table[DOC_ID].to_list() if DOC_ID in table.columns else None
        recipe = expected_columns(policy)
        table = table.drop(DOC_ID, QUERY_ID, strict=False)
        check_columns(recipe, table.columns)
        return cls(apply_recipe(recipe, table, _name_of_row(ids)), ids)


def expected_columns(policy: RankingPolicy) -> FeatureRecipe:
    """The columns that documents must have: the recipe of the model, its names, or numbers from 1."""
    if policy.recipe is not None:
        return policy.recipe
    if policy.feature_names is not None:
        return FeatureRecipe(tuple(FeatureColumn(str(name)) for name in policy.feature_names))
    if policy.n_features is None:
        raise InputError("documents: the model uses no features; give an array with a row for each document")
    return FeatureRecipe(tuple(FeatureColumn(str(number)) for number in range(1, policy.n_features + 1)))


def _ids_of(documents: Sequence[Mapping[str, Any]]) -> list[Any] | None:
    with_id = [document[DOC_ID] for document in documents if DOC_ID in document]
    if with_id and len(with_id) != len(documents):
        raise InputError(f"documents: expected {DOC_ID} in all or none, found it in {len(with_id)} of {len(documents)}")
    return with_id or None


def _rows(
    documents: Sequence[Mapping[str, Any]],
    names: Sequence[str],
    dropped: Sequence[str],
    default: float | None,
    has_ids: bool,
) -> list[tuple[Any, ...]]:
    """The values of each document in the order of the names."""
    size = len(names) + has_ids
    values_of = itemgetter(*names) if len(names) > 1 else (lambda document: (document[names[0]],))
    try:
        if all(len(document) == size for document in documents):
            return [values_of(document) for document in documents]
    except KeyError:
        pass
    found = dict.fromkeys(name for document in documents for name in document if name not in (DOC_ID, QUERY_ID))
    _check_names(list(found), names, dropped, may_be_absent=default is not None)
    return [tuple(document.get(name, default) for name in names) for document in documents]


def _check_names(found: Sequence[str], names: Sequence[str], dropped: Sequence[str], may_be_absent: bool) -> None:
    known, given = {*names, *dropped}, set(found)
    unknown = [name for name in found if name not in known]
    absent = [] if may_be_absent else [name for name in names if name not in given]
    if not unknown and not absent:
        return
    # Only the first problem is spelled out: a caller may send a million.
    if unknown:
        problem = f"feature '{unknown[0]}' is not one of the model{did_you_mean(str(unknown[0]), names)}"
    else:
        problem = f"feature '{absent[0]}' is missing in all documents; if it is not known, give None (null)"
    number = len(unknown) + len(absent)
    more = f" (and {number - 1:,} more problems)" if number > 1 else ""
    raise InputError(f"documents: {problem}{more}")


def _numbers(rows: Sequence[Sequence[Any]]) -> Floats:
    """[n, F] plain numbers, None as NaN; what float32 cannot hold is infinite."""
    try:
        wide = np.array(rows, np.float64)
    except OverflowError:
        raise InputError("documents: expected numbers in the range of float32, found a larger one") from None
    with np.errstate(over="ignore"):
        return wide.astype(np.float32)


def _encoded(recipe: FeatureRecipe, columns: Mapping[str, Sequence[Any]], names: Sequence[Any] | None) -> Floats:
    """[n, F] by the recipe of the model, as a table is read."""
    import polars as pl

    from cuolr.data.encode_features import apply_recipe

    try:
        table = pl.DataFrame({name: pl.Series(name, values, strict=False) for name, values in columns.items()})
    except (TypeError, OverflowError, pl.exceptions.PolarsError) as error:
        raise InputError(f"documents: expected numbers, text, true, false or None: {error}") from None
    return apply_recipe(recipe, table, _name_of_row(names))


def _name_of_row(ids: Sequence[Any] | None) -> Any:
    return lambda row: f"document '{row + 1 if ids is None else ids[row]}'"
