"""How well validation without labels picks the best checkpoint; the numbers are in docs/training.md.

For each click model, learner and seed: the rank correlation, over checkpoints, of the held-out score with nDCG@10 on
labelled validation queries, and nDCG@10 on test queries of the checkpoint that each of them picks.

Run: python -m studies.held_out_validation [--steps 400] [--seeds 2]
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import tyro
from scipy.stats import spearmanr

from cuolr.cli.terminal import say, show_table
from cuolr.clicks.click_model import click_model_from
from cuolr.clicks.simulate import simulate
from cuolr.data.normalise import Normaliser
from cuolr.data.synthetic import generate_splits
from cuolr.evaluation.evaluate import score_on
from cuolr.learners.gradient_learner import GradientLearner
from cuolr.logs.aggregate import aggregate
from cuolr.logs.clicklog import ClickLog
from cuolr.policies.policy import RankingPolicy
from cuolr.supervised.ranksvm import fit_ranksvm
from cuolr.training.base_learner import FitTask
from cuolr.training.hold_out import held_out_queries
from cuolr.training.loop import Loop
from cuolr.training.presets.configure import RunConfig, configure
from cuolr.types import RankingDataset

# Smaller than the default, so that the study takes minutes, and without early stopping.
SMALL: Mapping[str, Any] = {
    "learner.hidden": [64, 64],
    "learner.encoder_settings.document_size": 32,
    "training.batch_size": 128,
    "training.patience": 0,
}


@dataclass(frozen=True)
class Checkpoints:
    """Measurements at the T checkpoints of a run, [T] each."""

    held_out: list[float]
    validation: list[float]
    test: list[float]

    def correlation(self) -> float:
        """Spearman's correlation of the held-out score with nDCG@10 on validation queries."""
        return float(spearmanr(self.held_out, self.validation).statistic)


def watch(log: ClickLog, config: RunConfig, validation: RankingDataset, test: RankingDataset) -> Checkpoints:
    """Train, and measure every checkpoint in three ways."""
    training = config.training
    normaliser = Normaliser.fit(training.normalising, log.candidates)
    learner = config.learner_class(config.learner_config)
    assert isinstance(learner, GradientLearner)
    on_validation, on_test = score_on(validation), score_on(test)
    seen = Checkpoints([], [], [])

    def measure(policy: RankingPolicy) -> float:
        seen.held_out.append(learner.held_out_score())
        seen.validation.append(on_validation(policy))
        seen.test.append(on_test(policy))
        return seen.held_out[-1]

    held_out = held_out_queries(log, training.held_out, training.seed)
    learner.fit(FitTask(log, normaliser, held_out, training, Loop(training, measure)))
    return seen


def main(
    steps: int = 400,
    every: int = 20,
    seeds: int = 2,
    queries: int = 1_000,
    learners: tuple[str, ...] = ("sac", "cql"),
    click_models: tuple[str, ...] = ("pbm", "cascade", "ubm", "dcm", "ccm"),
    threads: int = 2,
) -> None:
    """Measure how well the held-out score picks the best checkpoint.

    Args:
        steps: Steps of each run.
        every: Steps between checkpoints.
        seeds: Runs for each learner and click model, each on its own data.
        queries: Number of training queries.
        learners: Names of learners.
        click_models: Names of click models.
        threads: Number of threads of torch.
    """
    torch.set_num_threads(threads)
    rows = []
    for name in click_models:
        for learner in learners:
            runs = []
            for seed in range(1, seeds + 1):
                train_set, validation, test = generate_splits("web10k-like", queries, 300, 500, seed)
                logger = fit_ranksvm(train_set, seed=seed)
                log = aggregate(simulate(train_set, logger, click_model_from({"name": name}), 100 * queries, seed=seed))
                settings = {**SMALL, "training.steps": steps, "training.validate_every": every, "training.seed": seed}
                runs.append(watch(log, configure(learner, settings=settings), validation, test))
                say(f"{name} {learner} seed {seed}: rank correlation {runs[-1].correlation():.2f}")
            rows.append([name, learner, *_summary(runs)])
    columns = ["click model", "learner", "rank correlation", "by held-out", "by labels", "last", "mean of all"]
    show_table("nDCG@10 on test of the checkpoint that is picked", columns, rows, left=(0, 1))


def _summary(runs: list[Checkpoints]) -> list[str]:
    """One row of the table: the correlation of each run, and the mean nDCG@10 of each way to pick a checkpoint."""
    picked = {
        "held_out": np.mean([run.test[int(np.argmax(run.held_out))] for run in runs]),
        "labels": np.mean([run.test[int(np.argmax(run.validation))] for run in runs]),
        "last": np.mean([run.test[-1] for run in runs]),
        "all": np.mean([np.mean(run.test) for run in runs]),
    }
    return [" ".join(f"{run.correlation():+.2f}" for run in runs), *(f"{value:.4f}" for value in picked.values())]


if __name__ == "__main__":
    tyro.cli(main)
