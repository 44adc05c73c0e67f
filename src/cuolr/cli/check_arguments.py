"""Checks the arguments of a command before they are parsed, so that every problem is one line."""

import typing
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from cuolr.cli.help import ARGUMENTS, Option, options_of
from cuolr.errors import InputError
from cuolr.registry import did_you_mean

NUMBERS = {int: "a whole number", float: "a number"}


def check_command(name: str, run: Callable[..., Any], arguments: Sequence[str]) -> None:
    """Raise `InputError` if arguments are unknown, missing or malformed.

    Args:
        name: The command.
        run: Its function.
        arguments: What follows the command.
    """
    if problems := list(_problems(list(options_of(run)), list(arguments))):
        raise InputError([*problems[:-1], f"{problems[-1]}; see `cuolr {name} --help`"])


def _problems(options: list[Option], arguments: list[str]) -> Iterator[str]:
    places = [option for option in options if option.group == ARGUMENTS]
    flags = {option.flag: option for option in options if option.group != ARGUMENTS}
    given: set[str] = set()
    flags_end = False
    while arguments:
        written = arguments.pop(0)
        if written == "--" and not flags_end:
            flags_end = True
        elif _is_flag(written) and not flags_end:
            flag, equals, value = written.partition("=")
            flag = flag.replace("_", "-")
            if flag not in flags:
                yield f"{flag}: unknown option{did_you_mean(flag, [f for f, option in flags.items() if option.shown])}"
                _values_after(arguments, len(arguments))  # they belong to it
                continue
            given.add(flag)
            values = [value] if equals else _values_of(flags[flag], arguments)
            yield from _problems_of_values(flags[flag], values)
        elif places:
            given.add(places[0].flag)
            yield from _problems_of_value(places[0], written)
            if not places[0].many:
                places.pop(0)
        else:
            yield f"unexpected argument '{written}'"
    for option in options:
        if option.required and option.flag not in given and not (option.group == ARGUMENTS and option.many):
            yield f"{option.invocation} is missing"


def _is_flag(text: str) -> bool:
    """Whether it starts like a flag and is no negative number."""
    if len(text) < 2 or not text.startswith("-"):
        return False
    try:
        float(text)
    except ValueError:
        return True
    return False


def _values_of(option: Option, arguments: list[str]) -> list[str]:
    """The values that follow a flag, taken from the arguments."""
    if option.kind is bool:
        return []
    return _values_after(arguments, len(arguments) if option.many else 1)


def _values_after(arguments: list[str], most: int) -> list[str]:
    values: list[str] = []
    while arguments and len(values) < most and not _is_flag(arguments[0]):
        values.append(arguments.pop(0))
    return values


def _problems_of_values(option: Option, values: Sequence[str]) -> Iterator[str]:
    if option.kind is bool:
        if values:
            yield f"{option.flag}: takes no value, found '{values[0]}'"
    elif not values and not option.many:
        yield f"{option.flag}: expected a value, {option.metavar}, found none"
    for value in () if option.kind is bool else values:
        yield from _problems_of_value(option, value)


def _problems_of_value(option: Option, value: str) -> Iterator[str]:
    if typing.get_origin(option.kind) is typing.Literal:
        choices = list(map(str, typing.get_args(option.kind)))
        if value not in choices:
            yield f"{option.flag}: expected one of {', '.join(choices)}, found '{value}'{did_you_mean(value, choices)}"
    elif option.kind in NUMBERS:
        try:
            option.kind(value)
        except ValueError:
            yield f"{option.flag}: expected {NUMBERS[option.kind]}, found '{value}'"
