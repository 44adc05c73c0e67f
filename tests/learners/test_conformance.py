"""What every registered learner must do, whatever it is made of; a new one is picked up by its name alone."""

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from cuolr.clicks.click_model import click_model
from cuolr.clicks.simulate import Simulation, simulate_to
from cuolr.errors import InputError
from cuolr.examination.propensities import Estimate, Propensities
from cuolr.files import unverified
from cuolr.learners.counterfactual.debiased import DebiasedLearner
from cuolr.learners.gradient_learner import GradientLearner
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.counting import count_chunks
from cuolr.logs.log_folder import load_click_log
from cuolr.policies.model_folder import load_policy
from cuolr.policies.policy import RankingPolicy, ScoringPolicy
from cuolr.policies.random_policy import RandomPolicy
from cuolr.training.base_learner import LEARNERS, Learner
from cuolr.training.hold_out import held_out_queries, held_out_sessions, split_by_query
from cuolr.training.loop import TrainingResult
from cuolr.training.presets.configure import RunConfig, configure
from cuolr.types import Candidates
from tests.data.small_data import dataset_of
from tests.small_log import small_log, with_missing_values
from tests.training.tasks import fit_log

# A debiasing over another ranker than its network, as `learner+ranker`.
OTHER_RANKERS = (
    "naive+lambdamart",
    "naive+ensemble",
    "ipw+lambdamart",
    "cm-ipw+ensemble",
    "ubm-ipw+lambdamart",
    "dla+lambdamart",
    "doubly-robust+lambdamart",
)
# They take as long as all others together.
THOROUGH = ("planned", "naive+ensemble", "cm-ipw+ensemble")
every_learner = pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.thorough] if name in THOROUGH else [])
        for name in (*LEARNERS.names(), *OTHER_RANKERS)
    ],
)
LOG = small_log(rows=240, queries=12)
PROPENSITIES = Propensities(Estimate((1.0, 0.8, 0.6, 0.5, 0.4, 0.3, 0.2)), {"given": Estimate((0.6,) * 7)})
WITH_MISSING = replace(LOG, candidates=with_missing_values(LOG.candidates))
# Small enough to be fitted many times.
SMALL: Mapping[str, Any] = {
    "hidden": [8, 8],
    "threads": 1,
    "max_documents": 1_000,
    "leaves": 4,
    "min_documents_per_leaf": 5,
    "encoder": "position+previous",
    "em_rounds": 10,
    "regression_steps": 10,
    "examination_steps": 10,
}


def learner_of(name: str) -> type[Learner]:
    return LEARNERS.get(name.partition("+")[0])


def config_of(name: str, **training: Any) -> RunConfig:
    name, _, ranker = name.partition("+")
    known = {field.name for field in dataclasses.fields(LEARNERS.get(name).Config)}
    settings: dict[str, Any] = {f"learner.{key}": value for key, value in SMALL.items() if key in known}
    if ranker:
        small = {"hidden": [8, 8], "min_documents_per_leaf": 5, "lists_per_step": 16, "learning_rate": 0.01}
        settings |= {"learner.ranker": ranker, **{f"learner.rankers.{key}": value for key, value in small.items()}}
    for key, value in {"steps": 6, "batch_size": 16, "validate_every": 2, "patience": 0, "seed": 3, **training}.items():
        settings[f"training.{key}"] = value
    return configure(name, settings=settings)


def fitted(name: str, log: ClickLog = LOG, **options: Any) -> TrainingResult:
    if name == "xgboost":
        pytest.importorskip("xgboost")
    config = options.pop("config", None) or config_of(name)
    propensities = PROPENSITIES if learner_of(name).takes_propensities else None
    return fit_log(log, config, propensities=propensities, **options)


@cache
def fitted_to_log(name: str) -> TrainingResult:
    """The result on `LOG`, for tests that look at it and at no other way to get it."""
    return fitted(name)


def policy_of(result: TrainingResult) -> RankingPolicy:
    assert result.best is not None
    return result.best.policy


def padded(log: ClickLog) -> ClickLog:
    """The same lists with two positions more, at which nothing is shown."""

    def wider(values: npt.NDArray[Any], fill: float) -> npt.NDArray[Any]:
        return np.pad(values, ((0, 0), (0, 2)), constant_values=fill)

    return replace(log, ranking=wider(log.ranking, -1), clicks=wider(log.clicks, 0))


def assert_same_policy(one: RankingPolicy, other: RankingPolicy) -> None:
    for name, values in other.arrays().items():
        np.testing.assert_array_equal(one.arrays()[name], values)
    assert one.settings() == other.settings()


@every_learner
def test_save_and_load_give_the_same_ranking(name: str, tmp_path: Path) -> None:
    policy = policy_of(fitted(name, folder=tmp_path / "model"))
    loaded = load_policy(tmp_path / "model")
    assert_same_policy(loaded, policy)
    np.testing.assert_array_equal(loaded.rank(LOG.candidates, 6), policy.rank(LOG.candidates, 6))


@every_learner
def test_each_candidate_is_ranked_once(name: str) -> None:
    ranking = policy_of(fitted_to_log(name)).rank(LOG.candidates, 6)
    for row, size in zip(ranking.tolist(), LOG.candidates.sizes.tolist(), strict=True):
        placed = [index for index in row if index >= 0]
        assert len(placed) == min(size, 6)
        assert len(set(placed)) == len(placed)
        assert row[len(placed) :] == [-1] * (6 - len(placed))
        assert max(placed) < size


@every_learner
def test_positions_at_which_nothing_is_shown_change_nothing(name: str) -> None:
    narrow, wide = fitted_to_log(name), fitted(name, padded(LOG))
    assert list(wide.validations) == list(narrow.validations)
    np.testing.assert_allclose(list(wide.validations.values()), list(narrow.validations.values()), rtol=1e-4, atol=1e-4)
    ours, theirs = (policy_of(result).rank(LOG.candidates, 3) for result in (wide, narrow))
    assert (ours == theirs).mean() > 0.9  # sums of another length are rounded differently, and scores may be close


@every_learner
def test_resuming_equals_not_stopping(name: str, tmp_path: Path) -> None:
    whole = fitted(name, folder=tmp_path / "whole")
    fitted(name, folder=tmp_path / "parts", config=config_of(name, steps=4))
    resumed = fitted(name, folder=tmp_path / "parts", resume=True)
    assert resumed.validations == whole.validations
    assert_same_policy(policy_of(resumed), policy_of(whole))
    one, other = ((tmp_path / run / "metrics.jsonl").read_text().splitlines() for run in ("whole", "parts"))
    for ours, theirs in zip(map(json.loads, one), map(json.loads, other), strict=True):
        assert {**ours, "seconds": 0} == {**theirs, "seconds": 0}


@every_learner
def test_a_log_without_clicks_gives_finite_numbers(name: str) -> None:
    result = fitted(name, replace(LOG, clicks=np.zeros_like(LOG.clicks)))
    assert all(np.isfinite(score) for score in result.validations.values())
    for values in policy_of(result).arrays().values():
        assert np.isfinite(values.astype(np.float64)).all() or name in ("factored", "planned")
    assert (policy_of(result).rank(LOG.candidates, 3)[:, 0] >= 0).all()


@every_learner
def test_the_same_seed_gives_the_same_policy_and_another_one_does_not(name: str) -> None:
    first, second = fitted_to_log(name), fitted(name)
    assert_same_policy(policy_of(first), policy_of(second))
    assert first.validations == second.validations
    if name != "xgboost" and name != "lightgbm":  # trees of such a small log need no random number
        assert fitted(name, config=config_of(name, seed=4)).validations != first.validations


@every_learner
def test_lists_of_one_position_are_learned_from(name: str) -> None:
    log = replace(LOG, ranking=LOG.ranking[:, :1], clicks=LOG.clicks[:, :1])
    assert (policy_of(fitted(name, log)).rank(LOG.candidates, 1) >= 0).all()


@every_learner
def test_clicks_on_held_out_queries_do_not_change_what_is_learned(name: str) -> None:
    """Nothing is learned from the queries that validate; only the policy of another step may be kept."""
    config = config_of(name, keep="last")
    _, rows = split_by_query(LOG, held_out_queries(LOG, config.training.held_out, config.training.seed))
    clicks = LOG.clicks.copy()
    clicks[rows] = np.where(LOG.where[rows], 1 - clicks[rows], 0)
    as_it_is, changed = (fitted(name, replace(LOG, clicks=each), config=config) for each in (LOG.clicks, clicks))
    assert changed.validations != as_it_is.validations or name == "bc"  # which does not look at clicks
    assert_same_policy(policy_of(changed), policy_of(as_it_is))


@every_learner
def test_a_log_of_one_query_is_learned_from_but_for_the_sessions_that_are_held_out(name: str) -> None:
    log, config = small_log(rows=240, queries=1), config_of(name, keep="last")
    rows = held_out_sessions(log, config.training.held_out, config.training.seed)
    clicks = log.clicks.copy()
    clicks[rows] = np.where(log.where[rows], 1 - clicks[rows], 0)
    as_it_is, changed = (fitted(name, replace(log, clicks=each), config=config) for each in (log.clicks, clicks))
    assert as_it_is.provenance["settings"]["validated_by"] == {"held_out_sessions": 0.1}
    assert changed.validations != as_it_is.validations or name == "bc"  # which does not look at clicks
    assert_same_policy(policy_of(changed), policy_of(as_it_is))


@pytest.fixture(scope="module")
def by_pbm_and_renamed(tmp_path_factory: pytest.TempPathFactory) -> tuple[ClickLog, ClickLog]:
    """A simulated log, and the same with the name of another click model."""
    simulation = Simulation(dataset_of(*[6] * 12), RandomPolicy(), click_model("pbm"), 300, k=5)
    pbm, renamed = (tmp_path_factory.mktemp("log") / folder for folder in ("pbm", "renamed"))
    for folder in (pbm, renamed):
        simulate_to(folder, simulation)
    meta = (pbm / "meta.json").read_text()
    assert '"pbm"' in meta
    (renamed / "meta.json").write_text(meta.replace('"pbm"', '"cascade"'))
    with unverified():
        return load_click_log(pbm), load_click_log(renamed)


@every_learner
def test_a_renamed_click_model_changes_nothing(name: str, by_pbm_and_renamed: tuple[ClickLog, ClickLog]) -> None:
    """What a log says of where it comes from does not reach a learner."""
    assert_same_policy(*(policy_of(fitted(name, log)) for log in by_pbm_and_renamed))


@every_learner
def test_candidates_with_other_features_are_refused(name: str) -> None:
    n_features = LOG.candidates.n_features
    candidates = Candidates(np.zeros((3, n_features + 1), np.float32), np.array([0, 3]), np.array(["q"]))
    with pytest.raises(InputError, match=f"{n_features} features.* found {n_features + 1}"):
        policy_of(fitted_to_log(name)).rank(candidates, 3)


@every_learner
@pytest.mark.parametrize("normalising", ["log-min-max", "query-min-max"])
def test_missing_values_are_learned_from_and_ranked(name: str, normalising: str, tmp_path: Path) -> None:
    config = config_of(name, normalising=normalising)
    result = fitted(name, WITH_MISSING, folder=tmp_path / "model", config=config)
    assert all(np.isfinite(score) for score in result.validations.values())
    policy, loaded = policy_of(result), load_policy(tmp_path / "model")
    assert policy.n_features == LOG.candidates.n_features
    assert_same_policy(loaded, policy)
    np.testing.assert_array_equal(loaded.rank(WITH_MISSING.candidates, 6), policy.rank(WITH_MISSING.candidates, 6))
    if isinstance(policy, ScoringPolicy):
        assert np.isfinite(policy.score(WITH_MISSING.candidates)).all()
        # A feature that is missing at ranking time only has no indicator, and is the median.
        without_first = WITH_MISSING.candidates.features.copy()
        without_first[:, 0] = np.nan
        assert np.isfinite(policy.score(replace(LOG.candidates, features=without_first))).all()
    for row, size in zip(policy.rank(WITH_MISSING.candidates, 8).tolist(), LOG.candidates.sizes.tolist(), strict=True):
        assert sorted(row[:size]) == list(range(size))


def log_clicked_where_missing(seed: int) -> ClickLog:
    """A document is clicked if, and only if, its second feature is missing; the known values say nothing."""
    log = small_log(rows=600, queries=20, seed=seed)
    candidates = with_missing_values(log.candidates, share=0.4, seed=seed)
    missing = np.isnan(candidates.features[:, -1])
    clicks = missing[log.documents] & log.where
    return replace(log, candidates=candidates, clicks=clicks.astype(np.uint8))


@pytest.mark.parametrize("name", ["lightgbm", "xgboost", "naive", "cql", "factored"])
def test_that_a_value_is_missing_is_learned(name: str) -> None:
    log, other = log_clicked_where_missing(seed=5), log_clicked_where_missing(seed=6).candidates
    rate = "learner.actor_learning_rate" if name == "cql" else "learner.learning_rate"
    settings: dict[str, Any] = {"training.steps": 60, "training.batch_size": 64, "training.keep": "last"}
    if name in ("naive", "cql"):
        settings |= {rate: 0.01, "learner.hidden": [16, 16], "training.steps": 150}
    if name == "cql":
        settings |= {"learner.encoder": "position", "learner.critic_learning_rate": 0.01}
    if name in ("lightgbm", "xgboost"):
        settings |= {"learner.leaves": 4}
    if name == "factored":
        settings |= {"learner.logging_policy.include": False, "learner.rankers.learning_rate": 0.01}
    policy = policy_of(fitted(name, log, config=configure(name, settings=settings)))
    missing = np.isnan(other.features[:, -1])
    first = other.offsets[:-1] + policy.rank(other, 1)[:, 0]
    has_one = np.maximum.reduceat(missing, other.offsets[:-1])
    assert has_one.sum() > 10
    assert missing[first][has_one].mean() > 0.9


@every_learner
def test_labels_can_choose_the_best_step(name: str) -> None:
    scores = iter([0.1, 0.9, 0.2])
    result = fitted(name, score=lambda _: next(scores))
    assert result.best is not None
    assert (result.best.score, result.best.step) == (0.9, 4)


@every_learner
def test_what_its_class_says_is_so(name: str) -> None:
    learner = learner_of(name)
    assert learner.role in ("method", "baseline")
    assert learner.data_parallel == issubclass(learner, GradientLearner | DebiasedLearner)
    for setting, values in learner.search_space.items():
        for value in values:
            configure(name.partition("+")[0], settings={setting: value})


@every_learner
def test_a_constant_reward_of_clicks_gives_what_clicks_give(name: str) -> None:
    of_clicks = fitted_to_log(name)
    of_rewards = fitted(name, replace(LOG, reward=(2.5 * LOG.clicks).astype(np.float32)))
    np.testing.assert_allclose(
        list(of_rewards.validations.values()), list(of_clicks.validations.values()), rtol=1e-5, atol=1e-6
    )
    ours, theirs = (policy_of(result).rank(LOG.candidates, 3) for result in (of_rewards, of_clicks))
    np.testing.assert_array_equal(ours, theirs)


@every_learner
def test_rewards_of_held_out_queries_do_not_change_what_is_learned(name: str) -> None:
    config = config_of(name, keep="last")
    _, rows = split_by_query(LOG, held_out_queries(LOG, config.training.held_out, config.training.seed))
    reward = (LOG.clicks * (1.0 + LOG.ranking % 3)).astype(np.float32)
    changed = reward.copy()
    changed[rows] *= 7
    one, other = (fitted(name, replace(LOG, reward=each), config=config) for each in (reward, changed))
    assert_same_policy(policy_of(other), policy_of(one))


def test_a_log_without_rewards_says_nothing_about_them() -> None:
    provenance = [
        fitted("naive", log).provenance for log in (LOG, replace(LOG, reward=(3 * LOG.clicks).astype(np.float32)))
    ]
    assert [each.get("reward_of_a_click") for each in provenance] == [None, 3.0]


@every_learner
def test_a_counted_log_gives_what_its_sessions_give(name: str) -> None:
    sessions = LOG.select(np.tile(np.arange(len(LOG)), 3))
    assert_same_policy(policy_of(fitted(name, sessions)), policy_of(fitted(name, count_chunks([sessions]))))


@every_learner
def test_a_log_that_counts_documents_is_learned_from_or_refused(name: str) -> None:
    usual = LOG.ranking[[int(np.flatnonzero(LOG.query == query)[0]) for query in LOG.query]]
    sessions = replace(LOG, ranking=usual, clicks=LOG.clicks * (usual >= 0))
    documents = count_chunks([sessions], "document")
    if learner_of(name).takes_documents:
        # Each query has one list: nothing is lost.
        assert_same_policy(policy_of(fitted(name, sessions)), policy_of(fitted(name, documents)))
        return
    with pytest.raises(InputError, match=f"{name.partition('+')[0]}: this log counts documents"):
        fitted(name, documents)
