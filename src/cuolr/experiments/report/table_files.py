"""Tables of a report as Markdown, CSV and LaTeX."""

import csv
import io
import re
from collections.abc import Mapping, Sequence

from cuolr.data.spreadsheet_text import row_without_formulas
from cuolr.experiments.report.paper import DATASETS
from cuolr.experiments.report.scores import Score, Table
from cuolr.experiments.report.settings import Setting
from cuolr.experiments.report.summary import Summary
from cuolr.experiments.report.wording import (
    NO_VALUE,
    caption,
    column_words,
    findings,
    gap_caption,
    has_marked_numbers,
    measure_label,
    paper_notes,
    paper_numbers_caption,
    percent,
    runs_word,
    state_of,
    what_was_run,
    whole_percent,
)

_LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"$<$",
    ">": r"$>$",
    "±": r"$\pm$",
    "−": r"$-$",
    "–": "--",
    "×": r"$\times$",
    "†": r"$\dagger$",
    "η": r"$\eta$",
    "≥": r"$\geq$",
    "*": r"$*$",
}


def escape_latex(text: str) -> str:
    r"""A text that LaTeX prints as it is.

    >>> escape_latex("1 % of a_b")
    '1 \\% of a\\_b'
    """
    return "".join(_LATEX.get(character, character) for character in text)


def escape_markdown(text: str) -> str:
    r"""A text that Markdown prints as it is, also in a table.

    >>> escape_markdown("a|b **")
    'a\\|b \\*\\*'
    """
    return re.sub(r"([\\`*_{}\[\]<>|~])", r"\\\1", text).replace("\n", " ")


def markdown(summary: Summary) -> str:
    """All tables of all measures, the main measure first."""
    experiment = summary.results.experiment
    lines = [f"# {escape_markdown(experiment.title)}", "", escape_markdown(what_was_run(summary)), ""]
    for table in summary.tables:
        title = f"**{escape_markdown(table.columns.title)}.** " if table.columns.title else ""
        if sentences := findings(table, summary.main_measure):
            lines += [title + escape_markdown(" ".join(sentences)), ""]
    measures = [summary.main_measure, *(m for m in experiment.measures if m != summary.main_measure)]
    for table in summary.tables:
        title = f": {escape_markdown(table.columns.title)}" if table.columns.title else ""
        for measure in measures:
            lines += [f"## {measure_label(measure)}{title}", ""]
            lines += _markdown_table(table, _value_rows(summary, table, measure))
            lines += ["", escape_markdown(caption(summary, table)), ""]
            if has_gaps(table, measure):
                lines += [f"### Gap closed, {measure_label(measure)}{title}", ""]
                lines += _markdown_table(table, _gap_rows(table, measure))
                lines += ["", escape_markdown(gap_caption(summary)), ""]
    marked = has_marked_numbers(summary)
    lines += [f"({n.mark}) " * marked + f"{escape_markdown(n.text)}  " for n in paper_notes(summary)]
    return "\n".join(lines).rstrip() + "\n"


def as_csv(summary: Summary) -> str:
    """A line for each method, setting and measure, with all digits."""
    text = io.StringIO(newline="")
    rows = records(summary)
    writer = csv.DictWriter(text, list(rows[0]) if rows else ["method"], lineterminator="\n")
    writer.writeheader()
    writer.writerows(map(row_without_formulas, rows))
    return text.getvalue()


def records(summary: Summary) -> list[dict[str, str | float | int | bool | None]]:
    """The numbers, one flat record for each method, setting and measure; None = no value."""
    return [
        {
            "method": method,
            "click_model": setting.click_model,
            "logging": setting.logging,
            "sessions_per_query": setting.sessions_per_query,
            "measure": measure,
            "mean": score.mean,
            "standard_deviation": score.deviation,
            "finished": score.finished,
            "planned": score.planned,
            "failed": score.failed,
            "best": score.best,
            "against": score.against or None,
            "difference": score.comparison.difference if score.comparison else None,
            "wins": score.comparison.wins if score.comparison else None,
            "ties": score.comparison.ties if score.comparison else None,
            "losses": score.comparison.losses if score.comparison else None,
            "p_value": score.p_value,
            "gap_closed": score.gap.value if score.gap else None,
            "gap_low": score.gap.low if score.gap else None,
            "gap_high": score.gap.high if score.gap else None,
            "paper": score.paper.value if score.paper else None,
            **{
                f"paper_gap_{name.lower()}": (score.paper_gaps or {}).get(dataset) for dataset, name in DATASETS.items()
            },
        }
        for table in summary.tables
        for (method, setting, measure), score in table.scores.items()
    ]


def latex(summary: Summary, table: Table) -> str:
    """A table in the paper's layout: a block of methods for each column's setting, a column for each measure."""
    measures = summary.results.experiment.measures
    blocks = [_latex_block(summary, table, s, table.learners, label) for s, label in _columns(table)]
    if table.references:
        # LOGGING and ORACLE do not depend on the click model, so there is one block per logging policy.
        by_logging = {setting.logging: setting for setting in table.columns.settings}
        for logging, setting in by_logging.items():
            label = logging if len(by_logging) > 1 else ""
            blocks.append(_latex_block(summary, table, setting, table.references, label))
    heads = [column_words(table).one.upper(), "METHOD", *map(measure_label, measures)]
    body = "\n\\midrule\n".join(filter(None, blocks))
    text = _latex_float(_latex_caption(summary, table), f"ll{'c' * len(measures)}", heads, body)
    if has_gaps(table, summary.main_measure):
        text += "\n" + _latex_gaps(summary, table)
    return f"% Needs the packages booktabs, multirow and xcolor.\n{text}"


def _latex_float(caption: str, columns: str, heads: Sequence[str], body: str) -> str:
    lines = [
        r"\begin{table*}[t]",
        rf"\caption{{{escape_latex(caption)}}}",
        r"\centering\small",
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        " & ".join(map(escape_latex, heads)) + r" \\",
        r"\midrule",
        body,
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table*}",
    ]
    return "\n".join(lines) + "\n"


def _latex_gaps(summary: Summary, table: Table) -> str:
    """The gap closed by the main measure: a row for each method, a column for each setting."""
    measure = summary.main_measure
    title = f"Gap closed, {measure_label(measure)}, {summary.results.data['name']}. {gap_caption(summary)}"
    settings = table.columns.settings
    rows = [
        [escape_latex(method), *(_latex_gap(table.scores.get((method, setting, measure))) for setting in settings)]
        for method in table.learners
    ]
    body = "\n".join(" & ".join(row) + r" \\" for row in rows)
    return _latex_float(title, f"l{'c' * len(settings)}", ["METHOD", *table.columns.labels], body)


def _latex_gap(score: Score | None) -> str:
    if score is None:
        return ""
    if not score.gap:
        return escape_latex(NO_VALUE)
    interval = f"{whole_percent(score.gap.low)} to {whole_percent(score.gap.high)}"
    text = rf"{escape_latex(percent(score.gap.value))} {{\scriptsize({escape_latex(interval)})}}"
    if score.paper_gaps:
        text += rf" \textcolor{{gray}}{{\scriptsize {escape_latex(_by_the_paper(score.paper_gaps))}}}"
    return text


def _latex_caption(summary: Summary, table: Table) -> str:
    results = summary.results
    title = f" ({table.columns.title})" if table.columns.title else ""
    grey = paper_numbers_caption(summary, table)
    return f"{results.experiment.title}{title}, {results.data['name']}. {caption(summary, table)} {grey}".strip()


def _latex_block(summary: Summary, table: Table, setting: Setting, methods: Sequence[str], label: str) -> str:
    measures = summary.results.experiment.measures
    rows = [m for m in methods if (m, setting, measures[0]) in table.scores]
    lines = []
    for place, method in enumerate(rows):
        head = rf"\multirow{{{len(rows)}}}{{*}}{{{escape_latex(label)}}}" if place == 0 and label else ""
        values = [_latex_value(table.scores[method, setting, measure], runs_word(summary)) for measure in measures]
        lines.append(" & ".join([head, escape_latex(method), *values]) + r" \\")
    return "\n".join(lines)


def _latex_value(score: Score, run: str) -> str:
    state = escape_latex(state_of(score, run))
    if score.mean is None:
        return rf"\emph{{{state}}}"
    mark = {"†": r"$^{\dagger}$", "": ""}.get(score.mark, f"$^{{{score.mark}}}$")
    text = (rf"\textbf{{{score.mean:.3f}}}" if score.best else f"{score.mean:.3f}") + mark
    if score.deviation is not None:
        text += rf"{{\scriptsize$\pm${score.deviation:.3f}}}"
    if state:
        text += rf" {{\scriptsize({state})}}"
    if score.paper:
        text += rf" \textcolor{{gray}}{{\scriptsize {score.paper.value:.3f}}}"
    return text


def has_gaps(table: Table, measure: str) -> bool:
    """Whether the table has reference rankers to measure gaps between."""
    return len(table.references) > 1 and any(key[2] == measure and key[0] in table.learners for key in table.scores)


def _columns(table: Table) -> list[tuple[Setting, str]]:
    return list(zip(table.columns.settings, table.columns.labels, strict=True))


def _markdown_table(table: Table, rows: Sequence[Sequence[str]]) -> list[str]:
    heads = ["method", *(escape_markdown(label) for label in table.columns.labels)]
    lines = [heads, ["---", *("---:" for _ in table.columns.labels)], *rows]
    return [f"| {' | '.join(line)} |" for line in lines]


def _value_rows(summary: Summary, table: Table, measure: str) -> list[list[str]]:
    run = runs_word(summary)
    return [
        [
            escape_markdown(method),
            *(_markdown_value(table.scores.get((method, s, measure)), run) for s in table.columns.settings),
        ]
        for method in (*table.learners, *table.references)
    ]


def _markdown_value(score: Score | None, run: str) -> str:
    if score is None:
        return ""
    state = state_of(score, run)
    if score.mean is None:
        return f"*{state}*"
    text = f"**{score.mean:.3f}**" if score.best else f"{score.mean:.3f}"
    if score.deviation is not None:
        text += f" ± {score.deviation:.3f}"
    text += escape_markdown(score.mark)
    text += f" ({state})" if state else ""
    marks = f" ({', '.join(score.paper.marks)})" if score.paper and score.paper.marks else ""
    return f"{text} [paper {score.paper.value:.3f}{marks}]" if score.paper else text


def _gap_rows(table: Table, measure: str) -> list[list[str]]:
    return [
        [
            escape_markdown(method),
            *(_markdown_gap(table.scores.get((method, s, measure))) for s in table.columns.settings),
        ]
        for method in table.learners
    ]


def _markdown_gap(score: Score | None) -> str:
    if score is None:
        return ""
    text = NO_VALUE
    if score.gap:
        text = f"{percent(score.gap.value)} ({whole_percent(score.gap.low)} to {whole_percent(score.gap.high)})"
    return f"{text} [paper: {_by_the_paper(score.paper_gaps)}]" if score.paper_gaps else text


def _by_the_paper(gaps: Mapping[str, float]) -> str:
    return ", ".join(f"{DATASETS[name]} {percent(gap)}" for name, gap in gaps.items())
