"""`cuolr log-info`: describe a click log, and tell what can be learned from it."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import tyro

from cuolr.cli.options import TimeFlags
from cuolr.cli.terminal import bar, say, show_json, show_table, show_text, stage_bars
from cuolr.data.candidate_store import load_candidates
from cuolr.data.statistics import FeatureSummary, describe_features
from cuolr.examination.plot import require_matplotlib
from cuolr.files import atomic_file, check_files, check_suffix
from cuolr.logs.importing.seen_documents import has_features
from cuolr.logs.log_folder import read_meta
from cuolr.logs.log_info import LogInfo
from cuolr.logs.reward_scale import weights_of
from cuolr.logs.session_info import SessionInfo

if TYPE_CHECKING:
    from cuolr.examination.curve_intervals import Interval
    from cuolr.examination.diagnosis import Diagnosis


def log_info(
    log: tyro.conf.Positional[Path],
    window: TimeFlags = TimeFlags(),
    html: Path | None = None,
    json: bool = False,
    overwrite: bool = False,
) -> None:
    """Describe a click log: its size, click rates, whether and from what position bias is identifiable, and what to do.

    Examination by position has intervals, in each context. If position bias is not identifiable, the advice says which
    neighbouring positions to swap, in what share of the sessions and for how long.

    Warns if only clicked sessions were logged, of duplicated or robot-like sessions and, for a log with timestamps, of
    drift: whether click rates, queries or documents of the later half differ from the earlier half by more than chance.

    Args:
        log: Folder of the log.
        window: Sessions to use, by time.
        html: Write a page with plots to this file.
        json: Print JSON instead of tables.
        overwrite: Replace an existing page.
    """
    if html is not None:
        check_suffix(html, (".html",))
        require_matplotlib()
    check_files((html,), overwrite)
    # It loads scipy's statistics, which take a moment; --help and bad arguments should not wait for it.
    from cuolr.examination.diagnosis import diagnose

    with stage_bars() as stages:
        found = diagnose(log, window.window(), stages)
    candidates = load_candidates(log)
    features = describe_features(candidates) if has_features(candidates) else []
    weights = weights_of(read_meta(log))
    if html is not None:
        from cuolr.experiments.report.log_page import render_log_page

        with atomic_file(html) as file:
            file.write_text(render_log_page(found, str(log)), encoding="utf-8")
        say(f"wrote {html}")
    if json:
        summaries = [asdict(feature) for feature in features]
        show_json({**found.as_dict(), "reward_weights": weights, "features": summaries})
        return
    _show(str(log), found.info, weights)
    _show_examination(found)
    _show_features(features)
    if found.sessions is not None:
        _show_sessions(found.sessions)
    else:
        say("note: duplicates, robots and drift are looked for in a log of sessions only")
    _show_advice(found)


def _show(title: str, info: LogInfo, weights: dict[str, float] | None) -> None:
    without = "unknown (aggregated)" if info.share_without_clicks is None else f"{info.share_without_clicks:.1%}"
    lists = "unknown (counted by document)" if info.distinct_lists is None else f"{info.distinct_lists:,}"
    rows = [
        ["sessions", f"{info.sessions:,}"],
        ["queries", f"{info.queries:,} ({info.share_of_queries_seen:.1%} of all)"],
        ["distinct lists", lists],
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


def _show_examination(found: "Diagnosis") -> None:
    """Whether position bias is identifiable, and the curves with their intervals."""
    show_text(f"Position bias identifiable: {found.identifiability.in_words()}.\n")
    weight = found.curves.logging_policy_weight
    rows = [["estimated from", found.source], *_source_rows(found)]
    if weight is not None:
        rows.append(["logging-policy weight", f"{weight.value:.2f} [{weight.low:.2f}, {weight.high:.2f}]"])
    show_table("examination", ["", ""], rows)
    curves = found.curves.all
    positions = [
        [str(place + 1), *(_interval(curve.positions[place]) for curve in curves)]
        for place in range(len(found.curves.pooled.positions))
    ]
    heads = ["position", *(curve.level or "all sessions" for curve in curves)]
    caption = "Relative to position 1, where nothing above was clicked, with 95 % intervals over queries."
    if found.not_covered is not None:
        caption += f" {found.not_covered}"
    show_table("examination by position", heads, positions, caption)


def _source_rows(found: "Diagnosis") -> list[list[str]]:
    variation = found.variation
    rows = []
    if variation is not None:
        rows = [
            ["sessions with another list than the most frequent", f"{variation.changed:.1%}"],
            ["of these by a swap of neighbours", f"{variation.swapped:.1%}" if variation.changed else "–"],
        ]
    if found.share_with_propensity is not None:
        rows.append(["impressions with a logging propensity below 1", f"{found.share_with_propensity:.1%}"])
    return rows


def _interval(found: "Interval | None") -> str:
    return "–" if found is None else f"{found.value:.3f} [{found.low:.3f}, {found.high:.3f}]"


def _show_advice(found: "Diagnosis") -> None:
    if found.alarm is not None:
        show_text(f"Alarm: {found.alarm}.")
    show_text("What to do: " + " ".join(found.what_to_do))


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
    if not features:
        rows.append(["none", "", "", ""])
    if plain:
        what = ("other" if special else "feature") + "s" * (plain > 1)
        rows.append([f"{plain:,} {what}", "number", f"{0:.1%}", "–"])
    show_table("features", ["column", "kind", "missing", "levels"], rows, left=(0, 1))
