"""Refused calls: a type that a program can act on, and one line that a person can."""

import re

from pydantic import ValidationError
from starlette.responses import JSONResponse

from cuolr.errors import InputError

# Longer messages are cut: they may repeat what the caller sent.
MAX_MESSAGE = 300
# The type of an error that the framework raises.
OF_STATUS = {404: "not_found", 405: "method_not_allowed"}


class RefusedCallError(Exception):
    """A call that cannot be answered.

    Attributes:
        status: HTTP status.
        kind: Type of the error, such as `bad_json`.
        message: One line: what was expected, what was found.
    """

    def __init__(self, status: int, kind: str, message: str) -> None:
        self.status, self.kind, self.message = status, kind, message
        super().__init__(message)

    def answer(self) -> JSONResponse:
        """The answer to the caller."""
        headers = {"Retry-After": "1"} if self.status == 503 else {}
        if self.status == 401:
            headers["WWW-Authenticate"] = "Bearer"
        error = {"type": self.kind, "message": one_line(self.message)}
        return JSONResponse({"error": error}, self.status, headers)


def one_line(text: str) -> str:
    """A message without line breaks and other control characters, cut if it is long."""
    line = re.sub(r"\s+", " ", "".join(letter if letter.isprintable() else " " for letter in text)).strip()
    return line if len(line) <= MAX_MESSAGE else f"{line[:MAX_MESSAGE]}…"


def bad_features(error: InputError, place: str) -> RefusedCallError:
    """The refusal of documents whose features are not those of the model."""
    more = f" (and {len(error.problems) - 1:,} more)" if len(error.problems) > 1 else ""
    return RefusedCallError(422, "bad_features", f"{place}{error.problems[0]}{more}")


def bad_fields(error: ValidationError) -> RefusedCallError:
    """The refusal of a body that is JSON, but not a call: the first problem, and how many more there are."""
    problems = error.errors(include_url=False, include_context=False, include_input=False)
    place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in problems[0]["loc"]).lstrip(".")
    more = f" (and {len(problems) - 1:,} more)" if len(problems) > 1 else ""
    return RefusedCallError(422, "bad_fields", f"{place or 'body'}: {problems[0]['msg']}{more}")
