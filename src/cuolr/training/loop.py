"""The training loop of all learners: step, validate, keep the best policy, checkpoint, resume."""

import math
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from cuolr.data.memory import give_back_freed
from cuolr.errors import InputError
from cuolr.policies.policy import RankingPolicy
from cuolr.progress import Profile
from cuolr.training import distributed
from cuolr.training.run_folder import RunFolder
from cuolr.training.steps import NonFiniteLossError, Steps
from cuolr.training.training_config import TrainingConfig

# The validation score of a policy, higher = better.
Validate: TypeAlias = Callable[[RankingPolicy], float]
# Called after each step with its number, from 1, and the logged values.
Progress: TypeAlias = Callable[[int, Mapping[str, float]], None]
Outcome = Literal["finished", "patience", "plateau", "interrupted"]

# Without labels, training stops if this many validations brought less than this share of the gain since the first one.
PLATEAU_VALIDATIONS, PLATEAU_SHARE = 3, 0.1


@dataclass(frozen=True)
class Best:
    """The best policy so far, by validation.

    Attributes:
        policy: The policy.
        score: Its validation score; None if it was not validated.
        step: The step at which it was validated; 0 for a learner without steps.
    """

    policy: RankingPolicy
    score: float | None
    step: int


@dataclass(frozen=True)
class TrainingResult:
    """The result of a run.

    Attributes:
        best: The best policy; None if training was interrupted before the first validation.
        steps: Number of steps taken.
        outcome: Why training ended.
        validations: Validation scores, by step.
        provenance: Where the best policy comes from, saved with it.
    """

    best: Best | None
    steps: int
    outcome: Outcome
    validations: Mapping[int, float]
    provenance: Mapping[str, Any]


@dataclass
class Loop:
    """Trains step by step.

    Ctrl-C ends the run after the current step and writes a checkpoint; a second Ctrl-C ends it immediately.

    Attributes:
        config: Settings such as the number of steps and how often to validate.
        validate: Returns the validation score of a policy; None = validate on held-out clicks.
        folder: Where checkpoints, metrics and the best model are written.
        resume: Whether to continue from the folder's checkpoint.
        progress: Called after each step.
        provenance: Where the policy comes from, saved with the model.
        validate_start: Whether the policy before the first step is a candidate, too, as after a warm start.
        result: The result of the run, once it has ended.
        profile: Receives the time of steps, validations and checkpoints.
    """

    config: TrainingConfig
    validate: Validate | None = None
    folder: RunFolder | None = None
    resume: bool = False
    progress: Progress | None = None
    provenance: Mapping[str, Any] = field(default_factory=dict)
    validate_start: bool = False
    result: TrainingResult | None = None
    profile: Profile = field(default_factory=Profile)

    def run(self, steps: Steps) -> RankingPolicy:
        """Train, and return the policy to keep.

        Args:
            steps: The steps to run, newly created; with `resume`, the state of the checkpoint is loaded into it.
        """
        run = _Run(self, steps, self.folder if distributed.is_first() else None)
        if self.resume:
            assert self.folder is not None
            state = distributed.from_first(self.folder.resume)
            try:
                run.load_state(state)
            except InputError:
                raise
            except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
                reason = str(error).partition("\n")[0]
                problem = f"not the state of this run ({type(error).__name__}: {reason}); start again with overwrite"
                raise InputError(f"{self.folder.path}: {problem}") from None
            if run.step > self.config.steps:
                raise InputError(
                    f"{self.folder.path}: has been trained for {run.step} steps already; "
                    f"steps must be at least {run.step}"
                )
        elif self.folder is not None:
            distributed.from_first(self.folder.start)
        run.save()  # so that a run can be resumed from the very start
        self.profile.begin("checkpoints and metrics")
        with _interrupt_noticed() as interrupted:
            outcome = run.train(interrupted)
        self.result = run.end(outcome)
        return steps.policy() if run.best is None else run.best.policy


@dataclass
class _Run:
    """The state of a run."""

    loop: Loop
    steps: Steps
    folder: RunFolder | None
    step: int = 0
    seconds: float = 0.0
    best: Best | None = None
    validations: dict[int, float] = field(default_factory=dict)
    saved_at: int | None = None

    def train(self, interrupted: threading.Event) -> Outcome:
        config = self.loop.config
        if self.loop.validate_start and self.step == 0:
            self._validate()
        while not (outcome := self._outcome(interrupted)):
            values = self._step()
            scheduled = self.step % config.validate_every == 0
            if self.step == config.steps and not scheduled:
                self.save()  # without the last validation, which a run resumed with more steps would not have
            if scheduled or self.step == config.steps or self._early():
                values |= self._validate()
            self._log(values)
            if scheduled:
                self.save()
        self.save()
        if outcome == "finished" and self.step not in self.validations:
            self._validate()  # resumed at its last step
        return outcome

    def end(self, outcome: Outcome) -> TrainingResult:
        finished = outcome != "interrupted"
        self._publish(finished)
        return TrainingResult(self.best, self.step, outcome, self.validations, self._description(finished))

    def _outcome(self, interrupted: threading.Event) -> Outcome | None:
        """The reason to end now; None = continue."""
        config = self.loop.config
        if self.step >= config.steps:
            return "finished"
        if config.patience and self.best:
            since_best = sum(step > self.best.step for step in self.validations)
            if since_best >= config.patience:
                return "patience"
            if self.loop.validate is None and config.keep == "best" and self.steps.stops_on_plateau and self._plateau():
                return "plateau"
        return "interrupted" if distributed.in_any(interrupted.is_set()) else None

    def _early(self) -> bool:
        """Whether to validate before the first regular validation."""
        early = self.loop.validate is None and self.step < self.loop.config.validate_every
        return early and self.step in self.steps.early_validations

    def _plateau(self) -> bool:
        """Whether the last scheduled validations brought next to nothing, or less than the first one.

        A likelihood of clicks rises long after the ranking has stopped changing, so that patience alone waits long.
        """
        every = self.loop.config.validate_every
        scores = [score for step, score in self.validations.items() if step and step % every == 0]
        if len(scores) < PLATEAU_VALIDATIONS + 2:
            return False
        recent = max(scores) - max(scores[:-PLATEAU_VALIDATIONS])
        return recent <= PLATEAU_SHARE * (max(scores) - scores[0])

    def _step(self) -> dict[str, float]:
        start = time.perf_counter()
        self.step += 1
        try:
            with self.loop.profile.during("training steps"):
                values = self.steps.step()
        except NonFiniteLossError as error:
            raise self._diverged(error.term) from None
        self.seconds += time.perf_counter() - start
        for name, value in values.items():
            if not math.isfinite(value):
                raise self._diverged(name)
        return values

    def _validate(self) -> dict[str, float]:
        with self.loop.profile.during("validation"):
            give_back_freed()  # by steps
            score = distributed.from_first(self._score)
            give_back_freed()  # of the scores of many documents
        if not math.isfinite(score):
            raise self._diverged("validation")
        self.validations[self.step] = score
        if self.best is None or self.best.score is None or score > self.best.score or self.loop.config.keep == "last":
            self.best = Best(self.steps.policy(), score, self.step)
        assert self.best.score is not None
        return {"validation": score, "best": self.best.score}

    def _score(self) -> float:
        return self.steps.held_out_score() if self.loop.validate is None else self.loop.validate(self.steps.policy())

    def _log(self, values: Mapping[str, float]) -> None:
        if self.folder is not None:
            self.folder.log({"step": self.step, **values, "seconds": round(self.seconds, 3)})
        if self.loop.progress is not None:
            self.loop.progress(self.step, values)

    def save(self) -> None:
        """Write a checkpoint, unless there is one for this step."""
        if self.folder is None or self.saved_at == self.step:
            return
        self.folder.save(self._state())
        self.saved_at = self.step
        if self.best is not None and self.best.step == self.step:
            self._publish(finished=False)

    def _publish(self, finished: bool) -> None:
        if self.folder is not None and self.best is not None:
            self.folder.publish(self.best.policy, self._description(finished))

    def _description(self, finished: bool) -> dict[str, Any]:
        best = {} if self.best is None else {"step": self.best.step, "validation": self.best.score}
        return {**self.loop.provenance, "training": {**best, "steps": self.step, "finished": finished}}

    def _state(self) -> dict[str, Any]:
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
            "learner": self.steps.state(),
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Continue from a checkpoint."""
        self.step, self.seconds, self.validations = state["step"], state["seconds"], state["validations"]
        self.saved_at = self.step
        self.steps.load_state(state["learner"])
        if saved := state["best"]:
            arrays = {name: tensor.numpy() for name, tensor in saved["arrays"].items()}
            policy = type(self.steps.policy()).from_parts(arrays, saved["settings"])
            self.best = Best(policy, saved["score"], saved["step"])

    def _diverged(self, term: str) -> InputError:
        kept = "" if self.saved_at is None else f"; the checkpoint of step {self.saved_at} is kept"
        return InputError(
            f"step {self.step}: '{term}' is not finite; lower the learning rates or set max_gradient_norm{kept}"
        )


@contextmanager
def _interrupt_noticed() -> Iterator[threading.Event]:
    """An event that the first Ctrl-C sets, so that no step is interrupted; a second one works as usual."""
    interrupted = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield interrupted  # only the main thread receives signals
        return
    before = signal.getsignal(signal.SIGINT)
    # The terminal signals all processes, and torchrun signals them again; that is not a second Ctrl-C.
    afterwards = before if distributed.processes() == 1 else signal.SIG_IGN

    def notice(*_: object) -> None:
        interrupted.set()
        signal.signal(signal.SIGINT, afterwards)

    signal.signal(signal.SIGINT, notice)
    try:
        yield interrupted
    finally:
        signal.signal(signal.SIGINT, before)
