import numpy as np

from cuolr.data.feature_tables import first_variants, logged_ids
from cuolr.types import Candidates, FeatureColumn, FeatureRecipe

IDS = ["a#0123456789ab", "b", "a#ba9876543210", "a", "a#0123456789ab", "c#12"]


def candidates(impression: tuple[str, ...]) -> Candidates:
    """Two queries: variants of a, b, and a without a price; then a again, and another document with # in its id."""
    recipe = FeatureRecipe((FeatureColumn("price"),), impression=impression)
    return Candidates(
        np.zeros((6, 1), np.float32), np.array([0, 4, 6]), np.array(["q", "r"]), np.array(IDS), recipe=recipe
    )


def test_variants_of_a_document_of_a_query_are_one() -> None:
    assert logged_ids(candidates(("price",))).tolist() == ["a", "b", "a", "a", "a", "c#12"]
    assert first_variants(candidates(("price",))).tolist() == [0, 1, 0, 0, 4, 5]


def test_without_features_of_impressions_ids_are_as_they_are() -> None:
    assert logged_ids(candidates(())).tolist() == IDS
    assert first_variants(candidates(())).tolist() == [0, 1, 2, 3, 4, 5]
