import numpy as np
import pytest

from cuolr.data.normalise import Normaliser
from cuolr.learners.attractiveness import fit_attractiveness
from cuolr.learners.evidence import ShownLists
from cuolr.learners.examination import everything
from cuolr.types import ClickLog, Doubles
from tests.small_log import small_log


def fitted(log: ClickLog, steps: int, seed: int = 1) -> Doubles:
    shown = ShownLists.of(log, Normaliser.fit("log-min-max", log.candidates))
    return fit_attractiveness(
        shown,
        everything(shown.counted),
        shown.scores_by(None),
        steps=steps,
        learning_rate=1e-2,
        batch_size=64,
        seed=seed,
    )


def test_attractiveness_is_learned_from_the_features() -> None:
    log = small_log(rows=3_000, queries=60)  # clicked by the first feature
    shown = np.unique(log.candidates.offsets[log.query, None] + log.ranking)
    found = fitted(log, steps=150)
    assert np.corrcoef(found, log.candidates.features[shown, 0])[0, 1] > 0.8
    assert ((found > 0) & (found < 1)).all()


def test_before_the_first_step_it_is_the_mean_click_rate_of_position_1() -> None:
    log = small_log(rows=3_000, queries=60)
    rate = log.clicks[:, 0].mean()
    assert fitted(log, steps=0).mean() == pytest.approx(rate, abs=0.1)


def test_the_same_seed_gives_the_same_attractiveness_and_another_seed_another() -> None:
    log = small_log(rows=300)
    first = fitted(log, steps=5)
    np.testing.assert_array_equal(fitted(log, steps=5), first)
    assert (fitted(log, steps=5, seed=2) != first).any()
