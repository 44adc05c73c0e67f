"""Models of a stranger: their hash is right, their content is not."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from safetensors.numpy import load, save

from cuolr.errors import InputError
from cuolr.files import content_hash
from cuolr.policies.model_folder import load_policy, save_policy
from tests.policies.test_conformance import EXAMPLES

Arrays = dict[str, npt.NDArray[Any]]


def craft(
    folder: Path, change_arrays: Callable[[Arrays], None] | None, settings: dict[str, Any], header: bytes | None = None
) -> None:
    """Change a model and make its hash anew."""
    (file,) = folder.glob("model-*.safetensors")
    arrays = load(file.read_bytes())
    if change_arrays is not None:
        change_arrays(arrays)
    content = save(arrays) if header is None else len(header).to_bytes(8, "little") + header
    description = json.loads((folder / "model.json").read_bytes())
    del description["sha256"]
    description["settings"] |= settings
    description["sha256"] = digest = content_hash(description, content)
    (folder / "model.json").write_text(json.dumps(description))
    (folder / f"model-{digest[:16]}.safetensors").write_bytes(content)


def put(name: str, value: Any) -> Callable[[Arrays], None]:
    def change(arrays: Arrays) -> None:
        assert name in arrays
        arrays[name] = value(arrays[name]) if callable(value) else np.array(value)

    return change


def add(**values: Any) -> Callable[[Arrays], None]:
    return lambda arrays: arrays.update(values)


def drop(name: str) -> Callable[[Arrays], None]:
    def change(arrays: Arrays) -> None:
        del arrays[name]

    return change


RANDOM = {"policy": "random", "settings": {"seed": 1}}
CONTINUES = {"positions": 3, "after_skip": 0.9, "after_irrelevant": 0.5, "after_relevant": 0.25}
LEVELS = {"context_levels": ["phone", "desktop"]}
RECIPE = {"columns": [{"name": "brand", "kind": "hashed category", "buckets": 10**12}], "dropped": []}
DATES = {"columns": [{"name": "since", "kind": "date", "latest": "yesterday"}] * 4, "dropped": []}


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "change", "settings", "problem"),
    [
        ("ranksvm", put("weights", np.full(4, np.nan, np.float32)), {}, "weights: expected finite"),
        ("ranksvm", put("weights", np.ones((4, 1), np.float32)), {}, "weights: expected finite float32 numbers"),
        ("ranksvm", put("weights", np.ones(3, np.float32)), {}, "ranksvm"),
        ("ranksvm", put("normaliser.low", [0.0, 1.0]), {}, "normaliser: expected finite float64 numbers"),
        ("ranksvm", put("missing.median", np.ones(2, np.float32)), {}, "ranksvm"),
        ("ranksvm", put("missing.indicated", [7]), {}, "missing.indicated: expected numbers below 4, found 7"),
        ("ranksvm", put("missing.indicated", [2, 1]), {}, "missing.indicated: expected numbers of features, ascending"),
        ("ranksvm", None, {"feature_names": ["a"]}, "feature_names: expected 4 names, found 1"),
        ("ranksvm", None, {"feature_names": [["a"]] * 4}, "feature_names: expected texts"),
        ("ranksvm", None, {"recipe": RECIPE}, "expected 1 to 65,536 buckets, found 1,000,000,000,000"),
        ("ranksvm", None, {"recipe": DATES}, "column 'since': expected a date without time zone, found 'yesterday'"),
        ("network", None, {"hidden": [10**9]}, "hidden: expected at most 65,536, found 1,000,000,000"),
        ("network", None, {"hidden": [9]}, "expected float32"),
        ("network", None, {"hidden": [8] * 10**6}, "expected a layer for each of the arrays"),
        ("network", put("network.output.bias", lambda a: a * np.float32(np.inf)), {}, "expected finite parameters"),
        ("network", put("network.output.bias", lambda a: a.astype(np.float64)), {}, "found float64"),
        ("sequential", None, {"hidden": [10**9, 10**9]}, "hidden: expected at most 65,536, found 1,000,000,000"),
        ("sequential", None, {"k": 10**9}, "k: expected at most 65,536, found 1,000,000,000"),
        ("sequential", None, {"hidden": [9, 9]}, "expected float32"),
        ("sequential", None, {"seed": -1}, "seed: expected a whole number >= 0, found -1"),
        ("sequential", None, {"threshold": {}}, "threshold: expected 0 to 1"),
        ("trees", None, {"threads": 10**9}, "threads: expected 1 to 4096, found 1000000000"),
        ("trees", put("trees.n_features", [8]), {}, "trees"),
        ("trees", put("trees.left", np.zeros_like), {}, "expected each split and each leaf once"),
        ("ensemble", None, {"weights": [1.0, float("nan")]}, "weight_2: expected a finite number, found nan"),
        ("ensemble", None, {"logging_policy_members": [9]}, "logging_policy_members: expected numbers of members"),
        ("ensemble", None, {"members": [RANDOM]}, "member 1: expected a policy that scores documents, found random"),
        ("ensemble", add(examination=np.ones((2, 2))), {}, "examination: expected numbers by position and last click"),
        ("ensemble", add(examination=-np.ones((2, 3))), {}, "examination: expected finite numbers from 0 up"),
        (
            "ensemble",
            add(examination_by_context=np.ones((2, 2, 3)), examination_scale=np.array([1, np.nan])),
            LEVELS,
            "examination_scale: expected a finite number for each of 2 levels",
        ),
        ("trees", put("trees.n_features", [0]), {}, "expected 1 to 1,048,576 features, found 0"),
        ("trees", put("trees.value", np.zeros(8, np.int32)), {}, "trees.value: found int32"),
        ("planned", put("users", np.ones((3, 3))), {}, "users: expected an array of K rows and K \\+ 1 columns"),
        ("planned", put("users", lambda a: a - 5), {}, "users: expected finite numbers from 0 up"),
        (
            "planned",
            drop("users"),
            {"users": CONTINUES | {"after_skip": float("inf")}},
            "after_skip': expected 0 to 1, found inf",
        ),
        ("planned", drop("users"), {"users": CONTINUES | {"positions": 0}}, "positions': expected"),
        ("planned", drop("users"), {"users": {"positions": 3}}, "after_skip"),
        ("planned", None, {"satisfaction": 0.4}, "planned for users of an earlier version of cuolr; train it again"),
        ("random", None, {"seed": "x"}, "seed: expected"),
    ],
)
def test_what_no_policy_could_have_saved_is_refused_in_one_line(
    name: str, change: Callable[[Arrays], None] | None, settings: dict[str, Any], problem: str, tmp_path: Path
) -> None:
    save_policy(EXAMPLES[name](), tmp_path / "model")
    craft(tmp_path / "model", change, settings)
    start = time.process_time()
    with pytest.raises(InputError, match=problem) as error:
        load_policy(tmp_path / "model")
    assert len(error.value.problems) == 1
    assert "\n" not in str(error.value)
    assert time.process_time() - start < 30  # 2, but for the tracing of coverage and slow machines


@pytest.mark.parametrize(
    "header",
    [
        b'{"weights":{"dtype":"F32","shape":[1099511627776],"data_offsets":[0,4398046511104]}}',
        b'{"weights":{"dtype":"F32","shape":[1099511627776,0],"data_offsets":[0,0]}}',
        b"[" * 100_000,
    ],
)
def test_arrays_that_claim_terabytes_are_refused(header: bytes, tmp_path: Path) -> None:
    save_policy(EXAMPLES["ranksvm"](), tmp_path / "model")
    craft(tmp_path / "model", None, {}, header)
    with pytest.raises(InputError, match="does not hold a 'ranksvm' policy"):
        load_policy(tmp_path / "model")


def test_many_members_are_looked_up_once(tmp_path: Path) -> None:
    """A search through all arrays for each member would take minutes."""
    member = {"policy": "ranksvm", "settings": EXAMPLES["ranksvm"]().settings()}
    save_policy(EXAMPLES["ensemble"](), tmp_path / "model")

    def repeat(arrays: Arrays) -> None:
        linear = {name[2:]: values for name, values in arrays.items() if name.startswith("0.")}
        arrays.clear()
        arrays.update({f"{i}.{name}": values for i in range(3_000) for name, values in linear.items()})

    craft(tmp_path / "model", repeat, {"members": [member] * 3_000, "weights": [1.0] * 3_000})
    start = time.process_time()
    load_policy(tmp_path / "model")
    assert time.process_time() - start < 20
