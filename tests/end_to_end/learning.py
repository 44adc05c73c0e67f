"""Learning from simulated clicks on generated data, small enough for a test."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

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
from cuolr.training.presets.configure import RunConfig, configure
from cuolr.types import RankingDataset
from tests.training.tasks import fit_log

# For speed: smaller networks, batches and steps than the paper's, and ten times its learning rates to make up for it.
SMALL: Mapping[str, Any] = {
    "learner.hidden": [64, 64],
    "learner.encoder_settings.document_size": 32,
    "learner.actor_learning_rate": 1e-3,
    "learner.critic_learning_rate": 1e-3,
    "training.batch_size": 128,
    "training.steps": 200,
    "training.validate_every": 25,
}
WEIGHTS = (0.01, 0.03, 0.1)


@dataclass(frozen=True)
class World:
    """Queries with labels, and the policy that logs: RankSVM on 1 % of the training queries."""

    train: RankingDataset
    validation: RankingDataset
    test: RankingDataset
    logger: RankingPolicy


@dataclass(frozen=True)
class Learned:
    """nDCG@10 of a learned policy."""

    validation: float
    test: float


@cache
def world(seed: int) -> World:
    """1,000 training queries like MSLR-WEB10K's."""
    train, validation, test = generate_splits("web10k-like", 1_000, 300, 500, seed)
    return World(train, validation, test, fit_ranksvm(train, fraction=0.01, seed=seed))


@cache
def click_log(seed: int, click_model: str) -> ClickLog:
    """100 sessions a query, on average."""
    here = world(seed)
    model = click_model_from({"name": click_model})
    return aggregate(simulate(here.train, here.logger, model, sessions=100_000, seed=seed))


def small_config(learner: str, seed: int, **settings: Any) -> RunConfig:
    """The paper's settings, made small."""
    named = {f"learner.{name}": value for name, value in settings.items()}
    return configure(learner, "paper", {**SMALL, "training.seed": seed, **named})


def learn(learner: str, seed: int, click_model: str, **settings: Any) -> Learned:
    """Train on clicks; the best checkpoint on validation is measured on test."""
    here, config = world(seed), small_config(learner, seed, **settings)
    result = fit_log(click_log(seed, click_model), config, score_on(here.validation))
    assert result.best is not None
    assert result.best.score is not None
    return Learned(result.best.score, score_on(here.test)(result.best.policy))


def untrained(learner: str, seed: int) -> float:
    """nDCG@10 on test before any update."""
    here, config = world(seed), small_config(learner, seed)
    normaliser = Normaliser.fit(config.training.normalising, here.train.candidates)
    n_features = here.train.candidates.n_features
    fresh = config.learner_class(config.learner_config)
    assert isinstance(fresh, GradientLearner)
    fresh.build(n_features, 10, seed, normaliser)
    return score_on(here.test)(fresh.policy())


@cache
def best_weight() -> float:
    """The conservative weight with the best validation score under PBM, chosen once for all click models and seeds."""
    return max(WEIGHTS, key=lambda weight: learn("cql", 1, "pbm", conservative_weight=weight).validation)
