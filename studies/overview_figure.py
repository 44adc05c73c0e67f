"""Draws docs/figures/overview.svg: from a click log to a decision, with the numbers of a small simulated log.

Run: python -m studies.overview_figure
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

import numpy as np
import polars as pl

import cuolr
from studies.click_model_figure import Point, text

OUT = Path(__file__).parents[1] / "docs" / "figures" / "overview.svg"

QUERIES, PRODUCTS, SESSIONS = 80, 6, 16_000
NAMES = "ABCDEF"
# Of the query that is shown: products in the order of production, the best of them low.
APPEAL = (0.22, 0.30, 0.18, 0.55, 0.12, 0.45)
EXAMINATION = (1.0, 0.72, 0.52, 0.38, 0.28, 0.21)
SHOWN = "query 0"

LIGHT = {
    "ink": "#24292f",
    "quiet": "#59636e",
    "panel": "#ffffff",
    "frame": "#d0d7de",
    "clicks": "#c4540a",
    "corrected": "#0b62c4",
    "good": "#1a7f37",
}
DARK = {
    "ink": "#e6edf3",
    "quiet": "#9aa4af",
    "panel": "#161b22",
    "frame": "#3d444d",
    "clicks": "#ffa657",
    "corrected": "#6cb6ff",
    "good": "#57c46c",
}
SHAPES_AND_FONTS = """\
text { font: 17px system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
.title { font-size: 20px; font-weight: 700; }
.verdict { font-size: 22px; font-weight: 700; }
.line, .axis, .moves, .stays, .whisker { fill: none; stroke-width: 2; }
.axis { stroke-width: 1.5; }
.moves { stroke-width: 3; }"""
# Written out for both palettes, without CSS variables, which viewers other than browsers do not know.
COLOURS = """\
text { fill: %(ink)s; }
.quiet { fill: %(quiet)s; }
.panel { fill: %(panel)s; stroke: %(frame)s; }
.axis, .stays { stroke: %(frame)s; }
.clicks { fill: %(clicks)s; }
.corrected { fill: %(corrected)s; }
.line, .moves { stroke: %(corrected)s; }
.whisker { stroke: %(ink)s; }
.good { fill: %(good)s; }
.good-line { stroke: %(good)s; stroke-width: 3; }
.flow { fill: %(quiet)s; }"""

Interval = tuple[float, float, float]  # estimate, low, high


@dataclass(frozen=True)
class Numbers:
    """What the figure shows.

    Attributes:
        sessions: Sessions of the log.
        rates: Clicks per impression of each product of the query, in the order of production.
        examination: By position.
        corrected: Clicks per examination of each product, in the order of production.
        ranking: The products of the query as the model ranks them, by their numbers in production.
        gain: Relative gain in clicks on another log.
        recommendation: Ship, test or keep.
    """

    sessions: int
    rates: Sequence[float]
    examination: Sequence[Interval]
    corrected: Sequence[Interval]
    ranking: Sequence[int]
    gain: Interval
    recommendation: str


def simulated_week(catalogue: pl.DataFrame, appeal: np.ndarray, rng: np.random.Generator) -> cuolr.ClickLog:
    """A week of a shop whose lists vary a little around the order of production, with users as in PBM."""
    query = rng.integers(0, QUERIES, SESSIONS)
    noisy = np.arange(PRODUCTS) + 0.9 * rng.gumbel(size=(SESSIONS, PRODUCTS))
    shown = np.argsort(noisy, axis=1) + query[:, None] * PRODUCTS
    clicks = rng.random(shown.shape) < np.array(EXAMINATION) * appeal[shown]
    rows = pl.DataFrame(
        {
            "query_id": [f"query {number}" for number in np.repeat(query, PRODUCTS)],
            "session_id": [f"s{number}" for number in np.repeat(np.arange(SESSIONS), PRODUCTS)],
            "position": np.tile(np.arange(1, PRODUCTS + 1), SESSIONS),
            "doc_id": [f"p{number}" for number in shown.ravel()],
            "click": clicks.ravel().astype(int),
        }
    )
    return cuolr.import_log(rows, catalogue)


def computed(seed: int = 3) -> Numbers:
    """Simulate two weeks; learn from the first, decide on the second."""
    rng = np.random.default_rng(seed)
    appeal = np.concatenate([APPEAL, rng.uniform(0.08, 0.5, (QUERIES - 1) * PRODUCTS)])
    catalogue = pl.DataFrame(
        {
            "query_id": [f"query {number}" for number in np.repeat(np.arange(QUERIES), PRODUCTS)],
            "doc_id": [f"p{number}" for number in range(len(appeal))],
            "quality": appeal + rng.normal(0, 0.05, len(appeal)),
            "margin": rng.random(len(appeal)),
        }
    )
    log, next_log = (simulated_week(catalogue, appeal, rng) for _ in range(2))
    model = cuolr.Ranker(steps=30).fit(log)
    evaluation = model.assess(next_log)
    rated = {row["doc_id"]: row for row in cuolr.judgments(log).filter(query_id=SHOWN).iter_rows(named=True)}
    of_query = [rated[f"p{number}"] for number in range(PRODUCTS)]
    ranking = dict(zip(log.candidates.query_ids, model.rank_ids(log.candidates, k=PRODUCTS), strict=True))[SHOWN]
    return Numbers(
        sessions=log.sessions,
        rates=[row["clicks"] / row["impressions"] for row in of_query],
        examination=[
            (place.value, place.low, place.high)
            for place in cuolr.diagnose(log).curves.pooled.positions
            if place is not None
        ],
        corrected=[(row["rate"], row["low"], row["high"]) for row in of_query],
        ranking=[int(doc_id[1:]) for doc_id in ranking],
        gain=(evaluation.gain, *evaluation.interval),
        recommendation=evaluation.recommendation,
    )


WIDTH, HEIGHT, GAP = 310, 318, 16
FIRST_ROW = 84


def rect(at: Point, width: float, height: float, css: str) -> str:
    """A bar."""
    return f'<rect x="{at[0]:.1f}" y="{at[1]:.1f}" width="{width:.1f}" height="{height:.1f}" rx="2" class="{css}"/>'


def line(start: Point, end: Point, css: str) -> str:
    """A straight line."""
    return f'<path d="M{start[0]:.1f} {start[1]:.1f}L{end[0]:.1f} {end[1]:.1f}" class="{css}"/>'


def signed(share: float) -> str:
    """A change in percent."""
    return f"{share:+.0%}".replace("-", "−").replace("%", " %")


def panel(title: str, lines: Sequence[str], width: float = WIDTH) -> Iterator[str]:
    """A frame with a title, and sentences at the bottom."""
    yield f'<rect class="panel" width="{width:g}" height="{HEIGHT}" rx="10"/>'
    yield text((16, 32), title, "title")
    for number, content in enumerate(lines):
        yield text((16, HEIGHT - 16 - 22 * (len(lines) - 1 - number)), content, "quiet")


def log_panel(numbers: Numbers) -> Iterator[str]:
    """What was shown and clicked: the documents of a query and their click rates."""
    yield from panel("1  Log", [f"{numbers.sessions:,} sessions: what was", "shown, and what was clicked."])
    yield text((16, 62), "usual place", "quiet")
    yield text((134, 62), "clicks / time shown", "quiet")
    for number, rate in enumerate(numbers.rates):
        y = FIRST_ROW + number * 29
        yield text((36, y + 12), str(number + 1), "quiet", "middle")
        yield text((86, y + 12), NAMES[number], "title", "middle")
        yield rect((134, y - 3), rate * 420, 18, "clicks")
        yield text((134 + rate * 420 + 7, y + 12), f"{rate:.2f}")


def examination_panel(numbers: Numbers) -> Iterator[str]:
    """Examination by position with intervals."""
    yield from panel("2  Examination", ["Probability by position, from", "documents that change places."])
    left, bottom, height, step = 52, 226, 150, 44
    for level in (0.0, 0.5, 1.0):
        yield line((left, bottom - level * height), (left + 5.6 * step, bottom - level * height), "axis")
        yield text((left - 8, bottom - level * height + 6), f"{level:g}", "quiet", "end")
    points = [
        (left + 18 + number * step, bottom - place[0] * height) for number, place in enumerate(numbers.examination)
    ]
    yield '<path class="line" d="M' + "L".join(f"{x:.1f} {y:.1f}" for x, y in points) + '"/>'
    for number, ((x, y), (_, low, high)) in enumerate(zip(points, numbers.examination, strict=True)):
        yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" class="corrected"/>'
        yield line((x, bottom - low * height), (x, bottom - high * height), "whisker")
        yield text((x, bottom + 22), str(number + 1), "quiet", "middle")


def rates_panel(numbers: Numbers) -> Iterator[str]:
    """Click rates before and after the correction."""
    yield from panel("3  Corrected click rates", ["Clicks over expected", "examinations; 95 % intervals."])
    yield rect((16, 50), 14, 12, "clicks")
    yield text((36, 62), "/ time shown", "quiet")
    yield rect((158, 50), 14, 12, "corrected")
    yield text((178, 62), "/ examination", "quiet")
    scale = 330
    for number, (rate, (value, low, high)) in enumerate(zip(numbers.rates, numbers.corrected, strict=True)):
        y = FIRST_ROW + number * 29
        yield text((24, y + 13), NAMES[number], "title", "middle")
        yield rect((44, y - 4), rate * scale, 9, "clicks")
        yield rect((44, y + 6), value * scale, 9, "corrected")
        yield line((44 + low * scale, y + 10.5), (44 + high * scale, y + 10.5), "whisker")


def ranking_panel(numbers: Numbers) -> Iterator[str]:
    """Where each document stands in the lists of production and of the model."""
    yield from panel("4  Ranking", ["A ranker learns the corrected", "rates from features."])
    left, right = 78, 232
    yield text((left, 62), "production", "quiet", "middle")
    yield text((right, 62), "model", "quiet", "middle")
    for place, product in enumerate(numbers.ranking):
        start, end = (left + 18, FIRST_ROW + product * 29 + 7), (right - 18, FIRST_ROW + place * 29 + 7)
        yield line(start, end, "moves" if place < product else "stays")
        yield text((left, start[1] + 6), NAMES[product], "title", "middle")
        yield text((right, end[1] + 6), NAMES[product], "title", "middle")


def decision_panel(numbers: Numbers) -> Iterator[str]:
    """The gain on the next log with its interval, and what to do."""
    width = 2 * WIDTH + GAP
    value, low, high = numbers.gain
    lines = [
        "Off-policy evaluation on another week: what the model's lists would",
        "earn, under every model of users that explains the log.",
    ]
    yield from panel("5  Decision", lines, width)
    left, right, y = 48, width - 48, 160
    first, last = np.floor(min(low, -0.05) / 0.05), np.ceil(max(high, 0.1) / 0.05)

    def x(gain: float) -> float:
        return float(left + (gain / 0.05 - first) * (right - left) / (last - first))

    yield text(
        (16, 84), f"{numbers.recommendation}: {signed(value)} clicks ({signed(low)} to {signed(high)})", "verdict good"
    )
    yield line((left, y + 26), (right, y + 26), "axis")
    for tick in np.arange(first, last + 1) * 0.05:
        yield line((x(tick), y + 20), (x(tick), y + 32), "axis")
        yield text((x(tick), y + 54), "production" if abs(tick) < 1e-9 else signed(tick), "quiet", "middle")
    yield line((x(0), y - 30), (x(0), y + 26), "axis")
    yield line((x(low), y), (x(high), y), "good-line")
    yield f'<circle cx="{x(value):.1f}" cy="{y}" r="7" class="good"/>'


def flow(at: Point) -> str:
    """An arrow head between two panels."""
    x, y = at
    return f'<path class="flow" d="M{x - 5:g} {y - 8:g}L{x - 5:g} {y + 8:g}L{x + 6:g} {y:g}Z"/>'


def description(numbers: Numbers) -> str:
    """The figure in words, for those who do not see it."""
    value, low, high = map(signed, numbers.gain)
    return (
        f"Five panels. 1: a log of {numbers.sessions:,} sessions, with the click rates of six documents of a query. 2: "
        "how likely each position is examined, falling from the top. 3: clicks over expected examinations: documents "
        "that stand low gain most. 4: the model moves documents with high corrected rates up. 5: the estimated gain of "
        f"the model in clicks, {value} ({low} to {high}); the recommendation is {numbers.recommendation}."
    )


def figure(numbers: Numbers) -> str:
    """The whole SVG."""
    width, height = 3 * WIDTH + 4 * GAP, 2 * HEIGHT + 3 * GAP
    dark = f"@media (prefers-color-scheme: dark) {{\n{COLOURS % DARK}\n}}"
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        'role="img" aria-labelledby="title description">',
        '<title id="title">From a click log to a decision</title>',
        f'<desc id="description">{escape(description(numbers))}</desc>',
        f"<style>\n{SHAPES_AND_FONTS}\n{COLOURS % LIGHT}\n{dark}\n</style>",
    ]
    columns, rows = [GAP + column * (WIDTH + GAP) for column in range(3)], (GAP, 2 * GAP + HEIGHT)
    places = {
        (columns[0], rows[0]): log_panel,
        (columns[1], rows[0]): examination_panel,
        (columns[2], rows[0]): rates_panel,
        (columns[0], rows[1]): ranking_panel,
        (columns[1], rows[1]): decision_panel,
    }
    for (left, top), drawn in places.items():
        lines += [f'<g transform="translate({left} {top})">', *drawn(numbers), "</g>"]
        if left > GAP:
            lines.append(flow((left - GAP / 2, top + HEIGHT / 2)))
    return "\n".join([*lines, "</svg>"]) + "\n"


if __name__ == "__main__":
    OUT.write_text(figure(computed()), encoding="utf-8")
