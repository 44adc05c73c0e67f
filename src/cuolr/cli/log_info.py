"""`cuolr log-info`: describe a click log."""

from dataclasses import asdict
from pathlib import Path

import tyro

from cuolr.cli.options import TimeFlags
from cuolr.cli.terminal import bar, say, show_json, show_table, show_text, stage_bars
from cuolr.data.candidate_store import load_candidates
from cuolr.data.feature_summary import FeatureSummary, describe_features
from cuolr.examination.identifiability import Identifiability
from cuolr.logs.counts import ClickCounts
from cuolr.logs.log_folder import load_click_log, read_meta
from cuolr.logs.log_info import LogInfo, describe_folder
from cuolr.logs.reward_scale import weights_of
from cuolr.logs.session_info import SessionInfo, sessions_of_folder


def log_info(log: tyro.conf.Positional[Path], window: TimeFlags = TimeFlags(), json: bool = False) -> None:
    """Describe a click log: its size, click rates by position, whether position bias is identifiable, and its features.

    Warns if only clicked sessions were logged, of duplicated or robot-like sessions and, for a log with timestamps, of
    drift: whether click rates, queries or documents of the later half differ from the earlier half by more than chance.

    Args:
        log: Folder of the log.
        window: Sessions to use, by time.
        json: Print JSON instead of tables.
    """
    with stage_bars() as stages:
        info = describe_folder(log, window.window(), stages)
        counts = ClickCounts.of(load_click_log(log, window.window(), ids=False, stages=stages), stages)
        sessions = None if info.share_without_clicks is None else sessions_of_folder(log, window.window())
    found = Identifiability.of(counts)
    features = describe_features(load_candidates(log))
    if json:
        described = None if sessions is None else {**asdict(sessions), "warnings": sessions.warnings}
        summaries = [asdict(feature) for feature in features]
        show_json(
            {
                **asdict(info),
                "identifiability": found.as_dict(),
                "reward_weights": weights_of(read_meta(log)),
                "session_info": described,
                "features": summaries,
            }
        )
        return
    _show(str(log), info, weights_of(read_meta(log)))
    show_text(f"Position bias identifiable: {found.in_words()}.")
    _show_features(features)
    if sessions is not None:
        _show_sessions(sessions)


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
        *(
            [["sessions in random order", f"{info.sessions_in_random_order:,}"]]
            if info.sessions_in_random_order is not None
            else []
        ),
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


def _show_sessions(info: SessionInfo) -> None:
    def count(number: int | None) -> str:
        return "unknown" if number is None else f"{number:,}"

    rows = [
        ["first document not at position 1", f"{info.starting_late:.1%}"],
        ["gap in the positions", f"{info.with_gaps:.1%}{f', up to {info.largest_gap}' if info.largest_gap else ''}"],
        ["id of another session", count(info.repeated_ids)],
        ["same query, list, clicks and time as another", count(info.duplicates)],
        ["in a burst of the same list and clicks", count(info.bursts)],
        ["every document of 5 or more clicked", f"{info.all_clicked:,}"],
        ["of users with more than 200 sessions on a day", count(info.busy_user_sessions)],
    ]
    if info.first is not None:
        rows.insert(0, ["time", f"{info.first} to {info.last}"])
    show_table("sessions", ["", ""], rows)
    if info.unit is not None:
        say(f"note: {info.unit}")
    if info.periods:
        show_table(
            f"sessions by {'day' if info.periods[0].days == 1 else 'week'}",
            ["from", "sessions", "clicks per session", "without a click"],
            [
                [
                    period.start,
                    f"{period.sessions:,}",
                    "–" if period.clicks_per_session is None else f"{period.clicks_per_session:.3f}",
                    "–" if period.share_without_clicks is None else f"{period.share_without_clicks:.1%}",
                ]
                for period in info.periods
            ],
        )
    if info.drift is not None and not info.drift.found:
        show_text(f"No drift: sessions since {info.drift.split} do not differ from earlier ones.")
    for warning in info.warnings:
        show_text(f"Warning: {warning}")


def _show_features(features: list[FeatureSummary]) -> None:
    """A row for each column, but for numbers that are always known, which are counted."""
    special = [feature for feature in features if feature.kind != "number" or feature.missing]
    rows = [[feature.name, feature.kind, f"{feature.missing:.1%}", str(feature.levels or "–")] for feature in special]
    plain = len(features) - len(special)
    if plain:
        rows.append([f"{plain:,} {'others' if special else 'features'}", "number", f"{0:.1%}", "–"])
    show_table("features", ["column", "kind", "missing", "levels"], rows, left=(0, 1))
