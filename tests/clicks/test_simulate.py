import hashlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pytest

from cuolr.clicks.cascade import CascadeModel
from cuolr.clicks.click_model import CLICK_MODELS, click_model, relevance_of
from cuolr.clicks.pbm import PositionBasedModel
from cuolr.clicks.perfect import PerfectModel
from cuolr.clicks.simulate import Purpose, Simulation, simulate, simulate_to
from cuolr.clicks.simulated_context import SimulatedContext, in_context
from cuolr.errors import InputError
from cuolr.logs.log_folder import concatenate, load_click_log, read_meta, write_click_log
from cuolr.policies.plackett_luce import StochasticLogger
from cuolr.policies.policy import ScoringPolicy
from cuolr.policies.random_policy import RandomPolicy, UniformLogger
from cuolr.types import Candidates, Floats, RankingDataset
from tests.data.small_data import assert_same_log, dataset_of


class FirstFeature(ScoringPolicy):
    """Scores a document by its first feature."""

    def score(self, candidates: Candidates) -> Floats:
        return candidates.features[:, 0]

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        return {}

    def settings(self) -> dict[str, Any]:
        return {"feature": 1}

    @classmethod
    def from_parts(cls, arrays: Mapping[str, npt.NDArray[Any]], settings: Mapping[str, Any]) -> Self:
        return cls()


# Queries of 3 documents are shorter than the lists, one of 200 is longer than what NumPy adds up in one go.
DATASET = dataset_of(12, 3, 30, 200, 3)
STOCHASTIC = StochasticLogger(FirstFeature(), temperature=0.5)


@pytest.mark.parametrize("name", CLICK_MODELS.names())
@pytest.mark.parametrize(
    "policy", [FirstFeature(), STOCHASTIC, UniformLogger()], ids=["deterministic", "stochastic", "uniform"]
)
def test_the_same_seed_gives_the_same_log_whatever_the_batch_size(
    name: str, policy: FirstFeature | StochasticLogger | UniformLogger
) -> None:
    simulation = Simulation(DATASET, policy, CLICK_MODELS.get(name)(), 200, seed=7, keep_examination=True)
    expected = concatenate(simulation.blocks(), 200)
    assert expected.clicks.any()
    for size in (1, 7, 100):
        assert_same_log(concatenate(simulation.blocks(sessions_per_block=size, threads=1), 200), expected)


@pytest.mark.thorough
@pytest.mark.parametrize("policy", [FirstFeature(), STOCHASTIC], ids=["deterministic", "stochastic"])
def test_the_same_seed_gives_the_same_files_byte_for_byte(
    policy: FirstFeature | StochasticLogger, tmp_path: Path
) -> None:
    simulation = Simulation(DATASET, policy, CascadeModel(), 1_500, seed=7)
    sums = set()
    for size, threads in ((1, 2), (7, 1), (1_000, 2), (1_500, 2), (None, 2)):
        write_click_log(tmp_path / "log", simulation.blocks(size, threads), overwrite=True)
        files = sorted((tmp_path / "log").iterdir())
        sums.add(hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest())
    assert len(sums) == 1


def test_another_seed_gives_another_log() -> None:
    first, second = (simulate(DATASET, STOCHASTIC, PositionBasedModel(), 50, seed=seed) for seed in (1, 2))
    assert (first.query != second.query).any()
    assert (first.ranking != second.ranking).any()
    assert (first.clicks != second.clicks).any()


def test_a_longer_log_begins_with_the_shorter_one() -> None:
    short, long = (simulate(DATASET, STOCHASTIC, PositionBasedModel(), sessions) for sessions in (50, 80))
    assert_same_log(long.select(slice(0, 50)), short.select(slice(0, 50)))


def test_what_is_written_is_what_is_simulated_in_memory(tmp_path: Path) -> None:
    simulate_to(tmp_path / "log", Simulation(DATASET, STOCHASTIC, PositionBasedModel(), 300, k=5, seed=3))
    log = simulate(DATASET, STOCHASTIC, PositionBasedModel(), 300, k=5, seed=3)
    assert_same_log(load_click_log(tmp_path / "log"), log)


def test_every_purpose_has_random_numbers_of_its_own() -> None:
    simulation = Simulation(DATASET, FirstFeature(), PositionBasedModel(), 10)
    drawn = [simulation._uniforms(purpose, range(10), 4, np.float64) for purpose in Purpose]
    assert len(np.unique(drawn)) == len(Purpose) * 10 * 4


def test_queries_are_drawn_uniformly() -> None:
    log = simulate(DATASET, FirstFeature(), PositionBasedModel(), 50_000)
    counts = np.bincount(log.query, minlength=5)
    standard_error = (50_000 * 1 / 5 * 4 / 5) ** 0.5
    assert np.abs(counts - 50_000 / 5).max() < 4 * standard_error
    assert len(counts) == 5


def test_a_deterministic_policy_shows_each_query_its_ranking() -> None:
    log = simulate(DATASET, FirstFeature(), PositionBasedModel(), 500, k=6)
    np.testing.assert_array_equal(log.ranking, FirstFeature().rank(DATASET.candidates, 6)[log.query])
    assert log.ranking.dtype == np.int16
    assert log.logging_propensity is None


@pytest.mark.parametrize("policy", [FirstFeature(), STOCHASTIC], ids=["deterministic", "stochastic"])
def test_users_see_the_relevance_of_what_is_shown(policy: FirstFeature | StochasticLogger) -> None:
    dataset = dataset_of(12, 3, 30, max_grade=1)
    log = simulate(dataset, policy, PerfectModel(noise=0), 500)
    rows = dataset.candidates.offsets[log.query, None] + log.ranking
    np.testing.assert_array_equal(log.clicks, np.where(log.where, dataset.relevance[rows], 0))


def test_click_rates_are_those_of_the_model() -> None:
    model = CascadeModel()
    log = simulate(DATASET, FirstFeature(), model, 40_000, seed=5)
    for query in range(5):
        shown = log.ranking[log.query == query][:1]
        rows = DATASET.candidates.offsets[query] + shown
        relevance = np.where(shown >= 0, relevance_of(DATASET.relevance[rows], DATASET.max_grade), 0)
        expected = model.click_probability(relevance.astype(np.float32), shown >= 0)[0]
        clicks = log.clicks[log.query == query]
        standard_error = np.sqrt(expected * (1 - expected) / len(clicks))
        assert (np.abs(clicks.mean(axis=0) - expected) <= 4 * standard_error).all()


def test_short_queries_end_in_nothing_and_nothing_is_never_clicked() -> None:
    log = simulate(DATASET, STOCHASTIC, PerfectModel(noise=1), 300, k=5)
    short = (log.query == 1) | (log.query == 4)
    assert short.any()
    assert (log.ranking[short, 3:] == -1).all()
    assert (log.ranking[~short] >= 0).all()
    np.testing.assert_array_equal(log.clicks == 1, log.where)


def test_sessions_without_a_click_are_kept() -> None:
    log = simulate(DATASET, FirstFeature(), PositionBasedModel(), 1_000)
    assert len(log) == 1_000
    assert (log.clicks.sum(axis=1) == 0).any()


def test_a_stochastic_logger_writes_the_probability_of_each_document_given_those_above() -> None:
    log = simulate(DATASET, STOCHASTIC, PositionBasedModel(), 20, k=4)
    assert log.logging_propensity is not None
    for session in range(20):
        first, end = DATASET.candidates.offsets[log.query[session] : log.query[session] + 2]
        left = np.exp(DATASET.candidates.features[first:end, 0].astype(np.float64) / 0.5)
        for position, slot in enumerate(log.ranking[session].tolist()):
            expected = left[slot] / left.sum() if slot >= 0 else 1
            assert log.logging_propensity[session, position] == pytest.approx(expected, rel=1e-5)
            left[max(slot, 0)] = 0


def test_a_stochastic_logger_shows_documents_as_often_as_it_says() -> None:
    dataset = dataset_of(5)
    log = simulate(dataset, STOCHASTIC, PositionBasedModel(), 20_000, k=2)
    weights = np.exp(dataset.candidates.features[:, 0].astype(np.float64) / 0.5)
    expected = weights / weights.sum()
    shares = np.bincount(log.ranking[:, 0], minlength=5) / 20_000
    assert (np.abs(shares - expected) < 4 * np.sqrt(expected * (1 - expected) / 20_000)).all()


def test_a_uniform_logger_shows_every_document_equally_often_at_every_position() -> None:
    log = simulate(dataset_of(5), UniformLogger(), PositionBasedModel(), 20_000, k=3)
    for position in range(3):
        shares = np.bincount(log.ranking[:, position], minlength=5) / 20_000
        assert np.abs(shares - 1 / 5).max() < 4 * np.sqrt(1 / 5 * 4 / 5 / 20_000)
    assert log.logging_propensity is not None
    np.testing.assert_allclose(log.logging_propensity, np.tile([1 / 5, 1 / 4, 1 / 3], (20_000, 1)), rtol=1e-6)


def test_examination_is_kept_only_when_asked() -> None:
    simulation = Simulation(DATASET, FirstFeature(), CascadeModel(), 100)
    assert next(simulation.blocks()).examination is None
    log = next(replace(simulation, keep_examination=True).blocks())
    assert log.examination is not None
    assert log.examination.dtype == np.uint8
    assert ((log.clicks == 1) <= (log.examination == 1)).all()


def test_progress_adds_up_to_the_sessions(tmp_path: Path) -> None:
    done: list[int] = []
    simulate_to(tmp_path / "log", Simulation(DATASET, FirstFeature(), CascadeModel(), 30_000), progress=done.append)
    assert sum(done) == 30_000
    assert len(done) > 1


def test_the_meta_names_what_made_the_log(tmp_path: Path) -> None:
    model = PositionBasedModel(eta=2)
    simulate_to(tmp_path / "log", Simulation(DATASET, STOCHASTIC, model, 20, k=3, seed=9), source={"data": "tiny"})
    meta = read_meta(tmp_path / "log")
    assert (meta["sessions"], meta["k"], meta["aggregated"]) == (20, 3, False)
    source = meta["source"]
    assert source["data"] == "tiny"
    assert source["seed"] == 9
    assert (source["click_model"]["name"], source["click_model"]["eta"]) == ("pbm", 2)
    assert source["policy"] == {"temperature": 0.5, "class": "FirstFeature", "settings": {"feature": 1}}
    assert (source["queries"], source["documents"]) == (5, 12 + 3 + 30 + 200 + 3)


def test_a_query_of_more_documents_than_16_bits_count_is_logged() -> None:
    dataset = dataset_of(40_000)
    log = simulate(dataset, FirstFeature(), PositionBasedModel(), 5, k=1_000)
    assert log.ranking.max() > 32_767
    np.testing.assert_array_equal(log.ranking, FirstFeature().rank(dataset.candidates, 1_000)[log.query])


def test_bad_arguments_are_all_named() -> None:
    with pytest.raises(InputError) as raised:
        Simulation(DATASET, FirstFeature(), PositionBasedModel(), sessions=0, k=0, seed=-1)
    assert raised.value.problems == [
        "sessions: expected a whole number >= 1, found 0",
        "k: expected a whole number >= 1, found 0",
        "seed: expected a whole number >= 0, found -1",
    ]


def test_a_data_set_without_documents_is_refused() -> None:
    empty = Candidates(np.empty((0, 3), np.float32), np.array([0]), np.empty(0, np.str_))
    with pytest.raises(InputError, match="expected at least one document to show"):
        simulate(RankingDataset(empty, np.empty(0, np.int8), 4), FirstFeature(), PositionBasedModel(), 5)


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
