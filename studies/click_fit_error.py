"""Error of fitted click models against the number of sessions; the numbers and the plot are in docs/fit-clicks.md.

Each click model is simulated on lists drawn in each session, and fitted to its own log. The error is the mean absolute
difference to the true value: of the global parameters, and of the attractiveness of pairs, weighted by impressions,
both up to the free scale.

Run: python -m studies.click_fit_error [--queries 50] [--out docs/figures/fit-clicks-error.svg]
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import tyro

from cuolr import click_model, fit_ranksvm, generate_splits, simulate
from cuolr.cli.terminal import show_table
from cuolr.clicks.click_model import ClickModel, by_position, relevance_of
from cuolr.clicks.fitting.click_model_fit import ClickModelFit
from cuolr.clicks.fitting.compare_fits import COLOURS, MARKERS
from cuolr.clicks.fitting.fit_model import FittedClicks
from cuolr.clicks.fitting.mixture_prior import fit_users
from cuolr.clicks.ubm import UserBrowsingModel
from cuolr.logs.click_patterns import ClickPatterns
from cuolr.policies.plackett_luce import StochasticLogger
from cuolr.types import Doubles, RankingDataset

MODELS: Mapping[str, Mapping[str, Any]] = {
    "pbm": {},
    "ubm": {},
    "cascade": {},
    "dcm": {},
    "ccm": {"relevance_is_attractiveness": True},
    "dbn": {},
    "sdbn": {},
    "trust": {},
}
TEMPERATURE = 0.3


def true_values(name: str, simulated: ClickModel, model: ClickModelFit, relevance: Doubles) -> dict[str, Doubles]:
    """The parameters of the simulator, as they are fitted; NaN where none is defined.

    Args:
        name: Name of the fitted model.
        simulated: The simulator.
        model: The fitted model.
        relevance: [P] of the pairs.
    """
    users: Any = simulated
    attractiveness = {"attractiveness": simulated.attractiveness(relevance)}
    lists = np.zeros((1, model.k))
    match name:
        case "cascade":
            return attractiveness
        case "pbm":
            return model.normalised({**attractiveness, "examination": by_position(users.examination, lists, users.eta)})
        case "ubm":
            return {**attractiveness, "examination": _ubm_table(users, model.k)}
        case "dcm":
            return {**attractiveness, "continuation": by_position(users.continuation, lists, users.eta)}
        case "ccm":
            after_click = (users.continuation_after_irrelevant, users.continuation_after_relevant)
            return {**attractiveness, "continuation": np.array([users.continuation_after_skip, *after_click])}
        case "sdbn":
            return {**attractiveness, "satisfaction": users.satisfaction * relevance}
        case "dbn":
            satisfaction = {"satisfaction": users.satisfaction * relevance}
            return {**attractiveness, **satisfaction, "perseverance": np.array([users.perseverance])}
    examination = by_position(users.examination, lists, users.eta)
    clicks = (by_position(values, lists) for values in (users.click_relevant, users.click_irrelevant))
    relevant, irrelevant = (examination * chance for chance in clicks)
    return model.normalised({**attractiveness, "click_relevant": relevant, "click_irrelevant": irrelevant})


def _ubm_table(users: UserBrowsingModel, k: int) -> Doubles:
    table = np.full((k, k + 1), np.nan)
    for position in range(k):
        table[position, : position + 1] = users.examination_after(position)
    return table.ravel()


def errors_of(fitted: FittedClicks, truth: Mapping[str, Doubles]) -> tuple[float, float]:
    """Mean absolute errors: of the global parameters that the log tells about, and of attractiveness."""
    gaps = [
        np.abs(fitted.values[name] - truth[name])[(fitted.trials[name] > 0) & np.isfinite(truth[name])]
        for name in fitted.global_names
    ]
    of_pairs = np.abs(fitted.values["attractiveness"] - truth["attractiveness"])
    weights = fitted.trials["attractiveness"]
    of_global = float(np.concatenate(gaps).mean()) if gaps else np.nan
    return of_global, float(weights @ of_pairs / weights.sum())


def measure(
    dataset: RankingDataset, logger: StochasticLogger, name: str, sessions: int, k: int = 10, seed: int = 1
) -> tuple[float, float]:
    """The errors of one model after so many sessions."""
    users = click_model(name, **MODELS[name])
    patterns = ClickPatterns.of(simulate(dataset, logger, users, sessions, k, seed))
    fitted = fit_users(name, patterns)
    relevance = relevance_of(dataset.relevance[patterns.pairs], dataset.max_grade).astype(np.float64)
    return errors_of(fitted, true_values(name, users, fitted.model, relevance))


def plot(sessions: tuple[int, ...], errors: Mapping[str, list[tuple[float, float]]], path: Path) -> None:
    """Both errors against the number of sessions, on logarithmic axes."""
    from matplotlib.figure import Figure

    from cuolr.examination.plot import save_figure

    figure = Figure(figsize=(9.2, 3.8), layout="constrained")
    for part, (axes, title) in enumerate(
        zip(figure.subplots(1, 2), ("global parameters", "attractiveness of documents"), strict=True)
    ):
        for number, (name, points) in enumerate(errors.items()):
            style: dict[str, Any] = {"color": COLOURS[number], "marker": MARKERS[number]}
            values = [point[part] for point in points]
            if np.isfinite(values).all():
                axes.loglog(sessions, values, label=name, markersize=4, linewidth=1.2, **style)
        axes.set_title(f"mean absolute error: {title}", loc="left", fontsize=11)
        axes.set_xlabel("sessions")
        axes.grid(color="0.92")
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, fontsize=8, ncols=2)
    save_figure(figure, path)


def main(
    sessions: tuple[int, ...] = (2_500, 10_000, 40_000, 160_000), queries: int = 50, out: Path | None = None
) -> None:
    """Measure the error of each click model after several numbers of sessions.

    Args:
        sessions: Numbers of sessions.
        queries: Number of queries of `web10k-like`.
        out: Plot the errors to this file.
    """
    train, _, _ = generate_splits("web10k-like", queries, 10, 10, seed=1)
    logger = StochasticLogger(fit_ranksvm(train, 1.0), TEMPERATURE)
    errors = {name: [measure(train, logger, name, number) for number in sessions] for name in MODELS}
    rows = [[name, *(f"{one:.4f} / {other:.4f}" for one, other in points)] for name, points in errors.items()]
    columns = ["model", *(f"{number:,} sessions" for number in sessions)]
    show_table("Mean absolute error of global parameters / of attractiveness", columns, rows)
    if out is not None:
        plot(sessions, errors, out)


if __name__ == "__main__":
    tyro.cli(main)
