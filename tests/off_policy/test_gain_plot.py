from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from cuolr.off_policy import gain_plot
from cuolr.off_policy.gain_estimate import GainByEstimator
from cuolr.off_policy.recommendation import OffPolicyEvaluation
from tests.off_policy.evaluated import evaluated

PBM = GainByEstimator("pbm", 0.02, (0.01, 0.03), (0.005, 0.035), calibration=1.0, difference=0.0)
UBM = replace(PBM, estimator="ubm", interval=(-1.0, 4.0), bounds=(-1.0, 9.0))
FOUND = evaluated(PBM, UBM, gain=0.02, interval=(0.005, 0.035))


def drawn(found: OffPolicyEvaluation, monkeypatch: pytest.MonkeyPatch) -> Figure:
    kept: list[Figure] = []
    monkeypatch.setattr(gain_plot, "save_figure", lambda figure, _: kept.append(figure))
    gain_plot.plot_gains({"MODEL": found}, Path("gain.svg"))
    kept[0].draw_without_rendering()
    return kept[0]


def test_each_tick_has_its_own_value(monkeypatch: pytest.MonkeyPatch) -> None:
    figure = drawn(FOUND, monkeypatch)
    ticks = [tick.get_text() for tick in figure.axes[0].get_xticklabels()]
    assert len(set(ticks)) == len(ticks)
    assert "+0.5%" in ticks


def test_a_gain_that_is_not_known_is_not_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    axes = drawn(FOUND, monkeypatch).axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["all that count", "pbm", "ubm: unknown"]
    assert axes.get_xlim()[1] < 0.1, "the wide interval of ubm would hide the others"
    nothing = replace(FOUND, gain=0.0, interval=(-np.inf, np.inf), estimates=())
    axes = drawn(nothing, monkeypatch).axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["all that count: unknown"]
    assert len(axes.lines) == 1, "0 alone"
