import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from cuolr.data import missing_values
from cuolr.data.missing_values import MissingValues
from cuolr.types import Floats

nan = float("nan")
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
