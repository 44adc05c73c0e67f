from dataclasses import replace

import lightgbm as lgb
import numpy as np
import pytest

from cuolr.data.synthetic import generate_splits
from cuolr.measures import mean_over_queries, measure_ranking
from cuolr.oracle import LambdaMartSettings, fit_lambdamart
from cuolr.policies.base import RankingPolicy
from cuolr.policies.uniform import RandomPolicy
from cuolr.types import RankingDataset

QUICK = LambdaMartSettings(
    trees=60, leaves=8, learning_rate=0.1, min_documents_per_leaf=10, early_stopping=10, threads=1
)
Splits = tuple[RankingDataset, RankingDataset, RankingDataset]


@pytest.fixture(scope="module")
def splits() -> Splits:
    return generate_splits("tiny", 200, 60, 100, seed=1)


def ndcg(policy: RankingPolicy, dataset: RankingDataset) -> float:
    return mean_over_queries(measure_ranking(dataset, policy.rank(dataset.candidates, 10), "ndcg@10"))


def n_trees(model: str) -> int:
    trees: int = lgb.Booster(model_str=model).num_trees()
    return trees


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
    kept = n_trees(policy.model)
    assert 1 <= kept < 400
    # LightGBM counts 1 for a query without a relevant document.
    steps = [fit_lambdamart(train, None, replace(QUICK, trees=trees)) for trees in range(1, kept + 11)]
    values = [
        measure_ranking(validation, step.rank(validation.candidates, 10), "ndcg@10", without_relevant="one").mean()
        for step in steps
    ]
    assert kept == 1 + int(np.argmax(values))
    np.testing.assert_array_equal(policy.score(validation.candidates), steps[kept - 1].score(validation.candidates))


def test_without_validation_all_trees_are_kept(splits: Splits) -> None:
    assert n_trees(fit_lambdamart(splits[0], None, QUICK).model) == QUICK.trees


def test_the_trees_do_not_depend_on_the_number_of_threads(splits: Splits) -> None:
    train, validation, test = splits
    one, two = (fit_lambdamart(train, validation, replace(QUICK, trees=10, threads=threads)) for threads in (1, 2))
    np.testing.assert_array_equal(one.score(test.candidates), two.score(test.candidates))


def test_nothing_is_printed(splits: Splits, capfd: pytest.CaptureFixture[str]) -> None:
    train, validation, test = splits
    fit_lambdamart(train, validation, QUICK).rank(test.candidates, 10)
    assert capfd.readouterr() == ("", "")
