from pathlib import Path

import numpy as np
import pytest

from cuolr.data.synthetic import generate
from cuolr.errors import InputError
from cuolr.policies.lambdamart_policy import MAX_DOCUMENTS, LambdaMartPolicy, grow_ranking_trees
from cuolr.policies.store import load_policy, save_policy
from cuolr.supervised.oracle import LambdaMartSettings, fit_lambdamart
from cuolr.types import Candidates

FEW_TREES = LambdaMartSettings(trees=5, leaves=4, learning_rate=0.2, min_documents_per_leaf=5, threads=1)


@pytest.fixture(scope="module")
def policy() -> LambdaMartPolicy:
    return fit_lambdamart(generate("tiny", 50, seed=1), settings=FEW_TREES)


def test_a_loaded_policy_scores_like_the_saved_one(policy: LambdaMartPolicy, tmp_path: Path) -> None:
    save_policy(policy, tmp_path / "model")
    loaded = load_policy(tmp_path / "model")
    assert isinstance(loaded, LambdaMartPolicy)
    candidates = generate("tiny", 20, seed=1, split="test").candidates
    np.testing.assert_array_equal(loaded.score(candidates), policy.score(candidates))


def test_documents_of_another_width_are_refused(policy: LambdaMartPolicy) -> None:
    candidates = Candidates(np.zeros((2, 3), np.float32), np.array([0, 2]), np.array(["q"]))
    with pytest.raises(InputError, match="documents with 10 features, as in training, found 3"):
        policy.score(candidates)


def test_no_documents_give_no_scores(policy: LambdaMartPolicy) -> None:
    candidates = Candidates(np.zeros((0, 10), np.float32), np.array([0, 0]), np.array(["q"]))
    assert policy.rank(candidates, 3).tolist() == [[-1, -1, -1]]


def test_the_score_of_a_document_does_not_depend_on_the_queries_around_it(policy: LambdaMartPolicy) -> None:
    candidates, some = generate("tiny", 20, seed=2).candidates, np.array([7, 3])
    np.testing.assert_array_equal(
        policy.score(candidates.select(some)), policy.score(candidates)[candidates.rows_of(some)]
    )


@pytest.mark.parametrize("text", ["", "no trees here"])
def test_text_that_is_no_model_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a LightGBM model"):
        LambdaMartPolicy(text)


def test_of_a_very_long_list_the_documents_of_high_grades_are_learned_from() -> None:
    """More than LightGBM takes: what is left out are documents of grade 0 at the end."""
    rng = np.random.default_rng(1)
    sizes = np.array([50, MAX_DOCUMENTS + 500, 60])
    features = rng.normal(size=(int(sizes.sum()), 3)).astype(np.float32)
    grades = np.where(features[:, 0] > 2, 2, 0)
    few = {"num_threads": 1, "num_leaves": 4, "min_data_in_leaf": 5}
    long = slice(50, 50 + MAX_DOCUMENTS + 500)
    dropped = 50 + np.flatnonzero(grades[long] == 0)[-500:]
    kept = np.setdiff1d(np.arange(len(grades)), dropped)
    by_hand = grow_ranking_trees(features[kept], grades[kept], np.array([50, MAX_DOCUMENTS, 60]), few, 5)
    assert grow_ranking_trees(features, grades, sizes, few, 5) == by_hand
