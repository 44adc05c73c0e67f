"""Colours and markers of methods and click models: consistent, for light and dark pages and colour-blind readers.

Every colour has a contrast of at least 3.3 with white and with the dark page; hues follow Okabe and Ito, and markers
carry the same information as colours.
"""

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cuolr.experiments.spec import Experiment

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
