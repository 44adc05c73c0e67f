import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cuolr.clicks.pbm import PositionBasedModel
from cuolr.clicks.simulate import Simulation
from cuolr.data.candidate_store import save_candidates
from cuolr.data.normalise import Normaliser
from cuolr.data.synthetic import generate_splits
from cuolr.errors import InputError
from cuolr.evaluation.evaluate import score_on
from cuolr.learners.counterfactual import pooled_clicks
from cuolr.learners.counterfactual.debiased import DebiasedConfig
from cuolr.learners.counterfactual.naive import Naive
from cuolr.learners.rankers.lambdamart import QueryGroups
from cuolr.learners.rankers.shared_trees import StoredLists
from cuolr.logs.counting import count_log
from cuolr.logs.log_folder import write_click_log
from cuolr.logs.scaled_documents import scaled_features
from cuolr.policies.random_policy import UniformLogger
from cuolr.training import batches
from cuolr.training.fit import FitRequest, ModelFolder, fit
from cuolr.training.log_form import TrainingLog
from cuolr.training.loop import TrainingResult
from cuolr.training.presets.configure import configure
from cuolr.training.warm_start import WarmStart
from cuolr.types import Bools, Candidates, Floats
from tests.small_log import small_candidates, small_log, with_missing_values
from tests.training.tasks import task_of

LISTS = QueryGroups(
    features=np.empty((10, 0), np.float32),
    grades=np.array([3, 0, 1, 2, 5, 4, 7]),
    sizes=np.array([3, 1, 2, 1]),
    weight=np.array([1, 1, 1, 2, 3, 3, 4], np.float32),
    rows=np.array([2, 0, 1, 4, 6, 5, 9]),
)


def test_parts_have_whole_lists_and_each_list_once() -> None:
    first, second = (StoredLists(Path("log"), LISTS).part(i, 2).lists for i in (0, 1))
    expected = {
        "sizes": ([3, 2], [1, 1]),
        "rows": ([2, 0, 1, 6, 5], [4, 9]),
        "grades": ([3, 0, 1, 5, 4], [2, 7]),
        "weight": ([1, 1, 1, 3, 3], [2, 4]),
    }
    for name, values in expected.items():
        assert (getattr(first, name).tolist(), getattr(second, name).tolist()) == values


@pytest.mark.parametrize("kind", ["log-min-max", "query-min-max"])
def test_features_are_read_as_one_machine_scales_them_in_the_order_of_the_lists(kind: str, tmp_path: Path) -> None:
    candidates = with_missing_values(small_candidates(queries=150))
    save_candidates(candidates, tmp_path)
    rng = np.random.default_rng(0)
    rows = np.concatenate([offset + rng.permutation(2) for offset in candidates.offsets[:-1]])
    lists = replace(LISTS, rows=rows, grades=rows % 3, sizes=np.full(150, 2), weight=None)
    normaliser = Normaliser.fit(kind, candidates)
    part = StoredLists(tmp_path, lists).part(1, 2)
    found = part.read(normaliser)
    assert len(found.features) == 150
    np.testing.assert_array_equal(found.features, normaliser.apply(candidates).features[part.lists.rows])
    np.testing.assert_array_equal(found.grades, part.lists.grades)


def test_rates_without_features_are_those_with_features() -> None:
    log = small_log(queries=12)
    task = task_of(log)
    pooled = Naive(Naive.Config()).corrected_clicks(task)[1]
    rows = np.arange(len(log))
    with_features, without = pooled.rates(rows, task.normaliser), pooled.rates(rows, None)
    np.testing.assert_array_equal(without.documents, with_features.documents)
    np.testing.assert_array_equal(without.rate, with_features.rate)
    np.testing.assert_array_equal(without.where, with_features.where)
    assert without.features.shape == (len(with_features.features), 0)
    assert pooled.shown(rows).sum() == len(without.features) - 1


def test_a_log_whose_features_are_no_file_is_refused() -> None:
    task = replace(task_of(small_log(queries=12)), ray=object())
    with pytest.raises(InputError, match="ray: lambdamart needs a log in a folder"):
        Naive(DebiasedConfig(ranker="lambdamart")).fit(task)


SETTINGS: Mapping[str, Any] = {
    "learner.ranker": "lambdamart",
    "learner.threads": 1,
    "training.steps": 60,
    "training.validate_every": 20,
    "training.keep": "last",
}


def arrays_of(result: TrainingResult) -> Mapping[str, Any]:
    assert result.best is not None
    return result.best.policy.arrays()


def count_scaled(patch: pytest.MonkeyPatch) -> list[int]:
    """How many documents this process scales from now on, each time."""
    counts = list[int]()

    def counted(candidates: Candidates, normaliser: Normaliser, used: Bools) -> Floats:
        counts.append(int(used.sum()))
        return scaled_features(candidates, normaliser, used)

    for module in (batches, pooled_clicks):
        patch.setattr(module, "scaled_features", counted)
    return counts


@pytest.mark.slow
def test_two_nodes_share_trees_and_the_loss_of_one_ends_training_in_a_line(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train, validation, _ = generate_splits("tiny", 600, 1_000, 1, seed=1)
    simulation = Simulation(train, UniformLogger(), PositionBasedModel(), 120_000, k=10, seed=1)
    write_click_log(tmp_path / "LOG", simulation.blocks())
    count_log(tmp_path / "LOG", tmp_path / "COUNTS")
    config = configure("naive", settings=SETTINGS)
    request = FitRequest(TrainingLog.of_folder(tmp_path / "COUNTS"), config)
    here = fit(request)
    scaled = count_scaled(monkeypatch)
    there = fit(replace(request, ray=cluster.address))
    assert 0 < sum(scaled) < 0.2 * train.candidates.n_documents  # of held-out queries
    ndcg = score_on(validation)
    assert here.best is not None
    assert there.best is not None
    assert ndcg(there.best.policy) == pytest.approx(ndcg(here.best.policy), abs=0.003)
    assert there.validations.keys() == here.validations.keys()
    expected, found = arrays_of(here), arrays_of(there)
    assert {name: array.dtype for name, array in found.items()} == {name: a.dtype for name, a in expected.items()}
    assert found["trees.leaves"].shape == (60,)
    few = replace(config, training=replace(config.training, steps=2))
    on = fit(replace(request, config=few, ray=cluster.address, warm_start=WarmStart(there.best.policy)))
    assert arrays_of(on)["trees.leaves"].shape == (62,)
    np.testing.assert_array_equal(arrays_of(on)["trees.leaves"][:60], found["trees.leaves"])
    request = replace(request, folder=ModelFolder(tmp_path / "run"), ray=cluster.address)
    check_loss_of_a_node(cluster, request)
    resumed = fit(replace(request, folder=ModelFolder(tmp_path / "run", resume=True)))
    for name, values in expected.items():  # the trees of one node are those of one machine
        np.testing.assert_array_equal(arrays_of(resumed)[name], values)


def check_loss_of_a_node(cluster: Any, request: FitRequest) -> None:
    """Training ends in one line when a node is lost, with a checkpoint."""

    def lose_a_node(step: int, values: Mapping[str, float]) -> None:
        if step == 30:
            lost = next(node for node in cluster.list_all_nodes() if node is not cluster.head_node)
            cluster.remove_node(lost, allow_graceful=False)
        elif step > 30:
            time.sleep(0.5)  # its worker lives for a moment longer

    with pytest.raises(
        InputError, match=r"^ray: a worker that shares the trees was lost \(.*--resume, or train again$"
    ):
        fit(request, lose_a_node)
    cluster.wait_for_nodes(timeout=60)  # until it has noticed
