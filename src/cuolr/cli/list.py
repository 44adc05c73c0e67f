"""`cuolr list`: registered names, and the settings of each."""

import dataclasses
import re
import shutil
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import tyro

from cuolr.cli.docstrings import Docstring, meanings_of_fields
from cuolr.cli.help import MAX_WIDTH
from cuolr.cli.terminal import show_json, show_table, show_text
from cuolr.clicks.click_model import CLICK_MODELS, click_model
from cuolr.config import ranges_of, read_toml
from cuolr.data.letor.published import CATALOGUE, DatasetInfo
from cuolr.data.synthetic import PRESETS as GENERATED
from cuolr.data.synthetic import Preset
from cuolr.errors import InputError
from cuolr.evaluation.measures import MEASURES, measure_names
from cuolr.experiments.built_in import BUILT_IN
from cuolr.export import EXPORTERS
from cuolr.logs.importing.importer import IMPORTERS
from cuolr.networks import ENCODERS
from cuolr.policies.policy import POLICIES
from cuolr.registry import Registry, did_you_mean
from cuolr.training import LEARNERS
from cuolr.training.presets import PRESETS

# The kinds are spelled as `cuolr list` takes them.
REGISTERED: Mapping[str, Registry[Any]] = {
    "learners": LEARNERS,
    "click-models": CLICK_MODELS,
    "encoders": ENCODERS,
    "policies": POLICIES,
    "formats": IMPORTERS,
    "targets": EXPORTERS,
}
OTHERS: Mapping[str, Mapping[str, Any]] = {
    "presets": PRESETS,
    "experiments": BUILT_IN,
    "data-sets": CATALOGUE,
    "generated-data": GENERATED,
}
# The name of the settings that all learners share.
TRAINING = "training"


@dataclass(frozen=True)
class SettingHelp:
    """What `cuolr list` shows of one setting of a learner, an encoder or a click model.

    Attributes:
        name: Prefixed by its nested configs, as in `rankers.folds`.
        default: In TOML; for a learner, with the default preset.
        range: Its type and range, in words.
        meaning: From the docstring of its config.
    """

    name: str
    default: str
    range: str
    meaning: str


# The description of a name, and other facts about it.
Entry: TypeAlias = dict[str, str]


def names() -> dict[str, list[str]]:
    """All names by kind; no learner is loaded for it, nor what it needs."""
    return {
        **{kind: registry.names() for kind, registry in REGISTERED.items()},
        "measures": sorted(f"{measure}@k" for measure in measure_names()),
        **{kind: sorted(entries) for kind, entries in OTHERS.items()},
    }


def entries_of(kind: str) -> dict[str, Entry]:
    """The names of a kind with their descriptions; of learners, also their roles."""
    match kind:
        case "measures":
            named = zip(measure_names(), MEASURES.names(), strict=True)
            lines = {f"{written}@k": _of_measure(MEASURES.get(name)) for written, name in named}
        case "presets":
            lines = {name: _first_comment(path) for name, path in sorted(PRESETS.items())}
        case "experiments":
            lines = {name: read_toml(path)["title"] for name, path in sorted(BUILT_IN.items())}
        case "data-sets":
            lines = {name: _of_data_set(info) for name, info in sorted(CATALOGUE.items())}
        case "generated-data":
            lines = {name: _of_generated_data(preset) for name, preset in sorted(GENERATED.items())}
        case _:
            lines = _registered(REGISTERED[kind])
    roles = {name: {"role": LEARNERS.get(name).role} for name in lines} if kind == "learners" else {}
    return {name: {"description": line, **roles.get(name, {})} for name, line in lines.items()}


def settings(name: str) -> dict[str, list[SettingHelp]]:
    """The settings of the learner, encoder or click model of that name, or those of training, by kind."""
    # Learners and encoders need torch, which takes a second to load; nothing else should wait for it.
    configs: dict[str, Any] = {}
    if name in LEARNERS.names():
        from cuolr.training.presets.configure import configure

        configs["learner"] = configure(name).learner_config
    if name == TRAINING:
        from cuolr.training.presets.configure import configure, usual_learner

        configs["training"] = configure(usual_learner("default")).training
    if name in ENCODERS.names():
        from cuolr.networks.encoder import encoder_config

        configs["encoder"] = encoder_config(name, {})
    if name in CLICK_MODELS.names():
        configs["click model"] = click_model(name)
    return {kind: list(_settings(config)) for kind, config in configs.items()}


def _settings(config: Any, prefix: str = "") -> Iterator[SettingHelp]:
    """The fields of a dataclass and of its nested dataclasses, with their values."""
    meanings, ranges = meanings_of_fields(type(config)), ranges_of(type(config))
    for field in dataclasses.fields(config):
        value, meaning = getattr(config, field.name), meanings.get(field.name, "")
        if dataclasses.is_dataclass(value):
            yield from _settings(value, f"{prefix}{field.name}.")
        else:
            yield SettingHelp(f"{prefix}{field.name}", _as_toml(value), ranges[field.name], meaning)


def _as_toml(value: Any) -> str:
    match value:
        case None:
            return "none"
        case bool():
            return str(value).lower()
        case list() | tuple():
            return f"[{', '.join(map(_as_toml, value))}]"
        case Mapping():
            return f"{{{', '.join(f'{key} = {_as_toml(item)}' for key, item in value.items())}}}"
        case _:
            return str(value)


def _registered(registry: Registry[Any]) -> dict[str, str]:
    return {name: _describe(registry.get(name)) for name in registry.names()}


def _of_measure(measure: type[Any]) -> str:
    return _first_sentence(Docstring.parse(measure.__doc__).summary)


def _describe(entry: type[Any]) -> str:
    """The first sentence of a class's module, or else of the class, whose docstring is about equations."""
    text = sys.modules[entry.__module__].__doc__ or entry.__doc__
    return _first_sentence(re.sub("^`.*`: ", "", Docstring.parse(text).summary))


def _first_comment(path: Path) -> str:
    """The first sentence of the comment at the top of a file."""
    comments = [line.removeprefix("#").strip() for line in path.read_text(encoding="utf-8").splitlines()]
    return _first_sentence(" ".join(comments[: comments.index("")]))


def _first_sentence(text: str) -> str:
    sentence = re.split(r"(?<=\.)\s", text, maxsplit=1)[0].removesuffix(".")
    return sentence[:1].upper() + sentence[1:]


def _of_data_set(info: DatasetInfo) -> str:
    if info.queries is None:
        return info.title
    return f"{info.title}: {info.queries:,} queries, {info.documents:,} documents, {info.n_features} features"


def _of_generated_data(preset: Preset) -> str:
    return f"{preset.features} features, {len(preset.grades)} grades, {preset.documents:g} documents per query"


# Longer defaults, such as tables of probabilities, are truncated.
MAX_DEFAULT = 40
# How to set the settings of a kind in training.
HOW_TO_SET = {
    "training": "cuolr train LOG --set training.{setting}=VALUE --out MODEL",
    "learner": "cuolr train LOG --learner {name} --set learner.{setting}=VALUE --out MODEL",
    "encoder": "cuolr train LOG --encoder {name} --set learner.encoder_settings.{setting}=VALUE --out MODEL",
}


def list_names(
    what: tyro.conf.Positional[Annotated[str, tyro.conf.arg(metavar="NAME")] | None] = None, json: bool = False
) -> None:
    """List learners, click models, encoders, policies, formats, targets, measures, presets, experiments and data sets.

    For the name of a learner, an encoder or a click model, list its settings with default, range and meaning; for
    `training`, those that all learners share. In training, set those of a learner with `--set learner.NAME=VALUE`, of
    an encoder with `--set learner.encoder_settings.NAME=VALUE`, and of training with `--set training.NAME=VALUE`.

    Args:
        what: learners, click-models, encoders, policies, formats, targets, measures, presets, experiments, data-sets,
            generated-data; or a name, such as cql; or training. By default all names.
        json: Print JSON instead of tables.
    """
    known = names()
    what = None if what is None else _as_known(what, known)
    if what is None:
        if json:
            show_json(known)
        else:
            show_table("", ["", ""], [[kind, ", ".join(of_kind)] for kind, of_kind in known.items()], left=(0, 1))
    elif what in known:
        if json:
            show_json(entries_of(what))
        else:
            _show_entries(entries_of(what))
    else:
        found = {kind: entries_of(kind)[what] for kind, of_kind in known.items() if what in of_kind}
        if what == TRAINING:
            found["settings"] = {"description": "Settings of training that all learners share"}
        if not found:
            guess = did_you_mean(what, [*known, TRAINING, *(name for of_kind in known.values() for name in of_kind)])
            raise InputError(f"unknown name '{what}'{guess}; `cuolr list` shows all names")
        if json:
            described = {kind: [asdict(setting) for setting in of_kind] for kind, of_kind in settings(what).items()}
            show_json({"name": what, "is": found, "settings": described})
        else:
            _show_one(what, found, settings(what))


def _as_known(name: str, known: Mapping[str, Sequence[str]]) -> str:
    """A name as it is registered, if only `_` and `-` differ, or the cutoff of a measure is missing or a number."""
    everything = [*known, *(of_kind for names_of_kind in known.values() for of_kind in names_of_kind)]
    written = name.partition("@")[0]
    spelled = {_spelled(other): other for other in everything} | {
        _spelled(m.removesuffix("@k")): m for m in known["measures"]
    }
    return name if name in everything else spelled.get(_spelled(written), name)


def _spelled(name: str) -> str:
    return name.replace("_", "-").lower()


def _show_entries(entries: dict[str, Entry]) -> None:
    has_role = any(entry.get("role") for entry in entries.values())
    rows = [[name, *([entry["role"]] if has_role else []), entry["description"]] for name, entry in entries.items()]
    show_table("", ["name", *(["role"] if has_role else []), "description"], rows, left=(0, 1, 2))


def _show_one(name: str, found: dict[str, Entry], settings_of: dict[str, list[SettingHelp]]) -> None:
    for kind, entry in found.items():
        show_text(f"{name} ({kind}): {entry['description']}")
    for kind, of_kind in settings_of.items():
        if of_kind:
            show_text("\n".join([f"\nSettings of the {kind}, with default and range:", *map(_lines, of_kind)]))
            if kind in HOW_TO_SET:
                show_text("\nSet one with: " + HOW_TO_SET[kind].format(name=name, setting=of_kind[0].name))


def _lines(setting: SettingHelp) -> str:
    width = min(shutil.get_terminal_size().columns, MAX_WIDTH)
    default = setting.default if len(setting.default) <= MAX_DEFAULT else f"{setting.default[: MAX_DEFAULT - 1]}…"
    meaning = textwrap.fill(setting.meaning, width, initial_indent=" " * 6, subsequent_indent=" " * 6)
    return f"  {setting.name} = {default}  ({setting.range})\n{meaning}"
