"""Plot of fitted click models: perplexity by position, and the parameters of the best model by position."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cuolr.clicks.fitting.compare_fits import FitComparison
from cuolr.clicks.fitting.fit_by_context import FitByContext
from cuolr.clicks.fitting.fit_model import NORMAL_95, FittedClicks
from cuolr.examination.plot import finish_axes, new_figure, save_figure
from cuolr.types import Doubles

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Colours that can be told apart by colour-blind readers, with markers for greyscale; the best models have the first.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "0.5")
MARKERS = ("o", "s", "D", "^", "v", "P", "X", "*")
# Names of parameters by position, in plots.
LABELS = {
    "examination": "examination",
    "continuation": "continuation after a click",
    "click_relevant": "click if examined and relevant",
    "click_irrelevant": "click if examined and irrelevant",
}


def plot_fits(compared: FitComparison, best: FittedClicks, path: Path) -> None:
    """Plot the conditional perplexity of each model, and the parameters of the best one if they are by position.

    Args:
        compared: The models.
        best: The best model, with standard errors.
        path: The file to write; its suffix, one of `PLOT_SUFFIXES`, gives the format.
    """
    shown = _by_position(best)
    figure = new_figure(5.2 * (1 + bool(shown)), 3.8)
    axes = figure.subplots(1, 1 + bool(shown), squeeze=False)[0]
    _draw_perplexity(axes[0], compared)
    if shown:
        for number, (label, (values, errors)) in enumerate(shown.items()):
            _draw_parameter(axes[1], number % len(COLOURS), label, values, errors)
        finish_axes(axes[1], f"parameters of {best.name}, with 95 % intervals", best.model.k)
    save_figure(figure, path)


def _by_position(best: FittedClicks) -> dict[str, tuple[Doubles, Doubles | None]]:
    """Values and standard errors of the parameters by position, of each level of context."""
    levels = best.model.levels if isinstance(best.model, FitByContext) else ("",)
    shown: dict[str, tuple[Doubles, Doubles | None]] = {}
    for name in best.global_names:
        if len(best.values[name]) == best.model.k * len(levels):
            values, errors = np.split(best.values[name], len(levels)), best.errors.get(name)
            of_levels = [None] * len(levels) if errors is None else np.split(errors, len(levels))
            for level, value, error in zip(levels, values, of_levels, strict=True):
                shown[", ".join(filter(None, (LABELS.get(name, name), level)))] = value, error
    return shown


def _draw_perplexity(axes: "Axes", compared: FitComparison) -> None:
    finite = [n for n in compared.in_order if np.isfinite(compared.scores[n].conditional_perplexity)]
    for number, name in enumerate(finite[: len(COLOURS)]):
        values = compared.scores[name].conditional_by_position
        places = np.arange(1, len(values) + 1)
        style = {"color": COLOURS[number], "marker": MARKERS[number]}
        axes.plot(places, values, label=name, markersize=4, linewidth=1.2, **style)  # type: ignore[arg-type]
    finish_axes(
        axes, "conditional perplexity, held-out sessions", len(compared.scores[compared.best].perplexity_by_position)
    )
    axes.set_ylim(1, None)


def _draw_parameter(axes: "Axes", number: int, label: str, values: Doubles, errors: Doubles | None) -> None:
    known = np.isfinite(errors) if errors is not None else np.ones(len(values), np.bool_)
    places = np.flatnonzero(known)
    margins = None if errors is None else NORMAL_95 * errors[known]
    axes.errorbar(
        places + 1,
        values[known],
        margins,
        label=label,
        color=COLOURS[number],
        marker=MARKERS[number],
        markersize=5,
        capsize=3,
    )
