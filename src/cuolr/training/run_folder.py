"""The folder that a run of training fills: a model at any time after the first validation, and all it takes to resume.

model.json, model-….safetensors   the best policy so far, see `policies.store`
checkpoint.safetensors            the state of the run, see `checkpoints`
metrics.jsonl                     what was measured, a line for each step
assessment.json                   at the end, the off-policy evaluation of the model, see `off_policy`
"""

import json
from collections.abc import Iterator, Mapping
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from cuolr.errors import InputError
from cuolr.files import UNFINISHED, atomic_file
from cuolr.policies.policy import RankingPolicy
from cuolr.policies.store import ARRAYS_PATTERN, SETTINGS_FILE, put_policy
from cuolr.training.checkpoints import load_checkpoint, save_checkpoint

CHECKPOINT_FILE, METRICS_FILE = "checkpoint.safetensors", "metrics.jsonl"
ASSESSMENT_FILE = "assessment.json"
FILES = (SETTINGS_FILE, ARRAYS_PATTERN, CHECKPOINT_FILE, METRICS_FILE, ASSESSMENT_FILE)


class RunFolder:
    """Where a run writes to.

    Attributes:
        path: The folder.
        settings: All that decides the run but its number of steps, as JSON can hold it. A checkpoint of other settings
            is not resumed.
        overwrite: Whether a run that is there already may be replaced.
    """

    def __init__(self, path: Path, settings: Mapping[str, Any], overwrite: bool = False) -> None:
        self.path = path
        self.overwrite = overwrite
        self.settings = json.loads(json.dumps(settings))

    def start(self) -> None:
        """Make the folder; one that is there already is taken if asked for, and if it is of a run.

        The model of that run stays until there is a new one.
        """
        check_place(self.path, self.overwrite)
        self.path.mkdir(parents=True, exist_ok=True)
        for name in (CHECKPOINT_FILE, METRICS_FILE, ASSESSMENT_FILE):
            (self.path / name).unlink(missing_ok=True)
        self._remove_unfinished()

    def resume(self) -> dict[str, Any]:
        """The state that was saved last; later lines of the metrics are cut off."""
        checkpoint = check_to_resume(self.path)
        saved = load_checkpoint(checkpoint)
        if saved["settings"].get("log") != self.settings.get("log"):
            raise InputError(f"{checkpoint}: belongs to another log; allow overwriting (--overwrite) to start again")
        problems = list(_differences(saved["settings"], self.settings))
        if problems:
            raise InputError(
                [f"{checkpoint}: cannot be resumed with other settings: {problem}" for problem in problems]
            )
        self._remove_unfinished()
        self._cut_metrics(saved["state"]["step"])
        state: dict[str, Any] = saved["state"]
        return state

    def save(self, state: Mapping[str, Any]) -> None:
        """Write a checkpoint, all or nothing."""
        save_checkpoint(self.path / CHECKPOINT_FILE, {"settings": self.settings, "state": state})

    def log(self, values: Mapping[str, Any]) -> None:
        """Append a line to the metrics."""
        with (self.path / METRICS_FILE).open("a", encoding="utf-8") as file:
            file.write(json.dumps(values) + "\n")

    def publish(self, policy: RankingPolicy, provenance: Mapping[str, Any]) -> None:
        """Make `policy` the model of this folder."""
        put_policy(policy, self.path, provenance)

    def _remove_unfinished(self) -> None:
        """Remove what a kill in the middle of writing has left."""
        for file in self.path.glob(UNFINISHED):
            file.unlink()

    def _cut_metrics(self, step: int) -> None:
        """Leave the lines up to `step`; a crash may have left later ones, or half a line."""
        path = self.path / METRICS_FILE
        lines = path.read_text(encoding="utf-8").split("\n")[:-1] if path.exists() else []
        kept = [line for number, line in enumerate(lines, start=1) if _step_of(line, f"{path}:{number}") <= step]
        with atomic_file(path) as unfinished:
            unfinished.write_text("".join(f"{line}\n" for line in kept))


def _step_of(line: str, where: str) -> int:
    """The step that a line of the metrics is of."""
    try:
        return int(json.loads(line)["step"])
    except (ValueError, TypeError, LookupError):
        raise InputError(f"{where}: expected a step and its values, found {line[:80]!r}; remove the line") from None


def check_place(path: Path, overwrite: bool) -> None:
    """Refuse a place where no run can be started."""
    if not path.exists():
        return
    names = [file.name for file in path.iterdir() if not file.match(UNFINISHED)] if path.is_dir() else [""]
    if not all(any(fnmatch(name, pattern) for pattern in FILES) for name in names):
        raise InputError(f"{path}: exists and is not a model; choose another place or remove it")
    if names and not overwrite:
        raise InputError(f"{path}: exists already; resume it (--resume), or allow overwriting (--overwrite)")


def check_to_resume(path: Path) -> Path:
    """The checkpoint of a run; one without cannot be resumed."""
    checkpoint = path / CHECKPOINT_FILE
    if not checkpoint.exists():
        raise InputError(f"{checkpoint}: not found, so there is nothing to resume; start without --resume")
    return checkpoint


def _differences(old: Mapping[str, Any], new: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """A line for each setting that is not the same."""
    for name in sorted({*old, *new}):
        was, now = old.get(name), new.get(name)
        if isinstance(was, Mapping) and isinstance(now, Mapping):
            yield from _differences(was, now, f"{prefix}{name}.")
        elif was != now:
            yield f"{prefix}{name} was {was!r}, is {now!r} now"
