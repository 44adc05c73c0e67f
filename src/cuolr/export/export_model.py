"""A model in the format of a target: exported, compared with the policy, then written."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cuolr.errors import InputError, problems_in
from cuolr.export import EXPORTERS
from cuolr.export.check_export import ExportCheck, check_export
from cuolr.export.exporter import CannotHold, ExportedModel, PointwiseModel
from cuolr.files import atomic_file, check_files, check_suffix
from cuolr.policies.model_folder import SETTINGS_FILE, STUDENT_FOLDER, load_policy
from cuolr.policies.policy import RankingPolicy
from cuolr.progress import Stages, no_stages

# What engines accept as the name of a model.
NAME_PATTERN = re.compile(r"[a-z][a-z0-9_]*")


@dataclass(frozen=True)
class ExportReport:
    """What was written.

    Attributes:
        target: The target.
        form: What the target calls the model.
        name: The name of the model in the engine.
        files: The files, the model first.
        features: The names of the features in the engine, by their names in training.
        check: How close the scores are to those of the policy.
        warnings: What the user should know about versions of the engine.
    """

    target: str
    form: str
    name: str
    files: Sequence[Path]
    features: dict[str, str]
    check: ExportCheck
    warnings: Sequence[str]


def export_folder(
    folder: Path,
    target: str,
    out: Path,
    name: str | None = None,
    overwrite: bool = False,
    stages: Stages = no_stages,
) -> ExportReport:
    """Export a saved model.

    Args:
        folder: The folder of the model.
        target: Name of an exporter.
        out: The model file; further files have the same name with another suffix.
        name: The name of the model in the engine; by default that of the folder.
        overwrite: Whether existing files are replaced.
        stages: Receives the progress.
    """
    EXPORTERS.get(target)
    name = _checked_name(name, folder)
    check_files([out], overwrite)
    stages(f"reading {folder}", None)
    policy = load_policy(folder)
    try:
        return export_policy(policy, target, out, name, overwrite, stages)
    except CannotHold as refusal:
        raise InputError(f"{folder}: {target} cannot hold this model: {refusal}; {_advice(folder, target)}") from None


def export_policy(
    policy: RankingPolicy,
    target: str,
    out: Path,
    name: str = "cuolr",
    overwrite: bool = False,
    stages: Stages = no_stages,
) -> ExportReport:
    """Export a policy; see `export_folder`. Raises `CannotHold` if the target cannot represent it."""
    stages(f"exporting to {target}", None)
    model = PointwiseModel.of(policy)
    exported = EXPORTERS.get(target)().export(model, name)
    check_suffix(out, exported.suffixes)
    files = {out: exported.content, **{out.with_suffix(suffix): text for suffix, text in exported.companions.items()}}
    check_files(files, overwrite)
    check = check_export(model, exported.score, stages=stages)
    with problems_in(out):
        check.require()
    for file, content in files.items():
        _write(file, content)
    features = dict(zip(model.feature_names, model.names, strict=True))
    return ExportReport(target, exported.form, name, list(files), features, check, _warnings(exported))


def _write(file: Path, content: bytes) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(file) as unfinished:
        unfinished.write_bytes(content)


def _warnings(exported: ExportedModel) -> list[str]:
    return list(dict.fromkeys(exported.warnings))


def _checked_name(name: str | None, folder: Path) -> str:
    if name is None:
        own = re.sub(r"[^a-z0-9_]+", "_", folder.resolve().name.lower()).strip("_")
        return own if NAME_PATTERN.fullmatch(own) else f"cuolr_{own}".strip("_")
    if not NAME_PATTERN.fullmatch(name):
        raise InputError(f"--name {name}: expected lower-case letters, digits and _, starting with a letter")
    return name


def _advice(folder: Path, target: str) -> str:
    """What to export instead."""
    student = folder / STUDENT_FOLDER
    if (student / SETTINGS_FILE).is_file():
        return f"export its student: cuolr export {student} --to {target}"
    kind = EXPORTERS.get(target).student
    return f"make a student of it that fits: cuolr distil {folder} --data LOG --to {kind} --out STUDENT"
