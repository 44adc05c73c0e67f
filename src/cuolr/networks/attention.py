"""`attention`: causal multi-head self-attention over the placed documents."""

import math
from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from cuolr.config import Range, check_ranges
from cuolr.networks.encoder import ENCODERS, StateEncoder
from cuolr.networks.position import positional_encoding


@dataclass(frozen=True)
class AttentionConfig:
    """Settings of the attention encoder.

    Attributes:
        heads: Number of attention heads, I.
        document_size: Size to which documents are projected first; 0 = no projection, as in the paper.
        residual: Whether to add the tokens to the output of attention.
        layer_norm: Whether to apply layer normalisation to the states.
    """

    heads: Annotated[int, Range(1)] = 8
    document_size: Annotated[int, Range(0)] = 0
    residual: bool = False
    layer_norm: bool = False

    def __post_init__(self) -> None:
        check_ranges(self)


@ENCODERS.register("attention")
class AttentionEncoder(StateEncoder):
    """s_k = Concat(head_1 … head_I) W^O over the tokens up to k, section 4.

    Token t is [the document placed before position t ; PE(t + 1)], with zeros as the document of the first token. A
    causal mask over K + 1 tokens gives all K + 1 states in one pass.

    Deviation: PE has as many dimensions as a document, as in the paper, and up to `heads` − 1 more, to make the size of
    a token a multiple of the number of heads.
    """

    Config = AttentionConfig

    def __init__(self, config: AttentionConfig, n_features: int, k: int) -> None:
        super().__init__(config, n_features, k)
        document_size = config.document_size or n_features
        self.n_states = -(2 * document_size // -config.heads) * config.heads
        self._position_size = self.n_states - document_size
        self.document = nn.Linear(n_features, document_size) if config.document_size else nn.Identity()
        self.query_key_value = nn.Linear(self.n_states, 3 * self.n_states)
        self.output = nn.Linear(self.n_states, self.n_states)
        self.norm = nn.LayerNorm(self.n_states) if config.layer_norm else nn.Identity()

    def forward(self, shown: Tensor) -> Tensor:
        """[B, T, F] → [B, T + 1, S], S = twice the size of a document, rounded up to a multiple of `heads`."""
        previous = self.document(pad(shown, (0, 0, 1, 0)))
        batch, length, _ = previous.shape
        position = positional_encoding(length, self._position_size).to(previous)
        tokens = torch.cat([previous, position.expand(batch, -1, -1)], dim=2)

        by_head = self.query_key_value(tokens).view(batch, length, 3, self.config.heads, -1)
        heads = causal_attention(*by_head.unbind(dim=2))
        states: Tensor = self.output(heads.flatten(start_dim=2))
        normed: Tensor = self.norm(states + tokens if self.config.residual else states)
        return normed


def causal_attention(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """softmax(Q Kᵀ / √d) V for each head, each token attending to itself and those before it.

    Written out, because torch's fused kernel is made for long sequences and is slower on short lists.

    Args:
        query: [B, T, I, d] for each of the I heads.
        key: [B, T, I, d].
        value: [B, T, I, d].

    Returns:
        [B, T, I, d].
    """
    length, size = query.shape[1], query.shape[3]
    later = torch.ones(length, length, dtype=torch.bool, device=query.device).triu(diagonal=1)
    scores = torch.einsum("bqhd,bkhd->bhqk", query, key) / math.sqrt(size)
    weights = scores.masked_fill(later, -torch.inf).softmax(dim=3)
    return torch.einsum("bhqk,bkhd->bqhd", weights, value)
