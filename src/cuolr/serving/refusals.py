"""What one call may ask of the service, and refusals: a type that a program can act on, a line that a person can."""

import re
from dataclasses import dataclass
from typing import Annotated

from pydantic import ValidationError
from starlette.responses import JSONResponse

from cuolr.config import Range, check_ranges
from cuolr.errors import InputError


@dataclass(frozen=True)
class Limits:
    """The limits of a call; beyond them it is refused, and nothing is ranked.

    Attributes:
        max_body: Bytes of a body.
        max_documents: Documents of a call, over all of its requests.
        max_requests: Requests of a call.
        max_events: Events of a call.
        time_limit: Seconds to read a call, and seconds to rank it.
        max_waiting: Documents that wait to be ranked; a call that finds more is sent away at once.
    """

    max_body: Annotated[int, Range(1)] = 16 * 1024 * 1024
    max_documents: Annotated[int, Range(1)] = 10_000
    max_requests: Annotated[int, Range(1)] = 100
    max_events: Annotated[int, Range(1)] = 1_000
    time_limit: Annotated[float, Range(above=0)] = 5.0
    max_waiting: Annotated[int, Range(1)] = 100_000

    def __post_init__(self) -> None:
        check_ranges(self)


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
