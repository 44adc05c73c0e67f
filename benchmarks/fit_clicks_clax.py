"""CLAX on the same simulated sessions: conditional perplexity on held-out ones, and CPU seconds to it.

CLAX is in an environment of its own: CLAX_PYTHON is the path of its Python, such as `clax/bin/python` after
`python -m venv clax && clax/bin/pip install clax-models==0.1.1 jax==0.7.1 torch==2.13.0`.

CLAX has every advantage: its sessions are in memory; compilation, reading and validation are not counted; and of four
learning rates and all epochs those count that are best on the held-out sessions themselves. The last column of the
table is the fastest of all rates and epochs with this perplexity within 0.0005. Ours counts the log and fits.
"""

import os
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from benchmarks.table import Row
from cuolr import click_model, fit_ranksvm, generate_splits
from cuolr.cli.terminal import say, show_table
from cuolr.clicks.fitting.mixture_prior import fit_users
from cuolr.clicks.simulate import simulate
from cuolr.logs.click_patterns import ClickPatterns
from cuolr.logs.clicklog import ClickLog
from cuolr.policies.plackett_luce import StochasticLogger
from cuolr.types import Doubles

QUERIES, SESSIONS, K, TEMPERATURE = 50, 50_000, 10, 0.3
# Models that both have, with the users that are simulated for each; click rates have users of PBM.
USERS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "pbm": ("pbm", {}),
    "ubm": ("ubm", {}),
    "cascade": ("cascade", {}),
    "dcm": ("dcm", {}),
    "ccm": ("ccm", {"relevance_is_attractiveness": True}),
    "dbn": ("dbn", {}),
    "sdbn": ("sdbn", {}),
    "ctr": ("pbm", {}),
    "ctr-position": ("pbm", {}),
    "ctr-document": ("pbm", {}),
}
CLOSE = 0.0005


def run() -> list[Row]:
    """Two rows for each click model."""
    python = os.environ.get("CLAX_PYTHON")
    if not python:
        say("fit_clicks_clax: skipped, since CLAX_PYTHON is not set")
        return []
    dataset, _, _ = generate_splits("web10k-like", QUERIES, 10, 10, seed=1)
    logger = StochasticLogger(fit_ranksvm(dataset, 1.0), TEMPERATURE)
    rows, lines = [], []
    for name, (users, parameters) in USERS.items():
        log = simulate(dataset, logger, click_model(users, **parameters), SESSIONS, K, seed=1)
        ours, seconds = _ours(name, log)
        (theirs, their_seconds), fastest = _theirs(name, log, python)
        numbers = [f"{number:.4f}" for number in (ours, theirs)]
        lines.append([name, *numbers, *(f"{number:.2f}" for number in (seconds, their_seconds, fastest))])
        rows += [
            Row(f"{name}: conditional perplexity against CLAX", ours - theirs, "", "≤ 0.0005", ours - theirs <= CLOSE),
            Row(
                f"{name}: CPU seconds against CLAX",
                seconds / their_seconds,
                "×",
                "≤ 0.33",
                3 * seconds <= their_seconds,
            ),
        ]
    heads = ["model", "conditional perplexity", "of CLAX", "CPU seconds", "of CLAX", "of CLAX, fastest"]
    show_table(f"{SESSIONS:,} sessions", heads, lines)
    return rows


def _held_out(log: ClickLog) -> slice:
    return slice(len(log) * 4 // 5, len(log))


def _ours(name: str, log: ClickLog) -> tuple[float, float]:
    """Conditional perplexity on the last fifth of the sessions, and CPU seconds."""
    start = time.process_time()
    patterns = ClickPatterns.of(log.select(slice(0, _held_out(log).start)))
    fitted = fit_users(name, patterns)
    seconds = time.process_time() - start
    last = log.select(_held_out(log))
    # A pair that is not in the training sessions has the value of unseen ones.
    place = np.full(log.candidates.n_documents, len(patterns.pairs))
    place[patterns.pairs] = np.arange(len(patterns.pairs))
    values = {p: np.append(v, fitted.unseen[p]) if p in fitted.unseen else v for p, v in fitted.values.items()}
    chance = fitted.model.conditional(values, place[last.documents], last.clicks > 0)
    return _perplexity(chance, last), seconds


def _theirs(name: str, log: ClickLog, python: str) -> tuple[tuple[float, float], float]:
    """The same of CLAX at its best; and the CPU seconds of the fastest that is as good within 0.0005."""
    with tempfile.TemporaryDirectory() as path:
        folder, held_out = Path(path), _held_out(log)
        for part, rows in (("train", slice(0, held_out.start)), ("held_out", held_out)):
            shown = log.select(rows)
            columns = {"query_doc_ids": shown.documents + 1, "clicks": shown.clicks}
            pl.DataFrame({name: values.tolist() for name, values in columns.items()}).write_parquet(
                folder / f"{part}.parquet"
            )
        one_thread = {"XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"}
        environment = {**os.environ, **one_thread, "OMP_NUM_THREADS": "1", "JAX_PLATFORMS": "cpu", "PYTHONPATH": ""}
        script = Path(__file__).with_name("clax_child.py")
        subprocess.run([python, str(script), str(folder), name], env=environment, check=True)
        runs = [_epochs(file, log.select(held_out)) for file in folder.glob(f"{name}_*.parquet")]
    epochs = [epoch for run in runs for epoch in run]
    best = min(epochs)
    return best, min(seconds for perplexity, seconds in epochs if perplexity <= best[0] + CLOSE)


def _epochs(file: Path, held_out: ClickLog) -> list[tuple[float, float]]:
    found = pl.read_parquet(file)
    shape = held_out.clicks.shape
    chances = (np.exp(np.array(row)).reshape(shape) for row in found["log_chance"])
    return list(zip((_perplexity(chance, held_out) for chance in chances), found["seconds"], strict=True))


def _perplexity(chance: Doubles, held_out: ClickLog) -> float:
    """Mean over positions of 2^(−mean log₂ P(C_k | clicks above)); chances are bounded, as CLAX bounds them."""
    bounded = np.clip(chance, 1e-7, 1 - 1e-7)
    bits = np.where(held_out.clicks > 0, np.log2(bounded), np.log2(1 - bounded))
    return float(np.exp2(-bits.mean(axis=0)).mean())
