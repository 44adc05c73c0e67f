from dataclasses import replace

import numpy as np
import pytest

from cuolr.clicks.click_model import click_model
from cuolr.clicks.simulate import Simulation
from cuolr.clicks.simulated_context import SimulatedContext, in_context
from cuolr.errors import InputError
from cuolr.policies.random_policy import RandomPolicy
from tests.data.small_data import dataset_of

DEVICE = SimulatedContext("device", ("desktop", "mobile"), (0.75, 0.25), (1.0, 3.0))
SIMULATION = Simulation(dataset_of(6, 6, 6), RandomPolicy(), click_model("pbm"), 20_000, k=4, contexts=(DEVICE,))


@pytest.mark.parametrize("name", ["pbm", "ubm", "dcm"])
def test_click_rates_of_a_level_are_those_of_its_severity(name: str) -> None:
    """The closed form: the click probabilities of the model with η times the severity."""
    model = click_model(name, eta=0.5)
    simulation = replace(SIMULATION, click_model=model, sessions=100_000)
    log = simulation.log()
    grades = simulation.dataset.relevance[log.documents]
    relevance = ((2.0**grades - 1) / (2.0**simulation.dataset.max_grade - 1)).astype(np.float32)
    for value, eta in (("desktop", 0.5), ("mobile", 1.5)):
        rows = log.context["device"] == value
        expected = click_model(name, eta=eta).click_probability(relevance[rows], log.where[rows])
        error = np.sqrt((expected * (1 - expected)).sum(axis=0)) / rows.sum()
        assert (np.abs(log.clicks[rows].mean(axis=0) - expected.mean(axis=0)) < 4 * error).all()


def test_shares_are_those_given() -> None:
    log = SIMULATION.log()
    share = (log.context["device"] == "mobile").mean()
    assert abs(share - 0.25) < 4 * np.sqrt(0.25 * 0.75 / len(log))


def test_queries_and_lists_are_those_of_a_log_without_context() -> None:
    log, without = SIMULATION.log(), replace(SIMULATION, contexts=()).log()
    np.testing.assert_array_equal(log.query, without.query)
    np.testing.assert_array_equal(log.ranking, without.ranking)
    desktop = log.context["device"] == "desktop"
    np.testing.assert_array_equal(log.clicks[desktop], without.clicks[desktop])
    assert (log.clicks[~desktop] != without.clicks[~desktop]).any()
    assert not without.context


def test_the_log_does_not_depend_on_the_size_of_the_blocks() -> None:
    log = SIMULATION.log()
    blocks = list(SIMULATION.blocks(sessions_per_block=777))
    np.testing.assert_array_equal(np.concatenate([block.clicks for block in blocks]), log.clicks)
    np.testing.assert_array_equal(np.concatenate([block.context["device"] for block in blocks]), log.context["device"])


def test_severities_of_several_contexts_multiply() -> None:
    layout = SimulatedContext("layout", ("grid", "list"), (0.5, 0.5), (0.5, 2.0))
    both = replace(SIMULATION, contexts=(DEVICE, layout)).log()
    assert set(both.context) == {"device", "layout"}
    rows = (both.context["device"] == "mobile") & (both.context["layout"] == "list")
    alone = replace(SIMULATION, contexts=(), click_model=in_context(SIMULATION.click_model, 3.0 * 2.0)).log()
    np.testing.assert_array_equal(both.clicks[rows], alone.clicks[rows])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("device", r"expected NAME=VALUE:SHARE\[:SEVERITY\],…"),
        ("device=desktop", "expected NAME=VALUE:SHARE"),
        ("device=desktop:much", "expected NAME=VALUE:SHARE"),
        ("device=desktop:1:2:3", "expected NAME=VALUE:SHARE"),
        ("device=:1", "expected NAME=VALUE:SHARE"),
        ("=a:1", "expected the name of a column"),
        ("relevance=a:1", "no relevance label"),
        ("device=a:0.5,b:0.4", "expected shares that sum to 1, found 0.9"),
        ("device=a:0.5,a:0.5", "expected different values, found a, a"),
        ("device=a:1.5,b:-0.5", "share of a: expected 0 to 1, found 1.5"),
        ("device=a:0.5:-1,b:0.5", "severity of a: expected a finite number >= 0, found -1"),
    ],
)
def test_what_cannot_be_a_context_is_told(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        SimulatedContext.parse(text)


def test_a_model_without_severity_takes_no_other_one() -> None:
    cascade = click_model("cascade")
    with pytest.raises(InputError, match="CascadeModel has no severity of position bias"):
        replace(SIMULATION, click_model=cascade)
    plain = SimulatedContext.parse("device=desktop:0.6,mobile:0.4")
    assert replace(SIMULATION, click_model=cascade, contexts=(plain,)).log().context.keys() == {"device"}
    with pytest.raises(InputError, match="expected each column once"):
        replace(SIMULATION, contexts=(plain, plain))
