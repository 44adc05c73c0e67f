"""The text of `cuolr --help` and `cuolr COMMAND --help`: plain text that fits the terminal."""

import dataclasses
import functools
import importlib
import inspect
import re
import shutil
import textwrap
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro

from cuolr.cli.docstrings import Docstring, meanings_of_fields
from cuolr.files import unverified

NAME = "no_verify"
MEANING = "Do not compare logs, models and results with their hashes."


def with_no_verify(run: Callable[..., int | None]) -> Callable[..., int | None]:
    """The command with one option more, in its signature and in its docstring, from which options and help are read."""

    @functools.wraps(run)
    def command(*arguments: Any, no_verify: bool = False, **options: Any) -> int | None:
        with unverified() if no_verify else nullcontext():
            return run(*arguments, **options)

    signature = inspect.signature(run)
    added = inspect.Parameter(NAME, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=bool)
    # `inspect` reads the signature, whose name mypy does not know.
    command.__dict__["__signature__"] = signature.replace(parameters=[*signature.parameters.values(), added])
    command.__annotations__ = {**run.__annotations__, NAME: bool}
    # Python 3.13 takes the common indentation away when it compiles, earlier ones leave it.
    command.__doc__ = f"{inspect.cleandoc(run.__doc__ or '')}\n    {NAME}: {MEANING}\n"
    return command


MAX_WIDTH = 100
# Longer flags are on a line of their own.
MAX_COLUMN = 26
METAVARS = {int: "INT", float: "FLOAT", str: "TEXT", Path: "PATH"}
HELP = ("-h, --help", "Show this help.")
# Text in which a line is not broken, and the placeholder for its spaces while lines are wrapped.
KEPT_TOGETHER = re.compile(r"`[^`]*`|\(default: [^)]*\)")
UNBROKEN = "\0"
# Annotation of an option that is accepted but has no line in the help.
NOT_SHOWN = "not shown"
# Headings. The first two come first, the others as in the signature.
ARGUMENTS, REQUIRED, OPTIONS = "Arguments", "Required options", "Options"


@dataclass(frozen=True)
class Command:
    """A verb of the command line, whose module is loaded only when it is needed.

    Attributes:
        home: Module and function, as in `cuolr.cli.train:train`.
        summary: Its line in `cuolr --help`.
        example: An example call.
        reads_saved: Whether it reads logs, models or results, which are compared with their hashes.
    """

    home: str
    summary: str
    example: str
    reads_saved: bool = True

    def load(self) -> Callable[..., int | None]:
        """The function: its signature and docstring give the options and their help; it may return an exit status."""
        module, _, name = self.home.partition(":")
        run: Callable[..., int | None] = getattr(importlib.import_module(module), name)
        return with_no_verify(run) if self.reads_saved else run


@dataclass(frozen=True)
class Option:
    """One parameter of a command.

    Attributes:
        flag: As written, such as `--k`; the name in capitals for a positional argument.
        metavar: Placeholder of its value; "" for a switch.
        text: Its description, with its default.
        required: Whether it has no default.
        group: Heading that it is listed under.
        kind: Type of its value; of each value, if it takes several.
        many: Whether it takes any number of values.
        shown: Whether the help has a line for it.
    """

    flag: str
    metavar: str
    text: str
    required: bool
    group: str
    kind: Any = str
    many: bool = False
    shown: bool = True

    @property
    def invocation(self) -> str:
        """The flag with the placeholder of its value."""
        return f"{self.flag} {self.metavar}".strip()


def overview(description: str, groups: Mapping[str, Mapping[str, Command]]) -> str:
    """The text of `cuolr --help`: the commands in groups, a line each.

    Args:
        description: What the program does.
        groups: The commands of each group by name.
    """
    column = max(len(name) for commands in groups.values() for name in commands) + 4
    lines = ["usage: cuolr COMMAND ...", "", description]
    for title, commands in groups.items():
        lines += ["", f"{title}:"]
        lines += [f"  {name:<{column - 2}}{command.summary}" for name, command in commands.items()]
    options = {
        "COMMAND --help": "options of a command",
        "--version": "version of the program",
        "--completion SHELL": "completion script for bash, zsh or fish",
    }
    lines += ["", *(f"  cuolr {option:<20}{meaning}" for option, meaning in options.items())]
    return "\n".join(lines)


def command_help(name: str, run: Callable[..., Any], example: str, width: int | None = None) -> str:
    """The text of `cuolr NAME --help`.

    Args:
        name: Name of the command.
        run: Its function.
        example: An example call.
        width: Width in characters; None = that of the terminal.
    """
    width = min(width or shutil.get_terminal_size().columns, MAX_WIDTH)
    described = Docstring.parse(run.__doc__)
    groups: dict[str, list[tuple[str, str]]] = {ARGUMENTS: [], REQUIRED: []}
    options = [option for option in options_of(run) if option.shown]
    for option in options:
        groups.setdefault(option.group, []).append((option.invocation, option.text))
    groups.setdefault(OPTIONS, []).append(HELP)
    longest = max(len(left) for rows in groups.values() for left, _ in rows)
    column = min(longest, MAX_COLUMN) + 4
    parts = [_usage(name, options, width)]
    parts += [_wrapped(paragraph, width) for paragraph in (described.summary, *described.paragraphs)]
    parts += [f"{title}:\n{_aligned(rows, column, width)}" for title, rows in groups.items() if rows]
    return "\n\n".join([*parts, f"Example:\n  {example}"])


def _usage(name: str, options: Iterable[Option], width: int) -> str:
    needed = [option.invocation for option in options if option.required]
    optional = [f"[{option.flag}]" for option in options if option.group == ARGUMENTS and not option.required]
    # A flag and its value stay on one line.
    words = [word.replace(" ", UNBROKEN) for word in (name, *needed, *optional, "[options]")]
    return "\n".join(_lines(" ".join(["usage: cuolr", *words]), width, indent=" " * 8))


def options_of(run: Callable[..., Any]) -> Iterator[Option]:
    """The options of a command: its parameters, and the fields of those that are dataclasses."""
    meanings, hints = Docstring.parse(run.__doc__).entries, typing.get_type_hints(run, include_extras=True)
    parameters = inspect.signature(run).parameters.values()
    # Required parameters come first.
    for parameter in sorted(parameters, key=lambda parameter: parameter.default is not inspect.Parameter.empty):
        yield from _one_or_group(
            parameter.name, hints[parameter.name], parameter.default, meanings.get(parameter.name, ""), OPTIONS
        )


def _one_or_group(name: str, hint: Any, default: Any, meaning: str, group: str) -> Iterator[Option]:
    """The option of a parameter; for a dataclass, the options of its fields, under a heading."""
    if not dataclasses.is_dataclass(hint):
        yield _option(name, hint, default, meaning, group)
        return
    config = typing.cast("type[Any]", hint)
    heading = (meaning or Docstring.parse(config.__doc__).summary).removesuffix(".")
    meanings, hints = meanings_of_fields(config), typing.get_type_hints(config, include_extras=True)
    for field in dataclasses.fields(config):
        yield from _one_or_group(field.name, hints[field.name], field.default, meanings.get(field.name, ""), heading)


def _option(name: str, hint: Any, default: Any, meaning: str, group: str) -> Option:
    kind, annotations = _unwrapped(hint)
    names = [given for note in annotations if (given := getattr(note, "name", None))]
    metavars = [given for note in annotations if (given := getattr(note, "metavar", None))]
    required = default in (inspect.Parameter.empty, dataclasses.MISSING)
    if tyro.conf.Positional in annotations:
        many = "..." if typing.get_origin(kind) is tuple else ""
        invocation, (one, takes_many) = f"{name.upper().replace('_', '-')}{many}", _each(kind)
        return Option(invocation, "", _said(meaning, default), required, ARGUMENTS, one, takes_many)
    if tyro.conf.UseAppendAction in annotations:
        meaning, kind, default = f"{meaning} Repeatable.", typing.get_args(kind)[0], None
    flag = "--" + (names[0] if names else name.replace("_", "-"))
    metavar = "" if kind is bool else metavars[0] if metavars else _metavar(kind)
    one, takes_many = _each(kind)
    shown = NOT_SHOWN not in annotations
    heading = REQUIRED if required else group
    return Option(flag, metavar, _said(meaning, default), required, heading, one, takes_many, shown)


def _each(kind: Any) -> tuple[Any, bool]:
    """The type of each value, and whether there may be any number of them."""
    return (typing.get_args(kind)[0], True) if typing.get_origin(kind) is tuple else (kind, False)


def _unwrapped(hint: Any) -> tuple[Any, list[Any]]:
    """A type without None and annotations, and the annotations."""
    annotations: list[Any] = []
    while True:
        if typing.get_origin(hint) is typing.Annotated:
            hint, *more = typing.get_args(hint)
            annotations += more
        elif typing.get_origin(hint) in (typing.Union, types.UnionType):
            (hint,) = (kind for kind in typing.get_args(hint) if kind is not type(None))
        else:
            return hint, annotations


def _metavar(kind: Any) -> str:
    if typing.get_origin(kind) is typing.Literal:
        return "{" + ",".join(map(str, typing.get_args(kind))) + "}"
    if typing.get_origin(kind) is tuple:
        return f"{_metavar(typing.get_args(kind)[0])}..."
    return METAVARS[kind]


def _said(meaning: str, default: Any) -> str:
    """The description of an option, with its default if that is informative."""
    says_nothing = default in (inspect.Parameter.empty, dataclasses.MISSING, "", ())
    if says_nothing or default is None or default is False:
        return meaning
    shown = " ".join(map(str, default)) if isinstance(default, tuple) else default
    return f"{meaning} (default: {shown})"


def _wrapped(paragraph: str, width: int) -> str:
    return paragraph if paragraph.startswith(" ") else "\n".join(_lines(paragraph, width))


def _lines(text: str, width: int, indent: str = "") -> list[str]:
    """A text in lines; text in backquotes, and a default, stay on one line."""
    kept = KEPT_TOGETHER.sub(lambda match: match[0].replace(" ", UNBROKEN), text)
    wrapped = textwrap.wrap(kept, width, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False)
    return [line.replace(UNBROKEN, " ") for line in wrapped]


def _aligned(rows: Iterable[tuple[str, str]], column: int, width: int) -> str:
    """Two columns; the second starts at `column` and is wrapped."""
    lines = []
    for left, right in rows:
        first, *others = _lines(right, width - column) or [""]
        if len(left) + 4 > column:
            lines.append(f"  {left}")
            lines.append(" " * column + first)
        else:
            lines.append(f"  {left}".ljust(column) + first)
        lines += [" " * column + line for line in others]
    return "\n".join(lines)
