import sys
from pathlib import Path

import numpy as np
import pytest

from cuolr.errors import InputError
from cuolr.learners.boosting.tree_learner import ShownDocuments, sample
from cuolr.learners.boosting.xgboost import XGBoost
from cuolr.learners.rankers.base_ranker import RankerSteps
from cuolr.policies.model_folder import load_policy, save_policy
from cuolr.policies.trees_policy import TreesPolicy
from cuolr.training.batches import WeightedLists
from cuolr.training.presets.configure import configure
from tests.learners.lists import no_scaling, random_batch
from tests.small_log import small_log
from tests.training.tasks import fit_log, task_of


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
    pages = Path(__file__).resolve().parents[3] / "docs" / "learners"
    for name, default, word in (("xgboost", True, "on"), ("lightgbm", False, "off")):
        assert configure(name).learner_config.position_bias is default
        assert f"`position_bias` is **{word}** by default" in (pages / f"{name}.md").read_text()
