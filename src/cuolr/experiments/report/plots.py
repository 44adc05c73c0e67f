"""The plots of a report."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from cuolr.experiments.report.curves import Curve, CurvePanel, curves_of
from cuolr.experiments.report.drawing import HEIGHT, INK, WIDE, Panel, Plot, Style, method_styles, setting_styles
from cuolr.experiments.report.scores import Entry, Score, Table
from cuolr.experiments.report.settings import label_of
from cuolr.experiments.report.summary import Summary
from cuolr.experiments.report.wording import column_words, measure_label, percent, rival

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Limits: TypeAlias = tuple[float, float]

# Different from those of the methods; white text on them is legible.
WIN, LOSS = "#2b7a86", "#b5504a"
PAPER_MARKERS = {"yahoo-set1": 5, "mslr-web10k": 4}  # matplotlib's carets to the right and to the left


def all_plots(summary: Summary) -> list[Plot]:
    """All plots that the results have data for; plots of a measure once per measure."""
    experiment = summary.results.experiment
    methods = list(dict.fromkeys(m for table in summary.tables for m in table.learners))
    styles = method_styles(experiment, methods)
    plots: list[Plot] = []
    for measure in experiment.measures:
        plots += _curve_plot(summary, measure, styles)
    for number, table in enumerate(summary.tables, start=1):
        of_table: list[Plot] = []
        for measure in experiment.measures:
            of_table += _gap_plot(table, measure, styles)
            of_table += _wins_plot(table, measure)
        of_table += _learning_plot(summary, table, styles)
        suffix = f"-{number}" if len(summary.tables) > 1 else ""
        plots += [replace(plot, name=f"{plot.name}{suffix}", table=number) for plot in of_table]
    return [_widened(plot) for plot in plots + _click_plot(summary)]


def _widened(plot: Plot) -> Plot:
    """A single panel is wider."""
    return plot if len(plot.panels) > 1 else replace(plot, panels=(replace(plot.panels[0], width=WIDE),))


def _gap_plot(table: Table, measure: str, styles: Mapping[str, Style]) -> list[Plot]:
    panels = []
    every = [s for (_, _, of), s in table.scores.items() if of == measure and s.gap]
    gaps = [score.gap for score in every if score.gap]
    if not gaps:
        return []
    # With few queries, intervals may be so wide that they would hide everything else.
    low = max(min(0.0, *(gap.low for gap in gaps)), min(0.0, *(gap.value for gap in gaps)) - 0.5)
    high = min(max(1.0, *(gap.high for gap in gaps)), max(1.0, *(gap.value for gap in gaps)) + 0.5)
    for setting, label in zip(table.columns.settings, table.columns.labels, strict=True):
        scores = {m: score for m in table.learners if (score := table.scores.get((m, setting, measure)))}
        if any(score.gap for score in scores.values()):
            draw = _draw_gaps(scores, styles, (low - 0.04, high + 0.04))
            panels.append(Panel(label, draw, height=0.75 + 0.24 * len(scores)))
    beside = any(score.paper_gaps for score in every)
    caption = "0 % is LOGGING, 100 % is ORACLE; lines are 95 % bootstrap intervals over queries."
    cut = any(gap.low < low or gap.high > high for gap in gaps)
    caption += " Some lines are cut off; the table has their ends." if cut else ""
    caption += " Grey triangles: the paper's numbers, ▸ on Yahoo, ◂ on WEB10K." if beside else ""
    title = f"Gap closed by each method, {measure_label(measure)}"
    return [Plot("gap-closed", title, caption, tuple(panels), measure=measure)]


def _draw_gaps(
    scores: Mapping[str, Score], styles: Mapping[str, Style], limits: tuple[float, float]
) -> "Callable[[Axes], None]":
    def draw(axes: "Axes") -> None:
        for line in (0, 1):
            axes.axvline(line, color=INK, alpha=0.35, linewidth=0.8)
        for row, (method, score) in enumerate(scores.items()):
            for dataset, gap in (score.paper_gaps or {}).items():
                axes.plot([gap], [row - 0.3], marker=PAPER_MARKERS[dataset], color=INK, alpha=0.5, markersize=4)
            if score.gap:
                style, gap_closed = styles[method], score.gap
                axes.plot([gap_closed.low, gap_closed.high], [row, row], color=style.colour, linewidth=2.2, alpha=0.55)
                axes.plot([gap_closed.value], [row], style.marker, color=style.colour, markersize=5.5)
        axes.set_yticks(range(len(scores)), list(scores))
        axes.set_ylim(len(scores) - 0.4, -0.75)
        step = 0.5 if limits[1] - limits[0] < 2.2 else 1.0
        marks = [n * step for n in range(math.ceil(limits[0] / step), math.floor(limits[1] / step) + 1)]
        axes.set_xticks(marks, [percent(mark) for mark in marks])
        axes.set_xticks([mark + step / 2 for mark in marks], minor=True)
        axes.set_xlim(*limits)
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
        axes.grid(axis="x", which="both")

    return draw


def _wins_plot(table: Table, measure: str) -> list[Plot]:
    """The tested contender with the highest mean over the columns, against the baseline."""
    tested = {key[0] for key, score in table.scores.items() if key[2] == measure and score.comparison}
    contenders = [m for m in table.contenders if m in tested]
    if not contenders:
        return []

    def mean(method: str) -> float:
        scores = (table.scores.get((method, setting, measure)) for setting in table.columns.settings)
        return float(np.mean([score.mean for score in scores if score and score.mean is not None]))

    best = max(contenders, key=mean)
    labelled = zip(table.columns.settings, table.columns.labels, strict=True)
    rows = {label: s for x, label in labelled if (s := table.scores.get((best, x, measure))) and s.comparison}
    words = column_words(table)
    title = f"{best} against {rival(table)}, query by query, {measure_label(measure)}"
    caption = (
        f"Test queries with a relevant document that {best} ranks better (left), equally well (middle) and worse "
        f"(right) than {rival(table)} {words.before} the same {words.one}."
    )
    panel = Panel("", _draw_wins(rows), height=0.5 + 0.36 * len(rows))
    return [Plot("wins", title, caption, (panel,), measure=measure)]


def _draw_wins(rows: Mapping[str, Score]) -> "Callable[[Axes], None]":
    def draw(axes: "Axes") -> None:
        for row, score in enumerate(rows.values()):
            comparison = score.comparison
            assert comparison is not None
            start = 0.0
            parts = ((comparison.wins, WIN, 1.0), (comparison.ties, INK, 0.16), (comparison.losses, LOSS, 1.0))
            for number, colour, opacity in parts:
                share = number / comparison.queries
                axes.barh(row, share, left=start, color=colour, alpha=opacity, height=0.62, linewidth=0)
                if share > 0.07:
                    inside = INK if colour == INK else "white"
                    axes.text(start + share / 2, row, f"{number:,}", ha="center", va="center", color=inside, fontsize=8)
                start += share
        labels = [f"{label}\nvs {score.against}" for label, score in rows.items()]
        axes.set_yticks(range(len(rows)), labels)
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.set_xlim(0, 1)
        axes.xaxis.set_major_formatter(lambda share, _: percent(share))
        axes.tick_params(axis="y", length=0, labelsize=8)
        axes.spines["left"].set_visible(False)

    return draw


def _learning_plot(summary: Summary, table: Table, styles: Mapping[str, Style]) -> list[Plot]:
    by_column: dict[str, dict[str, Curve]] = {}
    for setting, label in zip(table.columns.settings, table.columns.labels, strict=True):
        curves = {
            m: curve
            for m in table.contenders
            if (entry := summary.entries.get((m, setting))) and len((curve := _learning_curve(entry)).x) > 1
        }
        if curves:
            by_column[label] = curves
    if not by_column:
        return []
    limits = _limits([curve for curves in by_column.values() for curve in curves.values()])
    panels = tuple(Panel(label, _draw_curves(curves, styles, "step", limits)) for label, curves in by_column.items())
    shown = {m: styles[m] for m in table.contenders if any(m in curves for curves in by_column.values())}
    validation = summary.results.experiment.validation
    by = "by held-out clicks" if validation == "log" else f"by {measure_label(validation)} on validation queries"
    caption = f"Validation {by}; mean over runs, up to the last step of the shortest run."
    return [Plot("learning-curves", "Learning curves", caption, panels, shown)]


def _learning_curve(entry: Entry) -> Curve:
    runs = [result.validations for result in entry.results.values() if result.validations]
    steps = sorted(set.intersection(*(set(run) for run in runs))) if runs else []
    return Curve(tuple(map(float, steps)), tuple(float(np.mean([run[step] for run in runs])) for step in steps))


def _curve_plot(summary: Summary, measure: str, styles: Mapping[str, Style]) -> list[Plot]:
    panels = curves_of(summary, measure)
    labels = list(dict.fromkeys(label for panel in panels for label in panel.curves))
    if not panels:
        return []
    known = styles if set(labels) <= set(styles) else setting_styles(labels)
    limits = _limits(
        [curve for panel in panels for curve in panel.curves.values()], [h for p in panels for h in p.lines]
    )
    height = 3.0 if len(panels) == 1 else HEIGHT
    drawn = [Panel(panel.title, _draw_curve_panel(panel, known, limits), height) for panel in panels]
    caption = "Mean over runs ± one standard error."
    caption += " Dashed: LOGGING (below) and ORACLE (above)." if any(panel.lines for panel in panels) else ""
    title = f"{measure_label(measure)} by {panels[0].axis}"
    return [Plot("curves", title, caption, tuple(drawn), {label: known[label] for label in labels}, measure)]


def _draw_curve_panel(panel: CurvePanel, styles: Mapping[str, Style], limits: Limits) -> "Callable[[Axes], None]":
    plain = _draw_curves(panel.curves, styles, panel.axis, limits)

    def draw(axes: "Axes") -> None:
        for height in panel.lines:
            axes.axhline(height, color=INK, alpha=0.5, linewidth=1, linestyle=(0, (4, 3)))
        plain(axes)
        if panel.names:
            axes.set_xticks(range(len(panel.names)), panel.names)
            axes.tick_params(axis="x", labelrotation=30 if max(map(len, panel.names)) > 6 else 0)
            return
        values = sorted({x for curve in panel.curves.values() for x in curve.x})
        positive = [x for x in values if x > 0]
        if len(positive) > 2 and positive[-1] / positive[0] > 20:
            if values[0] == 0:
                # Zero has no logarithm; it is drawn to the left of the smallest value.
                axes.set_xscale("symlog", linthresh=positive[0], linscale=0.8)
                axes.set_xlim(-0.15 * positive[0], 1.5 * positive[-1])
            else:
                axes.set_xscale("log")
            decades = [10.0**e for e in range(-9, 9) if positive[0] <= 10.0**e <= positive[-1]]
            ticks = [*(x for x in values if x == 0), *decades]
            axes.set_xticks(ticks, [f"{tick:,g}" if tick < 1 else f"{tick:,.0f}" for tick in ticks])
            axes.set_xticks([], minor=True)

    return draw


def _draw_curves(
    curves: Mapping[str, Curve], styles: Mapping[str, Style], axis: str, limits: Limits
) -> "Callable[[Axes], None]":
    def draw(axes: "Axes") -> None:
        for name, curve in curves.items():
            style = styles[name]
            marked = len(curve.x) <= 15
            axes.plot(curve.x, curve.y, color=style.colour, marker=style.marker if marked else None)
            if curve.error:
                axes.errorbar(
                    curve.x, curve.y, curve.error, color=style.colour, linestyle="none", linewidth=1, alpha=0.45
                )
            if not marked:
                every = max(1, len(curve.x) // 5)
                axes.plot(curve.x[::every], curve.y[::every], style.marker, color=style.colour, linestyle="none")
        axes.set_xlabel(axis)
        axes.set_ylim(*limits)
        axes.grid(axis="y")

    return draw


def _click_plot(summary: Summary) -> list[Plot]:
    """The click rate by position: a panel for each logging policy, a line for each click model."""
    logged: dict[str, dict[str, list[Sequence[float]]]] = {}
    for (_, setting), entry in summary.entries.items():
        rates = [r.log["click_rate"] for r in entry.results.values() if r.log.get("click_rate")]
        label = label_of(setting, ["click_model"], summary.results.experiment)
        logged.setdefault(setting.logging, {}).setdefault(label, []).extend(rates)
    drawn = {
        logging: {label: _mean_rates(rates) for label, rates in lines.items() if rates}
        for logging, lines in logged.items()
    }
    drawn = {logging: curves for logging, curves in drawn.items() if curves}
    styles = setting_styles([label for curves in drawn.values() for label in curves])
    panels = []
    for logging, curves in drawn.items():
        draw = _draw_curves(curves, styles, "position", (0.0, _limits(list(curves.values()))[1]))
        panels.append(Panel(logging if len(drawn) > 1 else "", draw))
    caption = "Share of sessions with a click at each position, in the logs that the methods learned from."
    return [Plot("click-rate", "Click rate by position", caption, tuple(panels), styles)] if panels else []


def _limits(curves: Sequence[Curve], heights: Sequence[float] = ()) -> Limits:
    """The limits of all panels together, so that they can be compared."""
    errors = [curve.error or (0.0,) * len(curve.y) for curve in curves]
    points = [(y, e) for curve, error in zip(curves, errors, strict=True) for y, e in zip(curve.y, error, strict=True)]
    low = min([*(y - e for y, e in points), *heights])
    high = max([*(y + e for y, e in points), *heights])
    room = 0.06 * (high - low) or 0.01
    return low - room, high + room


def _mean_rates(rates: Sequence[Sequence[float]]) -> Curve:
    shortest = min(map(len, rates))
    means = np.mean([rate[:shortest] for rate in rates], axis=0)
    return Curve(tuple(range(1, shortest + 1)), tuple(float(rate) for rate in means))
