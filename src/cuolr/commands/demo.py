"""`cuolr demo`: the whole pipe on generated data, in a few minutes."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

from cuolr.clicks.base import click_model
from cuolr.clicks.simulate import Simulation, simulate_to
from cuolr.data.aggregate import aggregate_folder
from cuolr.data.synthetic import generate_splits
from cuolr.evaluation import evaluate
from cuolr.files import atomic_folder
from cuolr.oracle import LambdaMartSettings, fit_lambdamart
from cuolr.policies.base import RankingPolicy
from cuolr.policies.linear import fit_ranksvm
from cuolr.policies.store import save_policy
from cuolr.terminal import progress_bar, say, show_table, training_bar
from cuolr.types import RankingDataset

# The click model, the method and its measures.
Row: TypeAlias = tuple[str, str, dict[str, float]]

RESULTS = "results.json"
CLICK_MODELS = ("pbm", "dcm")
LEARNERS = ("sac", "cql")
MEASURES = ("ndcg@5", "ndcg@10", "err@10")
# LambdaMART with a rate fit for the time; the paper's takes ten times as long.
ORACLE = LambdaMartSettings(trees=200, leaves=31, learning_rate=0.1, early_stopping=30)


def demo(
    out: Path = Path("demo"),
    queries: int = 500,
    sessions: int = 100_000,
    steps: int = 300,
    seed: int = 1,
    overwrite: bool = False,
) -> None:
    """Learn to rank from simulated clicks on generated data, under two click models, and compare.

    LOGGING is the ranker that showed the lists (a RankSVM trained on 1 % of the queries); ORACLE is LambdaMART trained
    on all true labels; the learners see nothing but the click log.

    Args:
        out: Where logs, models and results go.
        queries: Number of training queries.
        sessions: Sessions in each click log.
        steps: Updates of each learner.
        seed: The same seed gives the same numbers.
        overwrite: Replace the results of an earlier demo.
    """
    with atomic_folder(out, overwrite, ours=RESULTS) as folder:
        rows = _run(folder, queries, sessions, steps, seed)
    _show(rows, out)


def _run(out: Path, queries: int, sessions: int, steps: int, seed: int) -> list[Row]:
    """Train and measure everything."""
    say(f"generating {queries:,} training queries that look like MSLR-WEB10K's …")
    train, vali, test = generate_splits("web10k-like", queries, queries // 3, queries, seed)
    rows: list[Row] = []
    for clicks, method, policy in _policies(train, vali, out, sessions, steps, seed):
        save_policy(policy, out / f"{clicks}-{method}".strip("-"))
        rows.append((clicks, method, evaluate(policy, test, MEASURES).means()))
        say(f"  {clicks or 'labels'} {method}: nDCG@10 {rows[-1][2]['ndcg@10']:.4f}")
    (out / RESULTS).write_text(json.dumps([{"click_model": c, "method": m, **v} for c, m, v in rows], indent=2))
    return rows


def _policies(
    train: RankingDataset, vali: RankingDataset, out: Path, sessions: int, steps: int, seed: int
) -> Iterator[tuple[str, str, RankingPolicy]]:
    """Each policy, with the click model that its log came from and the method's name."""
    # torch takes a second to load; the other commands should not wait for it.
    from cuolr.estimator import Ranker

    logging = fit_ranksvm(train, 0.01, seed)
    yield "", "LOGGING", logging
    for name in CLICK_MODELS:
        folder = out / f"log-{name}"
        with progress_bar(f"simulating {name}", sessions) as progress:
            simulation = Simulation(train, logging, click_model(name), sessions, seed=seed)
            simulate_to(folder, simulation, {"data": "web10k-like"}, progress=progress)
        log = aggregate_folder(folder)
        for learner in LEARNERS:
            say(f"training {learner} on {sessions:,} sessions under {name} …")
            with training_bar(steps) as training_progress:
                ranker = Ranker(learner, steps=steps, seed=seed).fit(log, vali, training_progress)
            yield name, f"CUOLR({learner.upper()})", ranker.policy_
    say("training LambdaMART on the true labels …")
    yield "", "ORACLE", fit_lambdamart(train, vali, ORACLE)


def _show(rows: list[Row], out: Path) -> None:
    """The results, with the gap closed: (method − LOGGING) / (ORACLE − LOGGING)."""
    ndcg = {method: values["ndcg@10"] for _, method, values in rows}
    low, high = ndcg["LOGGING"], ndcg["ORACLE"]
    lines = [
        [click_model.upper() or "–", method]
        + [f"{values[measure]:.4f}" for measure in MEASURES]
        + [f"{(values['ndcg@10'] - low) / (high - low):.0%}"]
        for click_model, method, values in rows
    ]
    columns = ["click model", "method", *MEASURES, "gap closed"]
    caption = f"queries without a relevant document are skipped; logs, models and results.json are in {out}"
    show_table("test queries", columns, lines, caption, left=(0, 1))
