"""The temporal convolutional network (Bai, Kolter & Koltun 2018): dilated causal convolutions read the past.

Block i has two convolutions whose taps lie 2^i steps apart, so that n blocks of kernel k see
1 + 2 (k - 1) (2^n - 1) steps: the receptive field. The paper predicts from the last state alone (`head` last).
"""

from __future__ import annotations

from torch import Tensor, nn

from tsformer.nn.convolution import Patches, TemporalBlock
from tsformer.nn.states import StateOptions
from tsformer.plugin import Field, ModelPlugin, Problem, Task


class TCNConfig(StateOptions):
    """Options of the TCN."""

    d_model: int = Field(32, gt=0, le=16384, search=[16, 32, 64, 128], description="width of a state")
    kernel: int = Field(3, ge=2, le=1024, search=[2, 3, 5, 7], description="taps of each convolution")
    n_layers: int | None = Field(
        None,
        ge=1,
        le=16,
        search=(2, 7),
        description="blocks, each reaching twice as far (default: the fewest that see the whole lookback)",
    )


def receptive_field(n_layers: int, kernel: int) -> int:
    """Steps that the last state sees."""
    return 1 + 2 * (kernel - 1) * (2**n_layers - 1)


def layers_for(lookback: int, kernel: int) -> int:
    """The fewest blocks whose receptive field covers the lookback: 24 and 3 give 3, 336 and 3 give 7."""
    n_layers = 1
    while receptive_field(n_layers, kernel) < lookback:
        n_layers += 1
    return n_layers


class TCNEncoder(nn.Module):
    """A linear embedding of each step, then the blocks."""

    def __init__(self, config: TCNConfig, problem: Problem) -> None:
        super().__init__()
        n_layers = config.n_layers or layers_for(problem.lookback, config.kernel)
        self.embed = Patches(problem.channels, config.d_model, stride=1)
        self.blocks = nn.ModuleList(
            TemporalBlock(config.d_model, config.kernel, 2**level, config.dropout) for level in range(n_layers)
        )

    def forward(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """`[batch, lookback, channels]` and `[batch, lookback]` to `[batch, lookback, d_model]` and the same mask."""
        x, mask = self.embed(x, mask)
        for block in self.blocks:
            x = block(x, mask)
        return x, mask


def build(config: TCNConfig, problem: Problem) -> nn.Module:
    """The network."""

    def encoder(inner: Problem) -> nn.Module:
        return config.with_states(TCNEncoder(config, inner))

    return config.build_network(problem, encoder, config.build_direct)


plugin = ModelPlugin(
    config=TCNConfig,
    build=build,
    example=TCNConfig(d_model=16, n_layers=2),
    tasks=set(Task),
    covariates={"future", "static"},
    steps_apart=True,
)
