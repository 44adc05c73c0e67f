"""Training that starts from a trained model."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import cuolr
from cuolr.errors import InputError
from cuolr.logs.clicklog import ClickLog
from cuolr.off_policy.assess import assess
from cuolr.policies.model_folder import load_policy, save_policy
from cuolr.policies.policy import RankingPolicy
from cuolr.policies.random_policy import RandomPolicy
from cuolr.training.base_learner import LEARNERS
from cuolr.training.presets.configure import configure
from cuolr.training.run_folder import save_checkpoint
from cuolr.training.warm_start import WarmStart
from tests.learners.test_conformance import LOG, assert_same_policy, config_of, fitted, policy_of
from tests.small_log import small_log

WARM = [name for name in LEARNERS.names() if not LEARNERS.get(name).cold_start]
every_warm_learner = pytest.mark.parametrize("name", WARM)
HOUR = np.timedelta64(1, "h")


def timed(log: ClickLog, start: str) -> ClickLog:
    return replace(log, timestamp=np.datetime64(start, "us") + np.arange(len(log)) * HOUR)


def test_all_but_the_learners_that_say_why_not_can_start_from_a_model() -> None:
    assert set(LEARNERS.names()) - set(WARM) == {"factored", "planned", "unbiased-lambdamart", "xgboost"}


@pytest.mark.thorough
@every_warm_learner
def test_before_its_first_step_it_ranks_as_the_model_and_has_its_score(name: str, tmp_path: Path) -> None:
    config = config_of(name, keep="last")
    before = fitted(name, folder=tmp_path / "model", config=config)
    assert before.best is not None
    start = WarmStart.read(tmp_path / "model")
    after = fitted(name, config=config, warm_start=start)
    assert list(after.validations) == [0, 2, 4, 6]
    assert after.validations[0] == pytest.approx(before.best.score, rel=1e-5)
    seen: list[RankingPolicy] = []

    def score(policy: RankingPolicy) -> float:
        seen.append(policy)
        return -len(seen)  # the first is the best

    best = policy_of(fitted(name, small_log(rows=100, seed=5), config=config_of(name), score=score, warm_start=start))
    for policy in (seen[0], best):
        np.testing.assert_array_equal(policy.rank(LOG.candidates, 6), policy_of(before).rank(LOG.candidates, 6))
    assert not np.array_equal(seen[-1].rank(LOG.candidates, 6), [])


@pytest.mark.thorough
@every_warm_learner
def test_resuming_equals_not_stopping_after_a_warm_start(name: str, tmp_path: Path) -> None:
    fitted(name, folder=tmp_path / "model")
    start, log = WarmStart.read(tmp_path / "model"), small_log(rows=200, seed=0, queries=12)
    whole = fitted(name, log, folder=tmp_path / "whole", warm_start=start)
    fitted(name, log, folder=tmp_path / "parts", config=config_of(name, steps=4), warm_start=start)
    resumed = fitted(name, log, folder=tmp_path / "parts", resume=True, warm_start=start)
    assert resumed.validations == whole.validations
    assert_same_policy(policy_of(resumed), policy_of(whole))
    with pytest.raises(InputError, match="cannot be resumed with other settings: warm_start was"):
        fitted(name, log, folder=tmp_path / "parts", resume=True)


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["naive", "lightgbm", "two-tower"])
def test_it_learns_faster_than_from_scratch(name: str, tmp_path: Path) -> None:
    log = small_log(rows=2_000, queries=40, seed=2)
    first, second = log.select(np.arange(1_000)), log.select(np.arange(1_000, 2_000))
    small = {"learner.leaves": 4} if name == "lightgbm" else {"learner.hidden": [8, 8], "learner.learning_rate": 0.003}
    long, short = (
        configure(name, settings={**small, "training.steps": steps, "training.validate_every": 4}) for steps in (200, 4)
    )
    fitted(name, first, folder=tmp_path / "model", config=long)
    scratch = fitted(name, second, config=short)
    warm = fitted(name, second, config=short, warm_start=WarmStart.read(tmp_path / "model"))
    assert warm.validations[4] > scratch.validations[4] + 0.01


def test_trees_are_added_to_those_of_the_model(tmp_path: Path) -> None:
    fitted("lightgbm", folder=tmp_path / "model", config=config_of("lightgbm", keep="last"))
    after = fitted("lightgbm", config=config_of("lightgbm", keep="last"), warm_start=WarmStart.read(tmp_path / "model"))
    assert len(policy_of(after).trees.leaves) == 6 + 6  # type: ignore[attr-defined]


def test_features_are_scaled_and_ordered_as_in_the_model(tmp_path: Path) -> None:
    names = np.array(["a", "b", "c", "d"])
    named = replace(LOG, candidates=replace(LOG.candidates, feature_names=names))
    before = fitted("naive", named, folder=tmp_path / "model", config=config_of("naive", keep="last"))
    start = WarmStart.read(tmp_path / "model")
    other = replace(
        named.candidates,
        features=np.ascontiguousarray(named.candidates.features[:, ::-1] * 1),
        feature_names=names[::-1],
    )
    after = fitted("naive", replace(named, candidates=other), config=config_of("naive"), warm_start=start)
    assert before.best is not None
    assert after.validations[0] == pytest.approx(before.best.score, rel=1e-5)
    scaled = replace(named.candidates, features=named.candidates.features * 10)
    policy = policy_of(fitted("naive", replace(named, candidates=scaled), warm_start=start))
    assert policy.arrays()["normaliser.high"].tolist() == policy_of(before).arrays()["normaliser.high"].tolist()
    renamed = replace(named.candidates, feature_names=np.array(["a", "b", "c", "x"]))
    with pytest.raises(
        InputError, match=r"model: feature 'd' is missing\n.*model: feature 'x' was not in the training"
    ):
        fitted("naive", replace(named, candidates=renamed), warm_start=start)


def test_what_cannot_be_started_from_is_refused(tmp_path: Path) -> None:
    fitted("naive", folder=tmp_path / "model")
    start = WarmStart.read(tmp_path / "model")
    with pytest.raises(InputError, match=r"warm_start: factored cannot start from a model: .*merge the logs.*Learners"):
        fitted("factored", warm_start=start)
    with pytest.raises(InputError, match=r"expected a model of sac, but .*model is of naive"):
        fitted("sac", warm_start=start)
    wider = cuolr.Ranker("naive", steps=1, settings={"learner.hidden": [9, 9]})
    with pytest.raises(InputError, match=r"the model: has other networks: .*train with the settings of the model"):
        wider.fit(LOG, warm_start=cuolr.Ranker("naive", steps=1, settings={"learner.hidden": [8, 8]}).fit(LOG))
    save_policy(RandomPolicy(1), tmp_path / "random")
    with pytest.raises(InputError, match="random has no record of its learner"):
        fitted("naive", warm_start=WarmStart.read(tmp_path / "random"))


@pytest.mark.thorough
def test_it_says_and_records_what_it_starts_from(tmp_path: Path) -> None:
    first, second = timed(LOG, "2026-11-01"), timed(small_log(rows=240, queries=12, seed=1), "2026-11-12")
    fitted("naive", first, folder=tmp_path / "week 1")
    start = WarmStart.read(tmp_path / "week 1")
    assert (
        start.text == f"starting from {tmp_path / 'week 1'}: naive, trained on 240 sessions until 2026-11-10T23:00:00Z"
    )
    fitted("naive", second, folder=tmp_path / "week 2", warm_start=start)
    policy = load_policy(tmp_path / "week 2")
    recorded = policy.provenance["warm_start"]
    assert recorded.pop("sha256") == start.described(None)["sha256"]
    assert recorded == {
        "model": str(tmp_path / "week 1"),
        "learner": "naive",
        "sessions": 240,
        "last": "2026-11-10T23:00:00Z",
        "overlaps": False,
    }
    assert policy.provenance["log"]["first"] == "2026-11-12T00:00:00Z"
    assert not assess(policy, second).trained_on_these_queries
    # On a log that has sessions of the first week, too, what is held out now may have been learned from.
    fitted("naive", first, folder=tmp_path / "again", warm_start=WarmStart.read(tmp_path / "week 2"))
    policy = load_policy(tmp_path / "again")
    assert policy.provenance["warm_start"]["overlaps"]
    assert policy.provenance["warm_start"]["last"] == str(second.timestamp.max())[:19] + "Z"  # type: ignore[union-attr]
    assert assess(policy, first).trained_on_these_queries


def test_a_ranker_starts_from_nothing_else() -> None:
    with pytest.raises(InputError, match="warm_start: expected a Ranker, found a int; a path of a model's folder is"):
        cuolr.Ranker("naive", steps=1).fit(LOG, warm_start=3)  # type: ignore[arg-type]


def test_a_ranker_starts_from_a_ranker_or_a_folder(tmp_path: Path) -> None:
    ranker = cuolr.Ranker("naive", steps=3, settings={"learner.hidden": [8, 8]})
    before = ranker.fit(LOG)
    before.save(tmp_path / "model")
    for start in (before, tmp_path / "model", str(tmp_path / "model")):
        after = cuolr.Ranker("naive", steps=3, settings={"learner.hidden": [8, 8]}).fit(LOG, warm_start=start)
        assert after.result_.validations[0] == pytest.approx(before.best_score_, rel=1e-5)
        assert after.best_score_ is not None
        assert after.best_score_ >= after.result_.validations[0]


@pytest.mark.parametrize(
    "state", [{}, {"state": 1}, {"state": {"learner": []}}, {"state": {"learner": {"networks": 1}}}]
)
def test_what_is_no_checkpoint_of_a_run_is_refused(tmp_path: Path, state: dict[str, object]) -> None:
    save_policy(RandomPolicy(1), tmp_path / "model")
    save_checkpoint(tmp_path / "model" / "checkpoint.safetensors", state)
    with pytest.raises(InputError, match=r"checkpoint.safetensors: not the checkpoint of a run; remove it to start"):
        WarmStart.read(tmp_path / "model")
