import warnings
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import cuolr
from cuolr.data.feature_options import FeatureOptions
from cuolr.data.feature_tables import FeatureTables
from cuolr.errors import InputError, InputWarning
from cuolr.logs.importing import session_blocks
from cuolr.logs.log_folder import load_click_log, save_click_log
from cuolr.logs.time_window import TimeWindow

Cell = tuple[int, float | None, bool]


def table_of(sessions: list[list[Cell]]) -> pl.DataFrame:
    """A row for each document (its number, its price, whether it was clicked) of each session; two queries."""
    rows = [
        (f"q{session % 2}", session, position, f"d{document}", int(click), price)
        for session, cells in enumerate(sessions)
        for position, (document, price, click) in enumerate(cells, start=1)
    ]
    names = ["query_id", "session_id", "position", "doc_id", "click", "price"]
    return pl.DataFrame(rows, schema=names, orient="row", schema_overrides={"price": pl.Float64})


cells = st.tuples(st.integers(0, 3), st.sampled_from([None, 1.0, 2.5, float("nan")]), st.booleans())
session_lists = st.lists(
    st.lists(cells, min_size=1, max_size=4, unique_by=lambda cell: cell[0]), min_size=1, max_size=8
).filter(lambda sessions: any(price == price and price is not None for cells in sessions for _, price, _ in cells))


@pytest.mark.thorough
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(sessions=session_lists, as_csv=st.booleans(), in_blocks=st.booleans())
def test_each_impression_has_the_features_it_was_shown_with(
    sessions: list[list[Cell]], as_csv: bool, in_blocks: bool, tmp_path: Path
) -> None:
    table = table_of(sessions)
    if as_csv:
        table.write_csv(tmp_path / "log.csv")
    with pytest.MonkeyPatch.context() as patch:
        if in_blocks:
            patch.setattr(session_blocks, "ROWS_AT_A_TIME", 3)
            patch.setattr(session_blocks, "ROWS_PER_SAMPLE", 1)
        features = FeatureTables(impression=("price",))
        log = cuolr.import_log(tmp_path / "log.csv" if as_csv else table, features, strict=True)
    names = log.candidates.document_names
    for row, cells in enumerate(sessions):
        assert log.candidates.query_ids[log.query[row]] == f"q{row % 2}"
        documents = log.documents[row][log.where[row]]
        assert [names[i].partition("#")[0] for i in documents] == [f"d{document}" for document, _, _ in cells]
        expected = [np.nan if price is None else price for _, price, _ in cells]
        np.testing.assert_array_equal(log.candidates.features[documents, 0], np.array(expected, np.float32))
        assert log.clicks[row][log.where[row]].tolist() == [int(click) for _, _, click in cells]


def test_documents_and_queries_of_a_log_have_features_of_their_own(tmp_path: Path) -> None:
    table = table_of([[(0, 1.0, True), (1, 2.0, False)], [(1, 3.0, True)], [(0, 1.5, False), (1, 2.0, False)]])
    documents = pl.DataFrame({"product": ["d0", "d1"], "stars": [4.5, None], "title": ["an old lamp", "a new lamp"]})
    queries = pl.DataFrame({"query_id": ["q0", "q1"], "words": [1, 2]})
    tables = FeatureTables(
        document=documents, query=queries, impression=("price",), options=FeatureOptions(drop_columns=("title",))
    )
    log = cuolr.import_log(table.rename({"doc_id": "product"}), tables, columns={"doc_id": "product"})
    assert [name.partition("#")[0] for name in log.candidates.document_names] == ["d0", "d0", "d1", "d1"]
    expected = np.array([[[1, 4.5, 1], [2, np.nan, 1]], [[3, np.nan, 2]] * 2, [[1.5, 4.5, 1], [2, np.nan, 1]]])
    found = np.where(log.where[..., None], log.candidates.features[log.documents], expected)
    np.testing.assert_array_equal(found, expected)
    assert log.where.tolist() == [[True, True], [True, False], [True, True]]
    save_click_log(log, tmp_path / "log")
    assert load_click_log(tmp_path / "log").candidates.recipe == log.candidates.recipe


def test_documents_without_features_are_reported_as_such() -> None:
    table = table_of([[(0, 1.0, True), (1, 2.0, False)], [(1, 3.0, True), (2, 1.0, False)]])
    documents = pl.DataFrame({"doc_id": ["d0", "d1"], "stars": [4.5, 3.5]})
    log, report = cuolr.import_log_with_report(
        table, FeatureTables(document=documents), cuolr.ImportOptions(max_dropped=1)
    )
    assert [found.reason for found in report.dropped] == ["document without features"]
    assert log.candidates.document_names.tolist() == ["d0", "d1", "d1"]


def test_another_log_is_encoded_as_the_first() -> None:
    first = table_of([[(0, 1.0, True), (1, 2.0, False)]]).with_columns(colour=pl.Series(["red", "blue"]))
    later = table_of([[(0, 1.0, True), (1, 2.0, False)]]).with_columns(colour=pl.Series(["blue", "green"]))
    log = cuolr.import_log(first, FeatureTables(impression=("price", "colour")))
    tables = FeatureTables(impression=("price", "colour"), recipe=log.candidates.recipe)
    with pytest.warns(InputWarning, match="'green'"):
        again = cuolr.import_log(later, tables)
    assert again.candidates.recipe == log.candidates.recipe
    assert again.candidates.features.tolist() == [[1, 1, 0], [2, 0, 0]]


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        (("prise",), "the table: feature column 'prise' is missing; found: query_id"),
        (("position",), "column 'position' cannot be a feature: it says what was shown or clicked"),
    ],
)
def test_columns_that_are_no_features_of_an_impression_are_named(columns: tuple[str, ...], problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        cuolr.import_log(table_of([[(0, 1.0, True)]]), FeatureTables(impression=columns))


def test_a_column_of_mixed_objects_is_refused() -> None:
    mixed = pl.Series("price", [1.0, {}], dtype=pl.Object)
    table = table_of([[(0, 1.0, True), (1, 2.0, False)]]).with_columns(mixed)
    with pytest.raises(InputError, match="the table: feature column 'price': expected values of one type"):
        cuolr.import_log(table, FeatureTables(impression=("price",)))


def test_files_of_other_types_are_one_log(tmp_path: Path) -> None:
    one = table_of([[(0, 1.0, True), (1, 2.0, False)]])
    one.write_parquet(tmp_path / "1.parquet")
    other = one.with_columns(pl.col("session_id") + 7, pl.col("price").cast(pl.Int64))
    other.write_parquet(tmp_path / "2.parquet")
    log = cuolr.import_log([tmp_path / "1.parquet", tmp_path / "2.parquet"], FeatureTables(impression=("price",)))
    assert log.ranking.tolist() == [[0, 1], [0, 1]]


PRODUCTS = pl.DataFrame({"doc_id": [f"d{i}" for i in range(4)], "size": [1.0, 2.0, 3.0, 4.0]})
PAIRS = pl.DataFrame(
    {"query_id": ["q0"] * 4 + ["q1"] * 4, "doc_id": [f"d{i}" for i in range(4)] * 2, "match": range(8)}
)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "features",
    [
        None,
        FeatureTables(document=PRODUCTS),
        FeatureTables(document=PRODUCTS, impression=("price",)),
        FeatureTables(PAIRS, PRODUCTS, impression=("price",)),
    ],
)
@settings(max_examples=25, deadline=None)
@given(sessions=session_lists, later=st.integers(0, 7))
def test_a_time_window_has_the_candidates_of_its_sessions_alone(
    features: FeatureTables | None, sessions: list[list[Cell]], later: int
) -> None:
    table = table_of(sessions).with_columns(timestamp=pl.col("session_id"))
    alone = table.filter(pl.col("timestamp") >= later)
    assume(alone["price"].is_not_null().any() and not alone["price"].is_nan().all())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)
        log = cuolr.import_log(table, features, window=TimeWindow(str(later)))
        expected = cuolr.import_log(alone, features)
    assert log.candidates.query_ids.tolist() == expected.candidates.query_ids.tolist()
    assert log.candidates.document_names.tolist() == expected.candidates.document_names.tolist()
    assert log.candidates.recipe == expected.candidates.recipe
    np.testing.assert_array_equal(log.candidates.features, expected.candidates.features)
    assert log.to_frame().equals(expected.to_frame())


def test_candidates_of_a_table_stay_whatever_the_time_window() -> None:
    table = table_of([[(0, None, True)], [(1, None, False)]]).with_columns(timestamp=pl.col("session_id"))
    log = cuolr.import_log(table.drop("price"), PAIRS, window=TimeWindow("1"))
    assert log.candidates.n_documents == 8


def outcomes(clicks: int, values_elsewhere: int = 0) -> pl.DataFrame:
    """Lists of ten documents, one of them clicked, with a dwell time there, and at some others."""
    rows = [(f"q{s}", s, p, f"d{p}", int(p == 1)) for s in range(clicks) for p in range(1, 11)]
    table = pl.DataFrame(rows, schema=["query_id", "session_id", "position", "doc_id", "click"], orient="row")
    others = (pl.col("click") == 0) & (pl.col("session_id") < values_elsewhere) & (pl.col("position") == 2)
    return table.with_columns(dwell=pl.when((pl.col("click") == 1) | others).then(30.5))


def test_a_column_with_values_at_clicks_alone_is_no_feature() -> None:
    features = FeatureTables(impression=("dwell",))
    problem = r"column 'dwell' has values at clicked documents only.*say allow_columns=\['dwell'\]"
    for table in (outcomes(20), outcomes(20).with_columns(pl.col("dwell").fill_null(0.0))):
        with pytest.raises(InputError, match=problem):
            cuolr.import_log(table, features)
    allowed = FeatureTables(impression=("dwell",), options=FeatureOptions(allow_columns=("dwell",)))
    assert len(cuolr.import_log(outcomes(20), allowed)) == 20
    assert len(cuolr.import_log(outcomes(20, values_elsewhere=1), features)) == 20
    assert len(cuolr.import_log(outcomes(8), features)) == 8  # by chance with a probability of 10⁻⁸
