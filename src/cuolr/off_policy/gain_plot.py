"""A picture of the gain by estimator, with intervals."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cuolr.examination.plot import new_figure, save_figure
from cuolr.off_policy.recommendation import OffPolicyEvaluation

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = {"users": "#0072B2", "importance": "#D55E00", "all": "0.25"}


def plot_gains(evaluations: Mapping[str, OffPolicyEvaluation], path: Path) -> None:
    """Plot the gains of models by each estimator that counts: intervals thick, worst to best case thin.

    Args:
        evaluations: By the name of the model.
        path: The file to write; its suffix gives the format.
    """
    rows = sum(sum(e.is_decisive for e in found.estimates) + 1 for found in evaluations.values())
    figure = new_figure(7.0, 0.9 + 0.32 * rows + 0.5 * len(evaluations))
    panels = figure.subplots(len(evaluations), 1, squeeze=False, sharex=True)[:, 0]
    for axes, (name, found) in zip(panels, evaluations.items(), strict=True):
        lines = list(_lines(found))
        for row, line in enumerate(lines):
            _draw(axes, row, line)
        axes.axvline(0, color="0.6", linewidth=1, linestyle=":")
        axes.set_yticks(range(len(lines)), [line.label for line in lines])
        axes.set_ylim(len(lines) - 0.4, -0.6)
        axes.set_title(f"{name}: {found.recommendation}", loc="left", fontsize=10)
        axes.xaxis.set_major_formatter(lambda value, _: percent_text(value))
        axes.spines[["top", "right"]].set_visible(False)
    panels[-1].set_xlabel("gain, 95 % interval (thin: worst to best case of documents hardly or never shown)")
    save_figure(figure, path)


@dataclass(frozen=True)
class _Line:
    """A line of the plot; without a gain that is known, its label alone."""

    name: str
    is_known: bool
    gain: float
    interval: tuple[float, float]
    bounds: tuple[float, float]
    colour: str

    @property
    def label(self) -> str:
        return self.name if self.is_known else f"{self.name}: unknown"


def _lines(found: OffPolicyEvaluation) -> Iterator[_Line]:
    yield _Line("all that count", found.can_estimate, found.gain, found.interval, found.interval, COLOURS["all"])
    for e in found.estimates:
        if e.is_decisive:
            colour = COLOURS["users" if e.calibration is not None else "importance"]
            yield _Line(e.estimator, e.is_known, e.gain, e.interval, e.bounds, colour)


def _draw(axes: "Axes", row: int, line: _Line) -> None:
    if not line.is_known:
        return
    for (low, high), width in ((line.bounds, 1.2), (line.interval, 4.0)):
        if np.isfinite(low) and np.isfinite(high):
            axes.plot([low, high], [row, row], color=line.colour, linewidth=width, solid_capstyle="butt")
    axes.plot(line.gain, row, "o", color=line.colour, markersize=5, markeredgecolor="white")


def percent_text(value: float) -> str:
    """A share in percent with its sign, and no more digits than it has.

    >>> percent_text(0.3), percent_text(-0.005), percent_text(-1e-17)
    ('+30%', '-0.5%', '0%')
    """
    percent = round(100 * value, 6)
    return f"{percent:+g}%" if percent else "0%"
