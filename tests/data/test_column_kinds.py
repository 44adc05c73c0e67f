"""Kinds of columns and the numbers they become: `column_kinds`, `column_values` and `encode_features` together."""

import datetime as dt
import json
import re
import subprocess
import sys
import warnings
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cuolr.data.column_kinds import BUCKETS, MAX_LEVELS, decide_recipe
from cuolr.data.column_values import MISSING_WORDS, bucket_of, date_values, known_text
from cuolr.data.encode_features import apply_recipe
from cuolr.data.feature_options import FeatureOptions
from cuolr.data.features import IDS, read_feature_table
from cuolr.errors import InputError, InputWarning
from cuolr.types import FeatureColumn, FeatureRecipe

nan = float("nan")


def table_of(**columns: Any) -> pl.DataFrame:
    """One query with a document for each value."""
    frame = pl.DataFrame(columns)
    ids = {"query_id": ["q"] * len(frame), "doc_id": [f"d{i}" for i in range(len(frame))]}
    return pl.concat([pl.DataFrame(ids), frame], how="horizontal")


def encoded(values: Any, **options: Any) -> tuple[FeatureColumn, list[list[float]]]:
    table = table_of(x=values)
    recipe = decide_recipe(table, IDS, FeatureOptions(**options))
    return recipe.columns[0], apply_recipe(recipe, table).tolist()


@pytest.mark.parametrize(
    ("values", "kind", "numbers"),
    [
        ([1, 2, None], "number", [1, 2, nan]),
        ([0.5, nan, None], "number", [0.5, nan, nan]),
        (["1", " 2.5 ", "", None], "number", [1, 2.5, nan, nan]),
        (["1e3", "-7", "N/A", "NULL"], "number", [1000, -7, nan, nan]),
        (["0", "0.5", "10"], "number", [0, 0.5, 10]),
        ([True, None, False], "boolean", [1, nan, 0]),
        (["true", "False", ""], "boolean", [1, 0, nan]),
        ([dt.date(2024, 3, 1), None, dt.date(2024, 2, 28)], "date", [0, nan, 2]),
        ([dt.datetime(2024, 3, 1, 12), dt.datetime(2024, 3, 1)], "date", [0, 0.5]),
        (["2024-03-01", "2024-02-28", " "], "date", [0, 2, nan]),
        (["2024-03-01T12:00:00Z", "2024-03-01 12:00:00+06:00"], "date", [0, 0.25]),
    ],
)
def test_a_column_of_one_number_each(values: list[Any], kind: str, numbers: list[float]) -> None:
    column, found = encoded(values)
    assert column.kind == kind
    np.testing.assert_array_equal(found, [[number] for number in numbers])


@pytest.mark.parametrize(
    ("values", "levels", "numbers"),
    [
        (["red", "blue", "red"], ("blue", "red"), [[0, 1], [1, 0], [0, 1]]),
        (["red", None, " "], ("red",), [[1, 0], [0, 1], [0, 1]]),
        (["02134", "10001", ""], ("02134", "10001"), [[1, 0, 0], [0, 1, 0], [0, 0, 1]]),  # postal codes
        (["NA", "NL", "NL"], ("NA", "NL"), [[1, 0], [0, 1], [0, 1]]),  # countries
        (["2024-13-45", "2024-01-01"], ("2024-01-01", "2024-13-45"), [[0, 1], [1, 0]]),  # the first is no date
    ],
)
def test_few_levels_are_one_column_each(values: list[Any], levels: tuple[str, ...], numbers: list[list[float]]) -> None:
    column, found = encoded(values)
    assert (column.kind, column.levels, found) == ("category", levels, numbers)


@pytest.mark.parametrize("dtype", [pl.Categorical(), pl.Enum(["a", "b"])])
def test_categories_of_polars_are_categories(dtype: pl.DataType) -> None:
    assert encoded(pl.Series(["a", "b", "a"], dtype=dtype))[1] == [[1, 0], [0, 1], [1, 0]]


@pytest.mark.parametrize("values", [[3, 7, None], [3.0, 7.0, None], ["3", "7", None]])
def test_numbers_can_be_codes_of_categories(values: list[Any]) -> None:
    column, found = encoded(values, category_columns=("x",))
    assert (column.levels, found) == (("3", "7"), [[1, 0, 0], [0, 1, 0], [0, 0, 1]])
    assert column.feature_names == ["x=3", "x=7", "x is missing"]


def test_a_category_that_is_no_column_is_refused() -> None:
    with pytest.raises(
        InputError, match=r"category_columns=\['shop'\]: there is no such column \(did you mean 'shops'"
    ):
        decide_recipe(table_of(shops=[1, 2]), IDS, FeatureOptions(category_columns=("shop",)))


def test_many_levels_are_hashed() -> None:
    levels = [f"brand {i % (MAX_LEVELS + 1)}" for i in range(100)]
    column, found = encoded(levels)
    assert (column.kind, column.buckets) == ("hashed category", BUCKETS)
    assert [row.index(1) for row in found] == [bucket_of(level, BUCKETS) for level in levels]
    assert all(sum(row) == 1 for row in found)


def test_a_hash_is_the_same_in_every_process() -> None:
    program = "from cuolr.data.column_values import bucket_of; print([bucket_of(t, 64) for t in ('a', 'é', '')])"
    runs = {
        subprocess.run(
            [sys.executable, "-c", program], env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            check=True, capture_output=True, text=True,
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert runs == {"[0, 11, 36]\n"}


def test_text_that_names_each_document_is_not_usable() -> None:
    titles = [f"title {i}" for i in range(50)]
    with pytest.raises(InputError, match="column 'x': text with 50 different values for 50 documents is neither"):
        encoded(titles)
    # The same titles under many queries are still one for each document.
    rows = pl.DataFrame({"query_id": [f"q{i // 50}" for i in range(500)], "doc_id": [f"d{i % 50}" for i in range(500)]})
    with pytest.raises(InputError, match="50 different values for 50 documents"):
        decide_recipe(rows.with_columns(x=pl.Series(titles * 10)), IDS)
    texts = pl.Series([f"query text {i // 10}" for i in range(500)])
    queries = rows.with_columns(query_id=pl.Series([f"q{i // 10}" for i in range(500)]))
    with pytest.raises(InputError, match="50 different values for 50 queries"):
        decide_recipe(queries.with_columns(x=texts), IDS)
    brands = rows.with_columns(x=pl.Series([f"brand {i % 50 // 2}" for i in range(500)]))
    assert decide_recipe(brands, IDS).columns[0].kind == "hashed category"


def test_all_columns_that_are_not_usable_are_listed_and_left_out_on_request_only() -> None:
    table = table_of(
        price=[1.0, 2.0], tags=[["a"], ["b"]], nothing=[None, None], at=[dt.time(1), dt.time(2)], rating=[3, 4]
    )
    with pytest.raises(InputError) as error:
        decide_recipe(table, IDS)
    assert [problem.split(":")[0].split("' ")[0].strip("'") for problem in error.value.problems] == [
        "column 'tags",
        "column 'nothing",
        "column 'at",
        "column 'rating",
    ]
    assert all(f"drop_columns=['{name}']" in str(error.value) for name in ("tags", "nothing", "at", "rating"))
    assert "if it is a feature, say allow_columns=['rating']" in str(error.value)
    options = FeatureOptions(("tags", "nothing", "at"), allow_columns=("rating",))
    recipe = decide_recipe(table, IDS, options)
    assert recipe.feature_names == ["price", "rating"]
    assert recipe.dropped == ("tags", "nothing", "at")


def test_two_features_of_one_name_are_refused() -> None:
    with pytest.raises(InputError, match="two features would be called 'colour=red'"):
        decide_recipe(table_of(colour=["red", "blue"], **{"colour=red": [1, 2]}), IDS)


def test_the_recipe_of_a_model_names_what_is_missing_and_what_is_new() -> None:
    recipe = decide_recipe(table_of(price=[1.0], stars=[2.0], title=["t"]), IDS, FeatureOptions(("title",)))
    with pytest.raises(InputError) as error:
        read_feature_table(table_of(prise=[1.0], stars=[2.0], title=["t"]), recipe=recipe)
    assert error.value.problems == [
        "the features: column 'price' is missing (did you mean 'prise'?); the model was trained with it",
        "the features: column 'prise' was not in the training data; leave it out with drop_columns=['prise']",
    ]
    # In any order, with the columns that training left out.
    found = read_feature_table(table_of(title=["other"], stars=[5.0], price=[4.0]), recipe=recipe)
    assert found.features.tolist() == [[4, 5]]


def test_levels_that_training_did_not_have_are_told_and_are_none() -> None:
    recipe = decide_recipe(table_of(colour=["red", "blue", "red"]), IDS)
    with pytest.warns(InputWarning, match="column 'colour': 2 rows have a level .* such as 'pink'; they count as none"):
        found = apply_recipe(recipe, table_of(colour=["pink", "red", "pink", None]))
    assert found.tolist() == [[0, 0], [0, 1], [0, 0], [0, 0]]


@pytest.mark.parametrize(
    ("trained", "found", "problem"),
    [
        ([1.0, 2.0], ["cheap", "3"], "column 'x': expected a number, found 'cheap' in row 1$"),
        ([1.0, 2.0], ["3", "inf"], "column 'x': expected finite numbers in float32, found inf in row 2$"),
        ([dt.date(2024, 1, 1)] * 2, [3, 4], "column 'x': expected a date, as in training, found Int64"),
        (["2024-01-01"] * 2, ["2024-01-02", "soon"], "column 'x': expected a date, found 'soon' in row 2"),
        ([True, False], ["maybe", "true"], "column 'x': expected a boolean, found 'maybe' in row 1"),
        (["a", "b"], [["a"], ["b"]], "column 'x': expected a category, as in training, found List"),
    ],
)
def test_values_of_another_kind_than_in_training_are_named(trained: list[Any], found: list[Any], problem: str) -> None:
    recipe = decide_recipe(table_of(x=trained), IDS)
    with pytest.raises(InputError, match=problem):
        apply_recipe(recipe, table_of(x=found))


def test_a_date_after_the_latest_of_training_has_a_negative_age() -> None:
    recipe = decide_recipe(table_of(x=[dt.date(2024, 1, 1), dt.date(2024, 1, 3)]), IDS)
    assert recipe.columns[0].latest == "2024-01-03T00:00:00"
    assert apply_recipe(recipe, table_of(x=["2024-01-05"])).tolist() == [[-2]]


@given(moment=st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2100, 1, 1)), offset=st.integers(-14 * 60, 14 * 60))
def test_dates_in_text_are_those_of_python(moment: dt.datetime, offset: int) -> None:
    zone = dt.timezone(dt.timedelta(minutes=offset))
    text = moment.replace(tzinfo=zone).isoformat()
    expected = (moment.replace(tzinfo=zone) - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(microseconds=1)
    assert date_values(pl.Series([text]))[0] == expected


texts = st.one_of(
    st.sampled_from(["", " ", "a", "b", "true", "false", "007", "3", "-1.5", "1e999", "2024-01-01"]), st.text()
)
COLUMNS: list[tuple[Any, st.SearchStrategy[Any]]] = [
    (pl.Float64, st.floats()),
    (pl.Int64, st.integers(-(2**40), 2**40)),
    (pl.Boolean, st.booleans()),
    (pl.String, texts),
    (pl.String, st.sampled_from(["1", "2", "NA", "3.5"])),
    (pl.Date, st.dates()),
    (pl.Datetime("us"), st.datetimes(dt.datetime(1700, 1, 1), dt.datetime(2200, 1, 1))),
    (pl.List(pl.Int64), st.lists(st.integers(0, 3))),
    (pl.Binary, st.binary(max_size=3)),
    (pl.Duration("us"), st.timedeltas(dt.timedelta(0), dt.timedelta(9))),
    (pl.Null, st.none()),
]


@st.composite
def random_tables(draw: st.DrawFn) -> pl.DataFrame:
    size = draw(st.integers(1, 30))
    columns = []
    for number in range(draw(st.integers(1, 4))):
        dtype, values = draw(st.sampled_from(COLUMNS))
        cells = draw(st.lists(st.one_of(st.none(), values), min_size=size, max_size=size))
        columns.append(pl.Series(f"c{number}", cells, dtype=dtype))
    return table_of(**{column.name: column for column in columns})


def null_cells(table: pl.DataFrame, column: FeatureColumn) -> np.ndarray[Any, Any]:
    values = table[column.name]
    if values.dtype.is_float():
        values = values.fill_nan(None)
    if values.dtype == pl.String:
        values = known_text(values, words=column.kind == "number")
    return values.is_null().to_numpy()


@pytest.mark.thorough
@settings(max_examples=200)
@given(table=random_tables(), data=st.data())
def test_any_table_is_encoded_or_refused_with_a_line_per_column(table: pl.DataFrame, data: st.DataObject) -> None:
    problems: list[str] = []
    try:
        recipe = decide_recipe(table, IDS)
        features = apply_recipe(recipe, table)
    except InputError as error:
        problems = error.problems
    if problems:
        assert all(problem.startswith("column 'c") for problem in problems)
        assert len({problem.split("'")[1] for problem in problems}) == len(problems)
        return
    assert features.shape == (len(table), len(recipe.feature_names))
    assert FeatureRecipe.from_dict(json.loads(json.dumps(recipe.to_dict()))) == recipe
    start = 0
    for column in recipe.columns:
        part = features[:, start : (start := start + len(column.feature_names))]
        missing = null_cells(table, column)
        if column.kind in ("category", "hashed category"):
            assert (part.sum(axis=1) == 1).all()
            assert column.missing_level == bool(missing.any())
            np.testing.assert_array_equal(part[:, -1] if column.missing_level else 0 * missing, missing)
        else:
            np.testing.assert_array_equal(np.isnan(part[:, 0]), missing)
    # A row's numbers depend on nothing but the row.
    rows = data.draw(st.lists(st.integers(0, len(table) - 1), min_size=1, max_size=5))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(apply_recipe(recipe, table[rows]), features[rows])


def test_words_for_missing_values_are_lower_case() -> None:
    assert [word for word in MISSING_WORDS if word != word.lower()] == []


def test_a_few_values_of_another_kind_are_named() -> None:
    stars = [str(i % 5) for i in range(40)]
    dates = [f"2026-01-{i % 5 + 1:02}" for i in range(40)]
    for values, bad, kind in ((stars, "five", "numbers"), (dates, "0000-00-00", "dates")):
        table = pl.DataFrame({"doc_id": [str(i) for i in range(41)], "x": [*values, bad]})
        with pytest.raises(InputError, match=f"40 of 41 values are {kind}, and '{bad}' in row 41 is not"):
            decide_recipe(table, ["doc_id"])
        as_category = decide_recipe(table, ["doc_id"], FeatureOptions(category_columns=("x",)))
        assert as_category.columns[0].kind == "category"


def test_numbers_that_float32_cannot_tell_apart_are_refused() -> None:
    seconds = pl.DataFrame({"doc_id": [str(i) for i in range(300)], "x": [1_790_000_000 + i for i in range(300)]})
    with pytest.raises(InputError, match=r"300 different numbers are only [0-9]+ in float32"):
        decide_recipe(seconds, ["doc_id"])
    rounded = seconds.with_columns(pl.col("x") // 1_000)
    assert decide_recipe(rounded, ["doc_id"]).columns[0].kind == "number"


@pytest.mark.parametrize(
    "form", ["{},5", "${}.99", "€ {}", "{} EUR", "{}%", "1,{}", "{}.01.2026", "1/{}/2026", "-{},5"]
)
def test_numbers_and_dates_in_another_notation_are_no_category(form: str) -> None:
    values = [form.format(10 + i % 90) for i in range(400)]
    table = pl.DataFrame({"query_id": ["q"] * 400, "doc_id": [f"d{i}" for i in range(400)], "a": values})
    found = re.escape(f"column 'a': values such as '{values[0]}' look like numbers or dates in another notation")
    with pytest.raises(InputError, match=found):
        decide_recipe(table, ("query_id", "doc_id"))
    asked = decide_recipe(table, ("query_id", "doc_id"), FeatureOptions(category_columns=("a",)))
    assert asked.columns[0].kind == "hashed category"


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([f"{2 ** (i % 10)} GB" for i in range(400)], "category"),  # few levels
        ([f"size {i % 90}" for i in range(400)], "hashed category"),
        ([f"0{1000 + i % 90}" for i in range(400)], "hashed category"),  # postal codes
    ],
)
def test_words_codes_and_few_levels_are_categories(values: list[str], kind: str) -> None:
    table = pl.DataFrame({"query_id": ["q"] * 400, "doc_id": [f"d{i}" for i in range(400)], "a": values})
    assert decide_recipe(table, ("query_id", "doc_id")).columns[0].kind == kind


def test_a_column_half_of_which_are_numbers_is_no_category() -> None:
    values = ["unknown" if i % 3 == 0 else str(i % 90) for i in range(300)]
    table = pl.DataFrame({"query_id": ["q"] * 300, "doc_id": [f"d{i}" for i in range(300)], "a": values})
    with pytest.raises(InputError, match="column 'a': 200 of 300 values are numbers, and 'unknown' in row 1 is not"):
        decide_recipe(table, ("query_id", "doc_id"))
