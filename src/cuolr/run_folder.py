"""The folder that a run of training fills: a model at any time after the first validation, and all it takes to go on.

model.json, model.safetensors   the best policy so far, see `policies.store`
checkpoint.safetensors          the state of the run, see `checkpoints`
metrics.jsonl                   what was measured, a line for each step
"""

import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from cuolr.checkpoints import load_checkpoint, save_checkpoint
from cuolr.errors import InputError
from cuolr.files import atomic_file
from cuolr.policies.base import RankingPolicy
from cuolr.policies.store import ARRAYS_FILE, SETTINGS_FILE, save_policy

CHECKPOINT_FILE, METRICS_FILE = "checkpoint.safetensors", "metrics.jsonl"
FILES = (SETTINGS_FILE, ARRAYS_FILE, CHECKPOINT_FILE, METRICS_FILE)


class RunFolder:
    """Where a run writes to.

    Attributes:
        path: The folder.
        settings: All that decides the run but its number of steps, as JSON can hold it. A checkpoint of other settings
            is not resumed.
    """

    def __init__(self, path: Path, settings: Mapping[str, Any]) -> None:
        self.path = path
        self.settings = json.loads(json.dumps(settings))

    def start(self, overwrite: bool = False) -> None:
        """Make the folder; one that is there already is replaced if asked for, and if it is of a run."""
        check_place(self.path, overwrite)
        shutil.rmtree(self.path, ignore_errors=True)
        self.path.mkdir(parents=True)

    def resume(self) -> dict[str, Any]:
        """The state that was saved last; later lines of the metrics are cut off."""
        checkpoint = self.path / CHECKPOINT_FILE
        if not checkpoint.exists():
            raise InputError(f"{checkpoint}: not found, so there is nothing to resume; leave --resume away to start")
        saved = load_checkpoint(checkpoint)
        problems = list(_differences(saved["settings"], self.settings))
        if problems:
            raise InputError(
                [f"{checkpoint}: cannot be resumed with other settings: {problem}" for problem in problems]
            )
        self._cut_metrics(saved["state"]["step"])
        state: dict[str, Any] = saved["state"]
        return state

    def save(self, state: Mapping[str, Any]) -> None:
        """Write a checkpoint, all or nothing."""
        save_checkpoint(self.path / CHECKPOINT_FILE, {"settings": self.settings, "state": state})

    def note(self, values: Mapping[str, Any]) -> None:
        """Append a line to the metrics."""
        with (self.path / METRICS_FILE).open("a", encoding="utf-8") as file:
            file.write(json.dumps(values) + "\n")

    def publish(self, policy: RankingPolicy, provenance: Mapping[str, Any]) -> None:
        """Make `policy` the model of this folder."""
        with tempfile.TemporaryDirectory(prefix=f".{self.path.name}.", dir=self.path.parent) as place:
            save_policy(policy, Path(place) / "model", provenance)
            for name in (ARRAYS_FILE, SETTINGS_FILE):
                os.replace(Path(place) / "model" / name, self.path / name)

    def _cut_metrics(self, step: int) -> None:
        """Leave the lines up to `step`; a crash may have left later ones, or half a line."""
        path = self.path / METRICS_FILE
        lines = path.read_text(encoding="utf-8").split("\n")[:-1] if path.exists() else []
        with atomic_file(path) as unfinished:
            unfinished.write_text("".join(f"{line}\n" for line in lines if json.loads(line)["step"] <= step))


def check_place(path: Path, overwrite: bool) -> None:
    """Refuse a place where no run can be started."""
    if not path.exists():
        return
    if not path.is_dir() or {file.name for file in path.iterdir()} - set(FILES):
        raise InputError(f"{path}: exists and is not a model; choose another place or remove it")
    if any(path.iterdir()) and not overwrite:
        raise InputError(f"{path}: exists already; give --resume to go on, or --overwrite to start anew")


def _differences(old: Mapping[str, Any], new: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """A line for each setting that is not the same."""
    for name in sorted({*old, *new}):
        was, now = old.get(name), new.get(name)
        if isinstance(was, Mapping) and isinstance(now, Mapping):
            yield from _differences(was, now, f"{prefix}{name}.")
        elif was != now:
            yield f"{prefix}{name} was {was!r}, is {now!r} now"
