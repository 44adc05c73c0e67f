import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuolr.data.normalise import UNSCALED
from cuolr.export import EXPORTERS
from cuolr.export.exporter import CannotHold, PointwiseModel
from cuolr.export.json_trees import MAX_DEPTH
from cuolr.export.solr_reader import SLACK, small_thresholds, written_thresholds
from cuolr.policies.ensemble_policy import EnsemblePolicy
from cuolr.policies.regression_trees import MISSING_RIGHT, RegressionTrees
from cuolr.policies.trees_policy import TreesPolicy
from tests.export.example_models import linear, network, trees


def chain(depth: int) -> TreesPolicy:
    """A tree in which each split has a leaf on the left and the next split on the right."""
    own = np.arange(depth)
    right = np.where(own < depth - 1, own + 1, -1 - depth)
    values = np.linspace(0, 1, depth + 1)
    feature, kind = np.zeros(depth, np.int64), np.full(depth, MISSING_RIGHT)
    thresholds = own.astype(np.float64)
    return TreesPolicy(
        RegressionTrees(1, np.array([depth + 1]), feature, thresholds, kind, -1 - own, right, values), 1, UNSCALED
    )


@pytest.mark.parametrize("target", ["elasticsearch-ltr", "opensearch-ltr", "solr", "vespa"])
def test_nested_json_has_a_limit(target: str) -> None:
    exported = EXPORTERS.get(target)().export(PointwiseModel.of(chain(MAX_DEPTH)), "n")
    documents = np.array([[-1.0], [MAX_DEPTH / 2], [1e9]], np.float32)
    assert exported.score(documents).tolist() == pytest.approx(chain(MAX_DEPTH).score_scaled(documents).tolist())
    with pytest.raises(
        CannotHold, match=f"nests at most {MAX_DEPTH} splits, and a tree of the model has {MAX_DEPTH + 1}"
    ):
        EXPORTERS.get(target)().export(PointwiseModel.of(chain(MAX_DEPTH + 1)), "n")


@pytest.mark.parametrize("target", ["onnx", "lightgbm", "xgboost", "elastic"])
def test_other_formats_hold_deep_trees(target: str) -> None:
    deep = chain(MAX_DEPTH + 50)
    documents = np.array([[-1.0], [50.5], [1e9], [np.nan]], np.float32)
    found = EXPORTERS.get(target)().export(PointwiseModel.of(deep), "n").score(documents)
    assert found.tolist() == pytest.approx(deep.score_scaled(documents).tolist())


@pytest.mark.parametrize("target", EXPORTERS.names())
def test_a_tree_without_a_split_is_a_constant(target: str) -> None:
    empty = np.empty(0, np.int64)
    constant = RegressionTrees(2, np.array([1]), empty, np.empty(0), empty, empty, empty, np.array([0.25]))
    exported = EXPORTERS.get(target)().export(PointwiseModel.of(TreesPolicy(constant)), "n")
    assert exported.score(np.zeros((3, 2), np.float32)).tolist() == [0.25] * 3


def test_solr_does_not_take_several_networks() -> None:
    several = PointwiseModel.of(EnsemblePolicy([network("min-max"), linear("min-max")], [1.0, 2.0]))
    with pytest.raises(CannotHold, match="one network, and the model has a linear model and a network"):
        EXPORTERS.get("solr")().export(several, "n")


def test_an_ensemble_without_weights_is_refused() -> None:
    with pytest.raises(CannotHold, match="weight 0"):
        PointwiseModel.of(EnsemblePolicy([trees()], [0.0]))


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_solr_compares_with_the_threshold_itself(threshold: float) -> None:
    wanted = np.array([threshold], np.float32)
    written, fits = written_thresholds(wanted)
    if fits[0]:
        assert (written + SLACK).tolist() == wanted.tolist()
        return
    exponent = small_thresholds(np.zeros(1, np.int64), wanted.astype(np.float64))[0]
    scaled = wanted * np.float32(2.0**exponent)
    assert (scaled / np.float32(2.0**exponent)).tolist() == wanted.tolist()
    written, fits = written_thresholds(scaled)
    # Numbers below 2⁻¹²⁰ cannot be scaled far enough; LightGBM takes numbers up to 10⁻³⁵ for 0.
    assert fits[0] or abs(threshold) < 2.0**-120
