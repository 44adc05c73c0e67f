"""What every registered state encoder must do."""

from typing import Any

import pytest
import torch
from torch import Tensor

from cuolr.errors import InputError
from cuolr.networks.encoder import ENCODERS, StateEncoder, build_encoder
from cuolr.networks.layers import seeded

K = 5
# Of MQ2007 and other collections (45, 46), MSLR-WEB (136) and Yahoo (700): 8 heads divide neither 45 nor 2 · 45.
every_size = pytest.mark.parametrize("n_features", [45, 46, 136, 700])
every_encoder = pytest.mark.parametrize("name", ENCODERS.names())
VARIANTS: list[tuple[str, dict[str, Any]]] = [(name, {}) for name in ENCODERS.names()] + [
    ("attention", {"residual": True, "layer_norm": True, "heads": 3, "document_size": 7})
]


def built(name: str, n_features: int = 6, k: int = K, **settings: Any) -> StateEncoder:
    with seeded(1):
        return build_encoder(name, settings, n_features, k)


def some_lists(batch: int = 3, length: int = K, n_features: int = 6) -> Tensor:
    return 2 * torch.rand(batch, length, n_features, generator=torch.Generator().manual_seed(2)) - 1


@every_encoder
@every_size
def test_one_pass_gives_a_state_before_each_document_and_after_the_last(name: str, n_features: int) -> None:
    encoder = built(name, n_features)
    states = encoder(some_lists(n_features=n_features))
    assert states.shape == (3, K + 1, encoder.n_states)
    assert states.isfinite().all()


@every_encoder
@every_size
@torch.no_grad()
def test_a_document_changes_no_state_before_or_at_its_position(name: str, n_features: int) -> None:
    encoder, shown = built(name, n_features), some_lists(n_features=n_features)
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
    encoder, shown = built(name, **settings), some_lists()
    changed = shown.clone()
    changed[:, 1] += torch.arange(6)
    differs = (encoder(changed) != encoder(shown)).any(dim=2)
    assert differs.tolist() == [[False, False] + [name != "position"] * 4] * 3


@pytest.mark.parametrize(("name", "settings"), VARIANTS, ids=str)
@torch.no_grad()
def test_the_last_state_of_a_prefix_is_the_state_of_the_whole_list(name: str, settings: dict[str, Any]) -> None:
    encoder, shown = built(name, **settings), some_lists()
    states = encoder(shown)
    for t in range(K + 1):
        torch.testing.assert_close(encoder(shown[:, :t])[:, -1], states[:, t], rtol=1e-5, atol=1e-6)


@every_encoder
@torch.no_grad()
def test_lists_do_not_see_each_other(name: str) -> None:
    encoder, shown = built(name), some_lists(batch=4)
    torch.testing.assert_close(encoder(shown)[1:2], encoder(shown[1:2]), rtol=1e-5, atol=1e-6)


@every_encoder
def test_an_unknown_setting_is_refused(name: str) -> None:
    with pytest.raises(InputError, match=r"unknown setting 'learner\.encoder_settings\.colour'"):
        built(name, colour="blue")
