"""`factored` against each click model's best baseline: the tables of docs/results/wins.md.

    python -m studies.wins RESULTS [OTHERS]

RESULTS has the results of `cuolr experiment wins`. OTHERS has runs of `factored` with other settings, of one or more
folds (docs/results/fold-by-fold.toml, prior-10.toml), which replace those of the default. The best baseline is chosen
on validation queries. The unit of a test is the query, its value first averaged over seeds; Holm's correction is over
the cells of the table, five click models by two measures.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from cuolr.errors import InputError
from cuolr.evaluation.significance import Comparison, compare, holm, stars
from cuolr.experiments.results import CellResult, Results
from cuolr.experiments.results_folder import read_results
from cuolr.experiments.spec import Cell, Grid
from cuolr.types import Doubles

OURS = "factored"
MEASURES = ("ndcg@10", "err@10")

# Runs of a method in one column of the table, by fold and seed.
Runs = Mapping[tuple[int, int], CellResult]


@dataclass(frozen=True)
class Column:
    """A click model of a grid, with the finished runs of each method."""

    grid: Grid
    click_model: str
    runs: Mapping[str, Runs]

    def baselines(self, results: Results) -> list[str]:
        """Methods that learn from clicks, without ours."""
        references = {name for name in self.runs if results.experiment.method_named(name).is_reference}
        return [name for name in self.runs if name not in references and name != OURS]


def columns(results: Results) -> Iterator[Column]:
    """The columns of each grid in turn."""
    for grid in results.experiment.grid:
        for click_model in grid.click_model:
            runs: dict[str, dict[tuple[int, int], CellResult]] = {}
            for cell, result in results.cells.items():
                if cell.method in grid.method and _belongs(cell, grid, click_model):
                    runs.setdefault(cell.method, {})[cell.fold, cell.seed] = result
            yield Column(grid, click_model, {method: runs[method] for method in grid.method if method in runs})


def _belongs(cell: Cell, grid: Grid, click_model: str) -> bool:
    """Whether a cell's log is that of a column; fields that do not apply to a reference ranker are empty."""
    return (
        cell.logging in ("", *grid.logging)
        and cell.click_model in ("", click_model)
        and cell.sessions_per_query in (0, *grid.sessions_per_query)
    )


def with_others(column: Column, others: Results) -> Column:
    """The column, with the runs of `others` in place of ours."""
    cells = [cell for cell in others.cells if _belongs(cell, column.grid, column.click_model)]
    runs = {(cell.fold, cell.seed): others.cells[cell] for cell in cells}
    if len(runs) < len(cells):
        raise InputError(f"{column.click_model}: expected one of our runs in each fold and seed, found several")
    return replace(column, runs={**column.runs, OURS: {**column.runs.get(OURS, {}), **runs}}) if runs else column


def per_query(runs: Runs, measure: str) -> Doubles:
    """[n_queries of all folds] the mean over seeds; NaN = the query does not count."""
    folds = sorted({fold for fold, _ in runs})
    by_fold = [[result.per_query[measure] for run, result in runs.items() if run[0] == fold] for fold in folds]
    return np.concatenate([np.mean(values, axis=0) for values in by_fold])


def mean(runs: Runs, measure: str) -> float:
    """Over runs."""
    return float(np.mean([result.measures[measure] for result in runs.values()]))


def validation(runs: Runs) -> float:
    """What a method is chosen by."""
    return float(np.mean([result.notes["validation"] for result in runs.values()]))


def best_baseline(results: Results, column: Column) -> str:
    """By the validation queries."""
    return max(column.baselines(results), key=lambda name: validation(column.runs[name]))


def against(column: Column, other: str, measure: str) -> Comparison:
    """Ours and another method, paired by query, on the runs that both have."""
    ours, theirs = column.runs[OURS], column.runs[other]
    both = sorted(ours.keys() & theirs.keys())
    first, second = (per_query({run: runs[run] for run in both}, measure) for runs in (ours, theirs))
    return compare(first, second, seed=0)


@dataclass(frozen=True)
class Duel:
    """Ours against another method in a column.

    Attributes:
        column: The click model of a grid.
        other: The other method.
        measure: The measure.
        comparison: The comparison, paired by query.
        p_value: p of the t-test, with Holm's correction over the family.
    """

    column: Column
    other: str
    measure: str
    comparison: Comparison
    p_value: float


def duels(of_grid: Sequence[Column], others: Sequence[str]) -> list[Duel]:
    """Ours against the other method of each column, by each measure: one family of Holm's correction."""
    pairs = [(column, other, m) for column, other in zip(of_grid, others, strict=True) for m in MEASURES]
    found = [against(*pair) for pair in pairs]
    corrected = holm([comparison.t_test for comparison in found])
    return [Duel(*pair, comparison, p) for pair, comparison, p in zip(pairs, found, corrected, strict=True)]


def tally(family: Sequence[Duel]) -> str:
    """How often ours is ahead or behind; losses are also counted without the correction, which could hide them."""
    ahead = sum(duel.comparison.difference > 0 for duel in family)
    surely = sum(duel.comparison.difference > 0 and duel.p_value < 0.05 for duel in family)
    behind = [duel for duel in family if duel.comparison.difference < 0]
    return (
        f"Ahead in {ahead} of {len(family)}, significantly in {surely}; significantly behind in "
        f"{sum(duel.p_value < 0.05 for duel in behind)} (without correction "
        f"{sum(duel.comparison.t_test < 0.05 for duel in behind)}); lowest end of an interval "
        f"{min(duel.comparison.interval[0] for duel in family):+.4f}."
    )


def in_words(p_value: float) -> str:
    """A p value as shown in tables.

    >>> in_words(0.0123), in_words(1e-9)
    ('0.012', '< 0.001')
    """
    return "< 0.001" if p_value < 0.001 else f"{p_value:.3f}"


def shares_of_skyline(of_grid: Sequence[Column]) -> list[float]:
    """The share of SKYLINE's gain over LOGGING that ours reaches, by nDCG@10."""
    means = [[mean(column.runs[m], MEASURES[0]) for m in (OURS, "SKYLINE", "LOGGING")] for column in of_grid]
    return [(ours - logging) / (skyline - logging) for ours, skyline, logging in means]


def print_grid(results: Results, of_grid: Sequence[Column]) -> None:
    """A table of means, and one of ours against the best baseline, naive and LOGGING."""
    print(f"\n## {of_grid[0].grid.title}\n")
    for measure in MEASURES:
        print(f"| {measure} | {' | '.join(c.click_model.upper() for c in of_grid)} | mean | minutes |")
        print("|---" * (len(of_grid) + 3) + "|")
        for method in of_grid[0].grid.method:
            if all(method in column.runs for column in of_grid):
                values = [mean(column.runs[method], measure) for column in of_grid]
                seconds = [run.seconds for column in of_grid for run in column.runs[method].values()]
                cells = " | ".join(f"{value:.4f}" for value in values)
                print(f"| {method} | {cells} | {np.mean(values):.4f} | {np.mean(seconds) / 60:.2f} |")
        print()
    if not all(OURS in column.runs for column in of_grid):
        print(f"{OURS} has not run under all click models yet.")
        return
    best = [best_baseline(results, column) for column in of_grid]
    rivals = {
        "the best baseline by validation": best,
        "naive": ["naive"] * len(best),
        "LOGGING": ["LOGGING"] * len(best),
    }
    for title, others in rivals.items():
        if title != "naive" and others == rivals["naive"]:
            continue  # there is no other baseline
        print(f"| against {title} | measure | difference | 95 % interval | p | p (Holm) |\n|---|---|---|---|---|---|")
        family = duels(of_grid, others)
        for duel in family:
            comparison = duel.comparison
            low, high = comparison.interval
            print(
                f"| {duel.column.click_model.upper()}: {duel.other} | {duel.measure} | {comparison.difference:+.4f} "
                f"| {low:+.4f} to {high:+.4f} | {in_words(comparison.t_test)} "
                f"| {in_words(duel.p_value)} {stars(duel.p_value)} |"
            )
        print(f"\n{tally(family)}\n")
    if all("SKYLINE" in column.runs for column in of_grid):
        shares = shares_of_skyline(of_grid)
        print(
            f"Of SKYLINE's nDCG@10 above LOGGING: {', '.join(f'{share:.0%}' for share in shares)}, "
            f"on average {np.mean(shares):.0%}."
        )


def main() -> None:
    """Print the tables of all results so far."""
    results, *others = (read_results(Path(folder)) for folder in sys.argv[1:3])
    print(f"{results.data['name']}: {len(results.cells)} cells, {len(results.missing) + len(results.failed)} to go")
    shown = [with_others(column, *others) if others else column for column in columns(results)]
    for grid in results.experiment.grid:
        print_grid(results, [column for column in shown if column.grid is grid])


if __name__ == "__main__":
    main()
