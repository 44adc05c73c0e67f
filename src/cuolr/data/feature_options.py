"""How to read tables of features."""

from collections.abc import Mapping
from dataclasses import dataclass, field

# The id of the only query of a log without queries.
ONE_QUERY = "all"


@dataclass(frozen=True)
class FeatureOptions:
    """How to read tables of features.

    Attributes:
        drop_columns: Columns to leave out.
        allow_columns: Columns that are features although their names sound like a relevance label.
        category_columns: Columns whose numbers are codes of categories.
        columns: The table's name of an id column where it has another than ours, such as `{"doc_id": "product_id"}`.
        one_query: Whether all documents are candidates of one query, as in a log of recommendations.
    """

    drop_columns: tuple[str, ...] = ()
    allow_columns: tuple[str, ...] = ()
    category_columns: tuple[str, ...] = ()
    columns: Mapping[str, str] = field(default_factory=dict)
    one_query: bool = False
