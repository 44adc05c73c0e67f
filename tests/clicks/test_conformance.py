"""What every registered click model must do; a new one is picked up by its name."""

import math
import re
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tomli_w
from hypothesis import given
from hypothesis import strategies as st

from cuolr.clicks import click_model as base
from cuolr.clicks.click_model import CLICK_MODELS, ClickModel, click_model_from, click_model_table, read_click_model
from cuolr.errors import InputError
from cuolr.types import Bools, Floats
from tests.clicks.one_session import one_session

every_model = pytest.mark.parametrize("name", CLICK_MODELS.names())


def default(name: str) -> ClickModel:
    return CLICK_MODELS.get(name)()


def unusual(name: str) -> ClickModel:
    """The model with no parameter at its default."""

    def other(field: str, value: Any) -> Any:
        if isinstance(value, bool):
            return not value
        if isinstance(value, tuple):
            return tuple(other(field, entry) for entry in value)
        if isinstance(value, str):
            return {"pbm": "perfect"}.get(value, value)
        return 1.5 if field == "eta" else (value + 0.3) / 2

    model: Any = default(name)
    return replace(model, **{field.name: other(field.name, getattr(model, field.name)) for field in fields(model)})  # type: ignore[no-any-return]


def random_lists(lengths: list[int], k: int, seed: int) -> tuple[Floats, Bools]:
    """Relevance [B, k] and where, of lists of these lengths; grades, zeros and ones among them."""
    rng = np.random.default_rng(seed)
    relevance = rng.random((len(lengths), k), dtype=np.float32).round(1)
    return relevance, np.arange(k) < np.array(lengths)[:, None]


@every_model
@pytest.mark.parametrize("variant", [default, pytest.param(unusual, marks=pytest.mark.thorough)])
def test_a_million_sessions_agree_with_the_exact_marginals_at_every_position(name: str, variant: Any) -> None:
    model = variant(name)
    lists, where = random_lists([15, 12, 7, 2], k=15, seed=5)
    rounds, sessions_per_round = 10, 25_000
    relevance, shown = np.repeat(lists, sessions_per_round, axis=0), np.repeat(where, sessions_per_round, axis=0)
    rng = np.random.default_rng(6)
    clicks = np.zeros(lists.shape)
    for _ in range(rounds):
        clicked, _ = model.sample(relevance, shown, rng)
        clicks += clicked.reshape(len(lists), sessions_per_round, -1).sum(axis=1)
    sessions = rounds * sessions_per_round
    expected = model.click_probability(lists, where)
    standard_error = np.sqrt(expected * (1 - expected) / sessions)
    assert np.all(np.abs(clicks / sessions - expected) <= 4 * standard_error)


@every_model
@pytest.mark.parametrize("variant", [default, unusual])
def test_the_same_randomness_gives_the_same_session_as_a_plain_loop(name: str, variant: Any) -> None:
    model = variant(name)
    lengths = [length % 15 + 1 for length in range(600)]
    relevance, where = random_lists(lengths, k=15, seed=7)
    uniforms = np.random.default_rng(8).random((*relevance.shape, 2), dtype=np.float32)
    clicks, examination = model.respond(relevance, where, uniforms)
    for row, length in enumerate(lengths):
        expected = one_session(name, model, relevance[row, :length].tolist(), uniforms[row, :length].tolist())
        assert (clicks[row, :length].tolist(), examination[row, :length].tolist()) == expected


@every_model
def test_padding_is_neither_clicked_nor_examined_and_a_click_implies_examination(name: str) -> None:
    where = np.arange(10) < np.arange(20_000)[:, None] % 11
    tempting_padding = np.where(where, 0, 1).astype(np.float32)
    model = CLICK_MODELS.get(name)(noise=0.1)
    clicks, examination = model.sample(tempting_padding, where, np.random.default_rng(10))
    assert not clicks[~where].any()
    assert not examination[~where].any()
    assert examination[clicks].all()
    assert clicks.any(axis=0).all(), "a position that is never clicked shows nothing"
    assert not model.click_probability(tempting_padding, where)[~where].any()


@every_model
def test_sessions_do_not_depend_on_how_they_are_cut(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = default(name)
    relevance, where = random_lists([length % 10 + 1 for length in range(base.SESSIONS_PER_BLOCK + 99)], k=10, seed=11)
    uniforms = np.random.default_rng(12).random((*relevance.shape, 2), dtype=np.float32)
    clicks, examination = model.respond(relevance, where, uniforms)
    for cut in (slice(0, 1), slice(1, 500), slice(500, None)):
        part_clicks, part_examination = model.respond(relevance[cut], where[cut], uniforms[cut])
        assert np.array_equal(part_clicks, clicks[cut])
        assert np.array_equal(part_examination, examination[cut])
    monkeypatch.setattr(base, "SESSIONS_PER_BLOCK", 1000)
    assert np.array_equal(model.respond(relevance, where, uniforms), (clicks, examination))


@every_model
def test_the_same_seed_gives_the_same_sessions(name: str) -> None:
    relevance, where = random_lists([10] * 100, k=10, seed=13)
    first = default(name).sample(relevance, where, np.random.default_rng(14))
    assert np.array_equal(first, default(name).sample(relevance, where, np.random.default_rng(14)))
    assert not np.array_equal(first, default(name).sample(relevance, where, np.random.default_rng(15)))


@every_model
@given(
    relevance=st.lists(st.floats(0, 1, width=32), min_size=1, max_size=15),
    noise=st.floats(0, 1),
    above=st.integers(0, 15),
)
def test_marginals_are_probabilities_that_depend_on_the_documents_above_alone(
    name: str, relevance: list[float], noise: float, above: int
) -> None:
    model = CLICK_MODELS.get(name)(noise=noise)
    lists = np.array([relevance], np.float32)
    clicks = model.click_probability(lists, np.ones(lists.shape, np.bool_))
    assert np.all(clicks >= 0)
    assert np.all(clicks <= 1 + 1e-12)
    shown = np.arange(len(relevance))[None] < above
    assert np.array_equal(model.click_probability(lists, shown), np.where(shown, clicks, 0))
    top = lists[:, :above]
    assert model.click_probability(top, np.ones(top.shape, np.bool_)) == pytest.approx(clicks[:, :above], rel=1e-12)


@every_model
def test_no_sessions_are_answered_with_none(name: str) -> None:
    nothing = np.zeros((0, 10), np.float32)
    clicks, examination = default(name).sample(nothing, nothing > 0, np.random.default_rng(1))
    assert clicks.shape == examination.shape == (0, 10)


@every_model
@pytest.mark.parametrize("variant", [default, unusual])
def test_a_round_trip_through_toml_gives_the_same_class_and_values(name: str, variant: Any, tmp_path: Path) -> None:
    model = variant(name)
    table = click_model_table(model)
    assert table["name"] == name
    assert click_model_from(table) == model
    path = tmp_path / "model.toml"
    path.write_text(tomli_w.dumps(table))
    loaded = read_click_model(path)
    assert type(loaded) is type(model)
    assert loaded == model


@every_model
@pytest.mark.parametrize("value", [-0.01, 1.01, math.nan, math.inf])
def test_a_parameter_that_is_no_probability_is_refused_by_name(name: str, value: float) -> None:
    model: Any = default(name)
    for field in fields(model):
        given_value = getattr(model, field.name)
        if isinstance(given_value, bool) or field.name in ("eta", "models"):
            continue
        place = field.name
        if isinstance(given_value, tuple):
            row = given_value[2]
            place = f"{field.name}[2][0]" if isinstance(row, tuple) else f"{field.name}[2]"
            third = (value, *row[1:]) if isinstance(row, tuple) else value
            replaced: Any = (*given_value[:2], third, *given_value[3:])
        else:
            replaced = value
        with pytest.raises(InputError, match=re.escape(f"setting '{place}': expected 0 to 1, found {value}")):
            replace(model, **{field.name: replaced})


@every_model
def test_empty_parameters_are_refused_by_name(name: str) -> None:
    model: Any = default(name)
    for field in fields(model):
        if isinstance(getattr(model, field.name), tuple):
            with pytest.raises(InputError, match=f"setting '{field.name}': expected at least one entry, found none"):
                replace(model, **{field.name: ()})


@every_model
@pytest.mark.parametrize("eta", [-1.0, math.inf, math.nan])
def test_a_severity_that_is_no_power_is_refused_by_name(name: str, eta: float) -> None:
    model: Any = default(name)
    if hasattr(model, "eta"):
        with pytest.raises(InputError, match=f"setting 'eta': expected a finite number >= 0, found {eta}"):
            replace(model, eta=eta)
