from pathlib import Path

import pytest

from cuolr.experiments.report.curves import curves_of
from cuolr.experiments.report.summary import summarise
from tests.experiments.made_up import sessions_like, sweep_like, table1_like, write_made_up


def test_a_sweep_gives_a_curve_for_each_click_model(tmp_path: Path) -> None:
    summary = summarise(write_made_up(tmp_path, sweep_like(measures=["ndcg@10"]), (1, 2), queries=20))
    (panel,) = curves_of(summary, "ndcg@10")
    assert panel.axis == "conservative weight"
    assert list(panel.curves) == ["PBM", "CASCADE", "UBM", "DCM", "CCM"]
    curve = panel.curves["DCM"]
    assert curve.x == (0, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 50)
    score = summary.tables[0].scores["CQL 0.5", summary.tables[0].columns.settings[3], "ndcg@10"]
    assert score.deviation is not None
    assert curve.y[6] == score.mean
    assert curve.error[6] == pytest.approx(score.deviation / 2**0.5)


def test_sessions_give_a_panel_for_each_click_model_and_a_curve_for_each_method(tmp_path: Path) -> None:
    summary = summarise(write_made_up(tmp_path, sessions_like(), (), queries=20))
    panels = curves_of(summary, "err@5")
    assert [panel.title for panel in panels] == ["PBM", "DCM"]
    assert list(panels[0].curves) == ["naive", "DLA", "CUOLR(CQL)"]
    assert panels[0].curves["DLA"].x == (1, 10, 100, 1000)
    first = summary.tables[0].columns.settings[0]
    assert panels[0].lines == tuple(summary.tables[0].scores[m, first, "err@5"].mean for m in ("LOGGING", "ORACLE"))


def test_what_is_missing_is_left_out_of_a_curve(tmp_path: Path) -> None:
    results = write_made_up(tmp_path, sessions_like(), (), queries=20, skip=lambda cell: cell.sessions_per_query == 10)
    panels = curves_of(summarise(results), "ndcg@10")
    assert panels[0].curves["DLA"].x == (1, 100, 1000)


def test_an_experiment_without_a_sweep_has_no_curves(tmp_path: Path) -> None:
    assert curves_of(summarise(write_made_up(tmp_path, table1_like(), (1,), queries=20)), "ndcg@10") == []
