"""How long to train, and on how much at a time."""

from dataclasses import dataclass
from typing import Annotated, Literal

from cuolr.config import Range, check_ranges
from cuolr.data.normalise import Normalising

# The largest seed that every library accepts.
MAX_SEED = 2**31 - 1


@dataclass(frozen=True)
class TrainingConfig:
    """How long to train, and on how much at a time.

    Attributes:
        steps: Number of updates.
        batch_size: Lists in a batch.
        validate_every: Steps from one validation, and checkpoint, to the next.
        patience: Validations in a row without a better score after which training stops; 0 = never.
        keep: The policy to keep: the best by validation, or the last, whatever validation says (it never stops early).
        seed: Of the batches and of all that is random in the learner.
        normalising: How features are scaled, see `Normaliser`.
        held_out: Share of the log's queries that validation is on, where there is nothing else to validate by.
        max_held_out: At most this many rows of the log are validated on then.
    """

    steps: Annotated[int, Range(1)] = 2_000
    batch_size: Annotated[int, Range(1)] = 256
    validate_every: Annotated[int, Range(1)] = 100
    patience: Annotated[int, Range(0)] = 0
    keep: Literal["best", "last"] = "best"
    seed: Annotated[int, Range(0, MAX_SEED)] = 1
    normalising: Normalising = "log-min-max"
    held_out: Annotated[float, Range(above=0, below=1)] = 0.1
    max_held_out: Annotated[int, Range(1)] = 10_000

    def __post_init__(self) -> None:
        check_ranges(self)
