"""What a click log can tell, as one self-contained HTML page."""

import math
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from cuolr.examination.curve_intervals import Interval
from cuolr.examination.diagnosis import Diagnosis, amount_text
from cuolr.experiments.report.drawing import drawn
from cuolr.experiments.report.log_plots import ALL_SESSIONS, log_plots
from cuolr.experiments.report.wording import NO_VALUE

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
