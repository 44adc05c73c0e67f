from math import cos, sin

import pytest
import torch

from cuolr.networks.encoder import build_encoder
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
