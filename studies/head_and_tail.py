"""Is the default learner ever behind the logging policy, or behind naive clicks with the same rankers?

From one session per query to 200, from 60 queries to 10,000, with four logging policies, under PBM and DCM. Nothing is
chosen with labels. The differences in nDCG@10 on fresh queries are paired by query, the seeds of a cell together: the
default is non-inferior if the one-sided 95 % bound of its difference is above −.005, inferior if the other bound is
below it, and undecided otherwise. Results are appended to a file, a line for each log; the same command continues where
it was stopped.

Run: python -m studies.head_and_tail --out grid.jsonl [--queries 60 300] [--sessions 2 10] [--loggers weak] [--seeds 3]
Tables alone: python -m studies.head_and_tail --out grid.jsonl --seeds 0
"""

import itertools
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import tyro

from cuolr import Ranker, click_model, evaluate, fit_ranksvm, simulate
from cuolr.cli.terminal import say, show_table
from cuolr.files import atomic_file
from cuolr.policies.ensemble_policy import EnsemblePolicy
from cuolr.policies.policy import RankingPolicy
from cuolr.supervised.oracle import LambdaMartSettings, fit_lambdamart
from cuolr.types import Doubles, RankingDataset
from studies.gain_coverage import Queries

QUERIES = (60, 300, 2_000, 10_000)
SESSIONS = (1, 2, 10, 200)
LOGGERS = ("weak", "strong", "lambdamart-other", "lambdamart-same")
USERS = ("pbm", "dcm")
MEASURE = "ndcg@10"
# Documents of a query; from `MANY` queries on, fewer.
DOCUMENTS, FEW_DOCUMENTS, MANY = 60, 20, 10_000
# Streams of random queries, never shared: of the log, of another ranker's labels, and of the measure.
LOGGED, OTHERS, FRESH = 1, 2, 3
FRESH_QUERIES = 1_000
LAMBDAMART = LambdaMartSettings(trees=100, leaves=15, learning_rate=0.1, threads=1)
METHODS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "default": ("factored", {}),
    "naive": ("naive", {"learner.ranker": "ensemble", "learner.include_logging_policy": True}),
}
RIVALS = ("naive", "LOGGING")
# The largest difference that does not matter, and the quantile of the bounds.
MARGIN, QUANTILE = 0.005, 1.645


def production(logger: str, train: RankingDataset, others: RankingDataset, seed: int) -> RankingPolicy:
    """The logging policy: a RankSVM of 1 % or of all queries of the log, or LambdaMART of these or of other queries."""
    if logger.startswith("lambdamart"):
        return fit_lambdamart(train if logger == "lambdamart-same" else others, None, LAMBDAMART)
    return fit_ranksvm(train, 0.01 if logger == "weak" else 1.0, seed)


def measure(queries: int, sessions: int, logger: str, users: str, seed: int, steps: int) -> dict[str, Any]:
    """The line of one log."""
    start = time.perf_counter()
    world = Queries(FEW_DOCUMENTS if queries >= MANY else DOCUMENTS)
    train, others = (world.draw(queries, 10 * seed + stream) for stream in (LOGGED, OTHERS))
    fresh = world.draw(FRESH_QUERIES, 10 * seed + FRESH)
    logging_policy = production(logger, train, others, seed)
    log = simulate(train, logging_policy, click_model(users), sessions=sessions * queries, seed=seed)

    def ndcg(policy: RankingPolicy) -> Doubles:
        return evaluate(policy, fresh, [MEASURE]).per_query[MEASURE]

    trained = {
        name: Ranker(learner, steps=steps, seed=seed, settings=dict(settings)).fit(log)
        for name, (learner, settings) in METHODS.items()
    }
    values = {name: ndcg(ranker.policy_) for name, ranker in trained.items()} | {"LOGGING": ndcg(logging_policy)}
    default = trained["default"].policy_
    return {
        "cell": [queries, sessions, logger, users],
        "seed": seed,
        "steps": steps,
        "ndcg": {name: float(np.nanmean(per_query)) for name, per_query in values.items()},
        "differences": {rival: _summary(values["default"] - values[rival]) for rival in RIVALS},
        "kept": isinstance(default, EnsemblePolicy) and default.is_logging_policy,
        "seconds": round(time.perf_counter() - start, 1),
    }


def _summary(difference: Doubles) -> list[float]:
    """The mean over queries with a relevant document, and its standard error."""
    known = difference[~np.isnan(difference)]
    return [float(known.mean()), float(known.std(ddof=1) / np.sqrt(len(known)))]


def pooled(differences: Sequence[Sequence[float]]) -> tuple[float, float]:
    """The mean over seeds with its standard error: the larger of that of queries and that between seeds.

    >>> pooled([[0.01, 0.003], [0.03, 0.004]])
    (0.02, 0.01)
    """
    means, errors = np.array(differences).T
    of_queries = float(np.sqrt((errors**2).sum()) / len(means))
    of_seeds = float(means.std(ddof=1) / np.sqrt(len(means))) if len(means) > 1 else 0.0
    return round(float(means.mean()), 12), round(max(of_queries, of_seeds), 12)


def verdict(difference: float, error: float) -> str:
    """Whether the default is non-inferior.

    >>> verdict(-0.001, 0.002), verdict(-0.02, 0.002), verdict(0.0, 0.01)
    ('non-inferior', 'inferior', 'undecided')
    """
    if difference - QUANTILE * error > -MARGIN:
        return "non-inferior"
    return "inferior" if difference + QUANTILE * error < -MARGIN else "undecided"


def saved_lines(path: Path) -> list[dict[str, Any]]:
    """The results so far; a last line that was not written whole is removed from the file."""
    if not path.exists():
        return []
    whole, _, rest = path.read_text(encoding="utf-8").rpartition("\n")
    if rest:
        with atomic_file(path) as part:
            part.write_text(f"{whole}\n" if whole else "", encoding="utf-8")
    return [json.loads(line) for line in whole.splitlines()]


def tables(lines: Sequence[Mapping[str, Any]]) -> None:
    """A row for each cell, and how many cells are non-inferior, inferior and undecided."""
    rows, verdicts = [], []
    for cell in dict.fromkeys(tuple(line["cell"]) for line in lines):
        runs = [line for line in lines if tuple(line["cell"]) == cell]
        row = [" ".join(map(str, cell)), str(len(runs)), str(sum(run["kept"] for run in runs))]
        row += [f"{np.mean([run['ndcg'][name] for run in runs]):.3f}" for name in ("default", *RIVALS)]
        for rival in RIVALS:
            difference, error = pooled([run["differences"][rival] for run in runs])
            verdicts.append((rival, verdict(difference, error)))
            row.append(f"{difference:+.4f} ± {QUANTILE * error:.4f} {verdicts[-1][1]}")
        rows.append(row)
    heads = ["queries, sessions, logging policy, users", "logs", "kept", "default", *RIVALS]
    show_table("nDCG@10 on fresh queries", [*heads, *(f"against {rival}" for rival in RIVALS)], rows, left=(0,))
    kinds = ("non-inferior", "inferior", "undecided")
    counts = [[rival, *(str(verdicts.count((rival, kind))) for kind in kinds)] for rival in RIVALS]
    show_table("cells", ["against", *kinds], counts, left=(0,))


def main(
    out: Path,
    queries: tuple[int, ...] = QUERIES,
    sessions: tuple[int, ...] = SESSIONS,
    loggers: tuple[str, ...] = LOGGERS,
    users: tuple[str, ...] = USERS,
    seeds: int = 3,
    steps: int = 500,
) -> None:
    """Run what is missing, and print the tables.

    Args:
        out: File of results, a JSON line for each log.
        queries: Numbers of queries.
        sessions: Sessions per query.
        loggers: Logging policies.
        users: Click models.
        seeds: Number of logs of each cell.
        steps: Maximum number of training steps.
    """
    torch.set_num_threads(1)
    lines = saved_lines(out)
    done = {(*line["cell"], line["seed"], line["steps"]) for line in lines}
    for asked in itertools.product(queries, sessions, loggers, users, range(1, seeds + 1), (steps,)):
        if asked in done:
            continue
        lines.append(measure(*asked))
        with out.open("a", encoding="utf-8") as file:
            file.write(json.dumps(lines[-1]) + "\n")
        say(f"{' '.join(map(str, asked))}: {lines[-1]['seconds']} seconds")
    tables([line for line in lines if line["steps"] == steps])


if __name__ == "__main__":
    tyro.cli(main)
