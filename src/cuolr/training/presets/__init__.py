"""Presets: named settings of a whole run, one TOML file each."""

from collections.abc import Mapping
from pathlib import Path

PRESETS: Mapping[str, Path] = {path.stem: path for path in Path(__file__).parent.glob("*.toml")}
