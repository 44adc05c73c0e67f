from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cuolr.evaluation.significance import compare, holm
from cuolr.experiments.report.scores import gap_closed
from cuolr.experiments.report.settings import Setting
from cuolr.experiments.report.summary import Summary, summarise
from cuolr.experiments.report.wording import what_was_run
from cuolr.experiments.results import Results
from cuolr.experiments.spec import Cell, Experiment
from cuolr.experiments.spec_file import parse_experiment
from cuolr.types import Doubles
from tests.experiments.made_up import sweep_like, table1_like, write_made_up

PBM, DCM = (Setting("ranksvm", model, 200) for model in ("pbm", "dcm"))
LEVELS = {"LOGGING": 0.3, "ORACLE": 0.7, "naive": 0.4, "DLA": 0.45, "CUOLR(CQL)": 0.6}


def small(**changes: Any) -> Experiment:
    methods = {"LOGGING": "logging", "ORACLE": "oracle", "naive": "naive", "DLA": "dla", "CUOLR(CQL)": "cql"}
    table: dict[str, Any] = {
        "title": "small",
        "measures": ["ndcg@10"],
        "grid": [{"method": list(methods), "click_model": ["pbm", "dcm"]}],
        "method": {name: {"learner": learner} for name, learner in methods.items()},
    }
    return parse_experiment(table | changes)


def values(cell: Cell, measure: str, queries: int = 60) -> Any:
    own = np.random.default_rng([cell.fold, cell.seed, *cell.method.encode(), *cell.click_model.encode()])
    query = np.random.default_rng(cell.fold).normal(0, 0.05, queries)
    return LEVELS[cell.method] + query + own.normal(0, 0.03, queries) + 0.01 * cell.fold


def made(folder: Path, folds: tuple[int, ...] = (1, 2, 3), **options: Any) -> Results:
    return write_made_up(folder, options.pop("experiment", small()), folds, per_query=values, **options)


def pooled(results: Results, method: str, model: str) -> Any:
    cells = [cell for cell in results.cells if cell.method == method and cell.click_model in ("", model)]
    return np.concatenate([results.cells[cell].per_query["ndcg@10"] for cell in sorted(cells)])


def score(summary: Summary, method: str, setting: Setting = PBM) -> Any:
    return summary.tables[0].scores[method, setting, summary.main_measure]


def test_mean_and_standard_deviation_are_over_folds(tmp_path: Path) -> None:
    results = made(tmp_path)
    means = [results.cells[Cell("DLA", fold, 1, "ranksvm", "pbm", 200)].measures["ndcg@10"] for fold in (1, 2, 3)]
    found = score(summarise(results), "DLA")
    assert found.mean == pytest.approx(sum(means) / 3)
    assert found.deviation == pytest.approx(np.sqrt(sum((m - sum(means) / 3) ** 2 for m in means) / 2))
    assert (found.finished, found.planned) == (3, 3)


def test_yardsticks_are_in_every_column(tmp_path: Path) -> None:
    summary = summarise(made(tmp_path))
    assert score(summary, "ORACLE", PBM).mean == score(summary, "ORACLE", DCM).mean
    assert summary.tables[0].references == ("LOGGING", "ORACLE")
    assert summary.tables[0].learners == ("naive", "DLA", "CUOLR(CQL)")


def test_queries_of_folds_are_pooled_and_tested_against_the_best_baseline(tmp_path: Path) -> None:
    results = made(tmp_path)
    found = score(summarise(results), "CUOLR(CQL)")
    expected = compare(pooled(results, "CUOLR(CQL)", "pbm"), pooled(results, "DLA", "pbm"), resamples=99)
    assert found.against == "DLA"
    assert found.comparison.queries == 3 * 60
    assert found.comparison.t_test == expected.t_test
    assert found.comparison.difference == expected.difference
    assert (found.mark, found.best) == ("**", True)


def test_a_query_counts_once_however_many_seeds_it_was_run_with(tmp_path: Path) -> None:
    results = made(tmp_path, folds=(), experiment=small(seeds=4))
    found = score(summarise(results), "CUOLR(CQL)")
    ours, theirs = (pooled(results, name, "pbm").reshape(4, 60).mean(axis=0) for name in ("CUOLR(CQL)", "DLA"))
    assert found.comparison.queries == 60
    assert found.comparison.t_test == pytest.approx(compare(ours, theirs, resamples=99).t_test)


def test_p_values_are_corrected_over_the_table(tmp_path: Path) -> None:
    summary = summarise(made(tmp_path))
    both = [score(summary, "CUOLR(CQL)", setting) for setting in (PBM, DCM)]
    assert [one.p_value for one in both] == holm([one.comparison.t_test for one in both])


def test_baselines_and_reference_rankers_are_not_tested(tmp_path: Path) -> None:
    summary = summarise(made(tmp_path))
    assert all(score(summary, name).comparison is None for name in ("naive", "DLA", "LOGGING", "ORACLE"))


def test_what_is_significantly_worse_is_marked(tmp_path: Path) -> None:
    summary = summarise(made(tmp_path, experiment=small(report={"baselines": ["CUOLR(CQL)"]})))
    assert (score(summary, "naive").mark, score(summary, "naive").against) == ("†", "CUOLR(CQL)")


def test_the_gap_closed_comes_from_means_over_folds(tmp_path: Path) -> None:
    summary = summarise(made(tmp_path))
    logging, oracle, method = (score(summary, name).mean for name in ("LOGGING", "ORACLE", "CUOLR(CQL)"))
    gap = score(summary, "CUOLR(CQL)").gap
    assert gap.value == pytest.approx((method - logging) / (oracle - logging), abs=1e-5)
    assert gap.low < gap.value < gap.high


def test_without_an_oracle_there_is_no_gap(tmp_path: Path) -> None:
    summary = summarise(made(tmp_path, skip=lambda cell: cell.method == "ORACLE"))
    assert score(summary, "CUOLR(CQL)").gap is None
    assert score(summary, "ORACLE").mean is None


def test_missing_and_failed_cells_are_never_numbers(tmp_path: Path) -> None:
    def fail(cell: Cell) -> str:
        return "broken" if cell.method == "naive" and cell.click_model == "pbm" else ""

    found = summarise(made(tmp_path, fail=fail, skip=lambda cell: cell.method == "DLA" and cell.click_model == "dcm"))
    naive, dla = score(found, "naive", PBM), score(found, "DLA", DCM)
    assert (naive.mean, naive.failed, naive.finished) == (None, 3, 0)
    assert (dla.mean, dla.failed, dla.finished) == (None, 0, 0)
    assert score(found, "CUOLR(CQL)", DCM).against == "naive"


def test_a_row_with_fewer_folds_is_neither_best_nor_the_baseline(tmp_path: Path) -> None:
    found = summarise(made(tmp_path, skip=lambda cell: cell.method == "DLA" and cell.fold == 1))
    assert score(found, "DLA").finished == 2
    assert score(found, "CUOLR(CQL)").against == "naive"
    partial = tmp_path / "partial"
    found = summarise(made(partial, skip=lambda cell: cell.method == "CUOLR(CQL)" and cell.fold == 1))
    assert not score(found, "CUOLR(CQL)").best
    assert score(found, "DLA").best
    assert score(found, "CUOLR(CQL)").comparison.queries == 2 * 60


def test_nothing_finished_is_a_summary_too(tmp_path: Path) -> None:
    found = summarise(made(tmp_path, skip=lambda cell: True))
    assert {one.mean for one in found.tables[0].scores.values()} == {None}
    assert found.tables[0].leader(PBM, "ndcg@10") is None


def test_the_papers_number_stands_beside_ours_on_its_own_data_only(tmp_path: Path) -> None:
    own = summarise(
        write_made_up(
            tmp_path / "own", table1_like(measures=["ndcg@10"]), (1,), data={"name": "", "paper_name": "yahoo-set1"}
        )
    )
    other = summarise(write_made_up(tmp_path / "other", table1_like(measures=["ndcg@10"]), (1,)))
    assert score(own, "IPW").paper.value == 0.748
    assert score(own, "ORACLE").paper.value == 0.781
    assert score(own, "naive").paper is None
    assert score(other, "IPW").paper is None
    expected = {
        "yahoo-set1": pytest.approx((0.748 - 0.693) / (0.781 - 0.693)),
        "mslr-web10k": pytest.approx((0.390 - 0.338) / (0.453 - 0.338)),
    }
    assert score(own, "IPW").paper_gaps == score(other, "IPW").paper_gaps == expected


def test_the_best_value_of_a_sweep_is_chosen_on_validation(tmp_path: Path) -> None:
    results = write_made_up(tmp_path, sweep_like(measures=["ndcg@10"]), (1, 2), queries=20)
    summary = summarise(results)
    chosen = summary.chosen["CQL(best)", PBM]

    def validation(method: str) -> float:
        cells = [cell for cell in results.cells if cell.method == method and cell.click_model == "pbm"]
        return float(np.mean([max(results.cells[cell].validations.values()) for cell in cells]))

    swept = [method for method in summary.tables[0].learners if method.startswith("CQL ")]
    assert validation(chosen) == max(validation(method) for method in swept)
    assert score(summary, "CQL(best)").mean == score(summary, chosen).mean
    assert summary.tables[0].contenders == ("SAC", "CQL(best)")
    assert summary.tables[0].leader(PBM, "ndcg@10") in ("SAC", "CQL(best)")


def test_runs_and_columns_of_which_there_is_nothing_are_not_shown_but_counted(tmp_path: Path) -> None:
    def skip(cell: Cell) -> bool:
        not_begun = cell.fold != 2 or cell.click_model not in ("", "pbm", "dcm")
        return not_begun or (cell.method, cell.click_model) == ("IPW", "dcm")

    summary = summarise(write_made_up(tmp_path, table1_like(measures=["ndcg@10"]), (1, 2, 3), queries=20, skip=skip))
    (table,) = summary.tables
    assert [setting.click_model for setting in table.columns.settings] == ["pbm", "dcm"]
    assert {score.planned for score in table.scores.values()} == {1}
    missing = [method for (method, _, _), score in table.scores.items() if not score.finished]
    assert missing == ["IPW"], "under DCM, which was begun"
    text = what_was_run(summary)
    assert text == "6 methods under 2 click models on MQ2008, 1 of 3 folds: 96 cells, of which 83 missing."


def some(count: int, seed: int = 0) -> tuple[Doubles, Doubles, Doubles]:
    rng = np.random.default_rng(seed)
    logging = rng.uniform(0.2, 0.5, count)
    return logging + 0.1 + 0.01 * rng.normal(size=count), logging, logging + 0.2 + 0.01 * rng.normal(size=count)


def test_half_the_way_is_half_the_gap() -> None:
    method, logging, oracle = some(200)
    found = gap_closed([method], [logging], [oracle])
    assert found is not None
    assert found.value == pytest.approx((method - logging).mean() / (oracle - logging).mean())
    assert found.low < found.value < found.high
    assert found.low > 0.45
    assert found.high < 0.55


def test_every_fold_counts_the_same_whatever_its_size() -> None:
    small, large = some(50, 1), some(500, 2)
    worse = small[1] - 0.05
    found = gap_closed([worse, large[0]], [small[1], large[1]], [small[2], large[2]])
    assert found is not None
    gained = ((worse - small[1]).mean() + (large[0] - large[1]).mean()) / 2
    possible = ((small[2] - small[1]).mean() + (large[2] - large[1]).mean()) / 2
    assert found.value == pytest.approx(gained / possible)


def test_queries_that_do_not_count_change_nothing() -> None:
    method, logging, oracle = some(100)
    nothing = np.array([np.nan])
    more = [np.concatenate([values, nothing]) for values in (method, logging, oracle)]
    assert gap_closed([more[0]], [more[1]], [more[2]]) == gap_closed([method], [logging], [oracle])


def test_there_is_no_gap_where_the_oracle_is_not_significantly_better() -> None:
    rng = np.random.default_rng(3)
    logging = rng.uniform(0, 1, 40)
    assert gap_closed([logging], [logging], [logging + 0.001 + 0.3 * rng.normal(size=40)]) is None
    assert gap_closed([logging], [logging], [logging]) is None
    assert gap_closed([logging], [logging], [logging - 0.2 + 0.01 * rng.normal(size=40)]) is None


def test_one_query_is_not_enough() -> None:
    one = np.array([0.5])
    assert gap_closed([one], [one - 0.1], [one + 0.1]) is None


def test_resamples_that_nothing_can_improve_are_left_out() -> None:
    """Of ten queries, half have no gap: now and then a resample has those alone."""
    logging = np.zeros(10)
    oracle = np.array([0.0] * 5 + [0.5, 0.5, 0.6, 0.5, 0.4])
    found = gap_closed([oracle / 2], [logging], [oracle])
    assert found is not None
    assert (found.value, found.low, found.high) == pytest.approx((0.5, 0.5, 0.5))


def test_without_a_query_that_counts_there_is_no_gap() -> None:
    nothing = np.full(3, np.nan)
    assert gap_closed([nothing], [nothing], [nothing]) is None
