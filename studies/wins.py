"""One learner against each click model's best baseline: the table of docs/results/cuolr-wins.md.

    python -m studies.wins RESULTS

RESULTS is a folder of `cuolr experiment wins`. The best baseline is chosen on validation queries. The unit of a test is
the query, its value first averaged over seeds; Holm's correction is over the cells of the table, five click models by
two measures.
"""

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cuolr.experiments.results import CellResult, Results, read_results
from cuolr.experiments.spec import YARDSTICKS, Cell, Grid
from cuolr.significance import Comparison, compare, holm, stars
from cuolr.types import Doubles

OURS = "CUOLR"
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
        learner = {name: results.experiment.method_named(name).learner for name in self.runs}
        return [name for name in self.runs if learner[name] not in YARDSTICKS and name != OURS]


def columns(results: Results) -> Iterator[Column]:
    """Of each grid in turn."""
    for grid in results.experiment.grid:
        for click_model in grid.click_model:
            runs: dict[str, dict[tuple[int, int], CellResult]] = {}
            for cell, result in results.cells.items():
                if _belongs(cell, grid, click_model):
                    runs.setdefault(cell.method, {})[cell.fold, cell.seed] = result
            yield Column(grid, click_model, {method: runs[method] for method in grid.method if method in runs})


def _belongs(cell: Cell, grid: Grid, click_model: str) -> bool:
    """Whether a cell stands in a column; yardsticks leave open what cannot matter to them."""
    return (
        cell.method in grid.method
        and cell.logging in ("", *grid.logging)
        and cell.click_model in ("", click_model)
        and cell.sessions_per_query in (0, *grid.sessions_per_query)
    )


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
    return compare(first, second)


def print_grid(results: Results, of_grid: list[Column]) -> None:
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
    pairs = [(column, measure) for column in of_grid for measure in MEASURES]
    best = {column.click_model: best_baseline(results, column) for column in of_grid}
    for title, others in (
        ("the best baseline by validation", best),
        ("naive", dict.fromkeys(best, "naive")),
        ("LOGGING", dict.fromkeys(best, "LOGGING")),
    ):
        found = [against(column, others[column.click_model], measure) for column, measure in pairs]
        corrected = holm([comparison.t_test for comparison in found])
        print(f"| against {title} | measure | difference | 95 % interval | p (Holm) |\n|---|---|---|---|---|")
        for (column, measure), comparison, p in zip(pairs, found, corrected, strict=True):
            low, high = comparison.interval
            name = f"{column.click_model.upper()}: {others[column.click_model]}"
            interval = f"{low:+.4f} to {high:+.4f}"
            print(f"| {name} | {measure} | {comparison.difference:+.4f} | {interval} | {p:.3f} {stars(p)} |")
        ahead = sum(comparison.difference > 0 for comparison in found)
        surely = sum(c.difference > 0 and p < 0.05 for c, p in zip(found, corrected, strict=True))
        behind = sum(c.difference < 0 and p < 0.05 for c, p in zip(found, corrected, strict=True))
        worst = min(comparison.interval[0] for comparison in found)
        print(
            f"\nAhead in {ahead} of {len(found)}, significantly in {surely}, significantly behind in {behind}; "
            f"lowest end of an interval {worst:+.4f}.\n"
        )
    if all("SKYLINE" in column.runs for column in of_grid):
        shares = []
        for column in of_grid:
            ours, skyline, logging = (mean(column.runs[m], "ndcg@10") for m in (OURS, "SKYLINE", "LOGGING"))
            shares.append((ours - logging) / (skyline - logging))
        print(
            f"Of SKYLINE's nDCG@10 above LOGGING: {', '.join(f'{share:.0%}' for share in shares)}, "
            f"on average {np.mean(shares):.0%}."
        )


def main() -> None:
    """Print what is there."""
    results = read_results(Path(sys.argv[1]))
    print(
        f"{results.data['name']}: {len(results.cells)} cells, and {len(results.missing) + len(results.failed)} to come"
    )
    for grid in results.experiment.grid:
        print_grid(results, [column for column in columns(results) if column.grid is grid])


if __name__ == "__main__":
    main()
