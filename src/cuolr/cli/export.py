"""`cuolr export`: a model for a search engine or another library."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tyro

from cuolr.cli.options import Name
from cuolr.cli.terminal import say, show_json, show_table, stage_bars

if TYPE_CHECKING:
    from cuolr.export.export_model import ExportReport


def export(
    model: tyro.conf.Positional[Path],
    to: Name,
    out: Path,
    name: Name | None = None,
    json: bool = False,
    overwrite: bool = False,
) -> None:
    """Export a model to a search engine or another library.

    The exported model takes raw features. Before it is written, its scores are compared with those of the model, on
    10,000 random documents and on documents at every threshold of its trees.

    Args:
        model: Folder of a saved model.
        to: Target (`cuolr list targets`), such as onnx, elasticsearch-ltr or solr.
        out: File of the exported model. Further files, such as the feature set, are written beside it.
        name: Name of the model in the engine. By default that of the folder.
        json: Print JSON instead of a table.
        overwrite: Replace existing files.
    """
    # This needs torch, which takes a second to load; no other command should wait for it.
    from cuolr.export.export_model import export_folder

    with stage_bars() as stages:
        report = export_folder(model, to, out, name, overwrite, stages)
    for warning in report.warnings:
        say(f"warning: {warning}")
    facts = _facts(report)
    if json:
        show_json(facts)
        return
    for file in report.files:
        say(f"wrote {file}")
    check = report.check
    rows = [
        ["form", report.form],
        ["name in the engine", report.name],
        ["features", f"{len(report.features)}{_renamed(report)}"],
        ["random documents compared", f"{check.random_documents:,}"],
        ["documents at thresholds compared", f"{check.threshold_documents:,}"],
        ["largest score", f"{check.max_score:.4g}"],
        ["largest difference of scores", f"{check.max_difference:.2g}"],
        ["pairs in another order", "none"],
    ]
    show_table(f"{model} for {to}", ["", ""], rows, left=(0, 1))


def _facts(report: "ExportReport") -> dict[str, Any]:
    return {**asdict(report), "files": [str(file) for file in report.files]}


def _renamed(report: "ExportReport") -> str:
    renamed = {old: new for old, new in report.features.items() if old != new}
    shown = ", ".join(f"'{old}' is {new}" for old, new in list(renamed.items())[:3])
    rest = f", and {len(renamed) - 3} more: see --json" if len(renamed) > 3 else ""
    return f"; {shown}{rest}" if renamed else ""
