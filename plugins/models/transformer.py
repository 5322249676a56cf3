"""The encoder-decoder Transformer (Vaswani et al. 2017, "Attention Is All You Need"), for numbers.

One token for each step, and a decoder that predicts step by step or all at once.
"""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor, nn

from tsformer.nn.convolution import Patches
from tsformer.nn.direct import QueryDecoder
from tsformer.nn.options import TransformerOptions
from tsformer.nn.outputs import output_of
from tsformer.plugin import Field, ModelPlugin, Problem, Task


class TransformerConfig(TransformerOptions):
    """Options of the Transformer."""

    norm_first: bool = Field(False, description="normalise before each sub-layer (Pre-LN) rather than after (Post-LN)")

    def faults(self) -> Iterator[str]:
        yield from super().faults()
        yield from self.unordered_past()

    def attends(self, task: Task) -> bool:
        return task is Task.FORECAST or super().attends(task)


class StepEncoder(nn.Module):
    """A token for each step: linear embedding, positions, encoder layers.

    The embedding is not scaled by sqrt(d_model): that belongs to looked-up words, and slows numbers down badly.
    """

    def __init__(self, config: TransformerConfig, problem: Problem) -> None:
        super().__init__()
        self.embed = Patches(problem.channels, config.d_model, stride=1)
        self.positions = config.build_positions(problem.lookback)
        self.layers = config.build_encoder()

    def forward(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """`[batch, lookback, channels]` and `[batch, lookback]` to `[batch, lookback, d_model]` and the same mask."""
        x, mask = self.embed(x, mask)
        return self.layers(self.positions(x, mask), mask), mask


def build(config: TransformerConfig, problem: Problem) -> nn.Module:
    """The network."""

    def direct(inner: Problem) -> nn.Module:
        return QueryDecoder(config.build_decoder(), output_of(inner), inner.targets, inner.horizon)

    return config.build_network(problem, lambda inner: StepEncoder(config, inner), direct)


plugin = ModelPlugin(
    config=TransformerConfig,
    build=build,
    example=TransformerConfig(
        d_model=16, n_heads=2, encoder_layers=1, decoder_layers=1, d_ff=32, decoder="autoregressive"
    ),
    tasks=set(Task),
    covariates={"future", "static"},
    steps_apart=True,
)
