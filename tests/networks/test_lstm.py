import pytest
import torch

from cuolr.errors import InputError
from cuolr.networks.encoder import build_encoder
from cuolr.networks.layers import seeded
from cuolr.networks.lstm import LstmEncoder


@torch.no_grad()
def test_states_are_those_of_a_cell_that_reads_zeros_and_then_one_document_after_the_other() -> None:
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


def test_a_memory_of_no_size_is_refused() -> None:
    with pytest.raises(InputError, match=r"setting 'learner\.encoder_settings\.size': expected a whole number >= 1"):
        build_encoder("lstm", {"size": 0}, n_features=3, k=4)
