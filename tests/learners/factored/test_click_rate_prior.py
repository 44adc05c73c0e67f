from dataclasses import replace

import numpy as np
import pytest

from cuolr.data.normalise import Normaliser
from cuolr.examination.from_clicks import ExaminationModel
from cuolr.learners.factored.click_rate_prior import PriorFit, fit_click_rate_prior
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.counts import ClickCounts
from cuolr.logs.scaled_documents import ScaledDocuments
from cuolr.types import Doubles, Ints
from tests.small_log import small_log


def fitted(
    log: ClickLog, steps: int, seed: int = 1, lists: Ints | None = None, examination: ExaminationModel | None = None
) -> Doubles:
    counts = ClickCounts.of(log)
    shown = ScaledDocuments.of(counts.lists, Normaliser.fit("log-min-max", log.candidates))
    return fit_click_rate_prior(
        counts,
        shown,
        examination or ExaminationModel.full(log.k),
        np.zeros(len(shown.features)),
        np.arange(len(counts.lists)) if lists is None else lists,
        PriorFit(steps, learning_rate=1e-2, batch_size=64, seed=seed),
    )


def test_the_click_rate_is_predicted_from_features() -> None:
    log = small_log(rows=3_000, queries=60)  # clicked by the first feature
    shown = np.unique(log.candidates.offsets[log.query, None] + log.ranking)
    assert np.corrcoef(fitted(log, steps=150), log.candidates.features[shown, 0])[0, 1] > 0.8


def test_without_a_step_it_is_about_the_click_rate_of_position_1() -> None:
    log = small_log(rows=3_000, queries=60)
    rate = log.clicks[:, 0].mean()
    assert fitted(log, steps=0).mean() == pytest.approx(rate, abs=0.1)


def test_clicks_are_explained_with_the_examination_of_their_position() -> None:
    """Only position 1 is examined always, the others half of the time: the same clicks mean a higher rate."""
    log = small_log(rows=3_000, queries=60)
    seldom = ExaminationModel(np.where(np.arange(log.k) == 0, 1.0, 0.5)[:, None] * np.ones(log.k + 1))
    assert fitted(log, 150, examination=seldom).mean() > fitted(log, 150).mean() + 0.05


def test_the_same_seed_gives_the_same_prior_and_another_seed_another() -> None:
    log = small_log(rows=300)
    first = fitted(log, steps=5)
    np.testing.assert_array_equal(fitted(log, steps=5), first)
    assert (fitted(log, steps=5, seed=2) != first).any()


def test_clicks_on_lists_that_are_left_out_are_not_used() -> None:
    log = small_log(rows=300, queries=20)
    clicked = (log.query[:, None] < 5) & log.where
    other = replace(log, clicks=np.where(clicked, 1, log.clicks).astype(np.uint8))
    lists = np.flatnonzero(ClickCounts.of(log).lists.query >= 5)
    first, second = (fitted(one, steps=5, lists=lists) for one in (log, other))
    np.testing.assert_array_equal(first, second)
    assert (fitted(log, steps=5) != fitted(other, steps=5)).any()
