from dataclasses import replace
from pathlib import Path
from shutil import copytree

import numpy as np
import pytest

from cuolr.errors import InputError
from cuolr.experiments import runner
from cuolr.experiments.cells import Clicks, logging_policy
from cuolr.experiments.datasets import Splits, digest
from cuolr.experiments.results_folder import ResultsFolder, read_results
from cuolr.experiments.runner import plan
from cuolr.experiments.spec import Cell, Logging
from cuolr.policies.policy import RankingPolicy
from cuolr.types import RankingDataset
from tests.experiments.small import InTurn, numbers, run_small, small, tiny_data


def test_every_cell_has_a_result_and_every_number_is_of_that_cell(finished: Path) -> None:
    results = read_results(finished)
    assert (len(results.cells), results.failed, results.missing) == (18, {}, ())
    for cell, result in results.cells.items():
        assert set(result.measures) == {"ndcg@5", "err@5"}
        assert len(result.per_query["ndcg@5"]) == 15
        assert np.nanmean(result.per_query["ndcg@5"]) == pytest.approx(result.measures["ndcg@5"], abs=1e-5)
        assert len(result.validations) == (0 if cell.method == "LOGGING" else 3)
        if cell.click_model:
            assert result.log["sessions"] == 300
            assert len(result.log["click_rate"]) == 5


@pytest.mark.thorough
def test_data_is_shared_once_and_so_is_the_log_of_each_group(tmp_path: Path) -> None:
    shared: list[object] = []

    class Noting(InTurn):
        def share(self, thing: object) -> int:
            shared.append(thing)
            return super().share(thing)

    workers = Noting(small())
    run_small(ResultsFolder(tmp_path), workers=workers)
    logs = [thing for thing in shared if isinstance(thing, Clicks)]
    assert len(logs) == 2 * 2  # seeds × click models
    assert len(shared) - len(logs) == 1
    assert workers.shared == [None] * len(shared), "what is not needed any more is forgotten"


@pytest.mark.thorough
def test_a_run_goes_on_where_it_stopped_and_ends_in_the_same_numbers(finished: Path, tmp_path: Path) -> None:
    class StoppedError(Exception):
        pass

    def stop_at_the_sixth(_: Cell) -> None:
        if len(first.ran) == 6:
            raise StoppedError

    first = InTurn(small(), stop_at_the_sixth)
    with pytest.raises(StoppedError):
        run_small(ResultsFolder(tmp_path / "cut"), workers=first)
    assert len(read_results(tmp_path / "cut").cells) == 5
    second = run_small(ResultsFolder(tmp_path / "cut"))
    assert len(second.ran) == 18 - 5
    whole, cut = read_results(finished), read_results(tmp_path / "cut")
    assert {cell: numbers(result) for cell, result in whole.cells.items()} == {
        cell: numbers(result) for cell, result in cut.cells.items()
    }


@pytest.mark.thorough
def test_a_cell_that_fails_is_reported_and_does_not_stop_the_rest(tmp_path: Path) -> None:
    def spoil(cell: Cell) -> None:
        if cell.method == "naive" and cell.click_model == "dcm":
            raise ValueError("no luck")

    run_small(ResultsFolder(tmp_path), workers=InTurn(small(), spoil))
    results = read_results(tmp_path)
    assert len(results.cells) == 16
    assert set(results.failed.values()) == {"ValueError: no luck"}
    again = run_small(ResultsFolder(tmp_path))
    assert len(again.ran) == 2
    assert not read_results(tmp_path).failed


def test_a_log_that_cannot_be_made_fails_its_cells_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fit(logging: Logging, train: RankingDataset, seed: int) -> RankingPolicy:
        if logging.fraction == 0.5:
            raise InputError("no two grades in this half")
        return logging_policy(logging, train, seed)

    monkeypatch.setattr(runner, "logging_policy", fit)
    experiment = small(
        logging={"broken": {"fraction": 0.5}},
        grid=[{"method": ["naive"], "logging": ["ranksvm", "broken"], "sessions_per_query": [10]}],
    )
    run_small(ResultsFolder(tmp_path), experiment)
    results = read_results(tmp_path)
    assert {cell.logging for cell in results.cells} == {"ranksvm"}
    assert {cell.logging for cell in results.failed} == {"broken"}
    assert set(results.failed.values()) == {"no two grades in this half"}


def test_results_of_another_configuration_are_never_mixed_with_these(finished: Path, tmp_path: Path) -> None:
    folder = ResultsFolder(copytree(finished, tmp_path, dirs_exist_ok=True))
    changed = small(training={"steps": 4, "validate_every": 2, "batch_size": 16})
    workers = run_small(folder, changed)
    assert {cell.method for cell in workers.ran} == {"naive", "IPW", "CQL 0", "CQL 0.1"}, "LOGGING has no steps"
    assert all(result.steps == 4 for cell, result in read_results(tmp_path).cells.items() if cell.click_model)
    assert folder.stale(plan(changed, tiny_data()).names) == 16
    assert not run_small(folder).ran, "the results of the first configuration are still there"


def test_other_data_has_other_results() -> None:
    one, two = (plan(small(), tiny_data(seed)).names for seed in (1, 2))
    assert set(one) == set(two)
    assert not set(one.values()) & set(two.values())


def test_any_change_of_the_data_changes_its_digest() -> None:
    splits = dict(tiny_data().load(0))
    train = splits["train"]
    features = train.candidates.features.copy()
    features[-1, -1] += 1
    relevance = train.relevance.copy()
    relevance[-1] = 1 - min(relevance[-1], 1)
    changed = (
        replace(train, max_grade=train.max_grade + 1),
        replace(train, candidates=replace(train.candidates, features=features)),
        replace(train, relevance=relevance),
    )
    digests = {digest({**splits, "train": other}) for other in (train, *changed)}
    assert len(digests) == 4
    assert digest({**splits, "train": replace(train)}) in digests


def test_names_of_queries_decide_where_the_logger_draws_its_lists_by_them() -> None:
    experiment = small(grid=[{"click_model": ["pbm"], "method": ["naive"], "logging": ["ranksvm", "random"]}])
    data = tiny_data()

    def renamed(fold: int) -> Splits:
        splits = dict(data.load(fold))
        candidates = splits["train"].candidates
        names = np.char.add("other ", candidates.query_ids)
        return {**splits, "train": replace(splits["train"], candidates=replace(candidates, query_ids=names))}

    one, two = plan(experiment, data).names, plan(experiment, replace(data, load=renamed)).names
    assert {cell.logging for cell in one if one[cell] != two[cell]} == {"random"}


def test_propensities_estimated_under_another_click_model_are_used(tmp_path: Path) -> None:
    experiment = small(
        method={"right": {"learner": "ipw"}, "wrong": {"learner": "ipw", "propensities": "perfect"}},
        grid=[{"method": ["naive", "right", "wrong"], "sessions_per_query": [10]}],
    )
    run_small(ResultsFolder(tmp_path), experiment)
    cells = read_results(tmp_path).cells
    by_method = {cell.method: result.validations for cell, result in cells.items() if cell.seed == 1}
    assert by_method["right"] != by_method["wrong"]


def test_validation_can_do_without_labels(tmp_path: Path) -> None:
    run_small(ResultsFolder(tmp_path), small(validation="log"))
    learned = [result for cell, result in read_results(tmp_path).cells.items() if cell.method == "CQL 0"]
    assert all(score < 0 for result in learned for score in result.validations.values()), "a likelihood"


def test_a_folder_that_is_not_of_results_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("precious")
    with pytest.raises(InputError, match="not a folder of results"):
        run_small(ResultsFolder(tmp_path))
    assert [file.name for file in tmp_path.iterdir()] == ["thesis.txt"]


@pytest.mark.thorough
def test_what_a_kill_in_the_first_moment_leaves_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / ".experiment.json.0123456789ab.unfinished").write_text('{"for')
    run_small(ResultsFolder(tmp_path / "results"))
    assert not read_results(tmp_path / "results").missing


def test_a_damaged_result_is_run_again_and_nothing_else(finished: Path, tmp_path: Path) -> None:
    copytree(finished, tmp_path, dirs_exist_ok=True)
    before = {cell: numbers(result) for cell, result in read_results(tmp_path).cells.items()}
    next((tmp_path / "cells").iterdir()).write_text("{")
    (tmp_path / "experiment.json").write_text("")
    assert len(run_small(ResultsFolder(tmp_path)).ran) == 1
    assert {cell: numbers(result) for cell, result in read_results(tmp_path).cells.items()} == before


def test_with_true_examination_naive_learns_from_other_clicks_unless_users_examine_everything(tmp_path: Path) -> None:
    network = {"learner": "naive", "settings": {"learner.hidden": [8]}}
    experiment = small(
        seeds=1,
        method={"naive": network, "true examination": {**network, "true_examination": True}},
        grid=[{"click_model": ["perfect", "pbm"], "method": ["naive", "true examination"], "sessions_per_query": [10]}],
    )
    run_small(ResultsFolder(tmp_path), experiment)
    results = read_results(tmp_path)
    assert (len(results.cells), results.failed) == (4, {})
    by_users = {
        users: {
            cell.method: cell_result.validations
            for cell, cell_result in results.cells.items()
            if cell.click_model == users
        }
        for users in ("perfect", "pbm")
    }
    assert by_users["perfect"]["naive"] == by_users["perfect"]["true examination"]
    assert by_users["pbm"]["naive"] != by_users["pbm"]["true examination"]
    assert experiment.baselines == ("naive",)
