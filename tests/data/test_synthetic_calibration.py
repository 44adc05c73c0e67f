"""Generated data is about as hard as the data that it stands for: the paper's LOGGING and ORACLE rows, table 1."""

import pytest

from cuolr.data.synthetic import generate_splits
from cuolr.evaluation.measures import mean_over_queries
from cuolr.policies.policy import RankingPolicy
from cuolr.supervised.oracle import LambdaMartSettings, fit_lambdamart
from cuolr.supervised.ranksvm import fit_ranksvm
from cuolr.types import RankingDataset
from tests.evaluation.one_measure import measure_ranking

# The paper's, but for fewer and larger steps, to fit the time.
LAMBDAMART = LambdaMartSettings(trees=200, learning_rate=0.07, early_stopping=30, threads=1)


def ndcg(policy: RankingPolicy, dataset: RankingDataset) -> float:
    return mean_over_queries(measure_ranking(dataset, policy.rank(dataset.candidates, 10), "ndcg@10"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("preset", "normalising", "logging", "oracle"),
    [("web10k-like", "log-min-max", 0.338, 0.453), ("yahoo-like", "min-max", 0.693, 0.781)],
)
def test_a_weak_and_a_strong_ranker_land_near_the_papers_rows(
    preset: str, normalising: str, logging: float, oracle: float
) -> None:
    train, validation, test = generate_splits(preset, 2_000, 400, 1_000, seed=1)
    for seed in range(3):
        ranksvm = fit_ranksvm(train, fraction=0.01, seed=seed, normalising=normalising)
        assert ndcg(ranksvm, test) == pytest.approx(logging, abs=0.03)
    assert ndcg(fit_lambdamart(train, validation, LAMBDAMART), test) == pytest.approx(oracle, abs=0.03)


@pytest.mark.thorough
def test_log_min_max_suits_raw_web_features_best() -> None:
    train, _, test = generate_splits("web10k-like", 1_000, 1, 400, seed=1)
    log_scaled, scaled = (ndcg(fit_ranksvm(train, 0.1, normalising=kind), test) for kind in ("log-min-max", "min-max"))
    assert log_scaled > scaled + 0.003
