"""Fit several click models to a log, compare them on held-out sessions, and plot them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cuolr.clicks.fitting.click_model_fit import CLICK_FITS
from cuolr.clicks.fitting.evaluate_fit import Difference, FitScores, difference_to, evaluate_fit, pooled_scores
from cuolr.clicks.fitting.fit_by_context import FitByContext
from cuolr.clicks.fitting.fit_model import NORMAL_95, DocumentParameters, FittedClicks
from cuolr.clicks.fitting.mixture_prior import fit_users
from cuolr.errors import InputError
from cuolr.examination.plot import finish_axes, new_figure, save_figure
from cuolr.logs.click_patterns import ClickPatterns
from cuolr.logs.clicklog import LISTS_UNKNOWN
from cuolr.types import Doubles

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class FitComparison:
    """Click models fitted to the training sessions of a log, with their scores on the held-out ones.

    Attributes:
        fits: The fitted models by name; of the first level, if there are several levels of context.
        scores: Their scores.
        best: The click model of the highest held-out log-likelihood; a baseline only if there is nothing else.
        differences: The difference of each model to the best.
        train_sessions: Number of sessions that were fitted to.
        held_out_sessions: Number of held-out sessions.
    """

    fits: Mapping[str, FittedClicks]
    scores: Mapping[str, FitScores]
    best: str
    differences: Mapping[str, Difference]
    train_sessions: int
    held_out_sessions: int

    @property
    def in_order(self) -> list[str]:
        """The names, best first."""
        return sorted(self.scores, key=lambda name: (-self.scores[name].log_likelihood, name))

    @property
    def as_good(self) -> list[str]:
        """The click models that cannot be distinguished from the best."""
        others = [name for name in self.in_order if name != self.best and not self.fits[name].model.is_baseline]
        return [
            name for name in others if self.differences[name].interval[0] <= 0 <= self.differences[name].interval[1]
        ]

    @property
    def better_baselines(self) -> list[str]:
        """The click rates that predict held-out clicks better than the best click model, by more than noise."""
        baselines = [name for name in self.in_order if self.fits[name].model.is_baseline and name != self.best]
        return [name for name in baselines if self.differences[name].interval[0] > 0]

    def as_dict(self) -> dict[str, Any]:
        """As JSON, without the parameters."""
        return {
            "train_sessions": self.train_sessions,
            "held_out_sessions": self.held_out_sessions,
            "best": self.best,
            "not_distinguishable": self.as_good,
            "models": {
                name: {**self.scores[name].as_dict(), **self.differences[name].as_dict()} for name in self.in_order
            },
        }


def compare_fits(
    patterns: ClickPatterns,
    names: Sequence[str] | None = None,
    folds: int = 2,
    documents: DocumentParameters = "pair",
    progress: Callable[[int], None] | None = None,
    days: int = 0,
) -> FitComparison:
    """Fit click models to all but some sessions of a log, and score them on these.

    Args:
        patterns: The counts of the log.
        names: Names of `CLICK_FITS`; None = all, or those that counts by document suffice for.
        folds: Number of folds, of `click_patterns.FOLDS`, that are held out.
        documents: The parameters of documents, see `fit_users`.
        progress: Called with 1 after each model.
        days: Hold out the last so many days instead, if the counts are by day; 0 = folds.
    """
    names = _fittable(patterns, names)
    classes = {name: CLICK_FITS.get(name) for name in names}
    train, held_out = patterns.held_out_days(days) if days else patterns.held_out(folds)
    if not train.sessions or not held_out.sessions:
        raise InputError(f"expected sessions to fit to and to hold out, found {patterns.sessions:.0f} in all")
    if not train.clicks.any():
        raise InputError("the sessions to fit click models to have no clicks")
    fits, scores = {}, {}
    for name in classes:
        fits[name] = fit_users(name, train, documents)
        scores[name] = evaluate_fit(fits[name], held_out)
        if progress is not None:
            progress(1)
    return _comparison(fits, scores, int(train.sessions), int(held_out.sessions))


def difference_if_alike(
    patterns: ClickPatterns, compared: FitComparison, documents: DocumentParameters = "pair", days: int = 0
) -> Difference | None:
    """What the best model loses if all levels of context have the same parameters; None if there is one level.

    Args:
        patterns: The counts that were compared on.
        compared: The comparison.
        documents: As it was asked for.
        days: As it was asked for.
    """
    if patterns.level is None:
        return None
    alike = compare_fits(patterns.alike(), [compared.best], documents=documents, days=days)
    return difference_to(compared.scores[compared.best], alike.scores[compared.best])


def compare_by_level(
    levels: Sequence[ClickPatterns],
    folds: int = 2,
    progress: Callable[[int], None] | None = None,
    names: Sequence[str] | None = None,
) -> FitComparison:
    """Compare click models, each fitted to every level of context, on the held-out sessions of all levels.

    One fit for all levels would favour models in which a click says something about the user, and so about the level.

    Args:
        levels: The counts of each level, of the same pairs; at least one has clicks, and sessions to hold out.
        folds: Number of folds that are held out.
        progress: Called with 1 after each model.
        names: As for `compare_fits`.
    """
    parts = [level.held_out(folds) for level in levels]
    parts = [(train, held_out) for train, held_out in parts if train.clicks.any() and held_out.sessions > 0]
    # A rare level may have few queries, where the others have many: the units are those of all.
    by_query = not all(held_out.few_queries for _, held_out in parts)
    fits, scores = {}, {}
    for name in _fittable(levels[0], names):
        of_levels = [fit_users(name, train) for train, _ in parts]
        fits[name] = of_levels[0]
        scores[name] = pooled_scores(
            [evaluate_fit(fit, held_out, by_query) for fit, (_, held_out) in zip(of_levels, parts, strict=True)]
        )
        if progress is not None:
            progress(1)
    sessions = [int(sum(part[side].sessions for part in parts)) for side in (0, 1)]
    return _comparison(fits, scores, *sessions)


def _comparison(
    fits: Mapping[str, FittedClicks], scores: Mapping[str, FitScores], train: int, held_out: int
) -> FitComparison:
    """With the best click model, and the difference of each to it."""
    users = [name for name, fit in fits.items() if not fit.model.is_baseline] or list(fits)
    best = max(users, key=lambda name: scores[name].log_likelihood)
    differences = {name: difference_to(scores[best], score) for name, score in scores.items()}
    return FitComparison(fits, scores, best, differences, train, held_out)


def _fittable(patterns: ClickPatterns, names: Sequence[str] | None) -> list[str]:
    """The names without repetition; by default all that the counts suffice for."""
    in_need = {name for name in CLICK_FITS.names() if CLICK_FITS.get(name).needs_lists and patterns.of_documents}
    if not names:
        return [name for name in CLICK_FITS.names() if name not in in_need]
    if lacking := [name for name in dict.fromkeys(names) if name in in_need]:
        raise InputError(f"{', '.join(lacking)}: {LISTS_UNKNOWN}")
    return list(dict.fromkeys(names))


# Colours that can be told apart by colour-blind readers, with markers for greyscale; the best models have the first.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "0.5")
MARKERS = ("o", "s", "D", "^", "v", "P", "X", "*")
# Names of parameters by position, in plots.
LABELS = {
    "examination": "examination",
    "continuation": "continuation after a click",
    "click_relevant": "click if examined and relevant",
    "click_irrelevant": "click if examined and irrelevant",
}


def plot_fits(compared: FitComparison, best: FittedClicks, path: Path) -> None:
    """Plot the conditional perplexity of each model, and the parameters of the best one if they are by position.

    Args:
        compared: The models.
        best: The best model, with standard errors.
        path: The file to write; its suffix, one of `PLOT_SUFFIXES`, gives the format.
    """
    shown = _by_position(best)
    figure = new_figure(5.2 * (1 + bool(shown)), 3.8)
    axes = figure.subplots(1, 1 + bool(shown), squeeze=False)[0]
    _draw_perplexity(axes[0], compared)
    if shown:
        for number, (label, (values, errors)) in enumerate(shown.items()):
            _draw_parameter(axes[1], number % len(COLOURS), label, values, errors)
        finish_axes(axes[1], f"parameters of {best.name}, with 95 % intervals", best.model.k)
    save_figure(figure, path)


def _by_position(best: FittedClicks) -> dict[str, tuple[Doubles, Doubles | None]]:
    """Values and standard errors of the parameters by position, of each level of context."""
    levels = best.model.levels if isinstance(best.model, FitByContext) else ("",)
    shown: dict[str, tuple[Doubles, Doubles | None]] = {}
    for name in best.global_names:
        if len(best.values[name]) == best.model.k * len(levels):
            values, errors = np.split(best.values[name], len(levels)), best.errors.get(name)
            of_levels = [None] * len(levels) if errors is None else np.split(errors, len(levels))
            for level, value, error in zip(levels, values, of_levels, strict=True):
                shown[", ".join(filter(None, (LABELS.get(name, name), level)))] = value, error
    return shown


def _draw_perplexity(axes: "Axes", compared: FitComparison) -> None:
    finite = [n for n in compared.in_order if np.isfinite(compared.scores[n].conditional_perplexity)]
    for number, name in enumerate(finite[: len(COLOURS)]):
        values = compared.scores[name].conditional_by_position
        places = np.arange(1, len(values) + 1)
        style = {"color": COLOURS[number], "marker": MARKERS[number]}
        axes.plot(places, values, label=name, markersize=4, linewidth=1.2, **style)  # type: ignore[arg-type]
    finish_axes(
        axes, "conditional perplexity, held-out sessions", len(compared.scores[compared.best].perplexity_by_position)
    )
    axes.set_ylim(1, None)


def _draw_parameter(axes: "Axes", number: int, label: str, values: Doubles, errors: Doubles | None) -> None:
    known = np.isfinite(errors) if errors is not None else np.ones(len(values), np.bool_)
    places = np.flatnonzero(known)
    margins = None if errors is None else NORMAL_95 * errors[known]
    axes.errorbar(
        places + 1,
        values[known],
        margins,
        label=label,
        color=COLOURS[number],
        marker=MARKERS[number],
        markersize=5,
        capsize=3,
    )
