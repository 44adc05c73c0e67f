"""The folder of a training run: the model, from the first validation on, and everything needed to resume.

model.json, model-….safetensors   the best policy so far, see `policies.model_folder`
checkpoint.safetensors            the state of the run: tensors, and everything else as JSON in its header
metrics.jsonl                     the logged values, one line per step
assessment.json                   the off-policy evaluation of the final model, see `off_policy`
student/                          a model of its own that ranks as the final model does, see `distillation`

Loading a checkpoint executes no code from it.
"""

import itertools
import json
import shutil
from collections.abc import Iterator, Mapping
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from cuolr.errors import InputError, check_format
from cuolr.files import atomic_file, content_hash, is_verifying, part_of
from cuolr.output_lock import UNFINISHED, clean, hold
from cuolr.policies.model_folder import ARRAYS_PATTERN, SETTINGS_FILE, STUDENT_FOLDER, put_policy
from cuolr.policies.policy import RankingPolicy

FORMAT = "cuolr-checkpoint-2"


def save_checkpoint(path: Path, state: Mapping[str, Any]) -> None:
    """Write nested dictionaries, lists and tuples of tensors, arrays, numbers and strings, atomically."""
    tensors: dict[str, Tensor] = {}
    structure = json.dumps(_take_apart(state, "", tensors))
    header = {"format": FORMAT, "structure": structure, "sha256": _digest(structure, tensors)}
    with atomic_file(path) as unfinished:
        unfinished.write_bytes(save(tensors, header))  # so that a full disk is an OSError


def load_checkpoint(path: Path) -> dict[str, Any]:
    """Read a checkpoint, with arrays as tensors; a damaged file raises `InputError`."""
    if not path.is_file():
        problem = "expected a checkpoint, found a folder" if path.exists() else "file not found"
        raise InputError(f"{path}: {problem}")
    try:
        with safe_open(path, framework="pt") as file:
            header = file.metadata() or {}
            tensors = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise InputError(f"{path}: damaged checkpoint: {error}; start the run again") from None
    check_format(header.get("format"), FORMAT, path, "a checkpoint")
    if is_verifying() and header.get("sha256") != _digest(header.get("structure", ""), tensors):
        raise InputError(f"{path}: damaged checkpoint: the content does not match its hash; start the run again")
    try:
        state = _put_together(json.loads(header["structure"]), tensors)
    except (AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise InputError(f"{path}: not a checkpoint ({type(error).__name__}: {error}); start the run again") from None
    if not isinstance(state, dict):
        raise InputError(f"{path}: not a checkpoint; start the run again")
    return state


def _take_apart(value: Any, name: str, tensors: dict[str, Tensor]) -> Any:
    """`value` as JSON values; its tensors are moved to `tensors`, keyed by their path."""
    if isinstance(value, np.ndarray):
        value = torch.from_numpy(np.ascontiguousarray(value))
    if isinstance(value, Tensor):
        assert name not in tensors, f"two values have the path {name}"
        tensors[name] = value.detach().cpu().clone(memory_format=torch.contiguous_format)
        return {"tensor": name}
    if isinstance(value, Mapping):
        # Stored as pairs, because keys may be numbers, as in an optimiser's state.
        return {"dict": [[key, _take_apart(item, f"{name}/{key}", tensors)] for key, item in value.items()]}
    if isinstance(value, list | tuple):
        items = [_take_apart(item, f"{name}/{i}", tensors) for i, item in enumerate(value)]
        return {type(value).__name__: items}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"a checkpoint cannot hold {type(value).__name__} at '{name}'")


def _put_together(value: Any, tensors: Mapping[str, Tensor]) -> Any:
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == "tensor":
        return tensors[content]
    if kind == "dict":
        return {key: _put_together(item, tensors) for key, item in content}
    items = [_put_together(item, tensors) for item in content]
    return {"list": list, "tuple": tuple}[kind](items)


def _digest(structure: str, tensors: Mapping[str, Tensor]) -> str:
    parts = ((name, tensors[name].reshape(-1).view(torch.uint8).numpy()) for name in sorted(tensors))
    return content_hash(structure, *itertools.chain(*parts))


CHECKPOINT_FILE, METRICS_FILE = "checkpoint.safetensors", "metrics.jsonl"
ASSESSMENT_FILE = "assessment.json"
FILES = (SETTINGS_FILE, ARRAYS_PATTERN, CHECKPOINT_FILE, METRICS_FILE, ASSESSMENT_FILE, STUDENT_FOLDER)


class RunFolder:
    """The folder that a run writes to.

    Attributes:
        path: The folder.
        settings: Everything that determines the run except its number of steps, as JSON values. A checkpoint with other
            settings is not resumed.
        overwrite: Whether an existing run may be replaced.
    """

    def __init__(self, path: Path, settings: Mapping[str, Any], overwrite: bool = False) -> None:
        self.path = path
        self.overwrite = overwrite
        self.settings = json.loads(json.dumps(settings))

    def start(self) -> None:
        """Create the folder; an existing run is replaced only with `overwrite`.

        Its model stays until the new run has one.
        """
        check_place(self.path, self.overwrite)
        self.path.mkdir(parents=True, exist_ok=True)
        for name in (CHECKPOINT_FILE, METRICS_FILE, ASSESSMENT_FILE):
            (self.path / name).unlink(missing_ok=True)
        self._remove_student()
        self._remove_unfinished()

    def resume(self) -> dict[str, Any]:
        """The last saved state; later lines of the metrics are removed."""
        checkpoint = check_to_resume(self.path)
        saved = load_checkpoint(checkpoint)
        if not isinstance(saved.get("settings"), dict) or not _is_state(saved.get("state")):
            raise InputError(f"{checkpoint}: not the checkpoint of a run; start again with overwrite")
        if saved["settings"].get("log") != self.settings.get("log"):
            raise InputError(f"{checkpoint}: belongs to another log; start again with overwrite")
        problems = list(_differences(saved["settings"], self.settings))
        if problems:
            raise InputError(
                [f"{checkpoint}: cannot be resumed with other settings: {problem}" for problem in problems]
            )
        self._remove_student()
        self._remove_unfinished()
        self._cut_metrics(saved["state"]["step"])
        state: dict[str, Any] = saved["state"]
        return state

    def save(self, state: Mapping[str, Any]) -> None:
        """Write a checkpoint, atomically."""
        save_checkpoint(self.path / CHECKPOINT_FILE, {"settings": self.settings, "state": state})

    def log(self, values: Mapping[str, Any]) -> None:
        """Append a line to the metrics."""
        with (self.path / METRICS_FILE).open("a", encoding="utf-8") as file:
            file.write(json.dumps(values) + "\n")

    def publish(self, policy: RankingPolicy, provenance: Mapping[str, Any]) -> None:
        """Make `policy` the model of this folder."""
        put_policy(policy, self.path, provenance)

    def _remove_student(self) -> None:
        """Remove the student of an earlier model, if it is one."""
        if (self.path / STUDENT_FOLDER / SETTINGS_FILE).is_file():
            shutil.rmtree(self.path / STUDENT_FOLDER)

    def _remove_unfinished(self) -> None:
        """Remove files left unfinished by a killed process."""
        clean(self.path)

    def _cut_metrics(self, step: int) -> None:
        """Keep the lines up to `step`; a crash may have left later ones, or half a line."""
        path = part_of(self.path, METRICS_FILE)
        lines = path.read_text(encoding="utf-8").split("\n")[:-1] if path.exists() else []
        kept = [line for number, line in enumerate(lines, start=1) if _step_of(line, f"{path}:{number}") <= step]
        with atomic_file(path) as unfinished:
            unfinished.write_text("".join(f"{line}\n" for line in kept), encoding="utf-8")


def _is_state(state: Any) -> bool:
    """Whether it is what a run saves of itself, apart from the learner's own state."""
    if not isinstance(state, dict) or not isinstance(state.get("learner"), dict):
        return False
    validations, best = state.get("validations"), state.get("best")
    return (
        type(state.get("step")) is int
        and isinstance(state.get("seconds"), float | int)
        and isinstance(validations, dict)
        and all(type(step) is int and isinstance(score, float) for step, score in validations.items())
        and (best is None or (isinstance(best, dict) and {"arrays", "settings", "score", "step"} <= best.keys()))
    )


def _step_of(line: str, where: str) -> int:
    """The step of a line of the metrics."""
    try:
        return int(json.loads(line)["step"])
    except (ValueError, TypeError, LookupError, OverflowError, RecursionError):
        raise InputError(f"{where}: expected a step and its values, found {line[:80]!r}; remove the line") from None


def check_place(path: Path, overwrite: bool) -> None:
    """Raise `InputError` if no run can be started in this folder, or another process writes to it."""
    hold(path)
    if not path.exists():
        return
    names = [file.name for file in path.iterdir() if not file.match(UNFINISHED)] if path.is_dir() else [""]
    if not all(any(fnmatch(name, pattern) for pattern in FILES) for name in names):
        raise InputError(f"{path}: exists and is not a model; choose another folder or remove it")
    if names and not overwrite:
        raise InputError(f"{path}: exists already; continue it with resume, or start again with overwrite")


def check_to_resume(path: Path) -> Path:
    """The checkpoint file of a run; raises `InputError` if there is none, or another process goes on with it."""
    hold(path)
    checkpoint = part_of(path, CHECKPOINT_FILE)
    if not checkpoint.exists():
        raise InputError(f"{checkpoint}: not found, so there is nothing to resume; start without resume")
    return checkpoint


def _differences(old: Mapping[str, Any], new: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """A message for each setting that differs."""
    for name in sorted({*old, *new}):
        was, now = old.get(name), new.get(name)
        if isinstance(was, Mapping) and isinstance(now, Mapping):
            yield from _differences(was, now, f"{prefix}{name}.")
        elif was != now:
            yield f"{prefix}{name} was {was!r}, is {now!r} now"
