"""The encoder-decoder Transformer (Vaswani et al. 2017, "Attention Is All You Need"), for numbers.

One token for each step, sinusoidal positions, and a decoder that predicts step by step or all at once.
"""

from __future__ import annotations

from typing import Literal, Self

from pydantic import model_validator
from torch import Tensor, nn

from tsformer.nn.convolution import Patches
from tsformer.nn.decoders import AutoregressiveDecoder, QueryDecoder
from tsformer.nn.layers import Decoder, Encoder
from tsformer.nn.network import Network, per_channel
from tsformer.nn.normalisation import RevIN
from tsformer.nn.outputs import output_of
from tsformer.nn.positions import SinusoidalPositions
from tsformer.plugin import Config, Field, ModelPlugin, Problem


class TransformerConfig(Config):
    """Options of the Transformer."""

    d_model: int = Field(64, gt=0, le=16384, description="width of a token")
    n_heads: int = Field(4, gt=0, le=1024, description="attention heads; divides d_model")
    encoder_layers: int = Field(
        2, ge=0, le=128, description="layers that look at the past; 0 leaves the bare embedding"
    )
    decoder_layers: int = Field(2, ge=1, le=128, description="layers that look at the future")
    d_ff: int = Field(256, gt=0, le=65536, description="width of the feed-forward networks")
    dropout: float = Field(0.0, ge=0, lt=1, description="share of activations dropped in training")
    norm_first: bool = Field(False, description="normalise before each sub-layer (Pre-LN) rather than after (Post-LN)")
    decoder: Literal["autoregressive", "direct"] = Field(
        "direct",
        description="predict step by step, feeding back each value, or all steps at once from learned queries",
    )
    revin: bool = Field(
        True,
        description="normalise each window by its own mean and standard deviation; expects values on a common scale "
        "(the default --scale), for a window with a variance below 1e-5 counts as constant and is only shifted",
    )
    channel_independent: bool = Field(False, description="forecast each target by itself, with shared weights")

    @model_validator(mode="after")
    def _heads_divide(self) -> Self:
        if self.d_model % self.n_heads:
            raise ValueError(f"n_heads {self.n_heads} does not divide d_model {self.d_model}")
        return self


class StepEncoder(nn.Module):
    """A token for each step: linear embedding, positions, encoder layers.

    The embedding is not scaled by sqrt(d_model): that belongs to looked-up words, and slows numbers down badly.
    """

    def __init__(self, config: TransformerConfig, channels: int) -> None:
        super().__init__()
        self.embed = Patches(channels, config.d_model, stride=1)
        self.positions = SinusoidalPositions(config.d_model)
        self.layers = Encoder(
            config.encoder_layers, config.d_model, config.n_heads, config.d_ff, config.dropout, config.norm_first
        )

    def forward(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """`[batch, lookback, channels]` and `[batch, lookback]` to `[batch, lookback, d_model]` and the same mask."""
        x, mask = self.embed(x, mask)
        return self.layers(self.positions(x, mask), mask), mask


def build(config: TransformerConfig, problem: Problem) -> Network:
    """The network; raises PluginError for covariates it does not take."""
    inner = per_channel(problem) if config.channel_independent else problem
    output = output_of(problem)
    layers = Decoder(
        config.decoder_layers, config.d_model, config.n_heads, config.d_ff, config.dropout, config.norm_first
    )
    decoder: nn.Module
    if config.decoder == "autoregressive":
        decoder = AutoregressiveDecoder(layers, output, inner.targets, problem.horizon)
    else:
        decoder = QueryDecoder(layers, output, inner.targets, problem.horizon)
    revin = RevIN(problem.channels) if config.revin else None
    return Network(problem, StepEncoder(config, inner.channels), decoder, revin, config.channel_independent)


plugin = ModelPlugin(
    config=TransformerConfig,
    build=build,
    example=TransformerConfig(
        d_model=16, n_heads=2, encoder_layers=1, decoder_layers=1, d_ff=32, decoder="autoregressive"
    ),
)
