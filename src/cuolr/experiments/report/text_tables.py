"""Tables for the terminal: of a report, and of methods on a real log."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from cuolr.evaluation.significance import stars
from cuolr.experiments.report.scores import Score, Table
from cuolr.experiments.report.summary import Summary
from cuolr.experiments.report.wording import NO_VALUE, meaning_of_stars, measure_label, percent, what_was_run


@dataclass(frozen=True)
class TextTable:
    """A table of texts."""

    title: str
    heads: list[str]
    rows: list[list[str]]


def text_table(summary: Summary, table: Table) -> TextTable:
    """The main measure of each method in each setting, and the mean gap closed."""
    measure = summary.main_measure
    rows = []
    for method in (*table.learners, *table.references):
        scores = [table.scores.get((method, setting, measure)) for setting in table.columns.settings]
        gaps = [score.gap.value for score in scores if score and score.gap]
        closed = percent(float(np.mean(gaps))) if gaps else NO_VALUE
        rows.append([method, *(_text(score) for score in scores), closed])
    title = summary.results.experiment.title + (f": {table.columns.title}" if table.columns.title else "")
    return TextTable(title, [measure_label(measure), *table.columns.labels, "gap closed"], rows)


def legend(summary: Summary) -> str:
    """What was run, and the marks of the tables."""
    stars = next(filter(None, map(meaning_of_stars, summary.tables)), "")
    marks = "; ".join(filter(None, ("· best learner", stars, "(n/m) n of m runs finished")))
    return f"{what_was_run(summary)} {marks}."


def _text(score: Score | None) -> str:
    if score is None:
        return ""
    if score.mean is None:
        return "failed" if score.failed else "missing"
    runs = f" ({score.finished}/{score.planned})" if score.finished < score.planned else ""
    return f"{score.mean:.3f}{runs}{score.mark}{'·' if score.best else ''}"


# A title, the heads of the columns, and the rows.
TextRows: TypeAlias = tuple[str, Sequence[str], list[list[str]]]
HEADS = {"clicks": "clicks per session", "reward": "reward per session", "ndcg@10": "nDCG@10"}
STARS = """\
Values ± half of the 95 % interval over queries.
* p < 0.05, ** p < 0.01 against naive: paired t-test over queries, corrected by Holm."""
JUDGED = """\
Clicks and rewards: of lists in random order, where a document stands at the position that the method gives it.
Outcome: relative gain in clicks, or in reward if there is one, over the logging policy on these lists; new: on queries
that were not trained on.
Predicted: the gain that `cuolr assess` estimates from the training log, on queries that were not trained on."""


def real_legend(content: Mapping[str, Any]) -> str:
    """What the columns of the methods mean; "" if there are no methods."""
    if not content["methods"]:
        return ""
    return f"{STARS}\n{JUDGED}" if any("clicks" in row["values"] for row in content["methods"]) else STARS


def real_tables(content: Mapping[str, Any]) -> Iterator[TextRows]:
    """The tables of a summary, as JSON values: examination, and methods."""
    data = content["data"]
    if content["examination"]:
        yield (
            f"{data['name']}: examination, against that of {data['random_sessions']:,} lists in random order",
            ("estimate", "mean absolute error", "95 % interval"),
            [
                [row["estimate"], _number(row["error"][0]), _ends(row["error"], _number)]
                for row in content["examination"]
            ],
        )
    if content["methods"]:
        measures = [name for name in HEADS if any(name in row["values"] for row in content["methods"])]
        judged = any(row["outcome"] for row in content["methods"])
        gains = [name for gain in ("outcome", "outcome, new", "predicted") for name in (gain, "95 % interval")]
        yield (
            f"{data['name']}: learned from {data['train_sessions']:,} sessions",
            ("method", *(HEADS[name] for name in measures), *((*gains, "recommended") if judged else ())),
            [_method(row, measures, judged) for row in content["methods"]],
        )


def _method(row: Mapping[str, Any], measures: Sequence[str], judged: bool) -> list[str]:
    cells = [row["method"]]
    for name in measures:
        found = row["values"].get(name)
        mark = stars(row["against_naive"][name][1]) if name in row["against_naive"] else ""
        cells.append("–" if found is None else f"{_with_half(found)}{mark}")
    if judged:
        for gain in (row["outcome"], row["outcome_on_new"], row["predicted"]):
            cells += ["–", "–"] if gain is None else [f"{gain[0]:+.1%}", _ends(gain, lambda end: f"{end:+.1%}")]
        cells.append(row["recommendation"] or "–")
    return cells


def _number(value: float) -> str:
    return f"{value:.4f}"


def _ends(interval: Sequence[float | None], text: Any) -> str:
    _, low, high = interval
    return "unknown" if low is None or high is None else f"{text(low)} to {text(high)}"


def _with_half(interval: Sequence[float | None]) -> str:
    value, low, high = interval
    assert value is not None
    return _number(value) if low is None or high is None else f"{_number(value)} ± {_number((high - low) / 2)}"
