"""Long short-term memory (Hochreiter & Schmidhuber 1997): a recurrent network reads the past.

A step without values is skipped, and the memory carried over it, so that padding changes nothing.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tsformer.nn.dropout import Dropout
from tsformer.nn.states import StateOptions
from tsformer.plugin import Field, ModelPlugin, Problem, Task


class LSTMConfig(StateOptions):
    """Options of the LSTM."""

    n_layers: int = Field(2, ge=1, le=32, search=(1, 3), description="recurrent layers")


class LSTMEncoder(nn.Module):
    """Recurrent layers over the real steps, with dropout after each."""

    def __init__(self, config: LSTMConfig, channels: int) -> None:
        super().__init__()
        widths = [channels] + [config.d_model] * (config.n_layers - 1)
        self.layers = nn.ModuleList(nn.LSTM(width, config.d_model, batch_first=True) for width in widths)
        self.dropout = Dropout(config.dropout)

    def forward(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """`[batch, lookback, channels]` and `[batch, lookback]` to `[batch, lookback, d_model]` and the same mask."""
        # Real steps are moved to the front: what comes after them cannot change their states.
        order = torch.argsort(~mask, dim=1, stable=True)[..., None]
        x = torch.where(mask[..., None], x, 0.0).take_along_dim(order, dim=1)
        for layer in self.layers:
            x = self.dropout(layer(x)[0])
        states = x.take_along_dim(order.argsort(1), dim=1)
        return torch.where(mask[..., None], states, 0.0), mask


def build(config: LSTMConfig, problem: Problem) -> nn.Module:
    """The network."""

    def encoder(inner: Problem) -> nn.Module:
        return config.with_states(LSTMEncoder(config, inner.channels))

    return config.build_network(problem, encoder, config.build_direct)


plugin = ModelPlugin(
    config=LSTMConfig,
    build=build,
    example=LSTMConfig(d_model=16, n_layers=2, n_heads=2, decoder_layers=1, d_ff=32, decoder="autoregressive"),
    tasks=set(Task),
    covariates={"future", "static"},
    steps_apart=True,
)
