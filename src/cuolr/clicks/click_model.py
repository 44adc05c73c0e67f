"""The interface of click models: sample the clicks on a ranked list, and give the probability of each click."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, TypeAlias, TypeVar

import numpy as np

from cuolr.config import Range, SettingError, check_ranges, from_dict, read_toml, to_dict
from cuolr.errors import InputError, problems_in
from cuolr.registry import Registry
from cuolr.types import Bools, Doubles, Floats, IntegerArray

CLICK_MODELS: Registry[type["ClickModel"]] = Registry(
    "click model",
    package="cuolr.clicks",
    entry_points="cuolr.click_models",
    base="ClickModel",
    variable="CLICK_MODELS",
)

Reals = TypeVar("Reals", Floats, Doubles)
Probability: TypeAlias = Annotated[float, Range(0, 1)]
# The table of a click model's TOML file that says how it was fitted to a log, see `fitting/simulated_users.py`.
FIT_TABLE = "fit"
# η, the severity of position bias: examination probabilities are raised to this power.
Severity: TypeAlias = Annotated[float, Range(0)]

# The arrays of this many sessions of ten documents fit a core's cache.
SESSIONS_PER_BLOCK = 16_384


def relevance_of(grades: IntegerArray, max_grade: int) -> Floats:
    """The relevance of a grade r, (2^r − 1) / (2^r_max − 1), between 0 and 1 whatever the number of grades.

    >>> print(relevance_of(np.array([0, 1, 4]), max_grade=4).round(3))
    [0.    0.067 1.   ]
    """
    # Without the dtype NumPy would compute small integers in half precision.
    gains = np.exp2(grades, dtype=np.float64) - 1
    highest: int = 2**max_grade - 1
    return (gains / max(highest, 1)).astype(np.float32)


@dataclass(frozen=True, kw_only=True)
class ClickModel(ABC):
    """A user who examines a ranked list and clicks: P(C_k = 1) = examination(R, k) · attractiveness(d_k).

    Section 3.1, definition 3.1. A model is its own config: frozen, with the parameters as fields.

    Attributes:
        noise: ε, the attractiveness of an irrelevant document.
    """

    noise: Probability = 0.1

    def __post_init__(self) -> None:
        check_ranges(self)
        empty = [field.name for field in fields(self) if getattr(self, field.name) == ()]
        if empty:
            raise SettingError(dict.fromkeys(empty, "expected at least one entry, found none"))

    def attractiveness(self, relevance: Reals) -> Reals:
        """α(d) = ε + (1 − ε)·relevance, section 5.1."""
        return self.noise + (1 - self.noise) * relevance

    def click_if_examined(self, relevance: Reals) -> Reals:
        """[B, K] the probability that an examined document is clicked: its attractiveness."""
        return self.attractiveness(relevance)

    @abstractmethod
    def examine(self, relevance: Floats, attracted: Bools, uniforms: Floats) -> Bools:
        """Which documents the user examines, if examined documents are clicked exactly where `attracted` is true.

        Args:
            relevance: [B, K] between 0 and 1.
            attracted: [B, K].
            uniforms: [B, K] from [0, 1).

        Returns:
            [B, K]; position k depends only on the positions above it, so padding has no effect.
        """

    @abstractmethod
    def examination_probability(self, relevance: Doubles) -> Doubles:
        """[B, K] χ(R, k), the exact marginal P(E_k = 1) of a list without padding."""

    def sample(self, relevance: Floats, where: Bools, rng: np.random.Generator) -> tuple[Bools, Bools]:
        """Clicks and examination [B, K] of one session per list, with randomness from `rng`."""
        return self.respond(relevance, where, rng.random((*relevance.shape, 2), dtype=np.float32))

    def respond(self, relevance: Floats, where: Bools, uniforms: Floats) -> tuple[Bools, Bools]:
        """Clicks and examination given the lists and the random numbers, one session per list.

        A session depends only on its own row, so a log does not depend on the batches.

        Args:
            relevance: [B, K] between 0 and 1, see `relevance_of`.
            where: [B, K] true = a document is shown; real documents come first.
            uniforms: [B, K, 2] from [0, 1): the first decides attraction, the second examination.

        Returns:
            clicks: [B, K], false where nothing is shown.
            examination: [B, K] whether the user examined the document, false where nothing is shown.
        """
        assert uniforms.shape == (*relevance.shape, 2), (uniforms.shape, relevance.shape)
        clicks, examination = np.empty(relevance.shape, np.bool_), np.empty(relevance.shape, np.bool_)
        for start in range(0, len(relevance), SESSIONS_PER_BLOCK):
            block = slice(start, start + SESSIONS_PER_BLOCK)
            attracted = uniforms[block, :, 0] < self.click_if_examined(relevance[block])
            examined = self.examine(relevance[block], attracted, uniforms[block, :, 1])
            np.logical_and(examined, where[block], out=examination[block])
            np.logical_and(examination[block], attracted, out=clicks[block])
        return clicks, examination

    def click_probability(self, relevance: Floats, where: Bools) -> Doubles:
        """[B, K] the exact marginal P(C_k = 1), 0 where nothing is shown."""
        exact = relevance.astype(np.float64)
        return np.where(where, self.examination_probability(exact) * self.click_if_examined(exact), 0.0)


def by_position(values: Sequence[float], like: Reals, power: float = 1.0) -> Reals:
    """[K] a parameter for each position of lists `like` [B, K]; the last value applies to further positions.

    >>> by_position((0.5, 0.25), np.zeros((1, 4)), power=2)
    array([0.25  , 0.0625, 0.0625, 0.0625])
    """
    positions = np.minimum(np.arange(like.shape[-1]), len(values) - 1)
    return (np.asarray(values, np.float64)[positions] ** power).astype(like.dtype)


def click_model_from(table: Mapping[str, Any]) -> ClickModel:
    """The click model that a table describes: its registered `name`, and parameters that differ from the defaults.

    >>> click_model_from({"name": "cascade", "noise": 0})
    CascadeModel(noise=0.0)
    """
    parameters = dict(table)
    name = parameters.pop("name", None)
    if not isinstance(name, str):
        known = ", ".join(CLICK_MODELS.names())
        raise InputError(f"click model: expected a 'name' (one of {known}), found {name!r}")
    return from_dict(CLICK_MODELS.get(name), parameters)


def click_model(name: str, **parameters: Any) -> ClickModel:
    """The click model of that name; parameters that are not given have their defaults.

    >>> click_model("cascade", noise=0.2)
    CascadeModel(noise=0.2)
    """
    return click_model_from({"name": name, **parameters})


def click_model_table(model: ClickModel) -> dict[str, Any]:
    """The table that describes a click model, as `click_model_from` reads it, in TOML and JSON types."""
    return {"name": CLICK_MODELS.name_of(type(model)), **to_dict(model)}


def read_click_model(path: Path) -> ClickModel:
    """The click model that a TOML file describes; of users fitted to a log, with their global parameters."""
    table = {name: value for name, value in read_toml(path).items() if name != FIT_TABLE}
    with problems_in(path):
        return click_model_from(table)


@dataclass(frozen=True, kw_only=True)
class TopDownModel(ClickModel):
    """A user who examines the first document, and continues with a probability that may depend on clicks.

    With a the attractiveness: χ(R, k) = Π_{i<k} [(1 − a_i)·P(continue | no click) + a_i·P(continue | click on d_i)].
    """

    @abstractmethod
    def continue_after_click(self, relevance: Reals) -> Reals:
        """[B, K] or [K] the probability that the next document is examined after a click on this one."""

    def continue_after_skip(self) -> float:
        """The probability that the next document is examined if this one was not clicked."""
        return 1.0

    def examine(self, relevance: Floats, attracted: Bools, uniforms: Floats) -> Bools:
        """From the top until the user stops."""
        chance = np.where(attracted, self.continue_after_click(relevance), self.continue_after_skip())
        goes_on = uniforms < chance
        examination = np.empty(relevance.shape, np.bool_)
        examination[:, :1] = True
        for k in range(1, relevance.shape[1]):
            np.logical_and(examination[:, k - 1], goes_on[:, k - 1], out=examination[:, k])
        return examination

    def examination_probability(self, relevance: Doubles) -> Doubles:
        """The product over the documents above of the probability to continue from each."""
        attractiveness = self.attractiveness(relevance)
        onward = (1 - attractiveness) * self.continue_after_skip()
        onward += attractiveness * self.continue_after_click(relevance)
        examination = np.ones_like(relevance)
        np.cumprod(onward[:, :-1], axis=1, out=examination[:, 1:])
        return examination
