"""The experiments that come with the package, one TOML file each."""

from collections.abc import Mapping
from pathlib import Path

BUILT_IN: Mapping[str, Path] = {path.stem: path for path in Path(__file__).parent.glob("*.toml")}
