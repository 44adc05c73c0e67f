"""The settings of a tuning: what to try, and how to score it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from cuolr.config import Range


@dataclass(frozen=True)
class Search:
    """What to try.

    Attributes:
        trials: Number of trials of each learner. The first is the default preset.
        search: Draw combinations of values at random, or try all of them.
        space: TOML file with the values to try. By default the search space of each learner.
        seed: Seed of the random search.
    """

    trials: Annotated[int, Range(1)] = 8
    search: Literal["random", "grid"] = "random"
    space: Path | None = None
    seed: Annotated[int, Range(0)] = 1


@dataclass(frozen=True)
class TuningRuns:
    """The runs of each trial.

    Attributes:
        click_models: Click models that the logs are simulated with. The score of a trial is the mean over them.
        validation: Measure on labelled validation queries that scores a trial. `log` scores by held-out sessions of
            the log, which compares settings of one learner only.
        steps: Training steps.
        sessions_per_query: Sessions per query of the logs, on average.
        seeds: Number of runs of each trial, on data without folds.
    """

    click_models: tuple[str, ...] = ("pbm", "dcm")
    validation: str = "ndcg@10"
    steps: int = 500
    sessions_per_query: int = 200
    seeds: int = 1
