"""`cuolr list`: registered names, and the settings of each."""

import shutil
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Annotated

import tyro

from cuolr.cli.catalogue import Entry, SettingHelp, entries_of, names, settings
from cuolr.cli.help import MAX_WIDTH
from cuolr.cli.terminal import show_json, show_table, show_text
from cuolr.errors import InputError
from cuolr.registry import did_you_mean

# Longer defaults, such as tables of probabilities, are truncated.
MAX_DEFAULT = 40


def list_names(
    what: tyro.conf.Positional[Annotated[str, tyro.conf.arg(metavar="NAME")] | None] = None, json: bool = False
) -> None:
    """List learners, click models, encoders, policies, formats, targets, measures, presets, experiments and data sets.

    For the name of a learner, an encoder or a click model, list its settings with default, range and meaning. In
    training, set those of a learner with `--set learner.NAME=VALUE`, and of an encoder with
    `--set learner.encoder_settings.NAME=VALUE`.

    Args:
        what: learners, click-models, encoders, policies, formats, targets, measures, presets, experiments, data-sets,
            generated-data; or a name, such as cql. By default all names.
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
        if not found:
            guess = did_you_mean(what, [*known, *(name for of_kind in known.values() for name in of_kind)])
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


def _lines(setting: SettingHelp) -> str:
    width = min(shutil.get_terminal_size().columns, MAX_WIDTH)
    default = setting.default if len(setting.default) <= MAX_DEFAULT else f"{setting.default[: MAX_DEFAULT - 1]}…"
    meaning = textwrap.fill(setting.meaning, width, initial_indent=" " * 6, subsequent_indent=" " * 6)
    return f"  {setting.name} = {default}  ({setting.range})\n{meaning}"
