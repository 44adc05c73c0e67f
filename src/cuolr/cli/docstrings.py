"""Docstring parser: help texts and the meaning of settings are written once, in the code."""

import ast
import dataclasses
import inspect
import itertools
import re
import textwrap
from dataclasses import dataclass, field
from typing import Any

# Sections of a docstring that the help does not show.
SECTION = re.compile(r"^(Args|Attributes|Returns|Yields|Raises|Deviation|Example|Examples|Note):", re.MULTILINE)
NAMED = ("Args", "Attributes")
ENTRY = re.compile(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", re.MULTILINE)


@dataclass(frozen=True)
class Docstring:
    """A parsed docstring in Google's style.

    Attributes:
        summary: The first paragraph, as one line.
        paragraphs: Those that follow, up to the first section; each as one line, unless it is indented.
        entries: The description of each argument or attribute, as one line.
    """

    summary: str = ""
    paragraphs: tuple[str, ...] = ()
    entries: dict[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str | None) -> "Docstring":
        """Parse a docstring.

        >>> Docstring.parse(Docstring.__doc__).summary
        "A parsed docstring in Google's style."
        >>> Docstring.parse(Docstring.__doc__).entries["summary"]
        'The first paragraph, as one line.'
        """
        text = inspect.cleandoc(text or "")
        prose, *sections = SECTION.split(text)
        bodies = dict(zip(sections[::2], sections[1::2], strict=True))
        paragraphs = [_filled(paragraph) for paragraph in prose.strip().split("\n\n")]
        entries = {
            name: " ".join(meaning.split())
            for section in NAMED
            for name, meaning in ENTRY.findall(bodies.get(section, ""))
        }
        return cls(paragraphs[0], tuple(paragraphs[1:]), entries)


def meanings_of_fields(config: type[Any]) -> dict[str, str]:
    """The descriptions of a dataclass's fields, inherited ones included: from `Attributes`, or below each field."""
    meanings: dict[str, str] = {}
    for base in reversed(config.__mro__):
        if dataclasses.is_dataclass(base):
            meanings |= Docstring.parse(base.__doc__).entries | _below_fields(base)
    return meanings


def _below_fields(config: type[Any]) -> dict[str, str]:
    try:
        (found,) = ast.parse(textwrap.dedent(inspect.getsource(config))).body
    except OSError:  # it has no source file
        return {}
    assert isinstance(found, ast.ClassDef)
    return {
        field.target.id: " ".join(text.value.value.split())
        for field, text in itertools.pairwise(found.body)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant) and isinstance(text.value.value, str)
    }


def _filled(paragraph: str) -> str:
    """As one line; an indented paragraph, such as a list, keeps its lines."""
    return paragraph if paragraph.startswith(" ") else " ".join(paragraph.split())
