"""Convolutions for what is near, attention for what is far.

A strided stem cuts the past into patches (Nie et al. 2023, PatchTST), dilated causal convolutions mix neighbouring
tokens (Bai et al. 2018, TCN), encoder layers mix all of them (Vaswani et al. 2017), and a flat head or an
autoregressive decoder predicts.
"""

from __future__ import annotations

from typing import Literal, Self

from pydantic import model_validator
from torch import Tensor, nn

from tsformer.nn.convolution import Patches, TemporalBlock
from tsformer.nn.decoders import AutoregressiveDecoder, FlatHead
from tsformer.nn.layers import Decoder, Encoder
from tsformer.nn.network import Network, per_channel
from tsformer.nn.normalisation import RevIN
from tsformer.nn.outputs import output_of
from tsformer.nn.positions import SinusoidalPositions
from tsformer.plugin import Config, Field, ModelPlugin, Problem


class TCNTransformerConfig(Config):
    """Options of TCN+Transformer."""

    d_model: int = Field(64, gt=0, le=16384, description="width of a token")
    n_heads: int = Field(4, gt=0, le=1024, description="attention heads; divides d_model")
    stride: int | None = Field(
        None,
        gt=0,
        le=4096,
        description="steps to a token; by default the largest power of two up to a 15th of the lookback",
    )
    tcn_layers: int = Field(3, ge=0, le=16, description="convolution blocks, each reaching twice as far; 0 for none")
    kernel: int = Field(3, gt=0, le=1024, description="taps of each convolution")
    encoder_layers: int = Field(2, ge=0, le=128, description="attention layers that look at the past; 0 for none")
    decoder_layers: int = Field(2, ge=1, le=128, description="layers of the autoregressive decoder")
    d_ff: int = Field(256, gt=0, le=65536, description="width of the feed-forward networks")
    dropout: float = Field(0.0, ge=0, lt=1, description="share of activations dropped in training")
    norm_first: bool = Field(True, description="normalise before each sub-layer (Pre-LN) rather than after (Post-LN)")
    decoder: Literal["direct", "autoregressive"] = Field(
        "direct", description="predict all steps at once by a linear head, or step by step, feeding back each value"
    )
    revin: bool = Field(
        True,
        description="normalise each window by its own mean and standard deviation; expects values on a common scale "
        "(the default --scale), for a window with a variance below 1e-5 counts as constant and is only shifted",
    )
    channel_independent: bool = Field(True, description="forecast each target by itself, with shared weights")

    @model_validator(mode="after")
    def _heads_divide(self) -> Self:
        if self.d_model % self.n_heads:
            raise ValueError(f"n_heads {self.n_heads} does not divide d_model {self.d_model}")
        return self


def stride_for(lookback: int) -> int:
    """The largest power of two up to lookback / 15, at least 1: 336 gives 16, 60 gives 4, 24 gives 1."""
    return 1 << max(0, (lookback // 15).bit_length() - 1)


class PatchEncoder(nn.Module):
    """Patches, convolution blocks, positions, encoder layers."""

    def __init__(self, config: TCNTransformerConfig, channels: int, stride: int) -> None:
        super().__init__()
        self.patches = Patches(channels, config.d_model, stride)
        self.blocks = nn.ModuleList(
            TemporalBlock(config.d_model, config.kernel, 2**level, config.dropout) for level in range(config.tcn_layers)
        )
        self.positions = SinusoidalPositions(config.d_model)
        # A final norm forgets amplitudes. Without it a linear path leads from the values along the residual stream to
        # the flat head, which is what extrapolates a trend (air passengers: MASE 0.67 instead of 0.81).
        self.layers = Encoder(
            config.encoder_layers,
            config.d_model,
            config.n_heads,
            config.d_ff,
            config.dropout,
            config.norm_first,
            final_norm=config.decoder == "autoregressive",
        )

    def forward(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """`[batch, lookback, channels]` and `[batch, lookback]` to `[batch, tokens, d_model]` and `[batch, tokens]`."""
        x, mask = self.patches(x, mask)
        for block in self.blocks:
            x = block(x, mask)
        return self.layers(self.positions(x, mask), mask), mask


def build(config: TCNTransformerConfig, problem: Problem) -> Network:
    """The network; raises PluginError for covariates it does not take."""
    inner = per_channel(problem) if config.channel_independent else problem
    output = output_of(problem)
    stride = config.stride or stride_for(problem.lookback)
    decoder: nn.Module
    if config.decoder == "direct":
        tokens = -(-problem.lookback // stride)
        decoder = FlatHead(output, inner.targets, problem.horizon, tokens, config.d_model)
    else:
        layers = Decoder(
            config.decoder_layers, config.d_model, config.n_heads, config.d_ff, config.dropout, config.norm_first
        )
        decoder = AutoregressiveDecoder(layers, output, inner.targets, problem.horizon)
    revin = RevIN(problem.channels) if config.revin else None
    return Network(problem, PatchEncoder(config, inner.channels, stride), decoder, revin, config.channel_independent)


plugin = ModelPlugin(
    config=TCNTransformerConfig,
    build=build,
    example=TCNTransformerConfig(
        d_model=16, n_heads=2, stride=2, tcn_layers=2, encoder_layers=1, decoder_layers=1, d_ff=32
    ),
)
