import warnings
from dataclasses import replace
from math import log1p
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from cuolr.data import missing_values, normalise
from cuolr.data.letor.reader import read_letor
from cuolr.data.missing_values import MissingValues
from cuolr.data.normalise import Normaliser, Normalising
from cuolr.errors import InputError
from cuolr.types import Candidates, Floats

KINDS = get_args(Normalising)


def candidates_of(features: list[list[float]], sizes: list[int] | None = None) -> Candidates:
    sizes = sizes or [len(features)]
    ids = np.array([str(i) for i in range(len(sizes))])
    return Candidates(np.array(features, np.float32), np.concatenate([[0], np.cumsum(sizes)]), ids)


def scaled(kind: str, train: Candidates, other: Candidates | None = None) -> list[list[float]]:
    features = Normaliser.fit(kind, train).apply(other or train).features
    assert features.dtype == np.float32
    return [[float(value) for value in row] for row in features]


def test_min_max_maps_the_range_to_minus_one_and_one() -> None:
    assert scaled("min-max", candidates_of([[0, 10], [4, 30], [1, 20]])) == [[-1, -1], [1, 1], [-0.5, 0]]


def test_log_min_max_takes_the_signed_logarithm_first() -> None:
    train = candidates_of([[-80], [2.3e8], [0]])
    low, high = -log1p(80), log1p(2.3e8)
    assert scaled("log-min-max", train)[2] == pytest.approx([(0 - low) / (high - low) * 2 - 1], abs=1e-6)


def test_query_min_max_scales_within_each_query() -> None:
    train = candidates_of([[0], [4], [1], [10], [20]], sizes=[3, 2])
    assert scaled("query-min-max", train) == [[-1], [1], [-0.5], [-1], [1]]


def test_query_min_max_takes_empty_queries() -> None:
    candidates = candidates_of([[0.0], [4.0], [6.0], [6.0]], sizes=[2, 0, 2, 0])
    assert scaled("query-min-max", candidates) == [[-1], [1], [0], [0]]


def test_none_leaves_features_as_they_are_in_a_new_array() -> None:
    train = candidates_of([[7], [-3]])
    transformed = Normaliser.fit("none", train).transform(train.features)
    assert np.array_equal(transformed, train.features)
    assert not np.shares_memory(transformed, train.features)


@pytest.mark.parametrize("kind", ["min-max", "log-min-max"])
def test_values_outside_the_fitted_range_are_clipped(kind: str) -> None:
    assert scaled(kind, candidates_of([[0], [4]]), candidates_of([[-9], [99]])) == [[-1], [1]]


@pytest.mark.parametrize("kind", ["min-max", "log-min-max", "query-min-max"])
def test_a_constant_feature_gives_zero(kind: str) -> None:
    assert scaled(kind, candidates_of([[5], [5]])) == [[0], [0]]


@pytest.mark.parametrize("kind", ["min-max", "log-min-max"])
def test_a_feature_that_was_constant_in_training_gives_zero_for_any_value(kind: str) -> None:
    assert scaled(kind, candidates_of([[5], [5]]), candidates_of([[7]])) == [[0]]


@pytest.mark.parametrize("kind", ["min-max", "log-min-max"])
def test_another_number_of_features_is_refused(kind: str) -> None:
    with pytest.raises(InputError, match="expected documents with 1 features, found 2"):
        scaled(kind, candidates_of([[5], [6]]), candidates_of([[7, 8]]))


def test_an_unknown_kind_lists_the_known_ones() -> None:
    with pytest.raises(InputError, match=r"unknown normalising 'minmax' \(did you mean 'min-max'\?\)"):
        Normaliser.fit("minmax", candidates_of([[5]]))


@pytest.mark.parametrize("kind", KINDS)
def test_blocks_of_rows_do_not_change_the_result(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    features = np.random.default_rng(0).standard_normal((50, 3)).astype(np.float32)
    candidates = Candidates(features, np.array([0, 7, 30, 50]), np.array(["a", "b", "c"]))
    whole = Normaliser.fit(kind, candidates).apply(candidates).features
    monkeypatch.setattr(normalise, "ROWS_AT_A_TIME", 8)
    assert np.array_equal(Normaliser.fit(kind, candidates).apply(candidates).features, whole)


finite = st.floats(width=32, allow_nan=False, allow_infinity=False)


@given(
    kind=st.sampled_from(["min-max", "log-min-max", "query-min-max"]),
    train=st.lists(finite, min_size=1, max_size=8),
    other=st.lists(finite, min_size=1, max_size=8),
)
def test_any_finite_value_lands_between_minus_one_and_one(kind: str, train: list[float], other: list[float]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        normaliser = Normaliser.fit(kind, candidates_of([[value] for value in train]))
        result: Floats = normaliser.transform(np.array(other, np.float32)[:, None])
    assert np.isfinite(result).all()
    assert (np.abs(result) <= 1).all()
    if kind != "query-min-max":
        order = np.argsort(other, kind="stable")
        assert (np.diff(result[order, 0]) >= 0).all()


def test_raw_mslr_features_use_the_range_after_the_logarithm(shared_data: Path) -> None:
    train = read_letor(shared_data / "mslr-web10k-sample" / "Fold1" / "train.txt").candidates
    plain = Normaliser.fit("min-max", train).apply(train).features
    logs = Normaliser.fit("log-min-max", train).apply(train).features
    # Feature 128 goes up to 1e8: as it is, nearly every document lands on the lowest value.
    assert np.median(plain[:, 127]) < -0.99
    assert -0.9 < np.median(logs[:, 127]) < 0.9


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_features_that_are_not_finite_are_named(kind: str, value: float) -> None:
    with pytest.raises(InputError, match=r"^feature 2: expected finite numbers, found infinity$"):
        Normaliser.fit(kind, candidates_of([[0, 1], [1, value]]))


@pytest.mark.parametrize("kind", KINDS)
def test_a_feature_without_any_value_is_named(kind: str) -> None:
    with pytest.raises(InputError, match=r"^feature 'b' has no value in any document; remove it$"):
        Normaliser.fit(kind, named([[0, np.nan], [1, np.nan]], "a", "b"))


nan = float("nan")


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        # The known values of the first feature are 0, 2 and 8: the median is 2.
        ("none", [[0, 3, 0], [2, 3, 1], [2, 5, 0], [8, 5, 0]]),
        ("min-max", [[-1, -1, 0], [-0.5, -1, 1], [-0.5, 1, 0], [1, 1, 0]]),
        # Scaled between 0 and 0 in the first query, which has one known value, and between 2 and 8 in the second.
        ("query-min-max", [[0, 0, 0], [0, 0, 1], [-1, 0, 0], [1, 0, 0]]),
    ],
)
def test_a_missing_value_becomes_the_median_with_an_indicator(kind: str, expected: list[list[float]]) -> None:
    train = candidates_of([[0, 3], [nan, 3], [2, 5], [8, 5]], sizes=[2, 2])
    assert scaled(kind, train) == expected


def test_a_median_outside_the_range_of_a_query_is_clipped() -> None:
    train = candidates_of([[0], [1], [nan], [9], [9]], sizes=[3, 2])
    assert scaled("query-min-max", train)[2] == [1, 1]  # the median 5 is above the 1 of its query


def test_a_query_without_any_value_of_a_feature_is_in_the_middle() -> None:
    assert scaled("query-min-max", candidates_of([[nan], [nan], [1], [2]], sizes=[2, 2]))[:2] == [[0, 1], [0, 1]]


@pytest.mark.parametrize("kind", KINDS)
def test_a_feature_that_is_missing_at_ranking_time_only_has_no_indicator(kind: str) -> None:
    found = scaled(kind, candidates_of([[0], [2], [8]]), candidates_of([[nan], [0], [8]]))
    assert found[0] == pytest.approx(scaled(kind, candidates_of([[0], [2], [8]]), candidates_of([[2], [0], [8]]))[0])


@pytest.mark.parametrize("kind", KINDS)
def test_missing_values_do_not_change_the_others(kind: str) -> None:
    values = np.random.default_rng(0).standard_normal((40, 3)).astype(np.float32)
    missing = np.random.default_rng(1).random(values.shape) < 0.3
    values[[0, 20]], values[[1, 21]] = values.min(axis=0), values.max(axis=0)  # so that the ranges stay the same
    missing[[0, 1, 20, 21]] = False
    whole = Candidates(values, np.array([0, 20, 40]), np.array(["a", "b"]))
    holes = replace(whole, features=np.where(missing, np.float32(nan), values))
    ours, theirs = (Normaliser.fit(kind, each).apply(each).features for each in (holes, whole))
    np.testing.assert_array_equal(ours[:, :3][~missing], theirs[~missing])
    np.testing.assert_array_equal(ours[:, 3:], missing)
    natively = Normaliser.fit(kind, holes).natively(ours)
    np.testing.assert_array_equal(natively, np.where(missing, np.float32(nan), theirs))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("share_missing", [0.0, 0.2])
def test_used_documents_are_scaled_to_the_same_bits_as_with_all_others(kind: str, share_missing: float) -> None:
    random = np.random.default_rng(1)
    features = np.exp(5 * random.normal(size=(900, 7))).astype(np.float32)
    features[random.random(features.shape) < share_missing] = np.nan
    sizes = [0, 5, 1, *[9] * 98, 12]
    candidates = candidates_of(features.tolist(), sizes)
    normaliser = Normaliser.fit(kind, candidates)
    used = random.random(900) < 0.1
    used[:600] = False  # skips a part
    parts = list(normaliser.in_parts(candidates, used))
    expected = np.concatenate([part for _, part in normaliser.in_parts(candidates)])[used]
    assert np.concatenate([part for _, part in parts]).tobytes() == expected.tobytes()
    assert [len(part) for _, part in parts] == [used[rows].sum() for rows, _ in parts]


def test_indicators_have_names() -> None:
    train = named([[0, 1], [nan, 2]], "price", "stars")
    assert Normaliser.fit("none", train).apply(train).feature_names.tolist() == ["price", "stars", "price is missing"]  # type: ignore[union-attr]


def named(features: list[list[float]], *names: str) -> Candidates:
    return replace(candidates_of(features), feature_names=np.array(names))


def test_features_are_put_in_the_order_of_training_by_name() -> None:
    normaliser = Normaliser.fit("none", named([[1, 2]], "a", "b"))
    assert normaliser.as_fitted(named([[8, 7]], "b", "a"), 2).features.tolist() == [[7, 8]]
    assert normaliser.as_fitted(named([[7, 8]], "a", "b"), 2).features.tolist() == [[7, 8]]
    assert normaliser.as_fitted(candidates_of([[7, 8]]), 2).features.tolist() == [[7, 8]]  # no names: as they stand


def test_every_feature_that_is_missing_or_unknown_is_named() -> None:
    normaliser = Normaliser.fit("none", named([[1, 2, 3]], "a", "b", "c"))
    with pytest.raises(InputError) as error:
        normaliser.as_fitted(named([[1, 2]], "b", "d"), 3)
    assert error.value.problems == [
        "feature 'a' is missing",
        "feature 'c' is missing",
        "feature 'd' was not in the training data",
    ]
    with pytest.raises(InputError, match="expected documents with 3 features, as in training, found 2"):
        normaliser.as_fitted(candidates_of([[1, 2]]), 3)


@pytest.mark.parametrize("train", [candidates_of([[1, 2]]), named([[1, 2]], "a", "b")])
def test_a_normaliser_can_be_taken_apart_and_put_together(train: Candidates) -> None:
    normaliser = Normaliser.fit("min-max", train)
    again = Normaliser.from_parts(normaliser.arrays(), normaliser.settings())
    assert again.missing is not None
    assert normaliser.missing is not None
    np.testing.assert_array_equal(again.missing.median, normaliser.missing.median)
    np.testing.assert_array_equal(again.missing.indicated, normaliser.missing.indicated)
    assert again.settings() == normaliser.settings()
    np.testing.assert_array_equal(again.low, normaliser.low)
    np.testing.assert_array_equal(again.high, normaliser.high)


values = st.one_of(st.just(nan), st.floats(-1e6, 1e6, width=32))


@given(features=arrays(np.float32, st.tuples(st.integers(1, 8), st.integers(1, 4)), elements=values))
def test_trees_get_back_what_was_missing(features: Floats) -> None:
    features[0] = 1
    rule = MissingValues.fit(features)
    where = np.isnan(features)
    assert rule.indicated.tolist() == np.flatnonzero(where.any(axis=0)).tolist()
    np.testing.assert_allclose(rule.median, np.nanmedian(features.astype(np.float64), axis=0), rtol=1e-6)
    inputs = rule.with_indicators(rule.filled(features, where), where)
    assert inputs.dtype == np.float32
    assert np.isfinite(inputs).all()
    np.testing.assert_array_equal(rule.natively(inputs), features)


def test_a_feature_with_few_values_among_many_documents_has_their_median(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(missing_values, "MAX_MEDIAN_ROWS", 3)
    features = np.array([[1, nan], [2, 4], [3, nan], [4, 6], [5, nan]], np.float32)
    rule = MissingValues.fit(features)  # every second document is looked at first: those without a second feature
    assert rule.median.tolist() == [3, 5]
