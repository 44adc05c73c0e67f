"""`cuolr list`: registered names, and the settings of each."""

import shutil
import textwrap
from collections.abc import Mapping
from dataclasses import asdict

import tyro

from cuolr.cli.catalogue import Entry, SettingHelp, catalogue, settings
from cuolr.cli.help import MAX_WIDTH
from cuolr.cli.options import Name
from cuolr.cli.terminal import show_json, show_table, show_text
from cuolr.errors import InputError
from cuolr.registry import did_you_mean

# Longer defaults, such as tables of probabilities, are truncated.
MAX_DEFAULT = 40


def list_names(what: tyro.conf.Positional[Name | None] = None, json: bool = False) -> None:
    """List learners, click models, encoders, policies, formats, targets, measures, presets, experiments and data sets.

    For the name of a learner, an encoder or a click model, list its settings with default, range and meaning. In
    training, set those of a learner with `--set learner.NAME=VALUE`, and of an encoder with
    `--set learner.encoder_settings.NAME=VALUE`.

    Args:
        what: learners, click-models, encoders, policies, formats, targets, measures, presets, experiments, data-sets,
            generated-data; or a name, such as cql. By default all names.
        json: Print JSON instead of tables.
    """
    known = catalogue()
    what = None if what is None else _as_known(what, known)
    if what is None:
        names = {kind: sorted(entries) for kind, entries in known.items()}
        if json:
            show_json(names)
        else:
            show_table("", ["", ""], [[kind, ", ".join(of_kind)] for kind, of_kind in names.items()], left=(0, 1))
    elif what in known:
        if json:
            show_json(known[what])
        else:
            _show_entries(known[what])
    else:
        found = {kind: entries[what] for kind, entries in known.items() if what in entries}
        if not found:
            guess = did_you_mean(what, [*known, *(name for entries in known.values() for name in entries)])
            raise InputError(f"unknown name '{what}'{guess}; `cuolr list` shows all names")
        if json:
            described = {kind: [asdict(setting) for setting in of_kind] for kind, of_kind in settings(what).items()}
            show_json({"name": what, "is": found, "settings": described})
        else:
            _show_one(what, found, settings(what))


def _as_known(name: str, known: Mapping[str, Mapping[str, Entry]]) -> str:
    """A name as it is registered, if only `_` and `-` differ, or the cutoff of a measure is missing or a number."""
    names = [*known, *(of_kind for entries in known.values() for of_kind in entries)]
    written = name.partition("@")[0]
    spelled = {_spelled(other): other for other in names} | {
        _spelled(m.removesuffix("@k")): m for m in known["measures"]
    }
    return name if name in names else spelled.get(_spelled(written), name)


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
