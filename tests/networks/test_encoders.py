"""States of the encoders without attention, worked by hand."""

from math import cos, sin

import pytest
import torch

from cuolr.errors import InputError
from cuolr.networks.encoder import build_encoder
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
