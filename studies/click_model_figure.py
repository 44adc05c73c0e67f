"""Draws docs/figures/click-models.svg: five click models and the ranking MDP as graphs, for docs/click-models.md.

Run: python -m studies.click_model_figure
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from math import hypot
from pathlib import Path
from typing import Literal

OUT = Path(__file__).parents[1] / "docs" / "figures" / "click-models.svg"

Shape = Literal["hidden", "known", "logged", "document"]
Point = tuple[float, float]

POSITIONS = ("k−1", "k", "k+1")
COLUMNS = (112, 222, 332)  # the x of the nodes of one position, within a panel
FIRST_ROW, ROW_HEIGHT = 104, 112
RADIUS = 29
STUB = 24  # how much is drawn of an arrow from or to a position that is not in the figure
PANEL_WIDTH, PANEL_HEIGHT, GAP = 394, 488, 12
LEGEND_HEIGHT = 140
LINE_HEIGHT = 27

LIGHT = {
    "ink": "#24292f",
    "panel": "#ffffff",
    "frame": "#d0d7de",
    "click": "#b4450b",
    "logged": "#ffd8a8",
    "document": "#d3e5fb",
}
DARK = {
    "ink": "#e6edf3",
    "panel": "#161b22",
    "frame": "#3d444d",
    "click": "#ffa657",
    "logged": "#6b3d0c",
    "document": "#1c4170",
}
SHAPES_AND_FONTS = """\
text { font: 20px system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
.title { font-size: 23px; font-weight: 700; }
.symbol { font-size: 21px; font-style: italic; }
.label { font-weight: 600; stroke-width: 6px; paint-order: stroke; }
.hidden { stroke-dasharray: 5 4; }
.hidden, .known, .logged, .document, .arrow { stroke-width: 2; }
.arrow { fill: none; }"""
# Written out for both palettes, without CSS variables, which viewers other than browsers do not know.
COLOURS = """\
text, .head { fill: %(ink)s; }
.panel { fill: %(panel)s; stroke: %(frame)s; }
.hidden, .known, .logged, .document, .arrow { stroke: %(ink)s; }
.hidden, .known { fill: %(panel)s; }
.logged { fill: %(logged)s; }
.document { fill: %(document)s; }
.label { stroke: %(panel)s; }
.arrow.after-click { stroke: %(click)s; }
.head.after-click, text.after-click { fill: %(click)s; }"""


@dataclass(frozen=True)
class Link:
    """An arrow that every position has, from a node to one of the same position or of one below.

    Attributes:
        source: Letter of the node it leaves; "" = it comes from the left margin, where its label is.
        target: Letter of the node it goes to.
        down: How many positions below the source the target is.
        label: The probability that it carries, with {here} and {there} for the positions of source and target.
        offset: From the middle of the arrow to the label: to its start on the right, to its end on the left.
        after_click: Whether it acts by a click above.
        bend: Where the arrow would go instead of straight ahead, from the middle of the straight line.
    """

    source: str
    target: str
    down: int = 0
    label: str = ""
    offset: Point = (0, 0)
    after_click: bool = False
    bend: Point = (0, 0)


@dataclass(frozen=True)
class Panel:
    """One graph: the nodes of a position from left to right, the arrows, and what they say in words."""

    title: str
    nodes: dict[str, Shape]
    links: tuple[Link, ...]
    caption: tuple[str, ...]

    def place(self, letter: str, row: int) -> Point:
        """The middle of a node."""
        return COLUMNS[list(self.nodes).index(letter)], FIRST_ROW + row * ROW_HEIGHT


USER: dict[str, Shape] = {"E": "hidden", "C": "logged", "A": "document"}
CLICK = (Link("E", "C"), Link("A", "C"))


def onward(label: str) -> Link:
    """Examination of the next document after this one was examined and not clicked."""
    return Link("E", "E", down=1, label=label, offset=(-12, 7))


def onward_after_click(label: str, offset: Point = (20, 11)) -> Link:
    """Examination of the next document after a click on this one."""
    return Link("C", "E", down=1, label=label, offset=offset, after_click=True)


PANELS = (
    Panel(
        "PBM, position-based",
        USER,
        (*CLICK, Link("", "E", label="ρ_[{here}]")),
        ("Each position is examined with", "its own chance ρ_[k]. Nothing passes", "from one position to another."),
    ),
    Panel(
        "CASCADE",
        USER,
        (*CLICK, onward("1"), onward_after_click("0")),
        ("Reads from the top, and goes on", "exactly when there was no click:", "the first click is the last."),
    ),
    Panel(
        "DCM, dependent click",
        USER,
        (*CLICK, onward("1"), onward_after_click("λ_[{here}]")),
        ("Goes on for sure without a click,", "and after a click with a chance λ_[k]", "that depends on the position."),
    ),
    Panel(
        "CCM, click chain",
        USER,
        (
            *CLICK,
            onward("α_[1]"),
            onward_after_click("α_[2](1−R)+α_[3]R", offset=(72, 17)),
            Link("A", "E", down=1, after_click=True),
        ),
        (
            "Goes on without a click with α_[1],",
            "and after a click by the relevance R",
            "of what was clicked: α_[2] if 0, α_[3] if 1.",
        ),
    ),
    Panel(
        "UBM, user browsing",
        USER,
        (
            *CLICK,
            onward_after_click("γ_[{there},1]"),
            Link("C", "E", down=2, label="γ_[{there},2]", offset=(-2, -40), after_click=True, bend=(-187, -22)),
        ),
        (
            "Only the last click above counts:",
            "γ_[k,d] if it is d positions above,",
            "γ_[k,k] if nothing above was clicked.",
        ),
    ),
    Panel(
        "Ranking as an MDP",
        {"s": "known", "a": "document", "C": "logged"},
        (
            Link("s", "a", label="π", offset=(-3, -10)),
            Link("a", "C"),
            Link("s", "C", bend=(0, 88)),
            Link("s", "s", down=1, label="1", offset=(-12, 7)),
            Link("a", "s", down=1),
        ),
        (
            "s_[k] = [(d_[1] … d_[k−1]), k] and a_[k], any",
            "document still unplaced, give the",
            "reward C_[k] and, for certain, s_[k+1].",
        ),
    ),
)

DESCRIPTION = (
    "Six graphs over three neighbouring positions k−1, k and k+1. In the five click models a click C depends on "
    "examination E and on the attractiveness A of the document. PBM: E is drawn with the chance ρ of its position, and "
    "no arrow joins two positions. CASCADE: E goes on to the next position with chance 1 without a click and 0 after "
    "one. DCM: 1 without a click, λ of the position after one. CCM: α1 without a click, α2(1−R) + α3 R after one, R "
    "being the relevance of the clicked document. UBM: E depends on the last click above, with a chance γ by position "
    "and by distance to that click. MDP: the policy π picks the action a, a document, in state s; state and action "
    "give the click C, which is the reward, and for certain the next state."
)


def text(at: Point, content: str, css: str = "words", anchor: str = "start") -> str:
    """A line of text; text in _[…] is a subscript."""
    spans = ""
    baseline = 0
    for number, piece in enumerate(re.split(r"_\[(.*?)\]", content)):
        if not piece:
            continue
        # By dy, which lasts until it is undone: baseline-shift is not known to every browser.
        lowered = 6 if number % 2 else 0
        size = ' font-size="70%"' if lowered else ""
        spans += f'<tspan dy="{lowered - baseline}"{size}>{escape(piece)}</tspan>'
        baseline = lowered
    return f'<text x="{at[0]:g}" y="{at[1]:g}" class="{css}" text-anchor="{anchor}">{spans}</text>'


def node(at: Point, shape: Shape, symbol: str) -> str:
    """A document is a square, anything else a circle."""
    x, y = at
    if shape == "document":
        side = 2 * RADIUS - 4
        corner = f'x="{x - side / 2:g}" y="{y - side / 2:g}" width="{side}" height="{side}"'
        outline = f'<rect class="document" {corner} rx="7"/>'
    else:
        outline = f'<circle class="{shape}" cx="{x:g}" cy="{y:g}" r="{RADIUS}"/>'
    return outline + text((x, y + 6), symbol, "symbol", "middle")


def towards(start: Point, end: Point, distance: float) -> Point:
    """The point at a distance from the start, on the way to the end."""
    share = distance / hypot(end[0] - start[0], end[1] - start[1])
    return start[0] + share * (end[0] - start[0]), start[1] + share * (end[1] - start[1])


def arrow(start: Point, end: Point, via: Point | None = None, after_click: bool = False, head: bool = True) -> str:
    """A line from a point to another, bent towards a third, with a head unless it goes on elsewhere."""
    css = " after-click" if after_click else ""
    marker = f' marker-end="url(#head{css.replace(" ", "-")})"' if head else ' stroke-dasharray="2 4"'
    path = "M{:.1f} {:.1f}Q{:.1f} {:.1f} {:.1f} {:.1f}".format(*start, *(via or start), *end)
    return f'<path class="arrow{css}" d="{path}"{marker}/>'


def link(panel: Panel, drawn: Link, row: int) -> Iterator[str]:
    """The arrow that leaves this row, the one above the first included, and its label."""
    below = row + drawn.down
    target = panel.place(drawn.target, below)
    if not drawn.source:
        end = towards(target, (0, target[1]), RADIUS + 3)
        start = towards(end, (0, target[1]), STUB)
        yield arrow(start, end)
        yield text((start[0] - 5, start[1] + 6), drawn.label.format(here=POSITIONS[row]), "label", "end")
        return
    source = panel.place(drawn.source, row)
    middle = (source[0] + target[0]) / 2, (source[1] + target[1]) / 2
    via = middle[0] + drawn.bend[0], middle[1] + drawn.bend[1]
    start, end = towards(source, via, RADIUS + 1), towards(target, via, RADIUS + 3)
    if row < 0:
        yield arrow(towards(end, start, STUB), end, after_click=drawn.after_click)
    elif below >= len(POSITIONS):
        yield arrow(start, towards(start, end, STUB), after_click=drawn.after_click, head=False)
    else:
        yield arrow(start, end, via, drawn.after_click)
        if not drawn.label:
            return
        dx, dy = drawn.offset
        # A quadratic curve passes half way between the middle of its ends and the point that it bends towards.
        at = (middle[0] + via[0]) / 2 + dx, (middle[1] + via[1]) / 2 + dy
        label = drawn.label.format(here=POSITIONS[row], there=POSITIONS[below])
        yield text(at, label, "label after-click" if drawn.after_click else "label", "end" if dx < 0 else "start")


def graph(panel: Panel) -> Iterator[str]:
    """A panel, its upper left corner at the origin."""
    yield f'<rect class="panel" width="{PANEL_WIDTH}" height="{PANEL_HEIGHT}" rx="10"/>'
    yield text((18, 35), panel.title, "title")
    rows = len(POSITIONS)
    for drawn in panel.links:
        # Between neighbours, arrows from above and to below are hinted at.
        for row in range(-1, rows) if drawn.down == 1 else range(rows - drawn.down):
            yield from link(panel, drawn, row)
    for row, position in enumerate(POSITIONS):
        for letter, shape in panel.nodes.items():
            yield node(panel.place(letter, row), shape, f"{letter}_[{position}]")
    first_line = PANEL_HEIGHT - 20 - LINE_HEIGHT * (len(panel.caption) - 1)
    for number, line in enumerate(panel.caption):
        yield text((18, first_line + LINE_HEIGHT * number), line)


def legend(width: float) -> Iterator[str]:
    """What the shapes and colours mean, its upper left corner at the origin."""
    yield f'<rect class="panel" width="{width:g}" height="{LEGEND_HEIGHT}" rx="10"/>'
    entries: tuple[tuple[Shape, str, str], ...] = (
        ("hidden", "E", "examination, hidden"),
        ("logged", "C", "click, logged: P(C = 1 | E = 1) = A"),
        ("document", "A", "attractiveness of the document"),
    )
    for (x, y), (shape, symbol, meaning) in zip(((44, 38), (370, 38), (370, 102)), entries, strict=True):
        yield node((x, y), shape, symbol)
        yield text((x + 40, y + 7), meaning)
    yield arrow((18, 102), (70, 102), after_click=True)
    yield text((84, 109), "the chance after a click")


def figure() -> str:
    """The whole SVG."""
    width = 2 * PANEL_WIDTH + 3 * GAP
    rows = -(-len(PANELS) // 2)
    legend_top = GAP + rows * (PANEL_HEIGHT + GAP)
    height = legend_top + LEGEND_HEIGHT + GAP
    dark = f"@media (prefers-color-scheme: dark) {{\n{COLOURS % DARK}\n}}"
    heads = "".join(
        f'<marker id="head{css.replace(" ", "-")}" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="13" '
        f'markerHeight="13" markerUnits="userSpaceOnUse" orient="auto"><path class="head{css}" d="M0 1L10 5L0 9Z"/>'
        "</marker>"
        for css in ("", " after-click")
    )
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        'role="img" aria-labelledby="title description">',
        '<title id="title">Click models and the ranking MDP as graphs</title>',
        f'<desc id="description">{escape(DESCRIPTION)}</desc>',
        f"<style>\n{SHAPES_AND_FONTS}\n{COLOURS % LIGHT}\n{dark}\n</style>",
        f"<defs>{heads}</defs>",
    ]
    for number, panel in enumerate(PANELS):
        row, column = divmod(number, 2)
        left, top = GAP + column * (PANEL_WIDTH + GAP), GAP + row * (PANEL_HEIGHT + GAP)
        lines += [f'<g transform="translate({left} {top})">', *graph(panel), "</g>"]
    lines += [f'<g transform="translate({GAP} {legend_top})">', *legend(width - 2 * GAP), "</g>", "</svg>"]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    OUT.write_text(figure(), encoding="utf-8")
