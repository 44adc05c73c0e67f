from pathlib import Path

import numpy as np
import pytest

import cuolr
from cuolr.clicks.base import click_model_from
from cuolr.data.synthetic import generate_splits
from cuolr.errors import InputError
from cuolr.policies.uniform import RandomPolicy
from cuolr.types import ClickLog, RankingDataset

QUICK = {"learner.hidden": [8, 8], "learner.encoder": "position", "training.validate_every": 3}


@pytest.fixture(scope="module")
def splits() -> tuple[RankingDataset, RankingDataset, RankingDataset]:
    return generate_splits("tiny", 30, 10, 10, seed=1)


@pytest.fixture(scope="module")
def log(splits: tuple[RankingDataset, RankingDataset, RankingDataset]) -> ClickLog:
    return cuolr.simulate(splits[0], RandomPolicy(1), click_model_from({"name": "pbm"}), sessions=300, k=5)


def test_five_lines_from_a_log_to_rankings(log: ClickLog, tmp_path: Path) -> None:
    cuolr.save_click_log(log, tmp_path / "log")
    read = cuolr.load_click_log(tmp_path / "log")
    ranker = cuolr.Ranker(learner="cql", steps=6, batch_size=8, settings=QUICK).fit(read)
    ranking = ranker.rank(read.candidates, k=5)
    ranker.save(tmp_path / "model")
    np.testing.assert_array_equal(cuolr.load_policy(tmp_path / "model").rank(read.candidates, 5), ranking)
    assert ranking.shape == (30, 5)
    assert ranker.result_.validations.keys() == {3, 6}


def test_labelled_queries_choose_the_policy(
    log: ClickLog, splits: tuple[RankingDataset, RankingDataset, RankingDataset]
) -> None:
    ranker = cuolr.Ranker("sac", steps=6, batch_size=8, settings=QUICK).fit(log, validation=splits[1])
    best = ranker.result_.best
    assert best is not None
    assert best.score == max(ranker.result_.validations.values())
    assert cuolr.evaluate(ranker.policy_, splits[1]).means()["ndcg@10"] == pytest.approx(best.score)


def test_fitting_again_starts_anew(log: ClickLog) -> None:
    ranker = cuolr.Ranker("sac", steps=4, batch_size=8, seed=3, settings=QUICK)
    once, again = (ranker.fit(log).policy_.arrays() for _ in range(2))
    assert once.keys() == again.keys()
    for name, values in once.items():
        np.testing.assert_array_equal(values, again[name])


def test_settings_are_checked_at_once() -> None:
    with pytest.raises(InputError, match="unknown learner"):
        cuolr.Ranker("cqll")
    with pytest.raises(InputError, match="unknown setting"):
        cuolr.Ranker(settings={"learner.wieght": 1})


def test_ranking_before_fitting_says_what_to_do(log: ClickLog) -> None:
    with pytest.raises(InputError, match=r"nothing is learned yet; call fit\(log\) first"):
        cuolr.Ranker().rank(log.candidates)
