"""What every exporter must do, with every kind of model."""

import json

import pytest

from cuolr.export import EXPORTERS
from cuolr.export.check_export import check_export
from cuolr.export.exporter import CannotHold, PointwiseModel
from tests.export.example_models import examples

every_target = pytest.mark.parametrize("target", EXPORTERS.names())
# Each takes trees with missing values; which also take linear rankers, networks and mixed ensembles, and how scaled.
SCALINGS = ("min-max", "log-min-max", "none")
HOLDS: dict[str, set[str]] = {
    "onnx": {f"{kind}, {scaling}" for kind in ("linear", "network") for scaling in SCALINGS} | {"mixed ensemble"},
    "lightgbm": set(),
    "xgboost": set(),
    "elastic": set(),
    "elasticsearch-ltr": {f"linear, {scaling}" for scaling in SCALINGS},
    "opensearch-ltr": {f"linear, {scaling}" for scaling in SCALINGS},
    "solr": {f"{kind}, {scaling}" for kind in ("linear", "network") for scaling in ("min-max", "none")},
    "vespa": {f"{kind}, {scaling}" for kind in ("linear", "network") for scaling in SCALINGS} | {"mixed ensemble"},
}


@every_target
@pytest.mark.parametrize("name", examples())
def test_the_scores_are_those_of_the_policy_or_it_is_said_why_not(target: str, name: str) -> None:
    model = PointwiseModel.of(examples()[name])
    family = name.removesuffix(", all values").removesuffix(", missing values")
    if not family.startswith(("trees", "ensemble of trees")) and family not in HOLDS[target]:
        with pytest.raises(CannotHold, match=r"\w+ \w+"):
            EXPORTERS.get(target)().export(model, "name")
        return
    check = check_export(model, EXPORTERS.get(target)().export(model, "name").score, number=2_000)
    assert not check.reordered_pairs
    assert check.max_difference <= 1e-6 * max(1, check.max_score)


@every_target
def test_the_same_model_gives_the_same_bytes(target: str) -> None:
    model = PointwiseModel.of(examples()["ensemble of trees"])
    first, second = (EXPORTERS.get(target)().export(model, "name") for _ in range(2))
    assert first.content == second.content
    assert first.companions == second.companions


@every_target
def test_json_has_no_numbers_that_json_does_not_know(target: str) -> None:
    exported = EXPORTERS.get(target)().export(PointwiseModel.of(examples()["trees, log-min-max, missing values"]), "n")

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    files = [exported.content] if exported.suffixes == (".json",) and target != "xgboost" else []
    for content in [*files, *(text for suffix, text in exported.companions.items() if suffix.endswith(".json"))]:
        json.loads(content, parse_constant=refuse)
