"""Fit several click models to a log, and compare them on held-out sessions."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cuolr.clicks.fitting.click_model_fit import CLICK_FITS
from cuolr.clicks.fitting.evaluate_fit import Difference, FitScores, difference_to, evaluate_fit, pooled_scores
from cuolr.clicks.fitting.fit_model import DocumentParameters, FittedClicks
from cuolr.clicks.fitting.mixture_prior import fit_users
from cuolr.errors import InputError
from cuolr.logs.click_patterns import ClickPatterns
from cuolr.logs.log_forms import LISTS_UNKNOWN


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
    fits, scores = {}, {}
    for name in _fittable(levels[0], names):
        of_levels = [fit_users(name, train) for train, _ in parts]
        fits[name] = of_levels[0]
        scores[name] = pooled_scores(
            [evaluate_fit(fit, held_out) for fit, (_, held_out) in zip(of_levels, parts, strict=True)]
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
