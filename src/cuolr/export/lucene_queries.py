"""Queries of Elasticsearch and OpenSearch whose score is the value of a feature, to start from."""

from typing import Any

from cuolr.export.check_export import FeatureRange
from cuolr.export.exporter import PointwiseModel, latest_date
from cuolr.types import FeatureColumn

MILLISECONDS_PER_DAY = 86_400_000
AGE = "Math.max(0, (params.latest - doc[params.field].value.toInstant().toEpochMilli()) / (double) params.day)"


def query_of(column: FeatureColumn, number: int, default: float | None) -> dict[str, Any]:
    """The query of one feature of a column; a column is taken for the field of the same name.

    Args:
        column: The column of the feature table.
        number: Which of its features, from 0.
        default: The score of documents without a value; None = the query does not match them.
    """
    name = column.name
    if column.kind == "category" and number < len(column.levels):
        return _zero_or_one({"term": {name: column.levels[number]}})
    if column.kind == "hashed category" and number < column.buckets:
        return _zero_or_one({"term": {f"{name}_bucket": number}})
    if column.kind in ("category", "hashed category"):
        return _zero_or_one(_is_missing(name))
    if column.kind == "date":
        latest = round(latest_date(column).timestamp() * 1_000)
        parameters = {"field": name, "latest": latest, "day": MILLISECONDS_PER_DAY}
        known = {"script_score": {"query": _exists(name), "script": {"source": AGE, "params": parameters}}}
        return known if default is None else _or_constant(known, name, default)
    if default is None:
        return {
            "function_score": {
                "query": _exists(name),
                "field_value_factor": {"field": name},
                "boost_mode": "replace",
            }
        }
    return {
        "function_score": {
            "query": {"match_all": {}},
            "field_value_factor": {"field": name, "missing": default},
            "boost_mode": "replace",
        }
    }


def missing_query(column: FeatureColumn) -> dict[str, Any]:
    """1 for documents without a value of the column, 0 for others."""
    return _zero_or_one(_is_missing(column.name))


def feature_warnings(model: PointwiseModel) -> list[str]:
    """What the queries cannot do."""
    found = []
    low = FeatureRange.of(model.normaliser, model.n_features).low
    negative = [name for name, value in zip(model.feature_names, low, strict=True) if value < 0]
    if len(model.normaliser.low) and negative:
        found.append(
            f"{_listed(negative)} had negative values in training, and Elasticsearch and OpenSearch reject queries "
            "with negative scores; define them by a query that is not negative, and train on what it returns"
        )
    hashed = {column.name for column, _ in model.columns if column.kind == "hashed category"}
    if hashed:
        found.append(f"{_listed(sorted(hashed))}: index the bucket of the hash as a field NAME_bucket")
    return found


def _exists(field: str) -> dict[str, Any]:
    return {"exists": {"field": field}}


def _is_missing(field: str) -> dict[str, Any]:
    return {"bool": {"must_not": [_exists(field)]}}


def _zero_or_one(condition: dict[str, Any]) -> dict[str, Any]:
    """1 for documents that meet the condition, 0 for others; matches all."""
    everything = {"constant_score": {"filter": {"match_all": {}}, "boost": 0}}
    return {"bool": {"should": [everything, {"constant_score": {"filter": condition}}]}}


def _or_constant(known: dict[str, Any], field: str, default: float) -> dict[str, Any]:
    return {"bool": {"should": [known, {"constant_score": {"filter": _is_missing(field), "boost": default}}]}}


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:5])
    return f"{shown} and {len(names) - 5} more" if len(names) > 5 else shown
