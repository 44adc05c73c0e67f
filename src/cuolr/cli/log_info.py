"""`cuolr log-info`: describe a click log."""

from dataclasses import asdict
from pathlib import Path

import tyro

from cuolr.cli.terminal import bar, show_json, show_table, show_text
from cuolr.logs.diagnosis import LogInfo, describe_folder
from cuolr.logs.log_folder import read_meta


def log_info(log: tyro.conf.Positional[Path], json: bool = False) -> None:
    """Describe a click log: its size, click rates by position, and whether position bias is identifiable.

    Args:
        log: Folder of the log.
        json: Print JSON instead of tables.
    """
    info, weights = describe_folder(log), _reward_weights(log)
    if json:
        show_json({**asdict(info), "reward_weights": weights})
    else:
        _show(str(log), info, weights)


def _reward_weights(log: Path) -> dict[str, float] | None:
    """The weight of each column in the reward, if the import was told."""
    match read_meta(log):
        case {"source": {"reward": dict(weights)}}:
            return weights
        case _:
            return None


def _show(title: str, info: LogInfo, weights: dict[str, float] | None) -> None:
    without = "unknown (aggregated)" if info.share_without_clicks is None else f"{info.share_without_clicks:.1%}"
    rows = [
        ["sessions", f"{info.sessions:,}"],
        ["queries", f"{info.queries:,} ({info.share_of_queries_seen:.1%} of all)"],
        ["distinct lists", f"{info.distinct_lists:,}"],
        ["clicks per session", f"{info.clicks_per_session:.3f}"],
        ["sessions without a click", without],
        *_reward_rows(info, weights),
        *([f"sessions by {name}", _numbers(values)] for name, values in info.context.items()),
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


def _reward_rows(info: LogInfo, weights: dict[str, float] | None) -> list[list[str]]:
    if info.reward_per_session is None:
        return []
    terms = (
        "as in the table" if weights is None else ", ".join(f"{name}={weight:g}" for name, weight in weights.items())
    )
    rewarded = "unknown (aggregated)"
    if info.share_of_clicks_rewarded is not None:
        rewarded = f"{info.share_of_clicks_rewarded:.1%}"
    return [
        ["reward", terms],
        ["reward per session", f"{info.reward_per_session:.4g}"],
        ["clicks with a reward", rewarded],
    ]


def _numbers(values: dict[str, int]) -> str:
    return ", ".join(f"{value} {number:,}" for value, number in values.items())
