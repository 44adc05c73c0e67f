import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from cuolr.clicks.pbm import PositionBasedModel
from cuolr.clicks.simulate import simulate
from cuolr.data.normalise import Normaliser
from cuolr.data.synthetic import generate_splits
from cuolr.errors import InputError
from cuolr.evaluation.evaluate import score_on
from cuolr.learners.boosting.lightgbm import LightGBM
from cuolr.learners.boosting.tree_learner import ShownDocuments, sample
from cuolr.learners.boosting.xgboost import XGBoost
from cuolr.learners.rankers.base_ranker import RankerSteps, softmax_loss
from cuolr.learners.rankers.lambdamart import LambdaMartRanker
from cuolr.logs.aggregate import aggregate
from cuolr.logs.clicklog import ClickLog
from cuolr.policies.model_folder import load_policy, save_policy
from cuolr.policies.random_policy import RandomPolicy
from cuolr.policies.trees_policy import TreesPolicy
from cuolr.supervised.ranksvm import fit_ranksvm
from cuolr.training.base_learner import FitTask
from cuolr.training.batches import Batches, WeightedLists
from cuolr.training.hold_out import held_out_queries, split_by_query
from cuolr.training.presets.configure import configure
from tests.data.small_data import candidates_of, log_of
from tests.learners.lists import no_scaling, random_batch
from tests.small_log import small_log
from tests.training.tasks import fit_log, task_of

SMALL: dict[str, Any] = {"leaves": 7, "min_documents_per_leaf": 5, "learning_rate": 0.1, "threads": 1}


def grown(
    trees: int, log: ClickLog | None = None, normaliser: Normaliser | None = None, **settings: Any
) -> RankerSteps:
    """A ranker with so many trees, as `lightgbm` grows them on a log."""
    learner, log = LightGBM(LightGBM.Config(**{**SMALL, **settings})), log or small_log(300)
    task = task_of(log, normaliser=normaliser or no_scaling(), batch_size=32, seed=0)
    documents = ShownDocuments.of(sample(task.batches(WeightedLists.of(log))[0], learner.config.max_documents))
    steps = RankerSteps(learner.ranker(documents, task), None)
    for _ in range(trees):
        steps.step()
    return steps


def model_of(steps: RankerSteps) -> str:
    policy = steps.policy()
    assert isinstance(policy, TreesPolicy)
    return policy.trees.lightgbm_text


def test_a_step_is_one_more_tree() -> None:
    learner = grown(3)
    assert model_of(learner).count("Tree=") == 3
    assert learner.step() == {"trees": 4}
    assert model_of(learner) == model_of(grown(4))


@pytest.mark.parametrize("learner", [LightGBM, XGBoost])
def test_no_model_grows_more_trees_than_can_be_read(
    learner: type[LightGBM | XGBoost], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cuolr.policies.regression_trees.MAX_TREES", 5)
    log, config = small_log(30), learner.Config(leaves=4, threads=1)
    few = learner(config).fit(task_of(log, steps=4))
    assert few.rank(log.candidates, 2).shape == (log.candidates.n_queries, 2)
    with pytest.raises(InputError, match="a model has at most 5 trees; train for fewer steps"):
        learner(config).fit(task_of(log, steps=5))


def test_each_session_is_a_query_and_its_clicks_are_the_grades() -> None:
    batch = random_batch(lengths=(3, 0, 2), k=4)
    documents = ShownDocuments.of([batch, batch])
    assert documents.sizes.tolist() == [3, 2, 3, 2]
    assert documents.position.tolist() == [0, 1, 2, 0, 1] * 2
    np.testing.assert_array_equal(documents.features, torch.cat([batch.features[batch.where]] * 2))
    np.testing.assert_array_equal(documents.rewards, torch.cat([batch.rewards[batch.where]] * 2))


def test_all_sessions_of_a_list_are_one_query_with_their_number_as_weight(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three sessions of one list and one of another, in either order; the sessions of both are learned from."""
    taken: list[ShownDocuments] = []

    def ranker(learner: LightGBM, documents: ShownDocuments, task: FitTask) -> LambdaMartRanker:
        taken.append(documents)
        return original(learner, documents, task)

    original = LightGBM.ranker
    monkeypatch.setattr(LightGBM, "ranker", ranker)
    log = log_of(candidates_of(3), [0] * 4, [[0, 1], [2, 0], [0, 1], [0, 1]], [[1, 0], [0, 1], [1, 1], [0, 0]])
    settings = {"training.steps": 1, "learner.threads": 1, "training.batch_size": 1}
    fit_log(log, configure("lightgbm", settings=settings), score=lambda _: 0.0)
    (documents,) = taken
    assert sorted(documents.weight.tolist()) == [1 / 2, 3 / 2]
    first = int(documents.weight.argmax())
    np.testing.assert_allclose(documents.rewards.reshape(2, 2)[first], [2 / 3, 1 / 3])
    np.testing.assert_allclose(documents.rewards.reshape(2, 2)[1 - first], [0.0, 1.0])


def test_the_weight_of_a_list_has_the_effect_of_its_sessions() -> None:
    """Twice the sessions of each list change nothing; more of one list alone do."""
    log = small_log(60)
    twice = log.select(np.tile(np.arange(60), 2))
    more = log.select(np.concatenate([np.arange(60), np.tile(np.flatnonzero(log.query == 0), 20)]))

    def model(rows: ClickLog) -> str:
        return model_of(grown(3, aggregate(rows)))

    assert model(twice) == model(log)
    assert model(more) != model(log)


def test_where_sessions_are_sampled_the_record_is_that_of_earlier_results() -> None:
    sampled = configure("lightgbm", settings={"learner.aggregate": False}).as_dict()["learner"]
    assert "aggregate" not in sampled
    assert configure("lightgbm").as_dict()["learner"]["aggregate"] is True


def rows_of(parts: list[torch.Tensor]) -> set[tuple[float, ...]]:
    return {tuple(row) for row in torch.cat(parts).flatten(1).tolist()}


def test_the_sample_has_no_more_documents_than_asked_for_and_no_session_twice() -> None:
    log = small_log(301)
    batches = Batches(WeightedLists.of(log), no_scaling(), 32, seed=0)
    everything = list(sample(batches, 10**9))
    assert sum(len(batch.where) for batch in everything) == 301
    shown = int((log.ranking >= 0).sum())
    assert sum(int(batch.where.sum()) for batch in everything) == shown
    for limit in (5, 100, 999):
        some = list(sample(batches, limit))
        documents = sum(int(batch.where.sum()) for batch in some)
        assert limit - 5 < documents <= limit
        assert rows_of([batch.features for batch in some]) <= rows_of([batch.features for batch in everything])


def test_the_sample_is_drawn_with_the_seed_of_the_batches() -> None:
    def drawn(seed: int) -> torch.Tensor:
        return torch.cat(
            [b.features for b in sample(Batches(WeightedLists.of(small_log(300)), no_scaling(), 32, seed=seed), 100)]
        )

    assert torch.equal(drawn(1), drawn(1))
    assert not torch.equal(drawn(1)[:5], drawn(2)[:5])


def test_an_aggregated_log_is_refused() -> None:
    with pytest.raises(InputError, match="lightgbm needs the clicks of each session"):
        fit_log(aggregate(small_log()), configure("lightgbm"))


def test_a_policy_ranks_the_same_after_save_and_load(tmp_path: Path) -> None:
    policy, candidates = grown(5).policy(), small_log().candidates
    save_policy(policy, tmp_path / "model")
    np.testing.assert_array_equal(load_policy(tmp_path / "model").rank(candidates, 5), policy.rank(candidates, 5))


def test_raw_features_are_scaled_as_in_training() -> None:
    log = small_log(300)
    normaliser = Normaliser.fit("query-min-max", log.candidates)
    learner = grown(5, log, normaliser)
    scaled = normaliser.transform(log.candidates.features, log.candidates.offsets)
    np.testing.assert_array_equal(
        learner.policy().score(log.candidates), learner.ranker.score(scaled).astype(np.float32)
    )


def test_before_the_first_tree_all_documents_are_equal() -> None:
    assert not grown(0).policy().score(small_log().candidates).any()


def test_resuming_equals_not_stopping() -> None:
    unbroken, stopped = grown(6), grown(3)
    resumed = grown(0)
    resumed.load_state(stopped.state())
    for _ in range(3):
        resumed.step()
    assert model_of(resumed) == model_of(unbroken)


def test_held_out_clicks_are_scored_as_by_the_other_learners() -> None:
    learner, batch = grown(5), random_batch(lengths=(4, 0, 2), n_features=4)
    scores = torch.zeros(3, 4)
    for row in range(3):
        for position in range(int(batch.where[row].sum())):
            scores[row, position] = float(learner.ranker.score(batch.features[row, position][None].numpy())[0])
    torch.testing.assert_close(
        learner.held_out_scores(batch), -softmax_loss(scores, batch.rewards, batch.where), rtol=1e-4, atol=1e-5
    )


def test_without_labels_the_sessions_of_held_out_queries_are_not_learned_from(monkeypatch: pytest.MonkeyPatch) -> None:
    log, taken = small_log(300, queries=12), []

    def ranker(learner: LightGBM, documents: ShownDocuments, task: FitTask) -> LambdaMartRanker:
        taken.append(len(documents.sizes))
        return original(learner, documents, task)

    original = LightGBM.ranker
    monkeypatch.setattr(LightGBM, "ranker", ranker)
    for aggregated in (False, True):
        settings = {
            "training.steps": 1,
            "training.held_out": 0.5,
            "learner.threads": 1,
            "learner.aggregate": aggregated,
        }
        fit_log(log, configure("lightgbm", settings=settings))
    to_learn_from, held_out = split_by_query(log, held_out_queries(log, 0.5, seed=1))
    assert taken == [len(to_learn_from), len(aggregate(log.select(to_learn_from)))]
    assert len(held_out) > 50


def test_position_bias_makes_a_difference_only_where_positions_differ() -> None:
    plain, corrected = grown(5), grown(5, position_bias=True)
    assert model_of(plain) != model_of(corrected)


def test_nothing_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    grown(2, position_bias=True).policy().rank(small_log().candidates, 3)
    assert capfd.readouterr() == ("", "")


@pytest.mark.thorough
def test_correcting_for_positions_helps_where_positions_are_biased() -> None:
    train, validation, test = generate_splits("tiny", 300, 100, 200, seed=1)
    logger = fit_ranksvm(train, fraction=0.05, seed=1)
    log = simulate(train, logger, PositionBasedModel(), 10_000)
    measured = {}
    for position_bias in (False, True):
        settings = {"learner.position_bias": position_bias, "training.steps": 40, "training.validate_every": 10}
        settings["learner.aggregate"] = False
        result = fit_log(log, configure("lightgbm", settings=settings), score_on(validation))
        assert result.best is not None
        measured[position_bias] = score_on(test)(result.best.policy)
    assert measured[True] > measured[False]
    assert measured[True] > score_on(test)(RandomPolicy())


def test_a_session_without_a_click_stays_in_the_sample() -> None:
    batch = random_batch(lengths=(2, 2))
    assert len(ShownDocuments.of([replace(batch, rewards=torch.zeros_like(batch.rewards))]).sizes) == 2


def test_without_xgboost_it_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xgboost", None)
    with pytest.raises(InputError, match=r"XGBoost is not installed; install it with: pip install 'cuolr\[xgboost\]'"):
        fit_log(small_log(), configure("xgboost"))


@pytest.mark.parametrize("position_bias", [False, True])
def test_it_learns_saves_and_resumes(tmp_path: Path, position_bias: bool) -> None:
    log = small_log(300)
    xgboost = XGBoost(XGBoost.Config(threads=1, position_bias=position_bias))
    task = task_of(log, normaliser=no_scaling(), batch_size=32, seed=0)
    batches, _ = task.batches(WeightedLists.of(log))
    documents = ShownDocuments.of(sample(batches, 10_000))
    learner, resumed = (RankerSteps(xgboost.ranker(documents, task), None) for _ in range(2))
    for _ in range(6):
        learner.step()
    with pytest.raises(AssertionError, match="trees cannot be removed"):
        learner.load_state({"trees": 4})
    resumed.load_state({"trees": 4})
    for _ in range(2):
        resumed.step()
    policy = learner.policy()
    assert isinstance(policy, TreesPolicy)
    scores = policy.score(log.candidates)
    assert np.corrcoef(scores, log.candidates.features[:, 0])[0, 1] > 0.5
    np.testing.assert_array_equal(resumed.policy().score(log.candidates), scores)
    save_policy(policy, tmp_path / "model")
    np.testing.assert_array_equal(
        load_policy(tmp_path / "model").rank(log.candidates, 5), policy.rank(log.candidates, 5)
    )
    assert learner.held_out_scores(random_batch(lengths=(4, 0), n_features=4)).isfinite().all()


def test_position_bias_is_corrected_by_default_and_in_lightgbm_when_asked_for() -> None:
    """So say the pages of the two."""
    pages = Path(__file__).resolve().parents[2] / "docs" / "learners"
    for name, default, word in (("xgboost", True, "on"), ("lightgbm", False, "off")):
        assert configure(name).learner_config.position_bias is default
        assert f"`position_bias` is **{word}** by default" in (pages / f"{name}.md").read_text()
