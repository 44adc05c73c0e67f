"""The one loop for every learner: update, validate, keep the best, checkpoint, resume."""

import math
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, TypeAlias

import torch

from cuolr.data.normalise import Normalising
from cuolr.errors import InputError
from cuolr.policies.policy import RankingPolicy
from cuolr.training import distributed
from cuolr.training.base_learner import Learner, NonFiniteLossError
from cuolr.training.batches import Batches
from cuolr.training.run_folder import RunFolder

# Says how good a learner is so far, higher = better. What it looks at is none of the loop's business.
Validate: TypeAlias = Callable[[Learner], float]
# Told after each step its number, from 1, and what was measured.
Progress: TypeAlias = Callable[[int, Mapping[str, float]], None]
# The part of a batch that a learner gets which has all there is already.
NOTHING = slice(0, 0)
Outcome = Literal["finished", "patience", "interrupted"]
# What every library that draws can be seeded with.
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

    steps: int = 2_000
    batch_size: int = 256
    validate_every: int = 100
    patience: int = 0
    keep: Literal["best", "last"] = "best"
    seed: int = 1
    normalising: Normalising = "log-min-max"
    held_out: float = 0.1
    max_held_out: int = 10_000

    def __post_init__(self) -> None:
        least = {"steps": 1, "batch_size": 1, "validate_every": 1, "patience": 0, "seed": 0, "max_held_out": 1}
        problems = [
            f"setting 'training.{name}': expected a whole number from {minimum} up, found {getattr(self, name)}"
            for name, minimum in least.items()
            if getattr(self, name) < minimum
        ]
        if self.seed > MAX_SEED:
            problems.append(f"setting 'training.seed': expected at most {MAX_SEED}, found {self.seed}")
        if not 0 < self.held_out < 1:
            problems.append(f"setting 'training.held_out': expected above 0 and below 1, found {self.held_out}")
        if problems:
            raise InputError(problems)


@dataclass(frozen=True)
class Best:
    """The best policy so far, by validation."""

    policy: RankingPolicy
    score: float
    step: int


@dataclass(frozen=True)
class TrainingResult:
    """What a run gave.

    Attributes:
        best: None where training was interrupted before the first validation.
        steps: Updates made.
        outcome: Why it ended.
        validations: The score at each step that was validated.
        provenance: Where the best policy comes from, to be kept with it.
    """

    best: Best | None
    steps: int
    outcome: Outcome
    validations: Mapping[int, float]
    provenance: Mapping[str, Any]


def train(
    learner: Learner,
    batches: Batches,
    validate: Validate,
    config: TrainingConfig,
    folder: RunFolder | None = None,
    resume: bool = False,
    progress: Progress | None = None,
    provenance: Mapping[str, Any] | None = None,
) -> TrainingResult:
    """Train a learner.

    Ctrl-C ends the run after the step under way, with a checkpoint; a second one ends it at once.

    Args:
        learner: New; with `resume` it is brought to where the run was.
        batches: What it learns from.
        validate: Called every so many steps, and at the end.
        config: How long.
        folder: Where checkpoints, metrics and the best model go; started already, unless `resume`.
        resume: Go on from the folder's checkpoint.
        progress: Called after each step.
        provenance: Where the policy comes from, to be kept with the model.
    """
    learner.begin(batches)
    run = _Run(learner, validate, folder if distributed.is_first() else None, dict(provenance or {}), config.keep)
    if resume:
        assert folder is not None
        run.load_state(distributed.from_first(folder.resume))
        if run.step > config.steps:
            raise InputError(f"{folder.path}: {run.step} steps are made already; give --steps {run.step} or more")
    run.save()  # so that a run can be resumed from its first moment on
    with _interrupt_noticed() as interrupted:
        while not (outcome := run.outcome(config, interrupted)):
            values = run.update(batches)
            scheduled = run.step % config.validate_every == 0
            if run.step == config.steps and not scheduled:
                run.save()  # before the last validation: with more steps, a run that is resumed must not know of it
            if scheduled or run.step == config.steps:
                values |= run.validate()
            run.note(values, progress)
            if scheduled:
                run.save()
        run.save()
        if outcome == "finished" and run.step not in run.validations:
            run.validate()  # resumed at its end
    finished = outcome != "interrupted"
    run.publish(finished)
    return TrainingResult(run.best, run.step, outcome, run.validations, run.description(finished))


def held_out_validation(batches: Batches) -> Validate:
    """Validation without labels: the mean of the learner's own score over held-out sessions."""

    def validate(learner: Learner) -> float:
        total = weight = 0.0
        with torch.no_grad():
            for batch in batches.in_order():
                total += float((learner.held_out_score(batch) * batch.weight).sum())
                weight += float(batch.weight.sum())
        return total / weight

    return validate


def policy_validation(score: Callable[[RankingPolicy], float]) -> Validate:
    """Validation by a score of the policy, such as its nDCG on labelled queries."""
    return lambda learner: score(learner.policy())


@dataclass
class _Run:
    """A run under way."""

    learner: Learner
    validator: Validate
    folder: RunFolder | None
    provenance: dict[str, Any]
    keep: Literal["best", "last"]
    step: int = 0
    seconds: float = 0.0
    best: Best | None = None
    validations: dict[int, float] = field(default_factory=dict)
    saved_at: int | None = None

    def outcome(self, config: TrainingConfig, interrupted: threading.Event) -> Outcome | None:
        """Why to end now; None = go on."""
        if self.step >= config.steps:
            return "finished"
        if (
            config.patience
            and self.best
            and len([s for s in self.validations if s > self.best.step]) >= config.patience
        ):
            return "patience"
        return "interrupted" if distributed.in_any(interrupted.is_set()) else None

    def update(self, batches: Batches) -> dict[str, float]:
        start = time.perf_counter()
        part = distributed.part_of(batches.batch_size) if self.learner.learns_by_batch else NOTHING
        batch = batches.at(self.step, part)
        self.step += 1
        try:
            values = self.learner.update(batch)
        except NonFiniteLossError as error:
            raise self._diverged(error.term) from None
        self.seconds += time.perf_counter() - start
        for name, value in values.items():
            if not math.isfinite(value):
                raise self._diverged(name)
        return values

    def validate(self) -> dict[str, float]:
        score = distributed.from_first(partial(self.validator, self.learner))
        if not math.isfinite(score):
            raise self._diverged("validation")
        self.validations[self.step] = score
        if self.best is None or score > self.best.score or self.keep == "last":
            self.best = Best(self.learner.policy(), score, self.step)
        return {"validation": score, "best": self.best.score}

    def note(self, values: Mapping[str, float], progress: Progress | None) -> None:
        if self.folder is not None:
            self.folder.note({"step": self.step, **values, "seconds": round(self.seconds, 3)})
        if progress is not None:
            progress(self.step, values)

    def save(self) -> None:
        if self.folder is None or self.saved_at == self.step:
            return
        self.folder.save(self.state())
        self.saved_at = self.step
        if self.best is not None and self.best.step == self.step:
            self.publish(finished=False)

    def publish(self, finished: bool) -> None:
        if self.folder is not None and self.best is not None:
            self.folder.publish(self.best.policy, self.description(finished))

    def description(self, finished: bool) -> dict[str, Any]:
        best = {} if self.best is None else {"step": self.best.step, "validation": self.best.score}
        return {**self.provenance, "training": {**best, "steps": self.step, "finished": finished}}

    def state(self) -> dict[str, Any]:
        best = self.best and {
            "arrays": self.best.policy.arrays(),
            "settings": self.best.policy.settings(),
            "score": self.best.score,
            "step": self.best.step,
        }
        return {
            "step": self.step,
            "seconds": self.seconds,
            "validations": self.validations,
            "best": best,
            "learner": self.learner.state(),
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        self.step, self.seconds, self.validations = state["step"], state["seconds"], state["validations"]
        self.saved_at = self.step
        self.learner.load_state(state["learner"])
        if saved := state["best"]:
            arrays = {name: tensor.numpy() for name, tensor in saved["arrays"].items()}
            policy = type(self.learner.policy()).from_parts(arrays, saved["settings"])
            self.best = Best(policy, saved["score"], saved["step"])

    def _diverged(self, term: str) -> InputError:
        kept = "" if self.saved_at is None else f"; the checkpoint of step {self.saved_at} is kept"
        return InputError(
            f"step {self.step}: '{term}' is not finite; lower the learning rates or set max_gradient_norm{kept}"
        )


@contextmanager
def _interrupt_noticed() -> Iterator[threading.Event]:
    """An event that Ctrl-C sets, so that no step is cut in two; after it, Ctrl-C does what it always does."""
    interrupted = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield interrupted  # signals go to the main thread only
        return
    before = signal.getsignal(signal.SIGINT)
    # A terminal sends it to all processes, and torchrun does so again; that is no second Ctrl-C.
    afterwards = before if distributed.processes() == 1 else signal.SIG_IGN

    def notice(*_: object) -> None:
        interrupted.set()
        signal.signal(signal.SIGINT, afterwards)

    signal.signal(signal.SIGINT, notice)
    try:
        yield interrupted
    finally:
        signal.signal(signal.SIGINT, before)
