"""Settings of training that all learners share."""

from dataclasses import dataclass
from typing import Annotated, Literal

from cuolr.config import Range, check_ranges
from cuolr.data.normalise import Normalising

# The largest seed that every library accepts.
MAX_SEED = 2**31 - 1


@dataclass(frozen=True)
class TrainingConfig:
    """Settings of training that all learners share.

    Attributes:
        steps: Number of training steps.
        batch_size: Number of lists in a batch.
        validate_every: Number of steps between validations, each followed by a checkpoint.
        patience: Number of validations without improvement after which training stops; 0 = never stop early. Without
            labels, `factored` also stops if the last three validations brought next to nothing.
        keep: Policy to keep: the best by validation, or the last; with `last`, training never stops early.
        seed: Seed of the batches and of the learner.
        normalising: How features are scaled to [−1, 1]: linearly between the minimum and the maximum in training, the
            same after sign(x)·log(1 + |x|), linearly among the query's candidates, or not at all.
        held_out: Share of the log's queries to hold out for validation, if there are no labelled queries.
        max_held_out: Maximum number of rows of the held-out queries to validate on.
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
