"""Estimating propensities from randomised lists: time, memory and error."""

import multiprocessing
import time

import numpy as np

from benchmarks.table import Row, peak_memory
from cuolr.clicks.click_model import ClickModel
from cuolr.clicks.dcm import DependentClickModel
from cuolr.clicks.pbm import EYE_TRACKING, PositionBasedModel
from cuolr.clicks.randomisation import randomise
from cuolr.data.synthetic import generate
from cuolr.examination.propensities import Estimate, Propensities

LISTS, QUERIES, K = 10_000_000, 2_000, 10


def run() -> list[Row]:
    """Measure under the two click models whose parameters can be recovered."""
    # One process each, so that peaks do not mix.
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        pbm = pool.apply(_position_based)
        dcm = pool.apply(_dependent)
    return [
        *_cost("pbm", *pbm[:2]),
        Row("randomise pbm: largest error of examination relative to rank 1", pbm[2], "%", "≤ 2", pbm[2] <= 2),
        *_cost("dcm", *dcm[:2]),
        Row("randomise dcm: largest error of continuation, ranks 1 to 9", dcm[2], "", "≤ 0.01", dcm[2] <= 0.01),
    ]


def _cost(model: str, seconds: float, gigabytes: float) -> list[Row]:
    what = f"randomise {model}, {LISTS // 1_000_000} million lists"
    return [
        Row(what, seconds, "s", "≤ 60", seconds <= 60),
        Row(f"{what}: peak memory", gigabytes, "GB", "≤ 1", gigabytes <= 1),
    ]


def _position_based() -> tuple[float, float, float]:
    found, seconds, gigabytes = _estimated(PositionBasedModel())
    assert found.examination is not None
    ratio = np.array(EYE_TRACKING) / EYE_TRACKING[0]
    return seconds, gigabytes, 100 * float(np.abs(_values(found.examination) / ratio - 1).max())


def _dependent() -> tuple[float, float, float]:
    found, seconds, gigabytes = _estimated(DependentClickModel())
    return seconds, gigabytes, float(np.abs(_values(found.continuation["mle"])[:-1] - EYE_TRACKING[:-1]).max())


def _estimated(model: ClickModel) -> tuple[Propensities, float, float]:
    dataset = generate("web10k-like", QUERIES, seed=1)
    start = time.perf_counter()
    found = randomise(dataset, model, LISTS, K)
    return found, time.perf_counter() - start, peak_memory() / 1e9


def _values(estimate: Estimate) -> np.typing.NDArray[np.float64]:
    return np.array(estimate.values, np.float64)
