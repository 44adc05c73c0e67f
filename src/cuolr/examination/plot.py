"""Plots of examination: propensities by position, and the table of an examination model."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cuolr.errors import load_extra
from cuolr.examination.propensities import Estimate, Propensities
from cuolr.files import atomic_file, check_suffix
from cuolr.logs.contexts import ContextCurves
from cuolr.types import Doubles

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PLOT_SUFFIXES = (".png", ".svg", ".pdf")
# Colours that can be told apart by colour-blind readers and in greyscale.
STYLES = {
    "mle": {"label": "maximum likelihood", "color": "#0072B2", "marker": "o"},
    "paper": {"label": "as in the paper", "color": "#D55E00", "marker": "s"},
    "given": {"label": "given", "color": "#009E73", "marker": "D"},
}
# Colours and markers of the levels of context; with more levels, combinations of both.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9")
MARKERS = ("o", "s", "D", "^", "v", "P", "X")
# Plotted distances to the last click above, each with its colour and marker.
DISTANCES = {1: ("#D55E00", "s"), 2: ("#009E73", "D"), 3: ("#CC79A7", "^")}


def plot_propensities(propensities: Propensities, path: Path, truth: Propensities | None = None) -> None:
    """Plot examination and continuation by position, with error bars of two standard errors if known.

    Args:
        propensities: The estimates.
        path: The file to write; its suffix, one of `PLOT_SUFFIXES`, gives the format.
        truth: True values to plot with the estimates, if known.
    """
    truth = truth or Propensities()
    panels = int(propensities.examination is not None) + bool(propensities.continuation)
    figure = new_figure(4.6 * panels, 3.6)
    axes = list(figure.subplots(1, panels, squeeze=False, gridspec_kw={"wspace": 0.08})[0])
    if propensities.examination is not None:
        examination = axes.pop(0)
        _draw_truth(examination, truth.examination)
        _draw(examination, propensities.examination, label="estimate", color="#0072B2", marker="o")
        _finish(examination, "examination θ, relative to position 1", propensities.examination)
    if propensities.continuation:
        continuation = axes.pop(0)
        for true in truth.continuation.values():
            _draw_truth(continuation, true)
        for method, estimate in propensities.continuation.items():
            _draw(continuation, estimate, **STYLES.get(method, {"label": method, "color": "0.3", "marker": "^"}))
        _finish(continuation, "continuation λ, after a click", *propensities.continuation.values())
        continuation.set_ylim(0, 1)
    save_figure(figure, path)


def plot_examination(table: Doubles, path: Path, truth: Doubles | None = None) -> None:
    """Plot examination by position: with no click above, and one to three positions below the last click.

    Args:
        table: [K, K + 1] as `ExaminationModel.probabilities` gives it.
        path: The file to write; its suffix, one of `PLOT_SUFFIXES`, gives the format.
        truth: [K, K + 1] true values to plot behind the estimates, if known.
    """
    figure = new_figure(5.2, 3.8)
    axes = figure.subplots()
    shown = [(0, "no click above", "#0072B2", "o")]
    shown += [
        (distance, f"{distance} below the last click", colour, marker)
        for distance, (colour, marker) in DISTANCES.items()
        if np.isfinite(at_distance(table, distance)).any()
    ]
    for distance, label, colour, marker in shown:
        if truth is not None:
            axes.plot(*_points(at_distance(truth, distance)), color=colour, alpha=0.25, linewidth=7)
        axes.plot(*_points(at_distance(table, distance)), label=label, color=colour, marker=marker, markersize=5)
    _finish(axes, "examination, relative to position 1", Estimate(tuple(table[:, 0].tolist())))
    save_figure(figure, path)


def plot_by_context(curves: ContextCurves, path: Path) -> None:
    """Plot examination by position with no click above, a curve for each level of context.

    Args:
        curves: As `ExaminationModel.by_context` has them.
        path: The file to write; its suffix, one of `PLOT_SUFFIXES`, gives the format.
    """
    figure = new_figure(5.2, 3.8)
    axes = figure.subplots()
    for number, (level, table) in enumerate(zip(curves.levels, curves.tables, strict=True)):
        colour, marker = COLOURS[number % len(COLOURS)], MARKERS[number % len(MARKERS)]
        axes.plot(*_points(table[:, 0]), label=level, color=colour, marker=marker, markersize=5)
    _finish(axes, "examination by context, relative to position 1", Estimate(tuple(curves.tables[0, :, 0].tolist())))
    save_figure(figure, path)


def at_distance(table: Doubles, distance: int) -> Doubles:
    """[K] the examination of each position with the last click `distance` positions above; 0 = no click above.

    >>> at_distance(np.array([[1.0, np.nan, np.nan], [0.8, 0.5, np.nan]]), 1)
    array([nan, 0.5])
    """
    if distance == 0:
        return table[:, 0]
    below: Doubles = np.full(len(table), np.nan)
    positions = np.arange(distance, len(table))
    below[positions] = table[positions, positions - distance + 1]
    return below


def _points(values: Doubles) -> tuple[Doubles, Doubles]:
    known = np.flatnonzero(np.isfinite(values))
    return (known + 1).astype(np.float64), values[known]


def require_matplotlib() -> None:
    """Raise if plots cannot be drawn."""
    load_extra("matplotlib", "report", "plots need matplotlib")


def check_plot(path: Path | None) -> None:
    """Raise, before any work, if a plot cannot be written to a file; None = there is none to write."""
    if path is not None:
        check_suffix(path, PLOT_SUFFIXES)
        require_matplotlib()


def new_figure(width: float, height: float) -> "Figure":
    """An empty figure of this size in inches. Not of pyplot, which would keep it and look for a display."""
    # Loaded here because it takes half a second.
    require_matplotlib()
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def save_figure(figure: "Figure", path: Path) -> None:
    """Write a figure without dates or random ids, so that the same estimates give the same file."""
    from matplotlib import rc_context

    assert path.suffix.lower() in PLOT_SUFFIXES, path
    kind = path.suffix.lower().removeprefix(".")
    dated = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}
    path.parent.mkdir(parents=True, exist_ok=True)
    with rc_context({"svg.hashsalt": "cuolr"}), atomic_file(path) as unfinished:
        figure.savefig(unfinished, format=kind, dpi=120, metadata=dated[kind])


def _draw(axes: "Axes", estimate: Estimate, label: str, color: str, marker: str) -> None:
    known = [(place, value) for place, value in enumerate(estimate.values) if value is not None]
    errors = [2 * (estimate.standard_errors[place] or 0.0) for place, _ in known] if estimate.standard_errors else None
    positions, values = [place + 1 for place, _ in known], [value for _, value in known]
    axes.errorbar(positions, values, errors, label=label, color=color, marker=marker, markersize=5, capsize=3)


def _draw_truth(axes: "Axes", truth: Estimate | None) -> None:
    """Plot a wide band behind the estimates; a correct estimate lies on it."""
    if truth is not None:
        values = [float("nan") if value is None else value for value in truth.values]
        axes.plot(range(1, len(values) + 1), values, label="true", color="0.8", linewidth=8, solid_capstyle="round")


def _finish(axes: "Axes", title: str, *estimates: Estimate) -> None:
    finish_axes(axes, title, max(len(estimate.values) for estimate in estimates))


def finish_axes(axes: "Axes", title: str, positions: int) -> None:
    """Title, axes and legend of a plot by position."""
    axes.set_title(title, loc="left", fontsize=11)
    axes.set(xlabel="position", xlim=(0.5, positions + 0.5), ylim=(0, None))
    # Ticks at integer positions only, at most 20 of them.
    axes.set_xticks(range(1, positions + 1, -(-positions // 20)))
    axes.grid(axis="y", color="0.92")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
