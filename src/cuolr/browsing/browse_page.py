"""The page that shows a model beside a log: one HTML file, with its data or with a server that has it."""

import base64
import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from cuolr.browsing.browsed_model import BrowsedModel
from cuolr.browsing.overview import Overview
from cuolr.browsing.query_view import QueryView
from cuolr.glossary import OF_BROWSING, glossary
from cuolr.progress import Stages, no_stages

HERE = Path(__file__).parent
# The look of the reports.
REPORT_STYLE = HERE.parent / "experiments" / "report" / "page.css"
# Significant digits of numbers in the page.
DIGITS = 4


@dataclass(frozen=True)
class BrowsePage:
    """The page.

    Attributes:
        model: Name of the model.
        log: Name of the log.
        browsed: Both.
        overview: The first view.
    """

    model: str
    log: str
    browsed: BrowsedModel
    overview: Overview

    def with_all_queries(self, stages: Stages = no_stages) -> str:
        """The page for a file: the views of all queries of the table are in it. It needs no network."""
        progress = stages("writing queries", len(self.overview.queries))
        views = {}
        for query in self.overview.queries.tolist():
            found = self.view(query)
            views[found.query_id] = found.as_dict()
            progress(1)
        return self._render(views)

    def view(self, query: int) -> QueryView:
        """What is shown for a query, in the table or not."""
        in_table = bool(np.isin(query, self.overview.queries))
        return self.browsed.view(query, self.overview.changes if in_table else None)

    def with_server(self) -> str:
        """The page for a server that answers `query?id=…` beside it."""
        return self._render(None)

    @property
    def content_security_policy(self) -> str:
        """What the page of a server may load: its own script and style, pictures within it, and queries."""
        return f"{_policy(*_assets())}; connect-src 'self'; frame-ancestors 'none'"

    def _render(self, views: Mapping[str, Any] | None) -> str:
        style, script = _assets()
        environment = Environment(
            loader=FileSystemLoader(HERE), autoescape=True, undefined=StrictUndefined, trim_blocks=True
        )
        connect = "" if views is not None else "; connect-src 'self'"
        data = {
            "model": self.model,
            "log": self.log,
            "min_sessions": self.browsed.min_sessions,
            "opaque": list(self.browsed.explainer.opaque),
            "explained": self.browsed.explainer.policy is not None,
            "overview": self.overview.as_dict(),
            "views": views,
        }
        return environment.get_template("browse.html.jinja").render(
            model=self.model,
            log=self.log,
            policy=_policy(style, script) + connect,
            glossary=glossary(OF_BROWSING),
            style=Markup(style),
            script=Markup(script),
            data=Markup(embedded_json(data)),
        )


def embedded_json(value: Any) -> str:
    r"""JSON that can stand in a script element: whatever a log holds, it cannot end the element.

    >>> embedded_json({"query": "</script><b>", "rate": 0.123456})
    '{"query":"\\u003c/script\\u003e\\u003cb\\u003e","rate":0.1235}'
    """
    text = json.dumps(_rounded(value), separators=(",", ":"), allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _rounded(value: Any) -> Any:
    """The same JSON values, with numbers of few digits, and None for those that are not finite."""
    if isinstance(value, Mapping):
        return {name: _rounded(of_name) for name, of_name in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(each) for each in value]
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None
    return value


def _assets() -> tuple[str, str]:
    """The style and the script, exactly as they stand in the page."""
    style = REPORT_STYLE.read_text(encoding="utf-8") + (HERE / "browse.css").read_text(encoding="utf-8")
    return f"\n{style}", f"\n{(HERE / 'browse.js').read_text(encoding='utf-8')}"


def _policy(style: str, script: str) -> str:
    """A content security policy: this style and this script, known by their hashes, and pictures in the page."""
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (style, script)]
    parts = [
        "default-src 'none'",
        f"style-src 'sha256-{hashes[0]}'",
        f"script-src 'sha256-{hashes[1]}'",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
    ]
    return "; ".join(parts)
