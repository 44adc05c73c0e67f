"""Ranking one request with a student of trees, compared with LightGBM and onnxruntime on the same trees; one thread."""

import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.table import Row
from cuolr.data.normalise import Normaliser
from cuolr.distillation.distil import teacher_scores
from cuolr.distillation.student import StudentConfig, fit_student
from cuolr.export.exporter import PointwiseModel
from cuolr.export.onnx_graph import onnx_bytes, onnx_scores
from cuolr.policies.linear_policy import LinearPolicy
from cuolr.policies.model_folder import load_policy, save_policy
from cuolr.policies.policy import ScaledScoringPolicy
from cuolr.policies.rank_one import rank_one
from cuolr.policies.trees_policy import TreesPolicy, load_lightgbm
from cuolr.types import Candidates, Doubles, Floats

FEATURES, SIZES = 136, (40, 1_000)
QUERIES, DOCUMENTS = 100, 60
ROUNDS, LOADS = 200, 5
LIMIT = 1.5


def run() -> list[Row]:
    """Measure all of them in turn, request by request, so that a busy machine slows all alike."""
    student = _student()
    rows = [_loading(student)]
    for size in SIZES:
        rows += list(_request(student, size))
    return rows


def _student() -> TreesPolicy:
    """400 trees of 15 leaves, as `cuolr train` makes them; their values do not matter here."""
    rng = np.random.default_rng(1)
    features = rng.standard_normal((QUERIES * DOCUMENTS, FEATURES)).astype(np.float32)
    names = np.array([f"feature_{i}" for i in range(FEATURES)])
    candidates = Candidates(features, DOCUMENTS * np.arange(QUERIES + 1), np.arange(QUERIES).astype(str), None, names)
    teacher: ScaledScoringPolicy = LinearPolicy(
        rng.standard_normal(FEATURES).astype(np.float32), Normaliser.fit("min-max", candidates)
    )
    student = fit_student("trees", teacher, candidates, teacher_scores(teacher, candidates), StudentConfig())
    assert isinstance(student, TreesPolicy)
    return student


def _loading(student: TreesPolicy) -> Row:
    """After imports."""
    with tempfile.TemporaryDirectory() as folder:
        save_policy(student, Path(folder) / "student")
        seconds = min(_seconds(lambda: load_policy(Path(folder) / "student")) for _ in range(LOADS))
    return Row("serve_latency: loading a student, after imports", seconds, "s", "< 0.5", seconds < 0.5)


def _request(student: TreesPolicy, size: int) -> list[Row]:
    features = np.random.default_rng(2).standard_normal((size, FEATURES)).astype(np.float32)
    assert student.feature_names is not None
    dictionaries = [dict(zip(student.feature_names.tolist(), row, strict=True)) for row in features.tolist()]
    booster = load_lightgbm().Booster(model_str=student.trees.lightgbm_text)
    by_onnx = onnx_scores(onnx_bytes(PointwiseModel.of(student), "student"))
    _check_equal(student, features, by_onnx)
    times = _times(
        {
            "rank_one of an array": lambda: rank_one(student, features),
            "rank_one of dictionaries": lambda: rank_one(student, dictionaries),
            "bare LightGBM": lambda: booster.predict(features, num_threads=1),
            "bare onnxruntime": lambda: by_onnx(features),
        }
    )
    rows = []
    for name, seconds in times.items():
        for percentile in (50, 99):
            value = 1_000 * float(np.percentile(seconds, percentile))
            rows.append(Row(f"serve_latency: {size:,} documents, {name}, p{percentile}", value, "ms", "", True))
    median = {name: float(np.median(seconds)) for name, seconds in times.items()}
    for name in ("bare LightGBM", "bare onnxruntime"):
        ratio = median["rank_one of an array"] / median[name]
        row = f"serve_latency: {size:,} documents, array over {name}, p50"
        rows.append(Row(row, ratio, "×", f"≤ {LIMIT}", ratio <= LIMIT))
    return rows


def _times(calls: Mapping[str, Callable[[], Any]]) -> dict[str, Doubles]:
    """The seconds of each call, the calls in turn."""
    seconds = np.array([[_seconds(call) for call in calls.values()] for _ in range(ROUNDS)])
    return dict(zip(calls, seconds.T, strict=True))


def _seconds(call: Callable[[], Any]) -> float:
    """Of the processor: the time that passes, on a machine with nothing else to do."""
    start = time.thread_time()
    call()
    return time.thread_time() - start


def _check_equal(student: TreesPolicy, features: Floats, by_onnx: Callable[[Floats], Doubles]) -> None:
    found = rank_one(student, features)
    assert found.scores is not None
    assert np.abs(by_onnx(features)[found.index] - found.scores).max() < 1e-4
