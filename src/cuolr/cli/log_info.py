"""`cuolr log-info`: describe a click log."""

from dataclasses import asdict
from pathlib import Path

import tyro

from cuolr.cli.terminal import bar, show_json, show_table, show_text
from cuolr.data.candidate_store import load_candidates
from cuolr.data.feature_summary import FeatureSummary, describe_features
from cuolr.logs.diagnosis import LogInfo, describe_folder


def log_info(log: tyro.conf.Positional[Path], json: bool = False) -> None:
    """Describe a click log: its size, click rates by position, whether position bias is identifiable, and its features.

    Args:
        log: Folder of the log.
        json: Print JSON instead of tables.
    """
    info = describe_folder(log)
    features = describe_features(load_candidates(log))
    if json:
        show_json({**asdict(info), "features": [asdict(feature) for feature in features]})
    else:
        _show(str(log), info)
        _show_features(features)


def _show(title: str, info: LogInfo) -> None:
    without = "unknown (aggregated)" if info.share_without_clicks is None else f"{info.share_without_clicks:.1%}"
    rows = [
        ["sessions", f"{info.sessions:,}"],
        ["queries", f"{info.queries:,} ({info.share_of_queries_seen:.1%} of all)"],
        ["distinct lists", f"{info.distinct_lists:,}"],
        ["clicks per session", f"{info.clicks_per_session:.3f}"],
        ["sessions without a click", without],
        ["documents shown", f"{info.documents_seen:,}"],
        ["documents shown at several positions", f"{info.share_at_several_positions:.1%}"],
    ]
    show_table(title, ["", ""], rows)
    highest = max((rate for rate in info.click_rate if rate), default=1.0)
    rates = [
        [str(position), "–" if rate is None else f"{rate:.4f}", bar((rate or 0.0) / highest)]
        for position, rate in enumerate(info.click_rate, start=1)
    ]
    show_table("click rate by position", ["position", "rate", ""], rates, left=(0, 2))
    show_text(f"Position bias identifiable: {info.identifiable}.")


def _show_features(features: list[FeatureSummary]) -> None:
    """A row for each column, but for numbers that are always known, which are counted."""
    special = [feature for feature in features if feature.kind != "number" or feature.missing]
    rows = [[feature.name, feature.kind, f"{feature.missing:.1%}", str(feature.levels or "–")] for feature in special]
    plain = len(features) - len(special)
    if plain:
        rows.append([f"{plain:,} {'others' if special else 'features'}", "number", f"{0:.1%}", "–"])
    show_table("features", ["column", "kind", "missing", "levels"], rows, left=(0, 1))
