"""Presets, named settings of a whole run, and how to override single settings.

A preset is a TOML file with the tables `training`, `learners` (for every learner with such a setting) and
`learner.<name>` (for that learner only). Settings that it does not name have the learner's defaults.
"""

import dataclasses
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cuolr.config import from_dict, read_toml, to_dict
from cuolr.errors import InputError
from cuolr.registry import unknown_name
from cuolr.training.base_learner import LEARNERS, Learner
from cuolr.training.presets import PRESETS
from cuolr.training.training_config import TrainingConfig


@dataclass(frozen=True)
class RunConfig:
    """All settings of a run.

    Attributes:
        learner: The name of the learner.
        learner_config: An instance of the learner's `Config`.
        training: Settings of training.
    """

    learner: str
    learner_config: Any
    training: TrainingConfig

    @property
    def learner_class(self) -> type[Learner]:
        """The class of the learner."""
        return LEARNERS.get(self.learner)

    def as_dict(self) -> dict[str, Any]:
        """The settings as JSON values."""
        learner = {"name": self.learner, **to_dict(self.learner_config)}
        return {"learner": learner, "training": to_dict(self.training)}


def usual_learner(preset: str) -> str:
    """The default learner of a preset."""
    return "cql" if preset == "paper" else "factored"


def configure(learner: Any, preset: str = "default", settings: Mapping[str, Any] | None = None) -> RunConfig:
    """The settings of a run: those of a preset, with single settings overridden.

    Args:
        learner: A registered name, or an instance of a learner's `Config`, which no preset changes.
        preset: A name in `PRESETS`.
        settings: By name, such as `learner.conservative_weight`, `learner.encoder_settings.heads` or
            `training.steps`; an unknown name raises an error that lists the known ones.
    """
    if preset not in PRESETS:
        raise unknown_name("preset", preset, PRESETS)
    table, settings = read_toml(PRESETS[preset]), settings or {}
    if isinstance(learner, str):
        sections = {"learner": _of_learner(learner, table, settings), "training": table.get("training", {})}
    else:
        sections = {"training": table.get("training", {})}
    configs = {"learner": LEARNERS.get(learner).Config if isinstance(learner, str) else type(learner)}
    configs["training"] = TrainingConfig
    # Whole tables first, then single settings within them, in whatever order they are given.
    for name, value in sorted(settings.items(), key=lambda setting: setting[0].count(".")):
        section, *path = name.split(".")
        if section == "learner" and path and section not in sections:
            raise InputError(f"setting '{name}': learner is given as a Config; set it there")
        if section not in sections or not path:
            known = [f"{of}.{field.name}" for of, config in configs.items() for field in dataclasses.fields(config)]
            meant = [full for full in known if full.endswith(f".{name}")]
            hint = f" (did you mean '{meant[0]}'?)" if meant else ""
            raise InputError(f"setting '{name}': expected a name that starts with 'learner.' or 'training.'{hint}")
        _put(sections[section], path, value)
    training = from_dict(TrainingConfig, sections["training"], "training")
    if not isinstance(learner, str):
        return RunConfig(_name_of_config(learner), learner, training)
    return RunConfig(learner, from_dict(LEARNERS.get(learner).Config, sections["learner"], "learner"), training)


def _of_learner(learner: str, table: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a learner in a preset."""
    known = {field.name for field in dataclasses.fields(LEARNERS.get(learner).Config)}
    for_all = {name: value for name, value in table.get("learners", {}).items() if name in known}
    of_learner: dict[str, Any] = for_all | table.get("learner", {}).get(learner, {})
    if settings.get("learner.encoder", of_learner.get("encoder")) != of_learner.get("encoder"):
        # The encoder settings of the preset are for its own encoder.
        of_learner.pop("encoder_settings", None)
    return of_learner


def _name_of_config(config: Any) -> str:
    """The learner that a config belongs to."""
    names = [name for name in LEARNERS.names() if LEARNERS.get(name).Config is type(config)]
    if not names:
        raise InputError(f"learner: expected a name or an instance of a learner's Config, found {config!r}")
    return names[0]


def has_setting(learner: type[Learner], name: str) -> bool:
    """Whether the config of a learner has a setting."""
    return name in {field.name for field in dataclasses.fields(learner.Config)}


# By the name of the option: whether a learner uses it.
USES: Mapping[str, Callable[[type[Learner]], bool]] = {
    "encoder": lambda learner: has_setting(learner, "encoder"),
    "precision": lambda learner: has_setting(learner, "precision"),
    "batch_size": lambda learner: learner.data_parallel,
    "propensities": lambda learner: learner.takes_propensities,
    "ray": lambda learner: has_setting(learner, "rankers"),
}


def check_used(learner: str, option: str, written: str, choose: str = "learner") -> None:
    """Raise `InputError` if a learner does not use an option, and name the learners that do.

    Args:
        learner: Name of the learner.
        option: A name in `USES`.
        written: The option as the user gave it, such as `--batch-size 8`.
        choose: Name of the user's option for the learner.
    """
    uses = USES[option]
    if not uses(LEARNERS.get(learner)):
        others = ", ".join(other for other in LEARNERS.names() if uses(LEARNERS.get(other)))
        raise InputError(f"{written}: {learner} does not use it; remove it, or choose another {choose}: {others}")


def parse_settings(assignments: Iterable[str]) -> dict[str, Any]:
    """Parse settings from the command line; values as in TOML, with optional quotes around strings.

    >>> parse_settings(["learner.conservative_weight=0.5", "learner.hidden=[64, 64]", "learner.encoder=position"])
    {'learner.conservative_weight': 0.5, 'learner.hidden': [64, 64], 'learner.encoder': 'position'}
    """
    settings = {}
    for assignment in assignments:
        name, equals, value = assignment.partition("=")
        if not equals or not name.strip():
            raise InputError(f"--set: expected <name>=<value>, such as training.steps=500, found '{assignment}'")
        settings[name.strip()] = _parse_value(value.strip())
    return settings


def _parse_value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _put(table: dict[str, Any], path: Sequence[str], value: Any) -> None:
    """Set a value in nested tables."""
    for key in path[:-1]:
        if not isinstance(table.get(key), dict):
            table[key] = {}
        table = table[key]
    table[path[-1]] = dict(value) if isinstance(value, Mapping) else value
