from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cuolr.evaluation.significance import compare, holm
from cuolr.experiments.results import Description, Results, name_of
from cuolr.experiments.results_folder import ResultsFolder, read_results
from cuolr.experiments.spec import Cell
from cuolr.experiments.spec_file import parse_experiment
from cuolr.types import Doubles
from studies.wins import Column, best_baseline, columns, duels, print_grid, shares_of_skyline, tally, with_others
from tests.experiments.made_up import DATA, made_up_result

QUERIES = 40
# What each method adds to a query's value; IPW is the better one on test, DLA on validation.
LEVEL = {"LOGGING": 0.0, "SKYLINE": 0.2, "naive": 0.05, "IPW": 0.15, "DLA": 0.1, "factored": 0.19}
VALIDATION = {"naive": 0.5, "IPW": 0.6, "DLA": 0.7, "factored": 0.65}
LEARNERS = {"LOGGING": "logging", "SKYLINE": "skyline", "factored": "factored"}
EXPERIMENT = parse_experiment(
    {
        "title": "Wins",
        "seeds": 2,
        "measures": ["ndcg@10", "err@10"],
        "method": {name: {"learner": LEARNERS.get(name, name.lower())} for name in LEVEL},
        "grid": [{"click_model": ["pbm", "dcm"], "method": list(LEVEL)}],
    }
)


def values_of(cell: Cell, measure: str) -> Doubles:
    seed = [cell.seed, *cell.method.encode(), *cell.click_model.encode(), *measure.encode()]
    values = 0.4 + LEVEL[cell.method] + np.random.default_rng(seed).normal(0, 0.05, QUERIES)
    values[3] = np.nan  # nothing relevant
    return values


@pytest.fixture
def results(tmp_path: Path) -> Results:
    folder, cells = ResultsFolder(tmp_path), EXPERIMENT.cells([])
    names = {cell: name_of(cell, {}) for cell in cells}
    folder.start(Description(EXPERIMENT, {**DATA, "folds": []}, {}, names))
    for cell in cells:
        made_up = made_up_result(cell, {measure: values_of(cell, measure) for measure in EXPERIMENT.measures})
        folder.finish(name_of(cell, {}), replace(made_up, notes={"validation": VALIDATION.get(cell.method, 0.0)}))
    return read_results(tmp_path)


@pytest.fixture
def found(results: Results) -> list[Column]:
    return list(columns(results))


def test_the_best_baseline_is_chosen_by_validation_and_is_never_ours_or_a_reference_ranker(
    results: Results, found: list[Column]
) -> None:
    assert [best_baseline(results, column) for column in found] == ["DLA", "DLA"]


def test_queries_are_compared_after_the_mean_over_seeds_and_corrected_together(found: list[Column]) -> None:
    family = duels(found, ["IPW", "DLA"])
    assert len(family) == 2 * 2
    expected = []
    for column, other in zip(found, ["IPW", "DLA"], strict=True):
        for measure in ("ndcg@10", "err@10"):
            ours, theirs = (
                np.mean([run.per_query[measure] for run in column.runs[name].values()], axis=0)
                for name in ("factored", other)
            )
            expected.append(compare(ours, theirs, seed=0))
    assert [duel.comparison for duel in family] == expected
    assert expected[0].queries == QUERIES - 1
    assert [duel.p_value for duel in family] == holm([comparison.t_test for comparison in expected])


def test_what_is_behind_is_counted_before_the_correction_too(found: list[Column]) -> None:
    behind = [duel for duel in duels(found, ["SKYLINE", "SKYLINE"]) if duel.comparison.difference < 0]
    unsure = [replace(behind[0], comparison=replace(behind[0].comparison, t_test=0.03), p_value=0.3)]
    assert "Ahead in 0 of 1, significantly in 0; significantly behind in 0 (without correction 1)" in tally(unsure)


def test_the_share_of_skyline_is_from_the_means(found: list[Column]) -> None:
    for column, share in zip(found, shares_of_skyline(found), strict=True):
        ours, skyline, logging = (
            np.mean([np.nanmean(run.per_query["ndcg@10"]) for run in column.runs[name].values()])
            for name in ("factored", "SKYLINE", "LOGGING")
        )
        assert share == pytest.approx((ours - logging) / (skyline - logging))
        assert share == pytest.approx(0.95, abs=0.1)


def test_the_tables_show_every_method_and_every_duel(
    results: Results, found: list[Column], capsys: pytest.CaptureFixture[str]
) -> None:
    print_grid(results, found)
    told = capsys.readouterr().out
    for method in LEVEL:
        assert f"| {method} | " in told
    assert told.count("| PBM: DLA | ") == told.count("| DCM: naive | ") == told.count("| DCM: LOGGING | ") == 2


def test_before_ours_has_run_there_are_means_alone(
    results: Results, found: list[Column], capsys: pytest.CaptureFixture[str]
) -> None:
    without = [
        replace(column, runs={m: runs for m, runs in column.runs.items() if m != "factored"}) for column in found
    ]
    print_grid(results, without)
    assert "factored has not run" in capsys.readouterr().out


def test_runs_with_other_settings_take_the_place_of_the_default_on_the_same_log(
    results: Results, found: list[Column]
) -> None:
    cell = next(c for c in results.cells if (c.method, c.click_model) == ("IPW", "pbm"))
    another_log = replace(cell, logging="strong", click_model="dcm")
    others = replace(results, cells={cell: results.cells[cell], another_log: results.cells[cell]})
    pbm, dcm = (with_others(column, others) for column in found)
    assert pbm.runs["factored"][cell.fold, cell.seed] is results.cells[cell]
    assert len(pbm.runs["factored"]) == 2
    assert dcm.runs == found[1].runs
