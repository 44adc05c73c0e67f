"""One learner against each click model's best baseline, with the learner's settings chosen anew in each fold.

    python -m studies.fold_by_fold WINS CHOSEN

WINS is a folder of `cuolr experiment wins`, CHOSEN one of the learner's runs in the folds whose own validation queries
chose other settings than the default (docs/results/fold-by-fold.toml): these take the place of the default's.
"""

import sys
from dataclasses import replace
from pathlib import Path

from cuolr.experiments.results import Results, read_results
from studies.wins import OURS, Column, columns, print_grid


def with_chosen(column: Column, chosen: Results) -> Column:
    """The column with the runs of `chosen` for ours, where there are some."""
    runs = {(c.fold, c.seed): result for c, result in chosen.cells.items() if c.click_model == column.click_model}
    return replace(column, runs={**column.runs, OURS: {**column.runs[OURS], **runs}})


def main() -> None:
    """Print the tables of the first grid."""
    results, chosen = (read_results(Path(folder)) for folder in sys.argv[1:3])
    first = results.experiment.grid[0]
    print_grid(results, [with_chosen(column, chosen) for column in columns(results) if column.grid is first])


if __name__ == "__main__":
    main()
