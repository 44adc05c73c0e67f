from dataclasses import replace

import numpy as np
import pytest

from cuolr.data.normalise import Normaliser
from cuolr.examination.from_clicks import everything
from cuolr.learners.factored.click_rates import ShownLists
from cuolr.learners.factored.prior import fit_attractiveness
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.counts import count_lists
from cuolr.types import Doubles, Ints
from tests.small_log import small_log


def fitted(log: ClickLog, steps: int, seed: int = 1, learned: Ints | None = None) -> Doubles:
    shown = ShownLists.of(log, Normaliser.fit("log-min-max", log.candidates))
    return fit_attractiveness(
        shown,
        everything(shown.counted),
        np.zeros(len(shown.features)),
        np.arange(len(shown.counted.lists)) if learned is None else learned,
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


def test_clicks_on_lists_that_are_not_learned_from_do_not_matter() -> None:
    log = small_log(rows=300, queries=20)
    clicked = (log.query[:, None] < 5) & log.where
    other = replace(log, clicks=np.where(clicked, 1, log.clicks).astype(np.uint8))
    learned = np.flatnonzero(count_lists(log).lists.query >= 5)
    first, second = (fitted(one, steps=5, learned=learned) for one in (log, other))
    np.testing.assert_array_equal(first, second)
    assert (fitted(log, steps=5) != fitted(other, steps=5)).any()
