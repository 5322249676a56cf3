"""Forecasters whose encoder gives a state for each step, as recurrent and convolutional ones do: what they share."""

from __future__ import annotations

from typing import Any, Literal

from torch import Tensor, nn

from tsformer.nn.decoders import FlatHead
from tsformer.nn.network import Network, last_real, per_channel
from tsformer.nn.normalisation import RevIN
from tsformer.nn.options import TransformerOptions
from tsformer.nn.outputs import output_of
from tsformer.plugin import Config, Field, Problem


class StateOptions(Config):
    """Options of a forecaster with an encoder that gives a state for each step."""

    d_model: int = Field(64, gt=0, le=16384, description="width of a state")
    dropout: float = Field(0.0, ge=0, lt=1, description="share of activations dropped in training")
    decoder: Literal["direct", "autoregressive"] = Field(
        "direct",
        description="predict all steps at once by a linear head, or step by step by Transformer layers that attend to "
        "the states, feeding back each value",
    )
    # The last state alone has to carry the whole past (air passengers, LSTM, 200 steps: MASE 2.3 instead of 1.2).
    head: Literal["flat", "last"] = Field(
        "flat", description="what the direct decoder sees: all states, or the one after the last step"
    )
    decoder_layers: int = Field(2, ge=1, le=128, description="layers of the autoregressive decoder")
    n_heads: int = Field(4, gt=0, le=1024, description="attention heads of the autoregressive decoder; divides d_model")
    d_ff: int = Field(
        256, gt=0, le=65536, description="width of the feed-forward networks of the autoregressive decoder"
    )
    sampling: Literal["steps", "two_pass"] = Field(
        "steps",
        description="how scheduled sampling finds what is fed: exactly, step by step, or faster, by a pass over truth",
    )
    feedback: Literal["mean", "sample"] = Field(
        "mean", description="what training feeds back: the point forecast, or a draw from the predicted distribution"
    )
    revin: bool = Field(
        True,
        description="normalise each window by its own mean and standard deviation; expects values on a common scale "
        "(the default --scale), for a window with a variance below 1e-5 counts as constant and is only shifted",
    )
    channel_independent: bool = Field(True, description="forecast each target by itself, with shared weights")

    def model_post_init(self, context: Any, /) -> None:
        """Faults that lie between options; pydantic reports them as it does those of one option."""
        if self.decoder == "autoregressive" and self.d_model % self.n_heads:
            raise ValueError(f"n_heads {self.n_heads} does not divide d_model {self.d_model}")
        if self.feedback == "sample" and self.decoder == "direct":
            raise ValueError("feedback sample needs decoder autoregressive: decoder direct feeds nothing back")

    def inner(self, problem: Problem) -> Problem:
        """The problem that the encoder is built for: one target under channel independence."""
        return per_channel(problem) if self.channel_independent else problem

    def build_network(self, problem: Problem, encoder: nn.Module) -> Network:
        """Put an encoder, built for the inner problem, together with the decoder for the whole one.

        Args:
            problem: the whole problem.
            encoder: `encoder(x, mask) -> (states, mask)`, `[batch, lookback, channels]` and `[batch, lookback]` to
                `[batch, lookback, d_model]` and the same mask.

        Raises:
            PluginError: for covariates that it does not take.
        """
        inner = self.inner(problem)
        decoder: nn.Module
        if self.decoder == "autoregressive":
            layers = TransformerOptions(
                d_model=self.d_model,
                n_heads=self.n_heads,
                d_ff=self.d_ff,
                dropout=self.dropout,
                decoder_layers=self.decoder_layers,
                decoder=self.decoder,
                sampling=self.sampling,
                feedback=self.feedback,
            )
            decoder = layers.build_autoregressive(inner)
        else:
            tokens = 1 if self.head == "last" else problem.lookback
            decoder = FlatHead(output_of(inner), inner.targets, inner.horizon, tokens, self.d_model)
            encoder = LastState(encoder) if self.head == "last" else encoder
        revin = RevIN(problem.channels) if self.revin else None
        return Network(problem, encoder, decoder, revin, self.channel_independent)


class LastState(nn.Module):
    """An encoder's state at the last real step, and nothing else: one token."""

    def __init__(self, encoder: nn.Module) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """`[batch, lookback, channels]` and `[batch, lookback]` to `[batch, 1, d_model]` and `[batch, 1]`."""
        states, mask = self.encoder(x, mask)
        return last_real(states, mask[..., None].expand_as(states))[:, None], mask.any(1, keepdim=True)
