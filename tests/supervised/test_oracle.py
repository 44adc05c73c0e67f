import signal
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cuolr.clicks.click_model import CLICK_MODELS, click_model, relevance_of
from cuolr.clicks.simulate import Simulation
from cuolr.data.letor.reader import read_letor
from cuolr.data.synthetic import generate, generate_splits
from cuolr.errors import InputError
from cuolr.evaluation.measures import mean_over_queries
from cuolr.learners.rankers.network import NetworkConfig
from cuolr.policies.policy import RankingPolicy
from cuolr.policies.random_policy import RandomPolicy
from cuolr.supervised import oracle, oracle_best
from cuolr.supervised.oracle import LambdaMartSettings, fit_lambdamart
from cuolr.supervised.oracle_best import _gain_targets, fit_best, fit_network
from cuolr.supervised.ranksvm import fit_ranksvm
from cuolr.supervised.skyline import only_examined, only_shown
from cuolr.training.training_config import TrainingConfig
from cuolr.types import RankingDataset
from tests.data.small_data import candidates_of
from tests.evaluation.one_measure import measure_ranking
from tests.small_log import with_missing_values

QUICK = LambdaMartSettings(
    trees=60, leaves=8, learning_rate=0.1, min_documents_per_leaf=10, early_stopping=10, threads=1
)
Splits = tuple[RankingDataset, RankingDataset, RankingDataset]


@pytest.fixture(scope="module")
def splits() -> Splits:
    return generate_splits("tiny", 200, 60, 100, seed=1)


def ndcg(policy: RankingPolicy, dataset: RankingDataset) -> float:
    return mean_over_queries(measure_ranking(dataset, policy.rank(dataset.candidates, 10), "ndcg@10"))


def test_the_defaults_are_the_papers() -> None:
    settings = LambdaMartSettings()
    assert (settings.trees, settings.leaves, settings.learning_rate) == (1000, 100, 0.01)
    assert (settings.min_documents_per_leaf, settings.early_stopping) == (50, 100)


def test_it_beats_a_random_order(splits: Splits) -> None:
    train, validation, test = splits
    for seed in range(3):
        policy = fit_lambdamart(train, validation, replace(QUICK, seed=seed))
        assert ndcg(policy, test) > ndcg(RandomPolicy(seed), test) + 0.15


def test_only_the_trees_up_to_the_best_one_are_kept(splits: Splits) -> None:
    train, validation, _ = splits
    policy = fit_lambdamart(train, validation, replace(QUICK, trees=400))
    kept = len(policy.trees.leaves)
    assert 1 <= kept < 400
    # LightGBM counts 1 for a query without a relevant document.
    steps = [fit_lambdamart(train, None, replace(QUICK, trees=trees)) for trees in range(1, kept + 11)]
    values = [
        measure_ranking(validation, step.rank(validation.candidates, 10), "ndcg@10", without_relevant="one").mean()
        for step in steps
    ]
    assert kept == 1 + int(np.argmax(values))
    np.testing.assert_array_equal(policy.score(validation.candidates), steps[kept - 1].score(validation.candidates))


def test_a_query_with_more_documents_than_lightgbm_takes_is_refused(
    splits: Splits, monkeypatch: pytest.MonkeyPatch
) -> None:
    longest = int(splits[0].candidates.sizes.max())
    monkeypatch.setattr(oracle, "MAX_DOCUMENTS", longest - 1)
    with pytest.raises(
        InputError, match=f"expected at most {longest - 1} documents, the limit of LightGBM, found {longest}"
    ):
        fit_lambdamart(splits[0], None, QUICK)


def test_without_validation_all_trees_are_kept(splits: Splits) -> None:
    assert len(fit_lambdamart(splits[0], None, QUICK).trees.leaves) == QUICK.trees


def test_the_trees_do_not_depend_on_the_number_of_threads(splits: Splits) -> None:
    train, validation, test = splits
    one, two = (fit_lambdamart(train, validation, replace(QUICK, trees=10, threads=threads)) for threads in (1, 2))
    np.testing.assert_array_equal(one.score(test.candidates), two.score(test.candidates))


def test_nothing_is_printed(splits: Splits, capfd: pytest.CaptureFixture[str]) -> None:
    train, validation, test = splits
    fit_lambdamart(train, validation, QUICK).rank(test.candidates, 10)
    assert capfd.readouterr() == ("", "")


def test_the_gains_of_a_query_are_shared_among_its_documents() -> None:
    # Grades 0, 1, 2 have gains 0, 1 and 3; the second query has none.
    grades = np.array([2, 0, 1, 0, 0, 2], np.int8)
    lists = _gain_targets(RankingDataset(candidates_of(3, 2, 1), grades, max_grade=2))
    assert lists.query.tolist() == [0, 2]
    assert lists.ranking.tolist() == [[0, 1, 2], [0, -1, -1]]
    np.testing.assert_allclose(lists.targets, [[3 / 4, 0, 1 / 4], [3 / 3, 0, 0]])


def test_a_network_learns_from_all_labels(splits: Splits) -> None:
    train, validation, test = splits
    config = NetworkConfig(hidden=(32, 32), learning_rate=1e-2)
    policy = fit_network(train, validation, config, TrainingConfig(steps=60, validate_every=20, seed=1))
    assert ndcg(policy, test) > ndcg(RandomPolicy(0), test) + 0.15


def test_ctrl_c_ends_the_network_without_a_ranker(splits: Splits, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted_score(policy: RankingPolicy) -> float:
        signal.raise_signal(signal.SIGINT)
        return 0.0

    monkeypatch.setattr(oracle_best, "score_on", lambda validation: interrupted_score)
    with pytest.raises(KeyboardInterrupt):
        fit_network(splits[0], splits[1], NetworkConfig(hidden=(4,)), TrainingConfig(steps=4, validate_every=2))


def test_the_best_is_chosen_on_validation_among_trees_a_network_and_a_linear_ranker(
    splits: Splits, monkeypatch: pytest.MonkeyPatch
) -> None:
    train, validation, _ = splits
    monkeypatch.setattr(oracle_best, "LambdaMartSettings", lambda: QUICK)
    rankers_without_tuned_trees = oracle_best.RANKERS - len(oracle_best.TUNED_LAMBDAMART)
    monkeypatch.setattr(oracle_best, "TUNED_LAMBDAMART", (replace(QUICK, leaves=3),))
    monkeypatch.setattr(oracle_best, "NETWORK_TRAINING", TrainingConfig(steps=5))
    told: dict[str, float] = {}
    best = fit_best(train, validation, threads=1, progress=told.__setitem__)
    assert told == best.validation
    assert len(told) == rankers_without_tuned_trees + 1
    assert [name.partition(",")[0] for name in told] == ["lambdamart"] * 2 + ["network"] + ["ranksvm"] * 3
    assert best.validation[best.name] == max(told.values()) == ndcg(best.policy, validation)


@pytest.mark.slow
def test_on_mq2008_the_papers_lambdamart_loses_to_a_linear_ranker_and_to_the_best_of_all(shared_data: Path) -> None:
    """So the paper's settings are no upper bound there."""
    values: dict[str, list[float]] = {"paper": [], "ranksvm": [], "best": []}
    for fold in range(1, 6):
        files = (shared_data / "MQ2008" / f"Fold{fold}" / f"{split}.txt" for split in ("train", "vali", "test"))
        train, validation, test = (read_letor(file, max_grade=2) for file in files)
        values["paper"].append(ndcg(fit_lambdamart(train, validation), test))
        values["ranksvm"].append(ndcg(fit_ranksvm(train, fraction=1.0), test))
        values["best"].append(ndcg(fit_best(train, validation).policy, test))
    means = {name: float(np.mean(per_fold)) for name, per_fold in values.items()}
    assert means["paper"] < means["ranksvm"]
    assert means["best"] > means["paper"]


def test_only_the_shown_documents_are_left_for_the_skyline() -> None:
    dataset = generate("tiny", 20, seed=1)
    ranking = fit_ranksvm(dataset, 0.5).rank(dataset.candidates, 3)
    shown = only_shown(dataset, ranking)
    assert shown.candidates.sizes.tolist() == (ranking >= 0).sum(axis=1).tolist()
    for query in range(20):
        rows = dataset.candidates.offsets[query] + np.sort(ranking[query][ranking[query] >= 0])
        ours = shown.candidates.rows_of(np.array([query]))
        np.testing.assert_array_equal(shown.candidates.features[ours], dataset.candidates.features[rows])
        np.testing.assert_array_equal(shown.relevance[ours], dataset.relevance[rows])


def test_rankers_on_labels_take_missing_values(splits: Splits) -> None:
    train, vali, test = (replace(split, candidates=with_missing_values(split.candidates)) for split in splits)
    training = TrainingConfig(steps=4, batch_size=8, validate_every=2)
    for policy in (
        fit_lambdamart(train, vali, QUICK),
        fit_network(train, vali, NetworkConfig(hidden=(8,)), training),
    ):
        assert policy.n_features == train.candidates.n_features
        assert ndcg(policy, test) > ndcg(RandomPolicy(), test)


@pytest.mark.parametrize("name", ["pbm", "cascade", "dcm", "ubm"])
def test_clicks_per_examination_are_the_attractiveness_of_each_grade(name: str) -> None:
    data, _, _ = generate_splits("tiny", 200, 1, 1, seed=1)
    users = click_model(name)
    log = Simulation(data, RandomPolicy(1), users, sessions=40_000, k=10, seed=1, keep_examination=True).log()
    examined = only_examined(log)
    assert (log.where & ~examined.where).any(), "some documents were not examined"
    grade = data.relevance[examined.documents]
    for each in range(data.max_grade + 1):
        clicks = examined.clicks[examined.where & (grade == each)]
        expected = users.click_if_examined(relevance_of(np.array([each]), data.max_grade))[0]
        assert clicks.mean() == pytest.approx(expected, abs=5 * clicks.std() / np.sqrt(len(clicks)) + 1e-9)


def test_nothing_is_left_out_of_sessions_of_users_who_examine_everything() -> None:
    assert "perfect" in CLICK_MODELS.names()
    data, _, _ = generate_splits("tiny", 20, 1, 1, seed=1)
    log = Simulation(data, RandomPolicy(1), click_model("perfect"), 200, 5, seed=1, keep_examination=True).log()
    np.testing.assert_array_equal(only_examined(log).ranking, log.ranking)
