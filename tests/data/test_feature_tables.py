from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from cuolr.data.candidate_reader import read_candidates
from cuolr.data.feature_options import FeatureOptions
from cuolr.data.feature_tables import (
    VARIANT,
    FeatureTables,
    first_variants,
    logged_ids,
    named_variants,
    read_feature_tables,
)
from cuolr.errors import InputError, InputWarning
from cuolr.types import Candidates, FeatureColumn, FeatureRecipe

PAIRS = pl.DataFrame({"query_id": ["q", "q", "r"], "doc_id": ["a", "b", "a"], "match": [0.5, 0.25, 0.75]})
DOCUMENTS = pl.DataFrame({"doc_id": ["b", "a", "z"], "price": [20.0, 10.0, 99.0], "colour": ["red", "blue", "red"]})
QUERIES = pl.DataFrame({"query_id": ["r", "q"], "words": [3, 2]})


def shown_of(*rows: tuple[Any, ...], features: tuple[str, ...] = ()) -> pl.DataFrame:
    frame = pl.DataFrame(rows, schema=["query_id", "doc_id", *features], orient="row")
    variant = pl.struct(features).hash() if features else pl.lit(0)
    return named_variants(frame.with_columns(variant.alias(VARIANT)))


def test_three_tables_are_joined_by_their_ids() -> None:
    found = read_candidates(FeatureTables(PAIRS, DOCUMENTS, QUERIES))
    assert found.feature_names is not None
    assert found.feature_names.tolist() == ["match", "price", "colour=blue", "colour=red", "words"]
    assert found.query_ids.tolist() == ["q", "r"]
    assert found.document_names.tolist() == ["a", "b", "a"]
    assert found.features.tolist() == [[0.5, 10, 1, 0, 2], [0.25, 20, 0, 1, 2], [0.75, 10, 1, 0, 3]]


def test_a_joined_table_gives_the_same_as_three() -> None:
    three = read_candidates(FeatureTables(PAIRS, DOCUMENTS, QUERIES))
    one = PAIRS.join(DOCUMENTS, on="doc_id", how="left", maintain_order="left").join(QUERIES, on="query_id")
    again = read_candidates(one, recipe=three.recipe)
    assert again.features.tolist() == three.features.tolist()


def test_pairs_need_no_features_of_their_own() -> None:
    found = read_candidates(FeatureTables(PAIRS.select("query_id", "doc_id"), DOCUMENTS.select("doc_id", "price")))
    assert found.features.tolist() == [[10], [20], [10]]


def test_the_candidates_of_a_query_are_what_the_log_shows_if_no_table_has_them() -> None:
    shown = shown_of(("r", "a"), ("q", "b"), ("q", "delisted"))
    found = read_feature_tables(FeatureTables(document=DOCUMENTS, query=QUERIES), shown)
    assert found.query_ids.tolist() == ["q", "r"]
    assert found.document_names.tolist() == ["b", "a"]  # nothing is known of the other
    assert found.features.tolist() == [[20, 0, 1, 2], [10, 1, 0, 3]]


def logged(ids: Any) -> list[str]:
    """The ids in the log, of documents or of variants."""
    return [str(name).partition("#")[0] for name in ids]


def test_a_changed_feature_is_a_variant_of_the_candidate() -> None:
    rows = [("q", "a", 12.0), ("q", "a", 10.0), ("q", "b", None), ("r", "a", 10.0)]
    shown = shown_of(*rows, features=("price",))
    ids = dict(zip(shown.select("query_id", "(doc_id)", "price").iter_rows(), shown["doc_id"], strict=True))
    assert ids["q", "a", 10.0] == ids["r", "a", 10.0] != ids["q", "a", 12.0]
    alone = read_feature_tables(FeatureTables(impression=("price",)), shown)
    assert logged(alone.document_names) == ["a", "a", "b", "a"]
    assert dict(zip(alone.document_names, alone.features[:, 0], strict=True))[ids["q", "a", 12.0]] == 12
    # With a table of candidates, those that the log does not show stay, without a price.
    pairs = pl.concat([PAIRS, pl.DataFrame({"query_id": ["q"], "doc_id": ["new"], "match": [1.0]})])
    stars = pl.DataFrame({"doc_id": ["a", "b", "new"], "stars": [5, 4, 3]})
    found = read_feature_tables(FeatureTables(pairs, stars, impression=("price",)), shown)
    assert logged(found.document_names) == ["a", "a", "b", "new", "a"]
    assert found.recipe is not None
    columns = dict(zip(found.recipe.feature_names, found.features.T.tolist(), strict=True))
    assert columns["match"] == [0.5, 0.5, 0.25, 1, 0.75]
    assert columns["stars"] == [5, 5, 4, 3, 5]
    assert sorted(columns["price"][:2]) == [10, 12]
    assert columns["price"][2:4] == pytest.approx([float("nan")] * 2, nan_ok=True)


@pytest.mark.parametrize(
    "values",
    [[80, None], [80.0, float("nan")], ["80", ""], [" 80.0", "NA"], pl.Series([80, None], dtype=pl.UInt8)],
)
def test_a_variant_has_the_same_name_whatever_the_type_of_its_features(values: Any) -> None:
    frame = pl.DataFrame({"query_id": ["q"] * 2, "doc_id": ["a"] * 2, "price": values, VARIANT: [1, 2]})
    assert sorted(named_variants(frame)["doc_id"].to_list()) == ["a#2cc2d4b8de74", "a#c165cd3a95ce"]


def test_variants_of_equal_features_are_one_candidate() -> None:
    shown = shown_of(("q", "a", "80"), ("q", "a", "80.0"), ("q", "a", "90"), features=("price",))
    assert len(shown) == 3
    assert sorted(read_feature_tables(FeatureTables(impression=("price",)), shown).features[:, 0]) == [80, 90]


def test_candidates_that_a_table_does_not_have_are_counted() -> None:
    tables = FeatureTables(PAIRS, DOCUMENTS.filter(pl.col("doc_id") != "b"), QUERIES)
    with pytest.warns(InputWarning, match="1 of 3 candidates are not in the document features; the values of its"):
        found = read_candidates(tables)
    assert found.features[1].tolist()[0] == 0.25
    assert found.feature_names is not None
    assert found.features[1, found.feature_names.tolist().index("colour is missing")] == 1


@pytest.mark.parametrize(
    ("tables", "problem"),
    [
        (
            FeatureTables(PAIRS, pl.concat([DOCUMENTS, DOCUMENTS[:1]])),
            "the document features: .* doc_id once, found 'b'",
        ),
        (
            FeatureTables(PAIRS, query=pl.concat([QUERIES, QUERIES[:1]])),
            "the query features: .* query_id once, found 'r'",
        ),
        (
            FeatureTables(PAIRS, DOCUMENTS, QUERIES.rename({"words": "price"})),
            "column 'price' is in the document features and the query features; rename it in one of them",
        ),
        (FeatureTables(PAIRS, DOCUMENTS.drop("doc_id")), "the document features: column 'doc_id' is missing"),
        (
            FeatureTables(document=DOCUMENTS),
            "expected a table with query_id and doc_id that says which documents to rank",
        ),
        (FeatureTables("pairs.txt", DOCUMENTS), "pairs.txt: expected a table, not LETOR, to join with others"),
        (
            FeatureTables(PAIRS, DOCUMENTS.with_columns(price=pl.Series([1.0, float("inf"), 2.0]))),
            "column 'price': expected finite numbers in float32, found inf in document 'a' of query 'q', and 1 more",
        ),
    ],
)
def test_a_problem_of_several_tables_is_one_line(tables: FeatureTables, problem: str) -> None:
    with pytest.raises(InputError, match=problem) as error:
        read_candidates(tables)
    assert len(error.value.problems) == 1


def test_no_features_at_all_are_refused() -> None:
    with pytest.raises(InputError, match="expected a table of features, or columns of the log that are features"):
        FeatureTables()


def test_ids_may_have_other_names() -> None:
    options = FeatureOptions(columns={"doc_id": "product_id"})
    documents = DOCUMENTS.rename({"doc_id": "product_id"})
    assert read_candidates(FeatureTables(PAIRS, documents, options=options)).n_features == 4


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.jsonl", "t.ndjson", "t.parquet", "t.feather", "t.csv.gz"])
def test_a_table_of_any_format_gives_the_same(name: str, tmp_path: Path) -> None:
    import gzip

    table = PAIRS.join(DOCUMENTS, on="doc_id", maintain_order="left").with_columns(
        stars=pl.Series([4.5, None, 3.0]), open=pl.Series([True, False, None]), day=pl.date(2024, 1, pl.int_range(1, 4))
    )
    path = tmp_path / name
    if name.endswith(".gz"):
        path.write_bytes(gzip.compress(table.write_csv().encode()))
    elif name.endswith("json") or name.endswith("jsonl"):
        table.write_ndjson(path)
    elif name.endswith("csv") or name.endswith("tsv"):
        table.write_csv(path, separator="\t" if name.endswith("tsv") else ",")
    else:
        table.write_parquet(path) if name.endswith("parquet") else table.write_ipc(path)
    found, expected = read_candidates(path), read_candidates(table)
    assert found.recipe == expected.recipe
    assert found.features.tobytes() == expected.features.tobytes()


def test_a_column_to_leave_out_that_no_table_has_is_told(tmp_path: Path) -> None:
    pairs = pl.DataFrame({"query_id": ["q", "q"], "doc_id": ["a", "b"], "match": [1.0, 2.0]})
    documents = pl.DataFrame({"doc_id": ["a", "b"], "title": ["x", "y"], "size": [1.0, 2.0]})
    documents.write_csv(tmp_path / "documents.csv")
    options = FeatureOptions(drop_columns=("title", "tilte"))
    message = r"column 'tilte' was to be left out, but no table of features has it \(did you mean 'title'\?\)"
    for table in (documents, tmp_path / "documents.csv"):
        with pytest.warns(InputWarning, match=message) as warned:
            candidates = read_feature_tables(FeatureTables(pairs, table, options=options))
        assert len(warned) == 1
        assert candidates.feature_names.tolist() == ["match", "size"]  # type: ignore[union-attr]


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


def test_the_columns_that_were_found_do_not_include_the_one_query() -> None:
    items = pl.DataFrame({"item": ["a", "b"], "price": [1.0, 2.0]})
    with pytest.raises(InputError, match=r"column 'doc_id' is missing.*; found: item, price$"):
        read_candidates(FeatureTables(items, options=FeatureOptions(one_query=True)))
