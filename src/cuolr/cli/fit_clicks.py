"""`cuolr fit-clicks`: fit click models to a log, and find out which explains it best."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import tyro

from cuolr.cli.options import TimeFlags
from cuolr.cli.terminal import progress_bar, say, show_json, show_table, show_text, stage_bars
from cuolr.clicks.fitting.click_model_fit import CLICK_FITS
from cuolr.clicks.fitting.compare_fits import FitComparison, compare_fits, difference_if_alike
from cuolr.clicks.fitting.evaluate_fit import Difference
from cuolr.clicks.fitting.fit_model import DocumentParameters, FittedClicks, with_errors
from cuolr.clicks.fitting.mixture_prior import fit_users
from cuolr.clicks.fitting.simulated_users import pairs_file, save_users
from cuolr.config import Range, check_arguments
from cuolr.errors import InputError, problems_in
from cuolr.examination.identifiability import Identifiability
from cuolr.examination.plot import check_plot
from cuolr.files import check_files, check_suffix
from cuolr.logs.click_patterns import ClickPatterns
from cuolr.logs.document_patterns import patterns_of
from cuolr.random import DEFAULT_SEED

AUTO = "auto"
# Values of a context that messages name.
SHOWN = 5
# Rows of the table of parameters: all of UBM for lists of ten.
MAX_ROWS = 60
# Numbers from here on are shown by their magnitude.
LARGE = 1e4
Names = Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME...")]


@dataclass(frozen=True)
class FitOutputs:
    """Files.

    Attributes:
        out: Write the best click model to this TOML file, and the parameters of each query and document to a Parquet
            file beside it.
        plot: Plot perplexity and parameters by position to this file: .png, .svg or .pdf.
        overwrite: Replace existing files.
    """

    out: Path | None = None
    plot: Path | None = None
    overwrite: bool = False

    def check(self, models: Sequence[str]) -> None:
        """Raise, before any work, if a file cannot be written."""
        if self.out is not None:
            check_suffix(self.out, (".toml",))
            if models and all(CLICK_FITS.get(name).is_baseline for name in models):
                raise InputError(f"--out: {', '.join(models)}: a click rate is not a model of users; add a click model")
        check_plot(self.plot)
        check_files((self.out, None if self.out is None else pairs_file(self.out), self.plot), self.overwrite)


@dataclass(frozen=True)
class FitOptions:
    """What is fitted.

    Attributes:
        click_models: Names of click models: pbm, cascade, dcm, ccm, ubm, dbn, sdbn, trust, and click rates as
            baselines: ctr, ctr-position, ctr-document, ctr-document-position; or auto for all.
        parameters: Parameters of documents: of each pair of query and document, from features, or of each pair with
            those from features as prior.
        context: Sessions of one context only, as in device=mobile. Otherwise each context has its own parameters, but
            for those of documents.
        held_out_days: Score on the sessions of the last so many days; 0 = on a fifth of the sessions, at random.
        samples: Number of bootstrap samples, over queries, for the intervals; 0 = no intervals.
        seed: Decides which sessions are held out, and the bootstrap samples.
    """

    click_models: Names = (AUTO,)
    parameters: DocumentParameters = "pair"
    context: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME=VALUE"), tyro.conf.UseAppendAction] = ()
    held_out_days: int = 0
    samples: int = 20
    seed: int = DEFAULT_SEED

    def names(self) -> list[str]:
        """The names of the models, none = all that the log suffices for; raises if an option is not possible."""
        if not self.click_models:
            raise InputError(f"--click-models: expected {AUTO} or names of click models, found none")
        numbers = {"--samples": self.samples, "--seed": self.seed, "--held-out-days": self.held_out_days}
        check_arguments(**{flag: (number, Range(0)) for flag, number in numbers.items()})
        if self.samples == 1:
            raise InputError("--samples: expected 0 or at least 2, found 1")
        if AUTO in self.click_models:
            return []
        return [name for name in self.click_models if CLICK_FITS.get(name)]


def fit_clicks(
    log: tyro.conf.Positional[Path],
    fitting: FitOptions = FitOptions(),
    window: TimeFlags = TimeFlags(),
    json: bool = False,
    outputs: FitOutputs = FitOutputs(),
) -> None:
    """Fit click models to a log, and tell which predicts the clicks of held-out sessions best.

    A fifth of the sessions is held out, or the last days. The best model is then fitted to all sessions, with intervals
    of its parameters. With --out it can be simulated: `cuolr simulate --data LOG --click-model users.toml` simulates
    the same users on the documents of the log. Clicks are fitted; rewards are not used.

    Args:
        log: Folder of a click log, of sessions or counted.
        fitting: What is fitted.
        window: Sessions to use, by time.
        json: Print JSON instead of tables.
        outputs: Files to write.
    """
    names, parameters, samples = fitting.names(), fitting.parameters, fitting.samples
    outputs.check(names)
    by: tuple[Literal["context", "day"], ...] = ("context", "day") if fitting.held_out_days else ("context",)
    with stage_bars() as stages:
        patterns = patterns_of(log, fitting.seed, window.window(), stages, by=by)
    patterns = _in_context(log, patterns, fitting.context)
    if parameters != "pair":
        patterns = patterns.with_every_document()
    # Each model, and the best again to all sessions.
    with problems_in(log), progress_bar("fitting", len(names or CLICK_FITS.names()) + 1) as progress:
        compared = compare_fits(patterns, names, documents=parameters, progress=progress, days=fitting.held_out_days)
        best = fit_users(compared.best, patterns, parameters)
        progress(1)
    if samples:
        with progress_bar("intervals", samples) as progress:
            best = with_errors(best, patterns, samples, fitting.seed, progress)
    _warn(log, patterns, compared, best)
    alike = difference_if_alike(patterns, compared, parameters, fitting.held_out_days)
    if outputs.out is not None:
        save_users(best, patterns, outputs.out, " ".join([str(log), *fitting.context]))
    if outputs.plot is not None:
        # It loads matplotlib.
        from cuolr.clicks.fitting.compare_fits import plot_fits

        plot_fits(compared, best, outputs.plot)
    if json:
        if_alike = {} if alike is None else {"contexts": patterns.levels, "if_alike": alike.as_dict()}
        show_json({**compared.as_dict(), **best.as_dict(), **if_alike})
        return
    _show(log, compared, best, alike)
    for written in (outputs.out, outputs.plot):
        if written is not None:
            say(f"wrote {written}")


def _in_context(log: Path, patterns: ClickPatterns, chosen: Sequence[str]) -> ClickPatterns:
    """The sessions of the chosen context; if there are several, each has users of its own."""
    there = {name: sorted(set(map(str, values.tolist()))) for name, values in patterns.context.items()}
    shown = {name: values if len(values) <= SHOWN else [*values[:SHOWN], "…"] for name, values in there.items()}
    for text in chosen:
        name, _, value = text.partition("=")
        if value not in there.get(name, ()):
            known = [f"{name}={value}" for name, values in shown.items() for value in values]
            raise InputError(f"--context: expected {' or '.join(known) or 'a log with context'}, found '{text}'")
        patterns = patterns.select(patterns.context[name].astype(np.str_) == value)
    if not len(patterns):
        raise InputError(f"{log}: no session is in the context {', '.join(chosen)}")
    try:
        return patterns.in_contexts()
    except InputError as error:
        say(f"note: {log}: {error}; all contexts have the same parameters; --context NAME=VALUE fits those of one")
        return patterns


def _warn(log: Path, patterns: ClickPatterns, compared: FitComparison, best: FittedClicks) -> None:
    """Notes on what the estimates are worth."""
    cells = patterns.cells
    found = Identifiability.of_documents(cells.pair, cells.position, cells.clicks)
    if found.verdict in ("no", "in part"):
        only = "not" if found.verdict == "no" else "only in part"
        say(
            f"note: {log}: position bias is {only} identifiable (`cuolr log-info` says why), so the parameters by "
            "position are not reliable"
        )
    if compared.better_baselines:
        names = ", ".join(compared.better_baselines)
        predict = "predicts" if len(compared.better_baselines) == 1 else "predict"
        say(f"note: {log}: {names} {predict} held-out clicks better than every click model that was fitted")
    if not best.finished:
        say(f"note: {best.name}: fitting stopped before it converged; the parameters are not exact")


def _show(log: Path, compared: FitComparison, best: FittedClicks, alike: Difference | None) -> None:
    rows = []
    for name in compared.in_order:
        scores, difference = compared.scores[name], compared.differences[name]
        gap = "" if name == compared.best else _difference(difference)
        if scores.impossible:
            gap = f"impossible: {scores.impossible:.1%} of the sessions"
        numbers = (scores.log_likelihood, scores.perplexity, scores.conditional_perplexity)
        rows.append([name, *map(_shown, numbers), gap])
    title = f"{log}: fitted to {compared.train_sessions:,} sessions, scored on {compared.held_out_sessions:,} held out"
    heads = ["model", "log-likelihood", "perplexity", "conditional perplexity", "difference to the best"]
    over = "sessions of these queries" if compared.scores[compared.best].independent else "queries"
    caption = f"Log-likelihood per session. Differences with 95 % intervals over {over}."
    show_table(title, heads, rows, caption)
    _show_parameters(best)
    show_text(_verdict(compared))
    if alike is not None:
        show_text(_verdict_on_context(alike))


def _shown(number: float) -> str:
    if np.isnan(number):
        return "–"
    return f"{number:.4f}" if number < LARGE else f"{number:.1e}"


def _verdict(compared: FitComparison) -> str:
    others = [name for name in compared.scores if name != compared.best]
    if not others:
        return f"Fitted: {compared.best}."
    if not compared.as_good:
        return f"Best click model: {compared.best}; the difference to the others is more than noise."
    return f"Best click model: {compared.best}; not distinguishable from it: {', '.join(compared.as_good)}."


def _verdict_on_context(alike: Difference) -> str:
    found = "by more than noise" if alike.is_more_than_noise else "not distinguishable from 0"
    return f"If all contexts had the same parameters, the log-likelihood would differ by {_difference(alike)}: {found}."


def _difference(difference: Difference) -> str:
    low, high = difference.interval
    return f"{difference.mean:+.4f} [{low:+.4f}, {high:+.4f}]"


def _show_parameters(best: FittedClicks) -> None:
    rows = []
    for name in best.global_names:
        values, trials = best.values[name], best.trials[name]
        low, high = best.interval(name) if name in best.errors else (None, None)
        for place in np.flatnonzero(trials > 0):
            entry = "" if len(values) == 1 else best.model.entry_name(name, int(place))
            interval = "" if low is None or high is None else f"{low[place]:.4f} to {high[place]:.4f}"
            if low is not None and high is not None and low[place] == high[place]:
                interval = "set by the scale"
            rows.append([name.replace("_", " "), entry, f"{values[place]:.4f}", interval])
    for name, value in best.unseen.items():
        rows.append([name, "documents without sessions", f"{value:.4f}", ""])
    caption = None
    if len(rows) > MAX_ROWS:
        caption = f"{len(rows) - MAX_ROWS:,} more are not shown; --json and --out have them."
        # The last rows are of documents without sessions.
        rows = [*rows[: MAX_ROWS - len(best.unseen)], *rows[len(rows) - len(best.unseen) :]]
    if rows:
        heads = ["parameter", "of", "value", "95 % interval"]
        show_table(f"parameters of {best.name}", heads, rows, caption, left=(0, 1))
