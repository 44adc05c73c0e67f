from dataclasses import replace

import numpy as np
import pytest

from cuolr.clicks.fitting.click_model_fit import CLICK_FITS
from cuolr.clicks.fitting.compare_fits import compare_fits
from cuolr.errors import InputError
from cuolr.logs.click_patterns import ClickPatterns
from studies.click_fit_error import MODELS
from tests.clicks.fitting.small_patterns import random_log
from tests.small_log import small_log

# The models that contain another one as a special case. In simulated logs satisfaction is linear in attractiveness,
# which makes DBN and SDBN a CCM.
CONTAINING = {
    "pbm": {"trust", "ubm"},
    "cascade": {"dcm", "ccm", "dbn", "sdbn", "ubm"},
    "sdbn": {"dbn", "ccm"},
    "dbn": {"ccm"},
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", MODELS)
def test_the_best_model_is_the_simulated_one_or_one_that_contains_it(name: str) -> None:
    compared = compare_fits(ClickPatterns.of(random_log(name, sessions=8_000, **MODELS[name])))
    possible = {name} | CONTAINING.get(name, set())
    assert compared.best in possible
    assert set(compared.as_good) <= possible
    assert not compared.better_baselines
    for other in set(compared.scores) - possible:
        assert compared.differences[other].is_more_than_noise, other


def test_models_are_ordered_by_their_likelihood_and_compared_with_the_best() -> None:
    compared = compare_fits(ClickPatterns.of(random_log("dcm", sessions=3_000)), ["pbm", "ctr", "dcm", "pbm"])
    assert compared.in_order == ["dcm", "pbm", "ctr"]
    assert compared.best == "dcm"
    assert compared.differences["dcm"].mean == 0
    gap = compared.scores["pbm"].log_likelihood - compared.scores["dcm"].log_likelihood
    assert compared.differences["pbm"].mean == pytest.approx(gap)
    assert compared.train_sessions + compared.held_out_sessions == 3_000


def test_a_baseline_is_the_best_only_among_baselines() -> None:
    patterns = ClickPatterns.of(random_log("perfect", sessions=3_000))
    assert compare_fits(patterns, ["ctr-document", "cascade"]).best == "cascade"
    assert compare_fits(patterns, ["ctr-document", "cascade"]).better_baselines == ["ctr-document"]
    assert compare_fits(patterns, ["ctr-document", "ctr"]).best == "ctr-document"


def test_every_model_is_compared_unless_names_are_given() -> None:
    assert sorted(compare_fits(ClickPatterns.of(small_log(rows=200))).fits) == CLICK_FITS.names()


def test_progress_is_told_after_each_model() -> None:
    done: list[int] = []
    compare_fits(ClickPatterns.of(small_log(rows=200)), ["pbm", "ctr"], progress=done.append)
    assert done == [1, 1]


def test_a_log_without_clicks_or_with_too_few_sessions_is_refused() -> None:
    log = small_log(rows=200)
    with pytest.raises(InputError, match="no clicks"):
        compare_fits(ClickPatterns.of(replace(log, clicks=np.zeros_like(log.clicks))))
    with pytest.raises(InputError, match="expected sessions to fit to and to hold out, found 1 in all"):
        compare_fits(ClickPatterns.of(log.select(slice(0, 1))))
    with pytest.raises(InputError, match="unknown fitted click model 'pmb'"):
        compare_fits(ClickPatterns.of(log), ["pmb"])
