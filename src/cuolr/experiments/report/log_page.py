"""What a click log can tell, as one self-contained HTML page."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from cuolr.examination.curve_intervals import ExaminationCurve, Interval
from cuolr.examination.diagnosis import Diagnosis, amount_text
from cuolr.examination.identifiability import MIN_JOINED_SHARE, MIN_SHARED_CLICKS, Identifiability
from cuolr.experiments.report.drawing import INK, WIDE, Panel, Plot, Style, drawn, setting_styles
from cuolr.experiments.report.wording import NO_VALUE
from cuolr.glossary import OF_LOGS, glossary
from cuolr.logs.drift import Period

if TYPE_CHECKING:
    from matplotlib.axes import Axes


LINKED, NOT_LINKED, BARS = "#1f83c6", "#d55e00", "#4f7fc2"
ALL_SESSIONS = "all sessions"
# Up to this number of positions, the matrix of links has numbers.
MAX_NUMBERS = 12


def log_plots(found: Diagnosis) -> list[Plot]:
    """All plots that the log has data for."""
    plots = [_examination(found)] if len(found.curves.pooled.positions) > 1 else []
    if np.any(found.identifiability.links):
        plots.append(_links(found.identifiability))
    plots.append(_click_rates(found.info.click_rate))
    if found.sessions is not None and len(found.sessions.periods) > 1:
        plots.append(_sessions(found.sessions.periods))
    return plots


def _examination(found: Diagnosis) -> Plot:
    curves = found.curves.all if len(found.curves.by_context) > 1 else (found.curves.pooled,)
    styles = setting_styles([_label(curve) for curve in curves])
    caption = "Examination where nothing above was clicked, relative to position 1, with 95 % intervals over queries."
    if found.not_covered is not None:
        caption += f" {found.not_covered}"
    return Plot(
        name="examination",
        title="Examination by position",
        caption=caption,
        panels=(Panel("", lambda axes: _draw_curves(axes, curves, styles), height=2.9, width=WIDE),),
        legend=styles if len(curves) > 1 else {},
    )


def _label(curve: ExaminationCurve) -> str:
    return curve.level or ALL_SESSIONS


def _draw_curves(axes: "Axes", curves: Sequence[ExaminationCurve], styles: Mapping[str, Style]) -> None:
    highest = 1.0
    for number, curve in enumerate(curves):
        known = [(k, place) for k, place in enumerate(curve.positions) if place is not None]
        if not known:
            continue
        shift = 0.14 * (number - (len(curves) - 1) / 2)
        at = [k + 1 + shift for k, _ in known]
        values = [place.value for _, place in known]
        # An interval that says nothing would hide the others.
        errors = [[p.value - p.low for _, p in known], [min(p.high, 2 * p.value + 1) - p.value for _, p in known]]
        style = styles[_label(curve)]
        axes.errorbar(at, values, yerr=errors, color=style.colour, marker=style.marker, capsize=2, elinewidth=1.1)
        highest = max(highest, *(value + error for value, error in zip(values, errors[1], strict=True)))
    axes.set_ylim(0, min(highest, 3.0) * 1.05)
    _positions(axes, len(curves[0].positions))
    axes.set_ylabel("examination")
    axes.grid(axis="y")


def _links(found: Identifiability) -> Plot:
    return Plot(
        name="links",
        title="Links between positions",
        caption=(
            "Effective clicks on documents that were clicked at both positions: a·b / (a + b) for a document with a "
            f"clicks at one and b at the other. {MIN_SHARED_CLICKS} or more link two positions (blue). The thinnest "
            f"link of the best way to connect positions with {100 * MIN_JOINED_SHARE:.0f} % of the clicks: "
            f"{found.thinnest_link}."
        ),
        panels=(Panel("", lambda axes: _draw_links(axes, found), height=4.0, width=WIDE),),
    )


def _draw_links(axes: "Axes", found: Identifiability) -> None:
    from matplotlib.patches import Rectangle

    links = np.array(found.links)
    strongest = math.log1p(max(float(links.max()), MIN_SHARED_CLICKS))
    for row in range(found.k):
        for column in range(found.k):
            clicks = links[row, column]
            if row == column or clicks <= 0:
                continue
            colour = LINKED if clicks >= MIN_SHARED_CLICKS else NOT_LINKED
            alpha = 0.12 + 0.5 * math.log1p(clicks) / strongest
            axes.add_patch(Rectangle((column + 0.5, row + 0.5), 1, 1, facecolor=colour, alpha=alpha, linewidth=0))
            if found.k <= MAX_NUMBERS:
                axes.text(column + 1, row + 1, _short(clicks), ha="center", va="center", fontsize=6.5, color=INK)
    axes.set_xlim(0.5, found.k + 0.5)
    axes.set_ylim(found.k + 0.5, 0.5)
    axes.set_aspect("equal")
    for place in range(found.k):
        axes.add_patch(Rectangle((place + 0.5, place + 0.5), 1, 1, facecolor=INK, alpha=0.08, linewidth=0))
    _positions(axes, found.k)
    axes.set_yticks(axes.get_xticks())
    axes.set_ylabel("position")
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _short(number: float) -> str:
    """A number in few characters.

    >>> _short(0.4), _short(812), _short(4_321), _short(1_250_000)
    ('<1', '812', '4.3k', '1.2M')
    """
    for unit, name in ((1e6, "M"), (1e3, "k")):
        if number >= unit:
            return f"{number / unit:.1f}{name}" if number < 10 * unit else f"{number / unit:.0f}{name}"
    return f"{number:.0f}" if number >= 1 else "<1"


def _click_rates(rates: Sequence[float | None]) -> Plot:
    def draw(axes: "Axes") -> None:
        axes.bar(range(1, len(rates) + 1), [100 * (rate or 0.0) for rate in rates], color=BARS, width=0.75)
        _positions(axes, len(rates))
        axes.set_ylabel("clicks, % of sessions")
        axes.grid(axis="y")
        axes.set_axisbelow(True)

    caption = "Clicks per hundred sessions that showed a document there: examination times attractiveness."
    return Plot("click-rates", "Click rate by position", caption, (Panel("", draw, width=WIDE),))


def _sessions(periods: Sequence[Period]) -> Plot:
    def bars(axes: "Axes") -> None:
        axes.bar(range(len(periods)), [period.sessions for period in periods], color=BARS, width=0.75)
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        _days(axes, periods)

    def clicks(axes: "Axes") -> None:
        values = [np.nan if period.clicks_per_session is None else period.clicks_per_session for period in periods]
        axes.plot(range(len(periods)), values, color=BARS, marker="o")
        axes.set_ylim(0, 1.15 * max(np.nanmax(values), 1e-9))
        _days(axes, periods)

    by = {1: "day", 7: "week"}.get(periods[0].days, f"{periods[0].days} days")
    panels = (Panel("sessions", bars, 1.7, WIDE), Panel("clicks per session", clicks, 1.7, WIDE))
    return Plot("sessions", f"Sessions by {by}", "By the day (UTC) on which they began.", panels)


def _days(axes: "Axes", periods: Sequence[Period]) -> None:
    step = -(-len(periods) // 5)
    axes.set_xticks(range(0, len(periods), step), [period.start[5:] for period in periods[::step]])
    axes.set_xlim(-0.6, len(periods) - 0.4)
    axes.grid(axis="y")
    axes.set_axisbelow(True)


def _positions(axes: "Axes", number: int) -> None:
    step = 1 if number <= MAX_NUMBERS else 5
    ticks = [position for position in range(1, number + 1) if step == 1 or position == 1 or position % step == 0]
    axes.set_xticks(ticks)
    axes.set_xlabel("position")


HERE = Path(__file__).parent


def render_log_page(found: Diagnosis, name: str) -> str:
    """The page.

    Args:
        found: The content.
        name: Name of the log.
    """
    environment = Environment(
        loader=FileSystemLoader(HERE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {
        "interval": _interval,
        "capitalised": lambda text: text[:1].upper() + text[1:],
        "unbroken": lambda text: text.replace(" %", "\N{NO-BREAK SPACE}%"),
    }
    return environment.get_template("log_page.html.jinja").render(
        name=name,
        found=found,
        plots=[drawn(plot, f"p{i}") for i, plot in enumerate(log_plots(found))],
        facts=_facts(found),
        all_sessions=ALL_SESSIONS,
        no_value=NO_VALUE,
        amount=amount_text,
        ceil=math.ceil,
        glossary=glossary(OF_LOGS),
        style=Markup((HERE / "page.css").read_text(encoding="utf-8")),
    )


def _interval(found: Interval | None) -> str:
    """In words; empty for position 1, the unit."""
    if found is None:
        return NO_VALUE
    return "" if found.low == found.high else f"{found.low:.3f} to {found.high:.3f}"


def _facts(found: Diagnosis) -> dict[str, str]:
    info, sessions, weight = found.info, found.sessions, found.curves.logging_policy_weight
    changed, swapped = (0.0, 0.0) if found.variation is None else (found.variation.changed, found.variation.swapped)
    facts = {
        "sessions": f"{info.sessions:,}",
        "time": "" if sessions is None or sessions.first is None else f"{sessions.first} to {sessions.last}",
        "queries": f"{info.queries:,} ({info.share_of_queries_seen:.1%} of all)",
        "distinct lists": "" if info.distinct_lists is None else f"{info.distinct_lists:,}",
        "clicks per session": f"{info.clicks_per_session:.3f}",
        "sessions without a click": "" if info.share_without_clicks is None else f"{info.share_without_clicks:.1%}",
        "reward per session": "" if info.reward_per_session is None else f"{info.reward_per_session:.4g}",
        "documents shown": f"{info.documents_seen:,}",
        "shown at several positions": f"{info.share_at_several_positions:.1%}",
        "clicks on these": f"{found.identifiability.share_at_several_positions:.1%}",
        "sessions with another list than the most frequent": "" if found.variation is None else f"{changed:.1%}",
        "of these by a swap of neighbours": f"{swapped:.1%}" if changed else "",
        "sessions in random order": ""
        if info.sessions_in_random_order is None
        else f"{info.sessions_in_random_order:,}",
        "impressions with a logging propensity below 1": ""
        if found.share_with_propensity is None
        else f"{found.share_with_propensity:.1%}",
        "logging-policy weight": ""
        if weight is None
        else f"{weight.value:.2f} ({weight.low:.2f} to {weight.high:.2f})",
        "features": f"{found.features:,}",
    }
    contexts = {
        f"sessions by {name}": ", ".join(f"{value} {number:,}" for value, number in values.items())
        for name, values in info.context.items()
    }
    return {name: text for name, text in {**facts, **contexts}.items() if text}
