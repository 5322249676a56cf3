"""Forecasters whose encoder gives a state for each step, as recurrent and convolutional ones do: what they share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from torch import Tensor, nn

from tsformer.nn.direct import FlatHead
from tsformer.nn.layers import LayerSpec
from tsformer.nn.network import last_real
from tsformer.nn.options import NetworkOptions
from tsformer.nn.outputs import output_of
from tsformer.plugin import Field, Problem, Task, changed


class StateOptions(NetworkOptions):
    """Options of a forecaster with an encoder that gives a state for each step.

    The direct decoder is a linear head; the autoregressive one has Transformer layers that attend to the states.
    """

    # The last state alone has to carry the whole past (air passengers, LSTM, 200 steps: MASE 2.3 instead of 1.2).
    head: Literal["flat", "last"] = Field(
        "flat", description="what the direct decoder sees: all states, or the one after the last step"
    )
    n_heads: int = Field(
        4,
        gt=0,
        le=1024,
        search=[2, 4, 8],
        description="attention heads of the autoregressive decoder; divides d_model",
    )
    d_ff: int = Field(
        256,
        gt=0,
        le=65536,
        search=[64, 128, 256, 512],
        description="width of the feed-forward networks of the autoregressive decoder",
    )
    channel_independent: bool = Field(True, description="forecast each target by itself, with shared weights")

    def faults_for(self, task: Task) -> Iterator[str]:
        yield from super().faults_for(task)
        if task is Task.FORECAST and self.decoder == "direct":
            for option in changed(self, "decoder_layers", "n_heads", "d_ff"):
                yield f"{option} needs decoder autoregressive: decoder direct is a linear head"
        else:
            for option in changed(self, "head"):
                yield f"{option} needs decoder direct: nothing else has a linear head"
            if not self.attends(task):
                for option in changed(self, "n_heads", "d_ff"):
                    yield f"{option} needs layers of attention: to {task} there are none, but over chunks"
        if self.attends(task) and self.d_model % self.n_heads:
            yield f"n_heads {self.n_heads} does not divide d_model {self.d_model}"

    def layer_spec(self) -> LayerSpec:
        return LayerSpec(self.d_model, self.n_heads, self.d_ff, dropout=self.dropout, positions="sinusoidal")

    def build_direct(self, problem: Problem) -> nn.Module:
        """The linear head that forecasts all steps at once from the states, for the inner problem."""
        tokens = 1 if self.head == "last" else problem.lookback
        return FlatHead(output_of(problem), problem.targets, problem.horizon, tokens, self.d_model)

    def with_states(self, encoder: nn.Module) -> nn.Module:
        """An encoder as the head wants it: all its states, or the last one.

        Args:
            encoder: `encoder(x, mask) -> (states, mask)`, `[batch, lookback, channels]` and `[batch, lookback]` to
                `[batch, lookback, d_model]` and the same mask.
        """
        return LastState(encoder) if self.head == "last" else encoder


class LastState(nn.Module):
    """An encoder's state at the last real step, and nothing else: one token."""

    def __init__(self, encoder: nn.Module) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """`[batch, lookback, channels]` and `[batch, lookback]` to `[batch, 1, d_model]` and `[batch, 1]`."""
        states, mask = self.encoder(x, mask)
        return last_real(states, mask[..., None].expand_as(states))[:, None], mask.any(1, keepdim=True)
