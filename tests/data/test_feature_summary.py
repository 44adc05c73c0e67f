import polars as pl

from cuolr.data.candidate_reader import read_candidates
from cuolr.data.feature_summary import FeatureSummary, describe_features
from tests.data.small_data import candidates_of


def test_columns_are_described_by_kind_missing_share_and_levels() -> None:
    table = pl.DataFrame(
        {
            "query_id": ["q"] * 4,
            "doc_id": ["a", "b", "c", "d"],
            "price": [1.0, None, 3.0, None],
            "colour": ["red", "blue", None, "red"],
            "kind": ["x", "y", "x", "y"],
            "open": [True, False, True, None],
        }
    )
    assert describe_features(read_candidates(table)) == [
        FeatureSummary("price", "number", 2 / 4, 0),
        FeatureSummary("colour", "category", 1 / 4, 2),
        FeatureSummary("kind", "category", 0, 2),
        FeatureSummary("open", "boolean", 1 / 4, 0),
    ]


def test_features_without_names_are_counted_from_one() -> None:
    assert describe_features(candidates_of(2, n_features=2)) == [
        FeatureSummary("1", "number", 0, 0),
        FeatureSummary("2", "number", 0, 0),
    ]
