import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cuolr.experiments.report.curves import Curve, CurvePanel, _places, curves_of
from cuolr.experiments.report.drawing import INK, Panel, Plot, Style, inline_svg, method_styles, save, setting_styles
from cuolr.experiments.report.plots import _draw_curve_panel, all_plots
from cuolr.experiments.report.summary import summarise
from tests.experiments.made_up import sessions_like, sweep_like, table1_like, write_made_up


def line(axes: Axes) -> None:
    axes.plot([1, 2], [3, 4], marker="o", color="#d55e00")


def brightness(colour: str) -> float:
    """Relative luminance, as the Web Content Accessibility Guidelines define it."""
    channels = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(first: str, second: str) -> float:
    low, high = sorted(map(brightness, (first, second)))
    return (high + 0.05) / (low + 0.05)


def test_all_plots_of_a_table_are_there(tmp_path: Path) -> None:
    plots = all_plots(summarise(write_made_up(tmp_path, table1_like(measures=["ndcg@10"]), (1, 2), queries=20)))
    assert [plot.name for plot in plots] == ["gap-closed", "wins", "learning-curves", "click-rate"]
    assert [len(plot.panels) for plot in plots] == [5, 1, 5, 1]


def test_plots_of_a_measure_are_there_for_each_measure(tmp_path: Path) -> None:
    measures = ["ndcg@10", "err@10"]
    plots = all_plots(summarise(write_made_up(tmp_path, sweep_like(measures=measures), (1,), queries=20)))
    assert [plot.measure for plot in plots if plot.name == "curves"] == measures


def test_nothing_is_plotted_where_nothing_is_finished(tmp_path: Path) -> None:
    assert all_plots(summarise(write_made_up(tmp_path, table1_like(), (1,), queries=20, skip=lambda cell: True))) == []


def test_the_plot_of_wins_is_of_the_best_method_that_is_tested(tmp_path: Path) -> None:
    plots = all_plots(summarise(write_made_up(tmp_path, table1_like(measures=["ndcg@10"]), (1, 2), queries=40)))
    titles = [plot.title for plot in plots if plot.name == "wins"]
    assert titles == ["CUOLR(CQL) against the best baseline, query by query, nDCG@10"]


def test_a_legend_has_what_is_drawn_and_nothing_else(tmp_path: Path) -> None:
    experiment = table1_like(measures=["ndcg@10"])
    results = write_made_up(
        tmp_path, experiment, (1,), queries=20, skip=lambda cell: cell.click_model in ("ubm", "ccm")
    )
    legends = {plot.name: list(plot.legend) for plot in all_plots(summarise(results))}
    assert legends["click-rate"] == ["PBM", "CASCADE", "DCM"]
    assert legends["learning-curves"] == ["naive", "IPW", "CM-IPW", "DLA", "CUOLR(SAC)", "CUOLR(CQL)"]


def test_a_panel_becomes_an_svg_of_the_pages_colour_and_font() -> None:
    panel = Panel("a <title> & more", line)
    svg = inline_svg(panel, "p1")
    root = ElementTree.fromstring(svg)
    assert set(root.attrib) == {"version", "viewBox"}
    assert "currentColor" in svg
    assert INK not in svg
    assert "DejaVu" not in svg
    assert "a &lt;title&gt; &amp; more" in svg
    ids = re.findall(r'id="([^"]*)"', svg)
    assert all(name.startswith("p1-") for name in ids)
    used = re.findall(r'(?:href="#|url\(#)([^")]*)', svg)
    assert used
    assert set(used) <= set(ids)


@pytest.mark.parametrize("title", [r"costs $\none$", "η and 表", "50 % of $5 and $6"])
def test_any_name_is_drawn_as_it_is(tmp_path: Path, title: str) -> None:
    panel = Panel(title, line)
    assert title in "".join(ElementTree.fromstring(inline_svg(panel, "p")).itertext())
    save(Plot("name", title, "caption", (panel,), {title: Style("#d55e00", "o")}), tmp_path)
    assert title in (tmp_path / "name.svg").read_text(encoding="utf-8")


def test_the_same_panel_gives_the_same_svg() -> None:
    panel = Panel("x", line)
    assert inline_svg(panel, "p") == inline_svg(panel, "p")


def test_plots_are_saved_as_png_and_svg(tmp_path: Path) -> None:
    panel = Panel("x", line)
    save(Plot("name", "title", "caption", (panel,) * 4), tmp_path)
    assert (tmp_path / "name.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (tmp_path / "name.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", ["#ffffff", "#1b1f25"])
def test_every_colour_can_be_seen_on_a_light_and_on_a_dark_page(page: str) -> None:
    sweep = sweep_like()
    names = [*table1_like().grid[0].method, "two-tower", "LightGBM", "LightGBM+position"]
    styles = {**method_styles(sweep, sweep.grid[0].method), **method_styles(table1_like(), names)}
    assert {name: look.colour for name, look in styles.items() if contrast(look.colour, page) < 3} == {}


def test_the_same_methods_have_the_same_colours_whatever_their_order() -> None:
    names = ["naive", "my own", "CUOLR(CQL)", "IPW"]
    once, again = method_styles(table1_like(), names), method_styles(sweep_like(), names[::-1])
    assert {name: once[name].colour for name in names} == {name: again[name].colour for name in names}
    assert len({look.colour for look in once.values()}) == 4
    assert len({look.marker for look in once.values()}) == 4


def test_ten_methods_have_ten_colours_and_more_have_one_each() -> None:
    names = [f"method {number}" for number in range(23)]
    assert len({look.colour for look in method_styles(table1_like(), names[:10]).values()}) == 10
    assert method_styles(table1_like(), names).keys() == set(names)


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


def ticks_of(*x: float, names: tuple[str, ...] = ()) -> tuple[str, list[str]]:
    """The scale of the horizontal axis of a panel with one curve, and its ticks."""
    curve = Curve(x, tuple(0.1 for _ in x), tuple(0.01 for _ in x))
    panel = CurvePanel("PBM", "weight", {"CQL": curve}, names, lines=(0.05,))
    axes = Figure().subplots()
    _draw_curve_panel(panel, setting_styles(["CQL"]), (0, 1))(axes)
    return axes.get_xscale(), [tick.get_text() for tick in axes.get_xticklabels()]


def test_an_axis_of_many_magnitudes_is_logarithmic_and_keeps_its_zero() -> None:
    assert ticks_of(1, 10, 1_000) == ("log", ["1", "10", "100", "1,000"])
    assert ticks_of(0, 0.01, 0.1, 1) == ("symlog", ["0", "0.01", "0.1", "1"])
    assert ticks_of(1, 2, 4)[0] == "linear"


def test_values_that_are_no_numbers_are_named_on_the_axis(tmp_path: Path) -> None:
    assert ticks_of(0, 1, names=("mlp", "transformer")) == ("linear", ["mlp", "transformer"])
    assert _places({"a": "mlp", "b": "transformer", "c": "mlp"}) == (
        {"a": 0, "b": 1, "c": 0},
        ("mlp", "transformer"),
    )


def test_what_is_missing_is_left_out_of_a_curve(tmp_path: Path) -> None:
    results = write_made_up(tmp_path, sessions_like(), (), queries=20, skip=lambda cell: cell.sessions_per_query == 10)
    panels = curves_of(summarise(results), "ndcg@10")
    assert panels[0].curves["DLA"].x == (1, 100, 1000)


def test_an_experiment_without_a_sweep_has_no_curves(tmp_path: Path) -> None:
    assert curves_of(summarise(write_made_up(tmp_path, table1_like(), (1,), queries=20)), "ndcg@10") == []
