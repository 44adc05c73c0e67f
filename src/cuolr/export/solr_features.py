"""Definitions of features for Solr's feature store, to start from."""

from typing import Any

from cuolr.export.latest_date import latest_date
from cuolr.export.pointwise_model import PointwiseModel
from cuolr.export.sided_trees import Variant

FEATURES = ".features.json"
CLASSES = "org.apache.solr.ltr.feature"
MILLISECONDS_PER_DAY = 86_400_000


def feature_of(model: PointwiseModel, variant: Variant, store: str) -> dict[str, Any]:
    """A feature; a column of the feature table is taken for the field of the same name."""
    column, number = model.columns[variant.feature]
    field = column.name
    if column.kind == "category" and number < len(column.levels):
        return _if_matches(variant.name, f"{{!term f={field}}}{column.levels[number]}", store)
    if column.kind == "hashed category" and number < column.buckets:
        return _if_matches(variant.name, f"{{!term f={field}_bucket}}{number}", store)
    if column.kind in ("category", "hashed category"):
        return _if_matches(variant.name, f"-{field}:[* TO *]", store)
    if column.kind == "date":
        latest = latest_date(column).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        age = f"{{!func}}if(exists({field}),div(ms({latest},{field}),{MILLISECONDS_PER_DAY}),{variant.default!r})"
        return {"store": store, "name": variant.name, "class": f"{CLASSES}.SolrFeature", "params": {"q": age}}
    parameters = {"field": field, "defaultValue": repr(variant.default)}
    return {"store": store, "name": variant.name, "class": f"{CLASSES}.FieldValueFeature", "params": parameters}


def indicator_of(model: PointwiseModel, feature: int, store: str) -> dict[str, Any]:
    """1 where a feature has no value, 0 elsewhere."""
    column, _ = model.columns[feature]
    return _if_matches(model.derived_name(feature, "_is_missing"), f"-{column.name}:[* TO *]", store)


def _if_matches(name: str, query: str, store: str) -> dict[str, Any]:
    return {"store": store, "name": name, "class": f"{CLASSES}.SolrFeature", "params": {"fq": [query]}}
