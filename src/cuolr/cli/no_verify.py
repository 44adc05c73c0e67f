"""`--no-verify`, which every command that reads logs, models or results takes."""

import functools
import inspect
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

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
    command.__doc__ = f"{(run.__doc__ or '').rstrip()}\n        {NAME}: {MEANING}\n    "
    return command
