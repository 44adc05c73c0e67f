from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cuolr.data import statistics
from cuolr.data.candidate_reader import read_candidates
from cuolr.data.features import read_feature_table
from cuolr.data.letor.reader import LetorOptions, write_letor
from cuolr.data.statistics import FeatureSummary, describe_features
from cuolr.errors import InputError, InputWarning
from cuolr.types import Candidates
from tests.data.resident import resident
from tests.data.small_data import candidates_of, dataset_of


def table_of(candidates: Candidates, lists: bool) -> pl.DataFrame:
    assert candidates.document_ids is not None
    ids = {"query_id": candidates.query_ids[candidates.query_of_document], "doc_id": candidates.document_ids}
    if lists:
        return pl.DataFrame(ids | {"features": candidates.features})
    return pl.DataFrame(ids | {f"feature {j}": column for j, column in enumerate(candidates.features.T)})


def assert_same_candidates(left: Candidates, right: Candidates) -> None:
    np.testing.assert_array_equal(left.features, right.features, strict=True)
    np.testing.assert_array_equal(left.offsets, right.offsets)
    assert left.query_ids.tolist() == right.query_ids.tolist()
    assert left.document_ids is not None
    assert right.document_ids is not None
    assert left.document_ids.tolist() == right.document_ids.tolist()


@pytest.mark.parametrize("lists", [True, False])
def test_documents_come_back_from_a_table(lists: bool, tmp_path: Path) -> None:
    candidates = candidates_of(3, 1, 4)
    table_of(candidates, lists).write_parquet(tmp_path / "features.parquet")
    assert_same_candidates(read_candidates(tmp_path / "features.parquet"), candidates)


def test_columns_have_names_and_lists_have_none(tmp_path: Path) -> None:
    for lists, expected in ((False, ["feature 0", "feature 1"]), (True, None)):
        candidates = candidates_of(3, n_features=2)
        table_of(candidates, lists).write_parquet(tmp_path / "features.parquet")
        names = read_candidates(str(tmp_path / "features.parquet")).feature_names
        assert (names if names is None else names.tolist()) == expected


def test_letor_is_filled_up_to_the_features_of_a_model(tmp_path: Path) -> None:
    (tmp_path / "f.txt").write_text("1 qid:1 1:5 #a\n0 qid:1 2:3 #b\n")
    with pytest.warns(InputWarning, match=r"f.txt: has 2 features, but the model has 4; the missing ones are set to 0"):
        candidates = read_candidates(str(tmp_path / "f.txt"), n_features=4)
    assert candidates.features.tolist() == [[5, 0, 0, 0], [0, 3, 0, 0]]
    assert read_candidates(tmp_path / "f.txt", n_features=2).features.tolist() == [[5, 0], [0, 3]]
    with pytest.raises(InputError, match=r"f.txt: has 2 features, but the model has 1"):
        read_candidates(tmp_path / "f.txt", n_features=1)


def test_documents_come_back_from_letor_without_their_labels(tmp_path: Path) -> None:
    dataset = dataset_of(3, 1, 4)
    write_letor(dataset, tmp_path / "train.txt")
    candidates = read_candidates(tmp_path / "train.txt")
    assert_same_candidates(candidates, dataset.candidates)
    assert not hasattr(candidates, "relevance")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
@given(sizes=st.lists(st.integers(1, 5), min_size=1, max_size=5), seed=st.integers(0, 2**32), lists=st.booleans())
def test_scattered_rows_are_brought_together(sizes: list[int], seed: int, lists: bool, tmp_path: Path) -> None:
    candidates = candidates_of(*sizes)
    shuffled = table_of(candidates, lists).sample(fraction=1, shuffle=True, seed=seed)
    shuffled.write_parquet(tmp_path / "features.parquet")
    found = read_candidates(tmp_path / "features.parquet")
    assert found.query_ids.tolist() == shuffled["query_id"].unique(maintain_order=True).to_list()
    assert found.document_ids is not None
    assert candidates.document_ids is not None
    for query, query_id in enumerate(found.query_ids.tolist()):
        documents = found.document_ids[found.offsets[query] : found.offsets[query + 1]].tolist()
        assert documents == shuffled.filter(query_id=query_id)["doc_id"].to_list()
    # Documents are named d0, d1, … in their first order.
    order = [int(name[1:]) for name in found.document_ids.tolist()]
    np.testing.assert_array_equal(found.features, candidates.features[order])


def test_numbers_of_any_type_and_truth_values_are_features(tmp_path: Path) -> None:
    pl.DataFrame({"query_id": [1], "doc_id": [2], "a": [7], "b": [True], "c": [0.25]}).write_parquet(tmp_path / "f.pq")
    candidates = read_candidates(tmp_path / "f.pq")
    assert candidates.features.tolist() == [[7, 1, 0.25]]
    assert candidates.features.dtype == np.float32
    assert candidates.query_ids.tolist() == ["1"]


def test_lists_of_fixed_length_are_read(tmp_path: Path) -> None:
    features = pl.Series([[1.0, 2.0]], dtype=pl.Array(pl.Float64, 2))
    pl.DataFrame({"query_id": ["q"], "doc_id": ["d"], "features": features}).write_parquet(tmp_path / "f.parquet")
    assert read_candidates(tmp_path / "f.parquet").features.tolist() == [[1, 2]]


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        (
            {"doc_id": None},
            "'doc_id' is missing; if it is called otherwise, say columns={'doc_id': 'NAME'}; found: ",
        ),
        ({"query_id": None}, "'query_id' is missing, so these are features of documents alone: give them as FeatureT"),
        ({"doc_id": [[1.5], [2.5]]}, "column 'doc_id': expected text or whole numbers, found List"),
        ({"doc_id": ["d", None]}, "column 'doc_id': expected a value, found 1 nulls, the first in row 2"),
        ({"doc_id": ["d", "d"]}, "expected each document of a query once, found 'd' of query 'q' again"),
        ({"a": None}, "expected a column 'features' with lists, or a column per feature, found none"),
        ({"a": [None, None]}, "column 'a': it has no value in any row; leave it out with drop_columns=\\['a'\\]"),
        ({"a": [np.nan, None]}, "column 'a': it has no value in any row"),
        ({"a": [1e39, 1e40]}, "column 'a': expected finite numbers in float32, found 1e[+]?39 in row 1, and 1 more"),
        ({"a": [1.0, -np.inf]}, "column 'a': expected finite numbers in float32, found -inf in row 2$"),
        ({"a": None, "features": [[1.0], [1.0, 2.0]]}, "'features': .* another length in 1 rows, the first in row 1"),
        ({"a": None, "features": [[1.0], [np.inf]]}, "'features': .* infinite number in 1 rows, the first in row 2"),
        ({"a": None, "features": [["x"], ["y"]]}, "column 'features': expected one list of numbers"),
        ({"features": [[1.0], [1.0]]}, "column 'features': expected one list of numbers"),
        ({"a": None, "vector": [[1.0], [1.0]]}, "column 'vector': List.Float64. is neither a number,"),
        ({"Relevance": [1, 0]}, "column 'Relevance' looks like a relevance label, which a ranker must not see"),
        ({"label": [1, 0]}, "column 'label' looks like a relevance label"),
        ({"doc_id": ["d", "d\0"]}, "column 'doc_id': expected no character NUL, found it in row 2"),
        ({"query_id": ["q\0", "q"]}, "column 'query_id': expected no character NUL, found it in row 1"),
        ({"a": None, "features": [[1.0], None]}, "column 'features': expected a list, found 1 nulls, .* in row 2"),
    ],
)
def test_a_problem_is_told_in_words(columns: dict[str, list[Any] | None], problem: str, tmp_path: Path) -> None:
    good: dict[str, list[Any] | None] = {"query_id": ["q", "q"], "doc_id": ["d", "e"], "a": [1.0, 2.0]}
    table = {name: values for name, values in (good | columns).items() if values is not None}
    pl.DataFrame(table).write_parquet(tmp_path / "features.parquet")
    with pytest.raises(InputError, match=problem):
        read_candidates(tmp_path / "features.parquet")


@pytest.mark.parametrize("dtype", [pl.List(pl.Float32), pl.Array(pl.Float32, 0)])
def test_lists_without_a_number_are_refused(dtype: pl.DataType, tmp_path: Path) -> None:
    lists = pl.Series([[], []], dtype=dtype)
    pl.DataFrame({"query_id": ["q", "q"], "doc_id": ["d", "e"], "features": lists}).write_parquet(tmp_path / "f.pq")
    with pytest.raises(InputError, match="expected at least one number in each list, found empty lists only"):
        read_candidates(tmp_path / "f.pq")


def test_lists_that_are_all_null_are_refused(tmp_path: Path) -> None:
    lists = pl.Series([None, None], dtype=pl.List(pl.Float32))
    pl.DataFrame({"query_id": ["q", "q"], "doc_id": ["d", "e"], "features": lists}).write_parquet(tmp_path / "f.pq")
    with pytest.raises(InputError, match="expected a list, found 2 nulls, the first in row 1"):
        read_candidates(tmp_path / "f.pq")


@pytest.mark.parametrize(
    "name",
    ["labels", "relevance_grade", "y", "Y", "click", "clicks", "isRelevant", "label2", "human judgement", "the-rating",
     "target_value", "rel"],
)  # fmt: skip
def test_a_column_that_may_be_the_label_is_refused(name: str, tmp_path: Path) -> None:
    pl.DataFrame({"query_id": ["q"], "doc_id": ["d"], "a": [1.0], name: [1]}).write_parquet(tmp_path / "f.parquet")
    with pytest.raises(InputError, match=f"column '{name}' looks like a relevance label"):
        read_candidates(tmp_path / "f.parquet")


@pytest.mark.parametrize("name", ["upgrades", "labelled_area", "operating", "click_rate", "yield", "rel_frequency"])
def test_a_column_that_only_resembles_a_label_is_a_feature(name: str, tmp_path: Path) -> None:
    pl.DataFrame({"query_id": ["q"], "doc_id": ["d"], name: [2.0]}).write_parquet(tmp_path / "f.parquet")
    assert read_candidates(tmp_path / "f.parquet").features.tolist() == [[2]]


@pytest.mark.parametrize("dtype", [pl.Categorical(), pl.Enum(["q", "r", "d", "e"])])
def test_ids_may_be_categories(dtype: pl.DataType, tmp_path: Path) -> None:
    ids = {"query_id": pl.Series(["r", "q"], dtype=dtype), "doc_id": pl.Series(["e", "d"], dtype=dtype)}
    pl.DataFrame({**ids, "a": [1.0, 2.0]}).write_parquet(tmp_path / "f.parquet")
    candidates = read_candidates(tmp_path / "f.parquet")
    assert candidates.document_ids is not None
    assert candidates.query_ids.tolist() == ["r", "q"]
    assert candidates.document_ids.tolist() == ["e", "d"]


def test_a_name_is_no_pattern(tmp_path: Path) -> None:
    for name, value in {"f ?[1]*.parquet": 1.0, "f x1.parquet": 2.0}.items():
        pl.DataFrame({"query_id": ["q"], "doc_id": ["d"], "a": [value]}).write_parquet(tmp_path / name)
    assert read_candidates(tmp_path / "f ?[1]*.parquet").features.tolist() == [[1]]


def test_letor_is_read_as_the_options_say(tmp_path: Path) -> None:
    (tmp_path / "f.txt").write_text("1 qid:1 0:5 1:NULL #docid = a\n0 qid:1 0:6 1:3 #docid = b\n")
    candidates = read_candidates(tmp_path / "f.txt", LetorOptions(zero_based=True, missing="minimum"))
    assert candidates.features.tolist() == [[5, 3], [6, 3]]


def test_an_empty_table_is_refused(tmp_path: Path) -> None:
    schema = {"query_id": pl.String, "doc_id": pl.String, "a": pl.Float32}
    pl.DataFrame(schema=schema).write_parquet(tmp_path / "features.parquet")
    with pytest.raises(InputError, match="expected a row for each document, found none"):
        read_candidates(tmp_path / "features.parquet")


def test_what_is_no_parquet_is_refused(tmp_path: Path) -> None:
    (tmp_path / "features.parquet").write_bytes(b"PAR1")
    with pytest.raises(InputError, match="cannot be read"):
        read_candidates(tmp_path / "features.parquet")
    with pytest.raises(InputError, match="file not found"):
        read_candidates(tmp_path / "nothing.parquet")


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


def test_features_are_described_some_rows_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    features = np.array([[0, np.nan], [1, 5], [1, np.nan], [np.nan, 7], [0, np.nan]], np.float32)
    candidates = Candidates(features, np.array([0, 5]), np.array(["q"]))
    monkeypatch.setattr(statistics, "ROWS_AT_A_TIME", 2)
    assert [summary.missing for summary in describe_features(candidates)] == [1 / 5, 3 / 5]


def test_describing_features_in_a_file_keeps_few_of_them_in_memory(tmp_path: Path) -> None:
    np.save(tmp_path / "features.npy", np.ones((500_000, 20), np.float32))
    mapped = np.load(tmp_path / "features.npy", mmap_mode="r")
    candidates = Candidates(mapped, np.array([0, len(mapped)]), np.array(["q"]))
    before = resident("RssFile")
    assert {summary.missing for summary in describe_features(candidates)} == {0.0}
    assert resident("RssFile") < before + mapped.nbytes // 4


def test_features_without_names_are_counted_from_one() -> None:
    assert describe_features(candidates_of(2, n_features=2)) == [
        FeatureSummary("1", "number", 0, 0),
        FeatureSummary("2", "number", 0, 0),
    ]


@pytest.mark.parametrize("dtype", [pl.Date(), pl.Datetime("ms"), pl.Datetime("us"), pl.Datetime("ms", "Asia/Tokyo")])
def test_times_outside_of_the_calendar_are_refused_and_those_at_its_ends_are_not(dtype: Any) -> None:
    """Polars panics on a day in the year 5,000,000, and Python cannot have it."""
    per_day = {"ms": 86_400_000, "us": 86_400_000_000}.get(getattr(dtype, "time_unit", ""), 1)
    ids = {"query_id": ["q", "q"], "doc_id": ["a", "b"]}
    within = pl.Series("t", [-719_162 * per_day, 2_932_896 * per_day]).cast(pl.Int64)
    physical = pl.Int32 if dtype == pl.Date() else pl.Int64
    read_feature_table(pl.DataFrame(ids).with_columns(within.cast(physical).cast(dtype)))
    for days in (-719_163, 2_932_897, 50_000_000):
        outside = pl.Series("t", [0, days * per_day]).cast(physical).cast(dtype)
        with pytest.raises(InputError, match="column 't': expected times in the years 1 to 9999"):
            read_feature_table(pl.DataFrame(ids).with_columns(outside))


def test_a_long_list_among_empty_ones_is_refused_before_a_matrix_of_its_width_is_made(tmp_path: Path) -> None:
    lists = [[1.0] * 1_000_000, *[[]] * 200_000]
    ids = [str(number) for number in range(len(lists))]
    table = pl.DataFrame({"query_id": ids, "doc_id": ids, "features": lists})
    with pytest.raises(InputError, match="expected 1000000 finite numbers, found a list of another length in 200000"):
        read_feature_table(table)
