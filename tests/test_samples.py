"""Files that earlier releases wrote are read as they were written; those of a later one are refused in one line.

`python -m tests.test_samples` writes the samples of this release. Those of a release are never changed.
"""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import cuolr
from cuolr.errors import InputError
from cuolr.examination.propensities import Estimate, Propensities, read_propensities, save_propensities
from cuolr.experiments.packed_results import write_packed
from cuolr.experiments.results_folder import read_results
from cuolr.logs.log_folder import read_meta
from tests.experiments.made_up import table1_like, write_made_up

SAMPLES = Path(__file__).parent / "samples"
RELEASES = sorted(folder.name for folder in SAMPLES.iterdir()) if SAMPLES.is_dir() else []
every_release = pytest.mark.parametrize("release", RELEASES)
# Rankers of every kind that models are made of.
RANKERS: dict[str, tuple[str, dict[str, Any]]] = {
    "trees": ("lightgbm", {"learner.min_documents_per_leaf": 2}),
    "network": ("naive", {"learner.hidden": [4, 4]}),
    "states": ("cql", {"learner.hidden": [4, 4], "learner.encoder": "position"}),
}


def rows() -> pl.DataFrame:
    """A log with all that a log can have but rewards."""
    rng = np.random.default_rng(1)
    shown = [rng.permutation(5)[:3] for _ in range(24)]
    return pl.DataFrame(
        {
            "query_id": np.repeat([f"query {session % 4}" for session in range(24)], 3),
            "session_id": np.repeat([f"s{session}" for session in range(24)], 3),
            "user_id": np.repeat([f"u{session % 7}" for session in range(24)], 3),
            "timestamp": np.repeat([f"2026-11-{1 + session % 14:02}T08:30:00" for session in range(24)], 3),
            "device": np.repeat(["phone" if session % 3 else "desktop" for session in range(24)], 3),
            "position": np.tile([1, 2, 4], 24),
            "doc_id": [f"d{document}" for document in np.concatenate(shown)],
            "click": (rng.random(72) < 0.4).astype(int),
        }
    )


def documents() -> pl.DataFrame:
    """A number with gaps, a category, a boolean and a date."""
    return pl.DataFrame(
        {
            "doc_id": [f"d{document}" for document in range(5)],
            "price": [3.5, None, 80.0, 12.25, 7.0],
            "colour": ["red", "blue", "red", None, "green"],
            "in_stock": [True, False, True, True, False],
            "listed": ["2026-01-02", "2026-03-04", "2026-05-06", "2026-07-08", "2026-09-10"],
        }
    )


def write_samples(folder: Path) -> None:
    """Write one of each, and what they hold as JSON."""
    features = cuolr.FeatureTables(document=documents())
    log = cuolr.import_log(rows(), features, context=["device"])
    cuolr.save_click_log(log, folder / "log")
    expected: dict[str, Any] = {"clicks": log.clicks.astype(int).tolist(), "rankings": {}}
    for name, (learner, settings) in RANKERS.items():
        ranker = cuolr.Ranker(learner, steps=3, settings=settings)
        ranker.fit(log).save(folder / f"model-{name}")
        expected["rankings"][name] = ranker.rank_ids(log.candidates, k=5).tolist()
    experiment = table1_like(measures=["ndcg@10"], grid=[{"method": ["LOGGING", "naive"]}])
    write_made_up(folder / "results", experiment, (1,), queries=3)
    write_packed(read_results(folder / "results"), folder / "results.parquet")
    values = [
        result.measures["ndcg@10"] for _, result in sorted(read_results(folder / "results").cells.items(), key=str)
    ]
    expected["measures"] = values
    continuation = {"mle": Estimate((0.7, None), (0.1, None))}
    save_propensities(Propensities(Estimate((1.0, 0.5), (0.0, 0.25)), continuation, 100), folder / "propensity.json")
    (folder / "expected.json").write_text(json.dumps(expected) + "\n")


def expected_of(release: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((SAMPLES / release / "expected.json").read_text())
    return content


def test_there_are_samples_and_they_are_small() -> None:
    assert "1.0" in RELEASES
    assert sum(file.stat().st_size for file in SAMPLES.rglob("*") if file.is_file()) < 50_000 * len(RELEASES)


@every_release
def test_logs_are_read(release: str) -> None:
    log = cuolr.load_click_log(SAMPLES / release / "log")
    assert log.clicks.astype(int).tolist() == expected_of(release)["clicks"]
    frame = log.to_frame()
    assert set(frame["session_id"]) == {f"s{session}" for session in range(24)}
    assert log.page_position is not None
    assert set(log.page_position.ravel().tolist()) == {0, 1, 3}
    assert log.candidates.recipe is not None
    assert [column.name for column in log.candidates.recipe.columns] == ["price", "colour", "in_stock", "listed"]
    assert set(log.context["device"]) == {"desktop", "phone"}


@every_release
@pytest.mark.parametrize("name", RANKERS)
def test_models_rank_as_they_did(release: str, name: str) -> None:
    log = cuolr.load_click_log(SAMPLES / release / "log")
    ranker = cuolr.Ranker.load(SAMPLES / release / f"model-{name}")
    assert ranker.rank_ids(log.candidates, k=5).tolist() == expected_of(release)["rankings"][name]


@every_release
@pytest.mark.parametrize("name", ["results", "results.parquet"])
def test_results_are_read(release: str, name: str) -> None:
    results = read_results(SAMPLES / release / name)
    found = [result.measures["ndcg@10"] for _, result in sorted(results.cells.items(), key=str)]
    assert found == expected_of(release)["measures"]
    assert not results.missing


@every_release
def test_propensities_are_read(release: str) -> None:
    found = read_propensities(SAMPLES / release / "propensity.json")
    assert found.examination == Estimate((1.0, 0.5), (0.0, 0.25))
    assert found.continuation["mle"].values == (0.7, None)


@pytest.mark.parametrize(
    ("file", "read"),
    [
        ("log/meta.json", lambda folder: read_meta(folder / "log")),
        ("model-trees/model.json", lambda folder: cuolr.load_policy(folder / "model-trees")),
        ("results/experiment.json", lambda folder: read_results(folder / "results")),
        ("propensity.json", lambda folder: read_propensities(folder / "propensity.json")),
    ],
)
def test_a_newer_format_is_one_clear_line(file: str, read: Callable[[Path], object], tmp_path: Path) -> None:
    folder = shutil.copytree(SAMPLES / RELEASES[-1], tmp_path / "newer")
    content = json.loads((folder / file).read_text())
    kind, _, number = str(content["format"]).rpartition("-")
    content["format"] = 99 if kind == "" else f"{kind}-{int(number) + 1}"
    (folder / file).write_text(json.dumps(content))
    with pytest.raises(InputError, match=r"format '?\S+'? needs a newer cuolr; this version reads") as refused:
        read(folder)
    assert len(refused.value.problems) == 1
    assert str(folder / file) in str(refused.value)


if __name__ == "__main__":
    write_samples(SAMPLES / ".".join(cuolr.__version__.split(".")[:2]))
