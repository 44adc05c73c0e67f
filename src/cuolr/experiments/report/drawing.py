"""Plots as inline SVG in the page's text colour, and as files.

Every colour has a contrast of at least 3.3 with white and with the dark page; hues follow Okabe and Ito, and markers
carry the same information as colours.
"""

import io
import re
import warnings
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from cuolr.examination.plot import new_figure
from cuolr.experiments.spec import Experiment
from cuolr.progress import Progress, no_progress

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# Placeholder for the text colour, which a page makes light or dark.
INK = "#010203"

_METHODS = (
    "#9b45c8",
    "#d55e00",
    "#1f83c6",
    "#0c8f6a",
    "#a97a00",
    "#c45d93",
    "#8a6d5a",
    "#7a6fd0",
    "#3f93ab",
    "#6b8e23",
)
_CLICK_MODELS = ("#4f7fc2", "#b3702f", "#4f9468", "#a5608e", "#8577c2", "#94853a", "#3d92a0", "#b05c5c", "#7d7d7d")
_MARKERS = ("o", "s", "D", "^", "v", "P", "X", "<", ">")
# From low to high, for the values of a sweep.
_LITTLE, _MUCH = (0x7A, 0x6F, 0xD0), (0xC9, 0x6A, 0x1E)


@dataclass(frozen=True)
class Style:
    """Colour and marker of a series."""

    colour: str
    marker: str


def method_styles(experiment: Experiment, methods: Sequence[str]) -> dict[str, Style]:
    """A style for each method; the values of a sweep have the colours between two, in order."""
    swept = [m for m in methods if m in experiment.method and experiment.method[m].swept_from]
    colours = {m: _between(place / max(1, len(swept) - 1)) for place, m in enumerate(swept)}
    colours |= _colours_by_name([m for m in methods if m not in colours])
    return {m: Style(colours[m], _MARKERS[place % len(_MARKERS)]) for place, m in enumerate(methods)}


def _colours_by_name(methods: Sequence[str]) -> dict[str, str]:
    """A colour that follows from the name; of two methods with the same one, one has the next that is free.

    So the colours of a set of methods are the same in every experiment, whatever the order and the learners.
    """
    colours: dict[str, str] = {}
    for method in sorted(methods):
        first = zlib.crc32(method.encode()) % len(_METHODS)
        preferred = [*_METHODS[first:], *_METHODS[:first]]
        colours[method] = next((c for c in preferred if c not in colours.values()), preferred[0])
    return colours


def setting_styles(labels: Sequence[str]) -> Mapping[str, Style]:
    """A style for each click model or other setting, different from those of the methods."""
    return {
        label: Style(_CLICK_MODELS[place % len(_CLICK_MODELS)], _MARKERS[place % len(_MARKERS)])
        for place, label in enumerate(dict.fromkeys(labels))
    }


def _between(share: float) -> str:
    return "#" + "".join(
        f"{round(little + share * (much - little)):02x}" for little, much in zip(_LITTLE, _MUCH, strict=True)
    )


WIDTH, HEIGHT = 3.5, 2.5
# Width of a single panel.
WIDE = 4.4
_STYLE: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.7,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "grid.color": INK,
    "grid.alpha": 0.12,
    "grid.linewidth": 0.7,
    "lines.linewidth": 1.6,
    "lines.markersize": 4.5,
    "legend.frameon": False,
    # A dollar sign in a user's name is literal.
    "text.parse_math": False,
    # Text stays text, and the same plot gives the same file.
    "svg.fonttype": "none",
    "svg.hashsalt": "cuolr",
}


@dataclass(frozen=True)
class Panel:
    """One set of axes.

    Attributes:
        title: Title above it.
        draw: Draws it.
        height: Height in inches.
        width: Width in inches.
    """

    title: str
    draw: "Callable[[Axes], None]"
    height: float = HEIGHT
    width: float = WIDTH


@dataclass(frozen=True)
class Plot:
    """Panels that belong together.

    Attributes:
        name: Name of its files.
        title: A short title.
        caption: How to read it.
        panels: Side by side, or one below the other on a narrow page.
        legend: The style of each series, by label.
        measure: The measure that it shows; "" if it does not depend on one.
        table: Number of the table that it belongs to, from 1; 0 = all.
    """

    name: str
    title: str
    caption: str
    panels: tuple[Panel, ...]
    legend: Mapping[str, Style] = field(default_factory=dict)
    measure: str = ""
    table: int = 0


def inline_svg(panel: Panel, prefix: str) -> str:
    """A panel as SVG to embed in a page; `prefix` keeps its ids unique there."""
    with _style():
        figure = new_figure(panel.width, panel.height)
        _draw(figure.subplots(), panel)
        text = io.StringIO()
        figure.savefig(text, format="svg", transparent=True, metadata={"Date": None})
    svg = text.getvalue()
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    svg = re.sub(
        r'(<svg[^>]*?) width="[^"]*"', r"\1", re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", svg, count=1), count=1
    )
    svg = re.sub(r'id="', f'id="{prefix}-', svg)
    svg = re.sub(r'(href="#|url\(#)', rf"\g<1>{prefix}-", svg)
    svg = re.sub(r"font(-family)?: [^;\"]*sans-serif", lambda match: _font(match[0]), svg)
    return re.sub(r"\n\s*", "\n", svg.replace(INK, "currentColor")).strip()


def drawn(plot: Plot, prefix: str, progress: Progress = no_progress) -> dict[str, Any]:
    """A plot as a page shows it: `panels` and `swatches` as SVG; `prefix` keeps their ids unique there."""
    panels = []
    for number, panel in enumerate(plot.panels):
        panels.append(Markup(inline_svg(panel, f"{prefix}-{number}")))
        progress(1)
    swatches = {label: Markup(_swatch(style)) for label, style in plot.legend.items()}
    return {"plot": plot, "panels": panels, "swatches": swatches}


def save(plot: Plot, folder: Path) -> None:
    """Write a plot with all its panels and its legend, as PNG and SVG on white."""
    from matplotlib.lines import Line2D

    across = min(3, len(plot.panels))
    down = -(-len(plot.panels) // across)
    legend_height = 0.25 * -(-len(plot.legend) // (2 * across))
    with _style():
        figure = new_figure(
            plot.panels[0].width * across, down * max(panel.height for panel in plot.panels) + legend_height
        )
        figure.suptitle(plot.title, x=0.01, ha="left", fontsize=10.5)
        places = figure.subplots(down, across, squeeze=False).ravel()
        for axes, panel in zip(places, plot.panels, strict=False):
            _draw(axes, panel)
        for axes in places[len(plot.panels) :]:
            axes.axis("off")
        handles = [Line2D([], [], color=style.colour, marker=style.marker) for style in plot.legend.values()]
        if handles:
            figure.legend(handles, list(plot.legend), loc="outside lower center", ncols=min(len(handles), 2 * across))
        for kind in ("png", "svg"):
            metadata = {} if kind == "png" else {"Date": None}
            figure.savefig(folder / f"{plot.name}.{kind}", dpi=150, facecolor="white", metadata=metadata)


@contextmanager
def _style() -> Iterator[None]:
    from matplotlib import rc_context

    with rc_context(_STYLE), warnings.catch_warnings():
        # A browser falls back to another font for such characters; a PNG shows a box.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        yield


def _draw(axes: "Axes", panel: Panel) -> None:
    panel.draw(axes)
    if panel.title:
        axes.set_title(panel.title)


def _font(style: str) -> str:
    """A style with the page's font instead of matplotlib's list of fonts."""
    if style.startswith("font-family"):
        return "font-family: inherit"
    size = re.search(r"[\d.]+px", style)
    return f"font-size: {size[0] if size else '9px'}"


def _swatch(style: Style) -> str:
    """A line with its marker, for a legend."""
    shapes = {
        "o": '<circle cx="12" cy="6" r="3.6"/>',
        "s": '<rect x="8.6" y="2.6" width="6.8" height="6.8"/>',
        "D": '<path d="M12 1.6 16.4 6 12 10.4 7.6 6Z"/>',
        "^": '<path d="M12 1.8 16 9.4H8Z"/>',
        "v": '<path d="M12 10.2 16 2.6H8Z"/>',
        "P": '<path d="M10.4 1.8h3.2v2.6h2.6v3.2h-2.6v2.6h-3.2V7.6H7.8V4.4h2.6Z"/>',
        "X": '<path d="M8 3.6 9.6 2 12 4.4 14.4 2 16 3.6 13.6 6 16 8.4 14.4 10 12 7.6 9.6 10 8 8.4 10.4 6Z"/>',
        "<": '<path d="M7.8 6 15.4 2v8Z"/>',
        ">": '<path d="M16.2 6 8.6 2v8Z"/>',
    }
    line = f'<path d="M1 6h22" stroke="{style.colour}" stroke-width="2" fill="none"/>'
    drawn = f"{line}{shapes[style.marker]}"
    return f'<svg class="swatch" viewBox="0 0 24 12" aria-hidden="true" fill="{style.colour}">{drawn}</svg>'
