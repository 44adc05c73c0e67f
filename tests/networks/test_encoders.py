"""States of the encoders, worked by hand, and what every registered encoder must do."""

from math import cos, exp, sin, sqrt
from typing import Any

import pytest
import torch
from torch import Tensor

from cuolr.errors import InputError
from cuolr.networks.attention import AttentionEncoder, causal_attention
from cuolr.networks.encoder import ENCODERS, StateEncoder, build_encoder
from cuolr.networks.layers import seeded
from cuolr.networks.lstm import LstmEncoder
from cuolr.networks.position import positional_encoding


def test_sine_and_cosine_alternate_over_dimensions() -> None:
    expected = [
        [sin(k / 10000 ** (0 / 4)), cos(k / 10000 ** (0 / 4)), sin(k / 10000 ** (2 / 4)), cos(k / 10000 ** (2 / 4))]
        for k in (1, 2, 3)
    ]
    torch.testing.assert_close(positional_encoding(3, 4), torch.tensor(expected))


def test_an_odd_size_ends_with_a_sine() -> None:
    expected = [sin(1), cos(1), sin(1 / 10000 ** (2 / 3))]
    torch.testing.assert_close(positional_encoding(1, 3)[0], torch.tensor(expected))


def test_positions_are_told_apart_far_down_the_list() -> None:
    encoding = positional_encoding(200, 8)
    assert torch.pdist(encoding).min() > 0.01


@pytest.mark.parametrize("t", [0, 2])
def test_the_state_is_the_encoding_of_the_position_counted_from_one(t: int) -> None:
    states = build_encoder("position", {}, n_features=2, k=3)(torch.zeros(1, 3, 2))
    assert states[0, t].tolist() == pytest.approx([sin(t + 1), cos(t + 1)])


SHOWN = torch.tensor([[[1.0, 4.0], [3.0, -2.0], [-1.0, 1.0]]])
MEANS = [
    [0.0, 0.0],
    [1.0, 4.0],
    [(1.0 + 3.0) / 2, (4.0 - 2.0) / 2],
    [(1.0 + 3.0 - 1.0) / 3, (4.0 - 2.0 + 1.0) / 3],
]


def test_previous_is_the_mean_of_the_documents_placed_so_far() -> None:
    states = build_encoder("previous", {}, n_features=2, k=3)(SHOWN)
    assert states[0].tolist() == [pytest.approx(mean) for mean in MEANS]


def test_position_and_previous_stand_side_by_side() -> None:
    states = build_encoder("position+previous", {}, n_features=2, k=3)(SHOWN)
    expected = torch.cat([positional_encoding(4, 2), torch.tensor(MEANS)], dim=1)
    torch.testing.assert_close(states[0], expected)


TWO_SHOWN = torch.tensor([[[1.0, 2.0], [3.0, 4.0]]])


def test_documents_follow_each_other_and_free_places_are_zero_when_concatenated() -> None:
    states = build_encoder("concatenated", {}, n_features=2, k=3)(TWO_SHOWN)
    assert states[0].tolist() == [[0, 0, 0, 0, 0, 0], [1, 2, 0, 0, 0, 0], [1, 2, 3, 4, 0, 0]]


def test_more_documents_than_there_are_places_are_refused_when_concatenated() -> None:
    with pytest.raises(
        InputError, match="expected at most the 1 documents of the training lists, found 2; use a smaller k"
    ):
        build_encoder("concatenated", {}, n_features=2, k=1)(TWO_SHOWN)


@torch.no_grad()
def test_states_of_an_lstm_are_those_of_a_cell_that_reads_zeros_and_then_one_document_after_the_other() -> None:
    with seeded(0):
        encoder = build_encoder("lstm", {"size": 5}, n_features=3, k=4)
        cell = torch.nn.LSTMCell(3, 5)
    assert isinstance(encoder, LstmEncoder)
    cell.load_state_dict({name.removesuffix("_l0"): values for name, values in encoder.lstm.state_dict().items()})
    placed = torch.randn(4, 3, generator=torch.Generator().manual_seed(3))
    hidden, memory = torch.zeros(1, 5), torch.zeros(1, 5)
    for document, state in zip([torch.zeros(3), *placed], encoder(placed[None])[0], strict=True):
        hidden, memory = cell(document[None], (hidden, memory))
        torch.testing.assert_close(state, hidden[0])


def test_a_memory_of_no_size_is_refused_of_an_lstm() -> None:
    with pytest.raises(InputError, match=r"setting 'learner\.encoder_settings\.size': expected a whole number >= 1"):
        build_encoder("lstm", {"size": 0}, n_features=3, k=4)


def built(n_features: int, **settings: Any) -> AttentionEncoder:
    with seeded(0):
        encoder = build_encoder("attention", settings, n_features, k=4)
    assert isinstance(encoder, AttentionEncoder)
    return encoder


def state_by_hand(encoder: AttentionEncoder, placed: Tensor) -> Tensor:
    """The last state, head by head, with torch's products of single vectors alone."""
    heads, size = encoder.config.heads, encoder.n_states // encoder.config.heads
    zero = torch.zeros(1, placed.shape[1])
    documents = torch.cat([zero, placed])
    positions = positional_encoding(len(documents), encoder.n_states - placed.shape[1])
    tokens = [torch.cat([document, position]) for document, position in zip(documents, positions, strict=True)]
    projected = [encoder.query_key_value.weight @ token + encoder.query_key_value.bias for token in tokens]
    found = []
    for head in range(heads):
        part = slice(head * size, (head + 1) * size)
        query, keys, values = (
            projected[-1][: encoder.n_states][part],
            [vector[encoder.n_states : 2 * encoder.n_states][part] for vector in projected],
            [vector[2 * encoder.n_states :][part] for vector in projected],
        )
        weights = torch.tensor([exp(float(query @ key) / sqrt(size)) for key in keys])
        found.append(weights @ torch.stack(values) / weights.sum())
    return encoder.output.weight @ torch.cat(found) + encoder.output.bias


@torch.no_grad()
@pytest.mark.parametrize("heads", [1, 2, 4])
def test_states_are_those_of_the_formula(heads: int) -> None:
    encoder = built(6, heads=heads)
    placed = torch.randn(4, 6, generator=torch.Generator().manual_seed(3))
    states = encoder(placed[None])[0]
    for t in range(5):
        torch.testing.assert_close(states[t], state_by_hand(encoder, placed[:t]), rtol=1e-4, atol=1e-5)


def test_equal_keys_give_the_mean_of_the_values_so_far() -> None:
    value = torch.tensor([1.0, 3.0, 8.0]).view(1, 3, 1, 1)
    nothing = torch.zeros_like(value)
    assert causal_attention(nothing, nothing, value).flatten().tolist() == pytest.approx([1, (1 + 3) / 2, 12 / 3])


@pytest.mark.parametrize(
    ("n_features", "n_states"), [(45, 96), (46, 96), (136, 2 * 136), (700, 2 * 700), (1, 8), (4, 2 * 4)]
)
def test_a_state_is_two_documents_wide_rounded_up_to_the_heads(n_features: int, n_states: int) -> None:
    assert built(n_features).n_states == n_states


def test_documents_can_be_projected_to_a_smaller_size() -> None:
    encoder = built(700, document_size=20)
    assert encoder.n_states == 40
    assert encoder(torch.randn(2, 3, 700)).shape == (2, 4, 40)


@torch.no_grad()
def test_a_residual_adds_the_tokens() -> None:
    placed = torch.randn(1, 2, 4)
    difference = built(4, heads=2, residual=True)(placed) - built(4, heads=2)(placed)
    tokens = torch.cat([torch.cat([torch.zeros(1, 4), placed[0]]), positional_encoding(3, 4)], dim=1)
    torch.testing.assert_close(difference[0], tokens, rtol=1e-4, atol=1e-5)


@torch.no_grad()
def test_layer_norm_gives_states_of_mean_zero_and_variance_one() -> None:
    states = built(4, layer_norm=True)(torch.randn(3, 2, 4))
    torch.testing.assert_close(states.mean(dim=2), torch.zeros(3, 3), rtol=0, atol=1e-5)
    torch.testing.assert_close(states.var(dim=2, unbiased=False), torch.ones(3, 3), rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize(("name", "value", "least"), [("heads", 0, 1), ("document_size", -1, 0)])
def test_sizes_that_make_no_sense_are_refused(name: str, value: int, least: int) -> None:
    expected = f"setting 'learner.encoder_settings.{name}': expected a whole number >= {least}, found {value}"
    with pytest.raises(InputError, match=expected):
        built(4, **{name: value})


K = 5
# Of MQ2007 and other collections (45, 46), MSLR-WEB (136) and Yahoo (700): 8 heads divide neither 45 nor 2 · 45.
every_size = pytest.mark.parametrize("n_features", [45, 46, 136, 700])
every_encoder = pytest.mark.parametrize("name", ENCODERS.names())
VARIANTS: list[tuple[str, dict[str, Any]]] = [(name, {}) for name in ENCODERS.names()] + [
    ("attention", {"residual": True, "layer_norm": True, "heads": 3, "document_size": 7})
]


def built_encoder(name: str, n_features: int = 6, k: int = K, **settings: Any) -> StateEncoder:
    with seeded(1):
        return build_encoder(name, settings, n_features, k)


def some_lists(batch: int = 3, length: int = K, n_features: int = 6) -> Tensor:
    return 2 * torch.rand(batch, length, n_features, generator=torch.Generator().manual_seed(2)) - 1


@every_encoder
@every_size
def test_one_pass_gives_a_state_before_each_document_and_after_the_last(name: str, n_features: int) -> None:
    encoder = built_encoder(name, n_features)
    states = encoder(some_lists(n_features=n_features))
    assert states.shape == (3, K + 1, encoder.n_states)
    assert states.isfinite().all()


@every_encoder
@every_size
@torch.no_grad()
def test_a_document_changes_no_state_before_or_at_its_position(name: str, n_features: int) -> None:
    encoder, shown = built_encoder(name, n_features), some_lists(n_features=n_features)
    states = encoder(shown)
    for j in range(K):
        changed = shown.clone()
        changed[:, j] += 1
        assert torch.equal(encoder(changed)[:, : j + 1], states[:, : j + 1])


@pytest.mark.parametrize(("name", "settings"), VARIANTS, ids=str)
@torch.no_grad()
def test_a_document_changes_every_state_after_it_unless_only_the_position_counts(
    name: str, settings: dict[str, Any]
) -> None:
    encoder, shown = built_encoder(name, **settings), some_lists()
    changed = shown.clone()
    changed[:, 1] += torch.arange(6)
    differs = (encoder(changed) != encoder(shown)).any(dim=2)
    assert differs.tolist() == [[False, False] + [name != "position"] * 4] * 3


@pytest.mark.parametrize(("name", "settings"), VARIANTS, ids=str)
@torch.no_grad()
def test_the_last_state_of_a_prefix_is_the_state_of_the_whole_list(name: str, settings: dict[str, Any]) -> None:
    encoder, shown = built_encoder(name, **settings), some_lists()
    states = encoder(shown)
    for t in range(K + 1):
        torch.testing.assert_close(encoder(shown[:, :t])[:, -1], states[:, t], rtol=1e-5, atol=1e-6)


@every_encoder
@torch.no_grad()
def test_lists_do_not_see_each_other(name: str) -> None:
    encoder, shown = built_encoder(name), some_lists(batch=4)
    torch.testing.assert_close(encoder(shown)[1:2], encoder(shown[1:2]), rtol=1e-5, atol=1e-6)


@every_encoder
def test_an_unknown_setting_is_refused(name: str) -> None:
    with pytest.raises(InputError, match=r"unknown setting 'learner\.encoder_settings\.colour'"):
        built_encoder(name, colour="blue")
