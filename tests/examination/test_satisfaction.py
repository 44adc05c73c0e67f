"""Satisfaction recovered from the clicks of users who have it, and not found in those of others."""

import numpy as np
import pytest

from cuolr.clicks.click_model import click_model, relevance_of
from cuolr.clicks.simulate import simulate
from cuolr.data.synthetic import generate
from cuolr.examination.from_clicks import ExaminationModel
from cuolr.examination.satisfaction import with_satisfaction
from cuolr.logs.click_patterns import ClickPatterns
from cuolr.policies.plackett_luce import StochasticLogger
from cuolr.supervised.ranksvm import fit_ranksvm
from cuolr.types import Doubles

K = 6
DATA = generate("tiny", 200, seed=5)
WEAK = fit_ranksvm(DATA, 0.02, 1)
LOGGER = StochasticLogger(WEAK, float(np.std(WEAK.score(DATA.candidates))))


def estimated(name: str) -> tuple[float, Doubles, Doubles]:
    model = click_model(name)
    log = simulate(DATA, LOGGER, model, 30_000, k=K, seed=1)
    examination = ExaminationModel.fit(log).table
    attractiveness = model.attractiveness(relevance_of(DATA.relevance, DATA.max_grade)).astype(np.float64)
    patterns = ClickPatterns.of(log).with_every_document()
    return *with_satisfaction(patterns, attractiveness, examination), examination


@pytest.mark.parametrize(("name", "truth"), [("dbn", 0.9), ("sdbn", 0.9), ("ccm", 0.5)])
def test_satisfaction_is_recovered(name: str, truth: float) -> None:
    """DBN: 1 − 0.9 · relevance; CCM: continuing falls from 0.5 to 0.25 with relevance, half of it."""
    satisfaction, table, examination = estimated(name)
    assert satisfaction == pytest.approx(truth, abs=0.08)
    assert (table[2, 1:3] > examination[2, 1:3]).all()  # the mean user is less than fully satisfied
    np.testing.assert_array_equal(table[:, 0], examination[:, 0])


@pytest.mark.parametrize("name", ["pbm", "cascade", "dcm", "ubm"])
def test_users_who_do_not_depend_on_the_clicked_document_have_none(name: str) -> None:
    satisfaction, table, examination = estimated(name)
    assert satisfaction == 0
    np.testing.assert_array_equal(table, examination)


def test_a_log_without_clicks_says_nothing() -> None:
    log = simulate(DATA, LOGGER, click_model("pbm"), 100, k=K, seed=1)
    patterns = ClickPatterns.of(log).with_every_document()
    silent = patterns.select(patterns.clicks.sum(axis=1) == 0)
    table = np.ones((K, K + 1))
    assert with_satisfaction(silent, np.full(DATA.candidates.n_documents, 0.5), table) == (0.0, table)
