"""How users look at positions, as a picture."""

from pathlib import Path
from typing import TYPE_CHECKING

from cuolr.examination.propensities import Estimate, Propensities
from cuolr.files import atomic_file

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PLOT_SUFFIXES = (".png", ".svg", ".pdf")
# Colours that the colour-blind tell apart, and that differ in grey.
STYLES = {
    "mle": {"label": "maximum likelihood", "color": "#0072B2", "marker": "o"},
    "paper": {"label": "as in the paper", "color": "#D55E00", "marker": "s"},
    "given": {"label": "given", "color": "#009E73", "marker": "D"},
}


def plot_propensities(propensities: Propensities, path: Path, truth: Propensities | None = None) -> None:
    """Write a picture of examination and of continuation by position, bars of two standard errors where known.

    Args:
        propensities: What to show.
        path: Its ending says what kind of file, one of `PLOT_SUFFIXES`.
        truth: Shown beside the estimates, where it is known.
    """
    # Takes half a second to load; no other command should wait for it.
    from matplotlib.figure import Figure

    assert path.suffix.lower() in PLOT_SUFFIXES, path
    truth = truth or Propensities()
    panels = int(propensities.examination is not None) + bool(propensities.continuation)
    figure = Figure(figsize=(4.6 * panels, 3.6), layout="constrained")
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
    kind = path.suffix.lower().removeprefix(".")
    dated = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(path) as unfinished:
        # No date in the file: the same estimates give the same picture.
        figure.savefig(unfinished, format=kind, dpi=120, metadata=dated[kind])


def _draw(axes: "Axes", estimate: Estimate, label: str, color: str, marker: str) -> None:
    known = [(place, value) for place, value in enumerate(estimate.values) if value is not None]
    errors = [2 * (estimate.standard_errors[place] or 0.0) for place, _ in known] if estimate.standard_errors else None
    positions, values = [place + 1 for place, _ in known], [value for _, value in known]
    axes.errorbar(positions, values, errors, label=label, color=color, marker=marker, markersize=5, capsize=3)


def _draw_truth(axes: "Axes", truth: Estimate | None) -> None:
    """A wide band behind the estimates, so that one that is right is seen to lie on it."""
    if truth is not None:
        values = [float("nan") if value is None else value for value in truth.values]
        axes.plot(range(1, len(values) + 1), values, label="true", color="0.8", linewidth=8, solid_capstyle="round")


def _finish(axes: "Axes", title: str, *estimates: Estimate) -> None:
    positions = max(len(estimate.values) for estimate in estimates)
    axes.set_title(title, loc="left", fontsize=11)
    axes.set(xlabel="position", xlim=(0.5, positions + 0.5), ylim=(0, None))
    # Whole positions only, and not more of them than can be read.
    axes.set_xticks(range(1, positions + 1, -(-positions // 20)))
    axes.grid(axis="y", color="0.92")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
