import pytest
import torch

from cuolr.errors import InputError
from cuolr.networks.encoder import build_encoder

SHOWN = torch.tensor([[[1.0, 2.0], [3.0, 4.0]]])


def test_documents_follow_each_other_and_free_places_are_zero() -> None:
    states = build_encoder("concatenated", {}, n_features=2, k=3)(SHOWN)
    assert states[0].tolist() == [[0, 0, 0, 0, 0, 0], [1, 2, 0, 0, 0, 0], [1, 2, 3, 4, 0, 0]]


def test_more_documents_than_there_are_places_are_refused() -> None:
    with pytest.raises(
        InputError, match="expected at most the 1 documents of the training lists, found 2; use a smaller k"
    ):
        build_encoder("concatenated", {}, n_features=2, k=1)(SHOWN)
