from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from cuolr.errors import InputError
from cuolr.learners.batches import Batches
from cuolr.policies import xgboost_trees
from cuolr.policies.store import load_policy, save_policy
from tests.learners.lists import build, no_scaling, random_batch
from tests.small_log import small_log

installed = pytest.mark.skipif(find_spec("xgboost") is None, reason="XGBoost is not installed: cuolr[xgboost]")


@pytest.mark.skipif(find_spec("xgboost") is not None, reason="XGBoost is installed")
def test_without_xgboost_it_says_how_to_install_it() -> None:
    with pytest.raises(InputError, match=r"XGBoost is not installed; install it with: pip install 'cuolr\[xgboost\]'"):
        build("xgboost")


@installed
@pytest.mark.parametrize("position_bias", [False, True])
def test_it_learns_saves_and_resumes(tmp_path: Path, position_bias: bool) -> None:
    log = small_log(300)
    learners = [build("xgboost", n_features=4, k=5, threads=1, position_bias=position_bias) for _ in range(2)]
    for learner in learners:
        learner.begin(Batches(log, no_scaling(), 32, seed=0))
    learner, resumed = learners
    for _ in range(6):
        learner.update(random_batch())
    resumed.load_state({"trees": 4})
    for _ in range(2):
        resumed.update(random_batch())
    policy = learner.policy()
    assert isinstance(policy, xgboost_trees.XGBoostPolicy)
    scores = policy.score(log.candidates)
    assert np.corrcoef(scores, log.candidates.features[:, 0])[0, 1] > 0.5
    np.testing.assert_array_equal(resumed.policy().score(log.candidates), scores)  # type: ignore[attr-defined]
    save_policy(policy, tmp_path / "model")
    np.testing.assert_array_equal(
        load_policy(tmp_path / "model").rank(log.candidates, 5), policy.rank(log.candidates, 5)
    )
    assert learner.held_out_score(random_batch(lengths=(4, 0), n_features=4)).isfinite().all()
