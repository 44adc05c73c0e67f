"""`cuolr explain`: what a model would change in the list of a query, and why."""

from pathlib import Path
from typing import TYPE_CHECKING

import tyro

from cuolr.cli.browse_options import DocumentFlags, load_browsed
from cuolr.cli.options import TimeFlags
from cuolr.cli.terminal import in_one_line, show_json, show_table, show_text, stage_bars

if TYPE_CHECKING:
    from cuolr.browsing.query_view import DocumentView, QueryView

# Features that a line of text names.
NAMED = 3


def explain(
    model: tyro.conf.Positional[Path],
    log: tyro.conf.Positional[Path],
    query: str,
    documents: DocumentFlags = DocumentFlags(),
    window: TimeFlags = TimeFlags(),
    json: bool = False,
) -> None:
    """Show what a model would change in the list of a query, what clicks say about it, and which features drive it.

    The same as `cuolr browse` shows of a query, in the terminal.

    Args:
        model: Folder of a trained model.
        log: Folder of a click log with the same features.
        query: The query, as the log names it.
        documents: Documents and queries.
        window: Sessions to use, by time.
        json: Print JSON instead of tables.
    """
    with stage_bars() as stages:
        browsed = load_browsed(model, log, documents, window.window(), stages, curve=False)
        found = browsed.view(browsed.find(query))
    if json:
        show_json(found.as_dict())
        return
    _show(found)


def _show(found: "QueryView") -> None:
    rate = "click rate" if found.outcome == "clicks" else "reward rate"
    heads = ["model", "production", "document", "shown", "clicks", f"{rate}, 95 % interval", "move"]
    show_table(f"{found.query_id}: {_summary(found)}", heads, [_row(one) for one in found.documents], left=(2, 6))
    if found.lists > 1:
        show_text("Production: the documents that sessions show furthest up on average.")
    for one in found.documents:
        if one.reason:
            show_text(in_one_line(f"{_name(one)}: {one.reason}"))
    if found.documents[0].score is None:
        show_text("This model does not score documents one by one: its choice cannot be divided among features.")
        return
    rows = [[_name(one), f"{one.score or 0.0:+.3f}", _drivers(found, one)] for one in found.documents]
    heads = ["document", "score", "features that drive it"]
    caption = "Scores and what features add to them are relative to the mean of these documents."
    show_table("why the model orders them so", heads, rows, caption, left=(0, 2))


def _summary(found: "QueryView") -> str:
    sessions = f"{found.sessions:,} sessions"
    if found.change is None or found.interval is None:
        return f"{sessions}, change in {found.outcome} not estimated"
    low, high = found.interval
    return f"{sessions}, estimated change in {found.outcome} {found.change:+,.1f} ({low:+,.1f} to {high:+,.1f})"


def _row(one: "DocumentView") -> list[str]:
    rate = one.rate
    interval = "not known"
    if rate.rate is not None and rate.low is not None and rate.high is not None:
        interval = f"{rate.rate:.3f} [{rate.low:.3f}, {rate.high:.3f}]"
    moves = {"up": "↑", "down": "↓", "in": "new", "out": "left out", "same": ""}
    says = "" if one.justification == "none" else f", {one.justification}"
    return [
        "–" if one.model is None else str(one.model),
        "–" if one.production is None else str(one.production),
        _name(one),
        f"{one.impressions:,}",
        f"{one.clicks:,.0f}",
        interval,
        f"{moves[one.direction]}{says}",
    ]


def _name(one: "DocumentView") -> str:
    return f"{one.title} ({one.document_id})" if one.title else one.document_id


def _drivers(found: "QueryView", one: "DocumentView") -> str:
    parts = sorted(zip(found.features, one.contributions, strict=True), key=lambda part: -abs(part[1]))[:NAMED]
    text = ", ".join(f"{name} {size:+.3f}" for name, size in parts)
    rest = abs(one.unexplained) > 0.05 * max(abs(one.score or 0.0), 1e-9)
    return f"{text}, not explained {one.unexplained:+.3f}" if rest else text
