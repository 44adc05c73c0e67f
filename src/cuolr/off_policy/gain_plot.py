"""A picture of the gain by estimator, with intervals."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from cuolr.examination.plot import new_figure, save_figure
from cuolr.off_policy.recommendation import OffPolicyEvaluation

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
        lines = [("all that count", found.gain, found.interval, found.interval, COLOURS["all"])]
        lines += [
            (e.estimator, e.gain, e.interval, e.bounds, COLOURS["users" if e.calibration is not None else "importance"])
            for e in found.estimates
            if e.is_decisive
        ]
        for row, (_, gain, interval, bounds, colour) in enumerate(lines):
            for (low, high), width in ((bounds, 1.2), (interval, 4.0)):
                if np.isfinite(low) and np.isfinite(high):
                    axes.plot([low, high], [row, row], color=colour, linewidth=width, solid_capstyle="butt")
            axes.plot(gain, row, "o", color=colour, markersize=5, markeredgecolor="white")
        axes.axvline(0, color="0.6", linewidth=1, linestyle=":")
        axes.set_yticks(range(len(lines)), [line[0] for line in lines])
        axes.set_ylim(len(lines) - 0.4, -0.6)
        axes.set_title(f"{name}: {found.recommendation}", loc="left", fontsize=10)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:+.0%}")
        axes.spines[["top", "right"]].set_visible(False)
    panels[-1].set_xlabel("gain, 95 % interval (thin: with documents never shown)")
    save_figure(figure, path)
