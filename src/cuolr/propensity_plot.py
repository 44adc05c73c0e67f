"""How users look at positions, as a picture."""

from pathlib import Path

from cuolr.data.propensity_file import Estimate, Propensities
from cuolr.errors import InputError
from cuolr.files import atomic_file

NAMES = {"mle": "maximum likelihood", "paper": "as in the paper", "given": "given"}


def plot_propensities(
    propensities: Propensities, path: Path, true_continuation: tuple[float, ...] | None = None
) -> None:
    """Write a picture with examination on the left and continuation on the right.

    Args:
        propensities: What to show.
        path: Its ending says what kind of file: png, svg or pdf.
        true_continuation: Shown beside the estimates, where it is known.
    """
    # Takes half a second to load; no other command should wait for it.
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    def draw(axes: Axes, estimate: Estimate, label: str | None, marker: str) -> None:
        known = [place for place, value in enumerate(estimate.values) if value is not None]
        errors = [2 * (estimate.standard_errors[place] or 0.0) for place in known] if estimate.standard_errors else None
        values = [estimate.values[place] or 0.0 for place in known]
        axes.errorbar([place + 1 for place in known], values, errors, label=label, capsize=3, marker=marker)

    kind = path.suffix.removeprefix(".")
    if kind not in ("png", "svg", "pdf"):
        raise InputError(f"{path}: expected a file that ends in .png, .svg or .pdf")
    figure = Figure(figsize=(9, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    if propensities.examination is not None:
        draw(left, propensities.examination, None, marker="o")
    left.set(title="examination θ, relative to position 1", xlabel="position", ylim=(0, None))
    if true_continuation is not None:
        right.plot(range(1, len(true_continuation) + 1), true_continuation, color="0.6", linewidth=4, label="true")
    for method, estimate in propensities.continuation.items():
        draw(right, estimate, NAMES.get(method, method), marker="o" if method == "mle" else "s")
    right.set(title="continuation λ after a click", xlabel="position", ylim=(0, 1))
    if right.get_legend_handles_labels()[0]:
        right.legend()
    with atomic_file(path) as unfinished:
        # No date in the file: the same estimates give the same picture.
        figure.savefig(unfinished, format=kind, dpi=100, metadata={} if kind == "png" else {"Date": None})
