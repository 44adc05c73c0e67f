"""Context of simulated sessions: users of several kinds, such as desktop and mobile, who examine differently."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from cuolr.clicks.click_model import ClickModel
from cuolr.config import Range, check_arguments
from cuolr.data.column_kinds import looks_like_label
from cuolr.errors import InputError
from cuolr.types import Doubles, Ints


@dataclass(frozen=True)
class SimulatedContext:
    """A column of context, drawn independently for each session.

    Attributes:
        name: Name of the column, such as device.
        values: Its values, such as desktop and mobile.
        shares: The share of the sessions of each value; they sum to 1.
        severities: By which the severity η of position bias is multiplied for each value: the examination probabilities
            of the click model are raised to this power.
    """

    name: str
    values: tuple[str, ...]
    shares: tuple[float, ...]
    severities: tuple[float, ...]

    def __post_init__(self) -> None:
        assert len(self.values) == len(self.shares) == len(self.severities), self
        check_arguments(
            **{f"context {self.name}: share of {v}": (s, Range(0, 1)) for v, s in self._by_value(self.shares)}
        )
        check_arguments(
            **{f"context {self.name}: severity of {v}": (s, Range(0)) for v, s in self._by_value(self.severities)}
        )
        if not self.values or len(set(self.values)) < len(self.values):
            raise InputError(
                f"context {self.name}: expected different values, found {', '.join(self.values) or 'none'}"
            )
        if not math.isclose(sum(self.shares), 1, abs_tol=1e-6):
            raise InputError(f"context {self.name}: expected shares that sum to 1, found {sum(self.shares):g}")
        if not self.name or looks_like_label(self.name):
            raise InputError(f"context: expected the name of a column that is no relevance label, found '{self.name}'")

    def _by_value(self, numbers: Sequence[float]) -> list[tuple[str, float]]:
        return list(zip(self.values, numbers, strict=True))

    @classmethod
    def parse(cls, text: str) -> "SimulatedContext":
        """A context as the command line takes it: name=value:share:severity,… where the severity may be left out.

        >>> SimulatedContext.parse("device=desktop:0.6,mobile:0.4:2")
        SimulatedContext(name='device', values=('desktop', 'mobile'), shares=(0.6, 0.4), severities=(1.0, 2.0))
        """
        name, _, given = text.partition("=")
        parts = [part.strip().split(":") for part in given.split(",")]
        try:
            shares = tuple(float(part[1]) for part in parts)
            severities = tuple(float(part[2]) if len(part) > 2 else 1.0 for part in parts)
        except (IndexError, ValueError):
            shares = ()
        if not shares or any(len(part) > 3 or not part[0] for part in parts):
            raise InputError(
                "context: expected NAME=VALUE:SHARE[:SEVERITY],…, such as device=desktop:0.6,mobile:0.4:2, found "
                f"'{text}'"
            )
        return cls(name.strip(), tuple(part[0] for part in parts), shares, severities)

    def draw(self, uniforms: Doubles) -> Ints:
        """[B] the number of the value of each session, from uniforms [B]."""
        return np.minimum(np.searchsorted(np.cumsum(self.shares), uniforms, side="right"), len(self.values) - 1)


def in_context(model: ClickModel, severity: float) -> ClickModel:
    """The click model with its severity of position bias multiplied."""
    if severity == 1:
        return model
    if "eta" not in {field.name for field in fields(model)}:
        raise InputError(
            f"context: {type(model).__name__} has no severity of position bias (eta); leave the severity out, or use "
            "another click model, such as pbm, ubm or dcm"
        )
    settings: dict[str, Any] = {"eta": getattr(model, "eta") * severity}  # noqa: B009 (not a field of every model)
    return replace(model, **settings)


@dataclass(frozen=True)
class DrawnContexts:
    """The contexts of some sessions.

    Attributes:
        columns: [B] each, by name.
        severity: [B] the product of the severities of all contexts.
    """

    columns: dict[str, npt.NDArray[np.str_]]
    severity: Doubles

    @classmethod
    def of(cls, contexts: Sequence[SimulatedContext], uniforms: Doubles) -> "DrawnContexts":
        """Draw from uniforms [B, number of contexts]."""
        columns, severity = {}, np.ones(len(uniforms))
        for i, context in enumerate(contexts):
            number = context.draw(uniforms[:, i])
            columns[context.name] = np.array(context.values)[number]
            severity = severity * np.array(context.severities)[number]
        return cls(columns, severity)
