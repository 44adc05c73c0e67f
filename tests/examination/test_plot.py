from pathlib import Path

import numpy as np
import pytest

from cuolr.examination.from_clicks import ExaminationModel
from cuolr.examination.plot import PLOT_SUFFIXES, at_distance, plot_examination
from tests.small_log import small_log


@pytest.mark.parametrize("suffix", PLOT_SUFFIXES)
def test_the_same_table_gives_the_same_file(suffix: str, tmp_path: Path) -> None:
    table = ExaminationModel.fit(small_log(rows=100)).probabilities()
    files = [tmp_path / f"{name}{suffix}" for name in ("first", "second")]
    for file in files:
        plot_examination(table, file, truth=np.ones(table.shape))
    assert files[0].read_bytes() == files[1].read_bytes()
    assert len(files[0].read_bytes()) > 1_000


def test_a_plot_has_a_line_for_no_click_above_and_for_each_distance_that_occurs(tmp_path: Path) -> None:
    table = np.full((3, 4), np.nan)
    table[:, 0] = [1.0, 0.8, 0.6]
    plot_examination(table, tmp_path / "plot.svg")
    without_clicks = (tmp_path / "plot.svg").read_text()
    assert "no click above" in without_clicks
    assert "below the last click" not in without_clicks
    table[2, 1] = 0.3
    plot_examination(table, tmp_path / "plot.svg")
    assert "<!-- 2 below the last click -->" in (tmp_path / "plot.svg").read_text()


def test_the_distance_to_the_last_click_is_counted_from_the_position() -> None:
    """table[k, j] = 10 k + j with k and j from 1, so that at distance d it is 10 k + (k − d)."""
    table = np.array([[10.0 * k + j for j in range(5)] for k in range(1, 5)])
    np.testing.assert_array_equal(at_distance(table, 0), [10, 20, 30, 40])
    np.testing.assert_array_equal(at_distance(table, 1), [np.nan, 21, 32, 43])
    np.testing.assert_array_equal(at_distance(table, 3), [np.nan, np.nan, np.nan, 41])
