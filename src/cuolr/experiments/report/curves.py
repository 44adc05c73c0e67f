"""Curves over the values of a sweep, or over an axis of a grid."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cuolr.experiments.report.scores import Score
from cuolr.experiments.report.settings import AXES, Setting, label_of
from cuolr.experiments.report.summary import Summary
from cuolr.experiments.report.wording import setting_labels


@dataclass(frozen=True)
class Curve:
    """Points, with standard errors if known."""

    x: tuple[float, ...]
    y: tuple[float, ...]
    error: tuple[float, ...] = ()


@dataclass(frozen=True)
class CurvePanel:
    """Curves over the same axis.

    Attributes:
        title: What the curves share.
        axis: Label of the horizontal axis.
        curves: Curves by label.
        names: Names of the points 0, 1, …, if they are not numbers.
        lines: The means of LOGGING and ORACLE, for comparison.
    """

    title: str
    axis: str
    curves: Mapping[str, Curve]
    names: tuple[str, ...] = ()
    lines: tuple[float, ...] = ()


def curves_of(summary: Summary, measure: str) -> list[CurvePanel]:
    """The curves of the layout; by default over the number of sessions, if that is in the columns of a table."""
    axis = summary.results.experiment.report.curve
    if not axis and any(table.columns.axes == ("sessions_per_query",) for table in summary.tables):
        axis = "sessions_per_query"
    if not axis:
        return []
    scores = {
        key[:2]: score
        for table in summary.tables
        for key, score in table.scores.items()
        if key[2] == measure and score.mean is not None
    }
    return _over_values(summary, scores) if axis == "value" else _over_settings(summary, scores, axis)


def _over_values(summary: Summary, scores: Mapping[tuple[str, Setting], Score]) -> list[CurvePanel]:
    """A panel for each sweep, a curve for each setting."""
    experiment = summary.results.experiment
    families: dict[str, list[str]] = {}
    for method in dict.fromkeys(method for method, _ in scores):
        if method in experiment.method and (family := experiment.method[method].swept_from):
            families.setdefault(family, []).append(method)
    panels = []
    for family, methods in families.items():
        values = {method: experiment.method[method].swept_value for method in methods}
        setting_name = next(iter(experiment.method[methods[0]].sweep)).rpartition(".")[2].replace("_", " ")
        points, names = _places(values)
        curves = {
            label: _curve({points[m]: scores[m, setting] for m in methods if (m, setting) in scores})
            for setting, label in setting_labels(summary).items()
        }
        curves = {label: curve for label, curve in curves.items() if len(curve.x) > 1}
        if curves:
            panels.append(CurvePanel(family if len(families) > 1 else "", setting_name, curves, names))
    return panels


def _over_settings(summary: Summary, scores: Mapping[tuple[str, Setting], Score], axis: str) -> list[CurvePanel]:
    """A panel for each combination of the other axes, a curve for each method."""
    others = [other for other in AXES if other != axis]
    groups: dict[tuple[Any, ...], list[Setting]] = {}
    for setting in dict.fromkeys(setting for _, setting in scores):
        groups.setdefault(tuple(getattr(setting, other) for other in others), []).append(setting)
    several = [group for group in groups.values() if len(group) > 1]
    mentioned = [other for other in others if len({getattr(group[0], other) for group in several}) > 1]
    experiment = summary.results.experiment
    learners = list(dict.fromkeys(m for table in summary.tables for m in table.learners))
    references = list(dict.fromkeys(m for table in summary.tables for m in table.references))
    panels = []
    for group in several:
        values = {
            setting: setting.sessions_per_query
            if axis == "sessions_per_query"
            else label_of(setting, [axis], experiment)
            for setting in group
        }
        points, names = _places(values)
        by_method = {m: {points[s]: scores[m, s] for s in group if (m, s) in scores} for m in learners}
        curves = {m: curve for m, of in by_method.items() if len((curve := _curve(of)).x) > 1}
        heights = {m: {scores[m, s].mean for s in group if (m, s) in scores} for m in references}
        lines = tuple(h for of in heights.values() if len(of) == 1 for h in of if h is not None)
        if curves:
            words = {
                "sessions_per_query": "sessions per query",
                "click_model": "click model",
                "logging": "logging policy",
            }
            panels.append(CurvePanel(label_of(group[0], mentioned, experiment), words[axis], curves, names, lines))
    return panels


def _places(values: Mapping[Any, Any]) -> tuple[dict[Any, float], tuple[str, ...]]:
    """The place of each value along the axis, and the names of the places if the values are not numbers."""
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values.values()):
        return {key: float(value) for key, value in values.items()}, ()
    names = tuple(dict.fromkeys(str(value) for value in values.values()))
    return {key: float(names.index(str(value))) for key, value in values.items()}, names


def _curve(points: Mapping[float, Score]) -> Curve:
    ordered = sorted(points.items(), key=lambda point: point[0])
    known = all(score.deviation is not None for _, score in ordered)
    errors = [(score.deviation or 0.0) / score.finished**0.5 for _, score in ordered] if known else []
    return Curve(tuple(x for x, _ in ordered), tuple(score.mean or 0.0 for _, score in ordered), tuple(errors))
