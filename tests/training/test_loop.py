import json
import os
import signal
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor

from cuolr.data.normalise import Normaliser
from cuolr.errors import InputError
from cuolr.learners.gradient_learner import GradientLearner
from cuolr.policies.linear_policy import LinearPolicy
from cuolr.policies.model_folder import load_policy
from cuolr.policies.policy import RankingPolicy
from cuolr.training.batches import Batches, SessionBatch, WeightedLists
from cuolr.training.loop import Loop, TrainingResult, Validate
from cuolr.training.run_folder import CHECKPOINT_FILE, RunFolder, load_checkpoint, save_checkpoint
from cuolr.training.steps import NonFiniteLossError
from cuolr.training.training_config import TrainingConfig
from tests.small_log import counted_log, small_log


@dataclass(frozen=True)
class ToyConfig:
    """Settings of the toy learner."""

    learning_rate: float = 0.05
    noise: float = 0.1
    fail_at: int = 0
    """The step at which the loss is not finite; 0 = none."""


class ToyLearner(GradientLearner):
    """A linear ranker by the softmax loss on clicks, with noise on the features."""

    Config: ClassVar[type[Any]] = ToyConfig

    def build(self, n_features: int, k: int, seed: int, normaliser: Normaliser) -> None:
        self.normaliser = normaliser
        self.random = torch.Generator().manual_seed(seed)
        self.weights = torch.randn(n_features, generator=self.random).requires_grad_()
        self.optimiser = torch.optim.Adam([self.weights], self.config.learning_rate)
        self.steps = 0

    def update(self, batch: SessionBatch) -> dict[str, float]:
        self.steps += 1
        if self.steps == self.config.fail_at:
            raise NonFiniteLossError("ranking_loss")
        noise = self.config.noise * torch.randn(batch.features.shape, generator=self.random)
        loss = (self._losses(batch, batch.features + noise) * batch.weight).mean()
        self.optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimiser.step()
        return {"ranking_loss": float(loss.detach())}

    def held_out_scores(self, batch: SessionBatch) -> Tensor:
        return -self._losses(batch, batch.features)

    def _losses(self, batch: SessionBatch, features: Tensor) -> Tensor:
        scores = (features @ self.weights).masked_fill(~batch.where, -1e9)
        return -(batch.rewards * scores.log_softmax(dim=1)).sum(dim=1)

    def policy(self) -> LinearPolicy:
        return LinearPolicy(self.weights.detach().numpy().copy(), self.normaliser)

    def state(self) -> dict[str, Any]:
        return {
            "weights": self.weights.detach().clone(),
            "optimiser": self.optimiser.state_dict(),
            "random": self.random.get_state(),
            "steps": self.steps,
            "batch": self._step,
        }

    def load_state(self, state: dict[str, Any]) -> None:
        with torch.no_grad():
            self.weights.copy_(state["weights"])
        self.optimiser.load_state_dict(state["optimiser"])
        self.random.set_state(state["random"])
        self.steps = state["steps"]
        self._step = state["batch"]


LOG = small_log(rows=60)
NORMALISER = Normaliser.fit("min-max", LOG.candidates)


def toy(seed: int = 0, **settings: Any) -> ToyLearner:
    return built(ToyLearner(ToyConfig(**settings)), seed)


def built(learner: ToyLearner, seed: int = 0, unshown: int = 0) -> ToyLearner:
    """With batches of the log, by all of which it is validated where nothing else is said."""
    learner.build(LOG.candidates.n_features, LOG.k, seed, NORMALISER)
    learner.learn_from(batches(unshown), batches())
    return learner


def batches(unshown: int = 0) -> Batches:
    return Batches(WeightedLists.of(LOG), NORMALISER, batch_size=8, seed=1, unshown=unshown)


def train(
    learner: ToyLearner,
    validate: Validate | None,
    config: TrainingConfig,
    folder: RunFolder | None = None,
    resume: bool = False,
    **options: Any,
) -> TrainingResult:
    loop = Loop(config, validate, folder, resume, **options)
    policy = loop.run(learner)
    assert loop.result is not None
    assert loop.result.best is None or loop.result.best.policy is policy
    return loop.result


def run_folder(path: Path, overwrite: bool = False, **settings: Any) -> RunFolder:
    return RunFolder(path, {"learner": settings}, overwrite)


def scores_in_turn(*scores: float) -> Validate:
    """A validation that gives these scores one after the other."""
    left = list(scores)
    return lambda _: left.pop(0)


def stop_after(step: int) -> Callable[[int, Mapping[str, float]], None]:
    """Progress that presses Ctrl-C after a step."""

    def press(now: int, _: Mapping[str, float]) -> None:
        if now == step:
            os.kill(os.getpid(), signal.SIGINT)

    return press


def metrics(folder: Path) -> list[dict[str, float]]:
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [{name: value for name, value in line.items() if name != "seconds"} for line in lines]


def arrays_of(folder: Path) -> bytes:
    (file,) = folder.glob("model-*.safetensors")
    return file.read_bytes()


def weights_of(policy: object) -> list[float]:
    assert isinstance(policy, LinearPolicy)
    weights: list[float] = policy.weights.tolist()
    return weights


def test_training_lowers_the_loss_and_ranks_the_clicked_documents_first() -> None:
    learner = toy()
    before = learner.held_out_score()
    result = train(learner, None, TrainingConfig(steps=200, validate_every=50))
    assert result.outcome == "finished"
    assert result.steps == 200
    assert result.best is not None
    assert result.best.score is not None
    assert result.best.score > before
    assert np.argmax(np.abs(weights_of(result.best.policy))) == 0  # the feature that clicks depend on


def test_the_policy_of_the_best_validation_is_kept() -> None:
    learner, policies = toy(), list[list[float]]()

    def validate(policy: RankingPolicy) -> float:
        policies.append(weights_of(policy))
        return [0.1, 0.7, 0.7, 0.3][len(policies) - 1]

    result = train(learner, validate, TrainingConfig(steps=20, validate_every=5))
    assert result.validations == {5: 0.1, 10: 0.7, 15: 0.7, 20: 0.3}
    assert result.best is not None
    assert (result.best.score, result.best.step) == (0.7, 10)
    assert weights_of(result.best.policy) == policies[1] != weights_of(learner.policy())


def test_the_last_step_is_validated_even_off_the_schedule() -> None:
    result = train(toy(), scores_in_turn(0.1, 0.2, 0.3), TrainingConfig(steps=12, validate_every=5))
    assert result.validations == {5: 0.1, 10: 0.2, 12: 0.3}
    assert result.best is not None
    assert result.best.step == 12


def test_the_last_validation_is_noted_even_off_the_schedule(tmp_path: Path) -> None:
    heard: dict[int, Mapping[str, float]] = {}
    result = finish(tmp_path / "run", steps=12, progress=lambda step, values: heard.update({step: values}))
    lines = metrics(tmp_path / "run")
    assert [line["step"] for line in lines] == list(range(1, 13))
    assert lines[-1]["validation"] == heard[12]["validation"] == result.validations[12]


def score_of(policy: RankingPolicy) -> float:
    """The held-out score of the toy learner that gave a policy."""
    learner = toy()
    with torch.no_grad():
        learner.weights.copy_(torch.tensor(weights_of(policy)))
    return learner.held_out_score()


def interrupting_at(number: int, presses: int) -> Validate:
    """A validation in which Ctrl-C is pressed so often, when it is called for the n-th time."""
    calls = []

    def validate(policy: RankingPolicy) -> float:
        calls.append(policy)
        for _ in range(presses if len(calls) == number else 0):
            os.kill(os.getpid(), signal.SIGINT)
        return score_of(policy)

    return validate


def test_ctrl_c_in_the_last_validation_lets_the_run_finish(tmp_path: Path) -> None:
    config, validate = TrainingConfig(steps=12, validate_every=5), interrupting_at(3, presses=1)
    result = train(toy(), validate, config, run_folder(tmp_path / "run"))
    assert (result.outcome, set(result.validations)) == ("finished", {5, 10, 12})
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ctrl_c_twice_in_the_last_validation_leaves_a_checkpoint_of_the_last_step(tmp_path: Path) -> None:
    config, validate = TrainingConfig(steps=12, validate_every=5), interrupting_at(3, presses=2)
    with pytest.raises(KeyboardInterrupt):
        train(toy(), validate, config, run_folder(tmp_path / "run"))
    resumed = train(toy(9), None, config, run_folder(tmp_path / "run"), resume=True)
    whole = train(toy(), None, config)
    assert resumed.validations == whole.validations
    assert resumed.best is not None
    assert whole.best is not None
    assert weights_of(resumed.best.policy) == weights_of(whole.best.policy)


@pytest.mark.parametrize(
    "change",
    [
        lambda saved: saved.pop("settings"),
        lambda saved: saved.pop("state"),
        lambda saved: saved["state"].update(step="many"),
        lambda saved: saved["state"].update(validations=[1]),
        lambda saved: saved["state"].update(best=3),
        lambda saved: saved["state"]["best"].update(arrays={"weight": 1}),
        lambda saved: saved["state"]["best"].update(settings=3),
        lambda saved: saved["state"]["learner"].clear(),
    ],
)
def test_a_checkpoint_that_no_run_wrote_is_refused(tmp_path: Path, change: Callable[[Any], Any]) -> None:
    finish(tmp_path / "run", steps=25)
    saved = load_checkpoint(tmp_path / "run" / CHECKPOINT_FILE)
    change(saved)
    save_checkpoint(tmp_path / "run" / CHECKPOINT_FILE, saved)
    with pytest.raises(
        InputError, match=r"run.*: not the (checkpoint of a|state of this) run.*start again with overwrite"
    ):
        finish(tmp_path / "run", steps=30, resume=True)


def test_metrics_that_a_link_leads_to_are_not_read(tmp_path: Path) -> None:
    finish(tmp_path / "run", steps=25)
    (tmp_path / "run" / "metrics.jsonl").rename(tmp_path / "elsewhere")
    (tmp_path / "run" / "metrics.jsonl").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match=r"run: 'metrics.jsonl' leads out of the folder"):
        finish(tmp_path / "run", steps=30, resume=True)


def test_fewer_steps_than_were_made_are_refused(tmp_path: Path) -> None:
    finish(tmp_path / "run", steps=25)
    with pytest.raises(InputError, match=r"run: has been trained for 25 steps already; steps must be at least 25"):
        finish(tmp_path / "run", steps=24, resume=True)
    assert finish(tmp_path / "run", steps=25, resume=True).validations.keys() == {10, 20, 25}


def test_the_last_policy_is_kept_where_that_is_asked_for_whatever_validation_says() -> None:
    config = TrainingConfig(steps=50, validate_every=10, patience=1, keep="last")
    result = train(toy(), scores_in_turn(0.5, 0.4, 0.3, 0.2, 0.1), config)
    assert result.outcome == "finished"
    assert result.best is not None
    assert (result.best.step, result.best.score) == (50, 0.1)


def test_training_stops_when_patience_runs_out() -> None:
    scores = scores_in_turn(0.5, 0.4, 0.6, 0.5, 0.6, 0.7)
    result = train(toy(), scores, TrainingConfig(steps=60, validate_every=10, patience=2))
    assert result.outcome == "patience"
    assert result.steps == 50
    assert result.best is not None
    assert result.best.step == 30


class InTurn(ToyLearner):
    """Held-out scores as given, by step."""

    stops_on_plateau = True
    scores: tuple[float, ...] = ()

    def held_out_score(self) -> float:
        """The next of the scores."""
        first, *rest = self.scores
        self.scores = tuple(rest)
        return first


def held_out(*scores: float, **settings: Any) -> TrainingResult:
    """A run without labels with these held-out scores."""
    learner = InTurn(ToyConfig())
    learner.scores = scores
    return train(built(learner), None, TrainingConfig(**{"steps": 80, "validate_every": 10, "patience": 7, **settings}))


def test_training_without_labels_stops_when_three_validations_gain_less_than_a_tenth() -> None:
    """From 0 to 1.0 in three validations, then by .09 in three more."""
    result = held_out(0.0, 0.5, 1.0, 1.03, 1.06, 1.09, 1.2, 1.3)
    assert (result.outcome, result.steps) == ("plateau", 60)
    assert result.best is not None
    assert result.best.score == 1.09


class Early(InTurn):
    """Validated early, too."""

    early_validations = (2, 4, 30)


def test_training_without_labels_is_validated_early_where_the_learner_asks_for_it() -> None:
    """Before the first regular validation only; labels are asked for as configured."""
    learner = Early(ToyConfig())
    learner.scores = (0.1, 0.9, 0.5, 0.5, 0.5, 0.5)
    config = TrainingConfig(steps=40, validate_every=10)
    result = train(built(learner), None, config)
    assert list(result.validations) == [2, 4, 10, 20, 30, 40]
    assert result.best is not None
    assert result.best.step == 4
    by_labels = train(built(Early(ToyConfig())), lambda policy: 0.0, config)
    assert list(by_labels.validations) == [10, 20, 30, 40]


@pytest.mark.parametrize("scores", [(0.5,) * 8, (1.0, 0.9, 0.8, 0.7, 0.6, 0.6, 0.6, 0.6)], ids=["level", "falling"])
def test_training_stops_where_nothing_is_ever_gained(scores: tuple[float, ...]) -> None:
    result = held_out(*scores)
    assert (result.outcome, result.steps) == ("plateau", 50)
    assert result.best is not None
    assert result.best.step == 10


@pytest.mark.parametrize(
    ("scores", "settings"),
    [
        ((0.0, 0.5, 1.0, 1.04, 1.08, 1.12, 1.3, 1.6), {}),
        ((0.5,) * 8, {"keep": "last"}),
        ((0.5,) * 8, {"patience": 0}),
    ],
    ids=["still gaining", "the last is kept", "never stop early"],
)
def test_training_goes_on(scores: tuple[float, ...], settings: dict[str, Any]) -> None:
    assert held_out(*scores, **settings).outcome == "finished"


def finish(path: Path, steps: int = 47, resume: bool = False, **arguments: Any) -> TrainingResult:
    folder = run_folder(path)
    learner = arguments.pop("learner", built(ToyLearner(ToyConfig()), 99 if resume else 3, unshown=2))
    config = TrainingConfig(steps=steps, validate_every=10)
    return train(learner, None, config, folder, resume, **arguments)


@pytest.mark.parametrize("step", [4, 20, 33])
def test_a_run_that_was_interrupted_and_resumed_ends_like_one_that_was_not(step: int, tmp_path: Path) -> None:
    whole = finish(tmp_path / "whole")
    stopped = finish(tmp_path / "parts", progress=stop_after(step))
    assert (stopped.outcome, stopped.steps) == ("interrupted", step)
    resumed = finish(tmp_path / "parts", resume=True)
    assert (resumed.outcome, resumed.steps) == ("finished", 47)
    assert resumed.validations == whole.validations
    models = [arrays_of(tmp_path / run) for run in ("whole", "parts")]
    assert models[0] == models[1]
    states = [load_checkpoint(tmp_path / run / "checkpoint.safetensors")["state"] for run in ("whole", "parts")]
    torch.testing.assert_close(states[0]["learner"], states[1]["learner"], rtol=0, atol=0)
    assert metrics(tmp_path / "whole") == metrics(tmp_path / "parts")


def test_a_finished_run_can_be_given_more_steps(tmp_path: Path) -> None:
    whole = finish(tmp_path / "whole", steps=47)
    finish(tmp_path / "parts", steps=25)  # whose last validation is off the schedule
    resumed = finish(tmp_path / "parts", steps=47, resume=True)
    assert resumed.validations == whole.validations
    models = [arrays_of(tmp_path / run) for run in ("whole", "parts")]
    assert models[0] == models[1]


def test_a_crash_between_checkpoints_loses_nothing_but_time(tmp_path: Path) -> None:
    whole = finish(tmp_path / "whole")

    def crash(step: int, _: Mapping[str, float]) -> None:
        if step == 26:
            raise MemoryError

    with pytest.raises(MemoryError):
        finish(tmp_path / "parts", progress=crash)
    with (tmp_path / "parts" / "metrics.jsonl").open("a") as file:
        file.write('{"step": 27, "rank')  # cut in the middle of a line
    assert [line["step"] for line in metrics_until_damage(tmp_path / "parts")][-1] == 26
    resumed = finish(tmp_path / "parts", resume=True)
    assert resumed.validations == whole.validations
    assert metrics(tmp_path / "whole") == metrics(tmp_path / "parts")


def metrics_until_damage(folder: Path) -> list[dict[str, float]]:
    lines = (folder / "metrics.jsonl").read_text().split("\n")[:-1]
    return [json.loads(line) for line in lines]


def test_the_best_score_after_resuming_is_the_best_validation_before(tmp_path: Path) -> None:
    config = TrainingConfig(steps=40, validate_every=10)
    train(toy(), scores_in_turn(0.2, 0.9), TrainingConfig(20, validate_every=10), run_folder(tmp_path / "run"))
    best = weights_of(load_policy(tmp_path / "run"))
    # A score that lies about, such as one on the test split, is not looked at.
    (tmp_path / "test_score.json").write_text("1.0")
    result = train(toy(), scores_in_turn(0.3, 0.4), config, run_folder(tmp_path / "run"), resume=True)
    assert result.best is not None
    assert (result.best.score, result.best.step) == (0.9, 20)
    assert weights_of(result.best.policy) == best == weights_of(load_policy(tmp_path / "run"))


def test_interrupting_leaves_the_best_model_so_far(tmp_path: Path) -> None:
    finish(tmp_path / "run", progress=stop_after(15))
    description = json.loads((tmp_path / "run" / "model.json").read_text())
    assert description["provenance"]["training"]["step"] == 10
    assert not description["provenance"]["training"]["finished"]
    load_policy(tmp_path / "run")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_second_interrupt_ends_at_once() -> None:
    def press_twice(step: int, _: Mapping[str, float]) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        train(toy(), None, TrainingConfig(steps=5), progress=press_twice)


def test_training_works_in_a_thread() -> None:
    results: list[TrainingResult] = []
    config = TrainingConfig(steps=5)
    thread = threading.Thread(target=lambda: results.append(train(toy(), None, config)))
    thread.start()
    thread.join()
    assert results[0].outcome == "finished"


def test_a_loss_that_is_not_finite_stops_with_the_step_and_the_term(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^step 25: 'ranking_loss' is not finite.*checkpoint of step 20 is kept$"):
        finish(tmp_path / "run", learner=toy(fail_at=25))
    assert load_checkpoint(tmp_path / "run" / "checkpoint.safetensors")["state"]["step"] == 20


def test_a_value_that_is_not_finite_stops_too() -> None:
    class Diverging(ToyLearner):
        def update(self, batch: Any) -> dict[str, float]:
            return super().update(batch) | {"q": float("nan") if self.steps == 3 else 1.0}

    learner = built(Diverging(ToyConfig()))
    with pytest.raises(InputError, match=r"^step 3: 'q' is not finite"):
        train(learner, None, TrainingConfig(steps=5))
    with pytest.raises(InputError, match=r"^step 2: 'validation' is not finite"):
        train(toy(), scores_in_turn(float("nan")), TrainingConfig(steps=5, validate_every=2))


def test_other_settings_are_not_resumed(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "run", weight=0.1, rate=1e-4, name="cql")
    train(toy(), None, TrainingConfig(steps=5), folder)
    with pytest.raises(InputError) as error:
        run_folder(tmp_path / "run", weight=0.5, rate=1e-4, extra=1).resume()
    assert [problem.partition("other settings: ")[2] for problem in error.value.problems] == [
        "learner.extra was None, is 1 now",
        "learner.name was 'cql', is None now",
        "learner.weight was 0.1, is 0.5 now",
    ]


def test_nothing_to_resume_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nothing to resume"):
        run_folder(tmp_path / "run").resume()


def test_a_folder_is_not_overwritten_unless_asked_for(tmp_path: Path) -> None:
    finish(tmp_path / "run")
    with pytest.raises(InputError, match=r"run: exists already; continue it with resume, or start"):
        run_folder(tmp_path / "run").start()
    before = weights_of(load_policy(tmp_path / "run"))
    run_folder(tmp_path / "run", overwrite=True).start()
    assert weights_of(load_policy(tmp_path / "run")) == before  # until there is another
    assert len(list((tmp_path / "run").iterdir())) == 2
    (tmp_path / "run" / "letter.txt").write_text("dear")
    with pytest.raises(InputError, match="run: exists and is not a model"):
        run_folder(tmp_path / "run", overwrite=True).start()


def test_the_folder_holds_the_model_a_checkpoint_and_a_line_for_each_step(tmp_path: Path) -> None:
    result = finish(tmp_path / "run", provenance={"log": "small"})
    names = {file.name for file in (tmp_path / "run").iterdir()}
    (arrays,) = (tmp_path / "run").glob("model-*.safetensors")
    assert names == {"model.json", arrays.name, "checkpoint.safetensors", "metrics.jsonl"}
    lines = metrics(tmp_path / "run")
    assert [line["step"] for line in lines] == list(range(1, 48))
    assert {line["step"]: line["validation"] for line in lines if "validation" in line}.items() <= (
        result.validations.items()
    )
    provenance = json.loads((tmp_path / "run" / "model.json").read_text())["provenance"]
    assert result.best is not None
    assert provenance["log"] == "small"
    assert provenance["training"]["validation"] == result.best.score
    assert provenance["training"]["finished"]


def test_progress_hears_of_every_step() -> None:
    heard: list[tuple[int, list[str]]] = []
    config = TrainingConfig(steps=4, validate_every=2)
    train(toy(), None, config, progress=lambda step, values: heard.append((step, list(values))))
    plain, validated = ["ranking_loss"], ["ranking_loss", "validation", "best"]
    assert heard == [(1, plain), (2, validated), (3, plain), (4, validated)]


def test_held_out_sessions_count_by_their_weight() -> None:
    learner, log = toy(), counted_log()
    held_out = Batches(WeightedLists.of(log), NORMALISER, batch_size=8, seed=1)
    with torch.no_grad():
        scores = torch.cat([learner.held_out_scores(batch) for batch in held_out.in_order()]).numpy()
    learner.learn_from(batches(), held_out)
    assert learner.held_out_score() == pytest.approx(np.average(scores, weights=log.count), rel=1e-5)


def test_all_bad_settings_are_named_together() -> None:
    with pytest.raises(InputError) as error:
        TrainingConfig(steps=0, batch_size=-1, seed=99999999999999999999, held_out=1.0)
    assert [problem.split(":")[0] for problem in error.value.problems] == [
        "setting 'steps'",
        "setting 'batch_size'",
        "setting 'seed'",
        "setting 'held_out'",
    ]
