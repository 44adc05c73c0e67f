"""The date from which the age of a document counts."""

from datetime import UTC, datetime

from cuolr.types import FeatureColumn


def latest_date(column: FeatureColumn) -> datetime:
    """The latest date of a column in the training data, in UTC."""
    return datetime.fromisoformat(column.latest).replace(tzinfo=UTC)
