"""How the commands that need a click model are told which."""

import dataclasses
import warnings
from dataclasses import dataclass
from pathlib import Path

from cuolr.clicks.click_model import ClickModel, click_model, read_click_model
from cuolr.errors import InputWarning


@dataclass(frozen=True)
class ClickModelOptions:
    """Parameters of the click model."""

    eta: float | None = None
    """Severity of the bias, 0 = none; by default 1. Of pbm, ubm, dcm and trust."""
    noise: float | None = None
    """Attractiveness of an irrelevant document; by default 0.1, of trust 0."""

    def model(self, name_or_file: str) -> ClickModel:
        """The click model of that name, or the one that a TOML file describes, with these parameters."""
        is_file = name_or_file.endswith(".toml")
        model = read_click_model(Path(name_or_file)) if is_file else click_model(name_or_file)
        known = {field.name for field in dataclasses.fields(model)}
        given = {name: value for name, value in dataclasses.asdict(self).items() if value is not None}
        for name in given.keys() - known:
            warnings.warn(f"click model '{name_or_file}' has no {name}; it is ignored", InputWarning, stacklevel=2)
        return dataclasses.replace(model, **{name: given[name] for name in given.keys() & known})
