"""Convolutions for what is near, attention for what is far.

A strided stem cuts the past into patches (Nie et al. 2023, PatchTST), dilated causal convolutions mix neighbouring
tokens (Bai et al. 2018, TCN), encoder layers mix all of them (Vaswani et al. 2017), and a flat head or an
autoregressive decoder predicts.
"""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor, nn

from tsformer.nn.convolution import Patches, TemporalBlock
from tsformer.nn.direct import FlatHead
from tsformer.nn.options import TransformerOptions
from tsformer.nn.outputs import output_of
from tsformer.plugin import Field, ModelPlugin, Problem, Task, changed


class TCNTransformerConfig(TransformerOptions):
    """Options of TCN+Transformer."""

    stride: int | None = Field(
        None,
        gt=0,
        le=4096,
        search=[2, 4, 8, 16],
        description="steps to a token; by default the largest power of two up to a 15th of the lookback",
    )
    tcn_layers: int = Field(
        3, ge=0, le=16, search=(1, 4), description="convolution blocks, each reaching twice as far; 0 for none"
    )
    kernel: int = Field(3, gt=0, le=1024, search=[2, 3, 5, 7], description="taps of each convolution")
    channel_independent: bool = Field(True, description="forecast each target by itself, with shared weights")

    def faults(self) -> Iterator[str]:
        yield from super().faults()
        if self.tcn_layers == 0:
            for option in changed(self, "kernel"):
                yield f"{option} needs convolutions, and tcn_layers is 0"

    def faults_for(self, task: Task) -> Iterator[str]:
        yield from super().faults_for(task)
        if task is Task.FORECAST and self.decoder == "direct":
            for option in changed(self, "decoder_layers"):
                yield f"{option} needs decoder autoregressive: decoder direct is a linear head"
            if not self.attends(task):
                for option in changed(self, "norm_first", "eps", *(["dropout"] if self.tcn_layers == 0 else [])):
                    yield f"{option} needs layers, and encoder_layers is 0 with decoder direct"
        if self.attends(task) and self.tcn_layers == 0:
            yield from self.unordered_past()

    def tokens(self, lookback: int) -> tuple[int, int]:
        """Steps to a token, and the number of tokens."""
        stride = self.stride or stride_for(lookback)
        return stride, -(-lookback // stride)


def stride_for(lookback: int) -> int:
    """The largest power of two up to lookback / 15, at least 1: 336 gives 16, 60 gives 4, 24 gives 1."""
    return 1 << max(0, (lookback // 15).bit_length() - 1)


class PatchEncoder(nn.Module):
    """Patches, convolution blocks, positions, encoder layers."""

    def __init__(self, config: TCNTransformerConfig, problem: Problem) -> None:
        super().__init__()
        stride, tokens = config.tokens(problem.lookback)
        self.stride = stride
        self.patches = Patches(problem.channels, config.d_model, stride)
        self.blocks = nn.ModuleList(
            TemporalBlock(config.d_model, config.kernel, 2**level, config.dropout) for level in range(config.tcn_layers)
        )
        self.positions = config.build_positions(tokens)
        # A final norm forgets amplitudes. Without it a linear path leads from the values along the residual stream to
        # the flat head, which is what extrapolates a trend (air passengers: MASE 0.67 instead of 0.81).
        flat = problem.task is Task.FORECAST and config.decoder == "direct"
        self.layers = config.build_encoder(final_norm=not flat)

    def forward(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """`[batch, lookback, channels]` and `[batch, lookback]` to `[batch, tokens, d_model]` and `[batch, tokens]`."""
        x, mask = self.patches(x, mask)
        for block in self.blocks:
            x = block(x, mask)
        return self.layers(self.positions(x, mask), mask), mask


def build(config: TCNTransformerConfig, problem: Problem) -> nn.Module:
    """The network."""

    def direct(inner: Problem) -> nn.Module:
        tokens = config.tokens(inner.lookback)[1]
        return FlatHead(output_of(inner), inner.targets, inner.horizon, tokens, config.d_model)

    return config.build_network(problem, lambda inner: PatchEncoder(config, inner), direct)


plugin = ModelPlugin(
    config=TCNTransformerConfig,
    build=build,
    example=TCNTransformerConfig(d_model=16, n_heads=2, stride=2, tcn_layers=2, encoder_layers=1, d_ff=32),
    tasks=set(Task),
    covariates={"future", "static"},
    steps_apart=True,
)
