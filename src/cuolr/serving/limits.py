"""What one call may ask of the service."""

from dataclasses import dataclass
from typing import Annotated

from cuolr.config import Range, check_ranges


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
