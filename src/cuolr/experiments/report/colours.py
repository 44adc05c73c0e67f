"""Colours and markers of methods and click models: consistent, for light and dark pages and colour-blind readers.

Every colour has a contrast of at least 3.3 with white and with the dark page; hues follow Okabe and Ito, and markers
carry the same information as colours.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cuolr.experiments.spec import Experiment

# Placeholder for the text colour, which a page makes light or dark.
INK = "#010203"

_METHODS = {
    "factored": "#9b45c8",
    "CUOLR(CQL)": "#d55e00",
    "CUOLR(SAC)": "#1f83c6",
    "CM-IPW": "#0c8f6a",
    "IPW": "#a97a00",
    "DLA": "#c45d93",
    "naive": "#8a6d5a",
    "two-tower": "#7a6fd0",
    "LightGBM": "#3f93ab",
    "LightGBM+position": "#6b8e23",
}
_ALSO_CALLED = {
    "CQL": "CUOLR(CQL)",
    "CQL(best)": "CUOLR(CQL)",
    "SAC": "CUOLR(SAC)",
    "ATTENTION": "CUOLR(CQL)",
}
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
    """A style for each method: its own colour if it has one, then the remaining colours in order."""
    swept = [m for m in methods if m in experiment.method and experiment.method[m].swept_from]
    sweep = {m: _between(place / max(1, len(swept) - 1)) for place, m in enumerate(swept)}
    colours = {m: _METHODS[known] for m in methods if (known := _ALSO_CALLED.get(m, m)) in _METHODS}
    left = [colour for colour in _METHODS.values() if colour not in colours.values()] or list(_METHODS.values())
    others = [m for m in methods if m not in colours and m not in sweep]
    colours |= sweep | {m: left[place % len(left)] for place, m in enumerate(others)}
    return {m: Style(colours[m], _MARKERS[place % len(_MARKERS)]) for place, m in enumerate(methods)}


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
