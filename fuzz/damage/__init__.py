"""Damages: each turns the content of a file into another, by decisions that Hypothesis drew."""

from collections.abc import Callable
from typing import TypeAlias

from fuzz.cases import Choices

Damage: TypeAlias = Callable[[bytes, Choices], bytes]
