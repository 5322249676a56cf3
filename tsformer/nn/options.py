"""The options that forecasters share, and what is built of them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator

from torch import nn

from tsformer.nn.decoders import AutoregressiveDecoder, DecoderKind, Feedback, Sampling
from tsformer.nn.feedforward import Activation
from tsformer.nn.layers import Decoder, Encoder, LayerSpec
from tsformer.nn.network import Network, per_channel
from tsformer.nn.normalisation import RevIN
from tsformer.nn.outputs import output_of
from tsformer.nn.positions import IN_ATTENTION, PositionKind, additive_positions
from tsformer.plugin import Config, Field, Problem, changed


class ForecasterOptions(Config):
    """Options of a forecaster with an encoder of any kind and a decoder."""

    d_model: int = Field(64, gt=0, le=16384, description="width of a token or state")
    dropout: float = Field(0.0, ge=0, lt=1, description="share of each layer's output dropped in training")
    decoder: DecoderKind = Field(
        "direct", description="predict all steps at once, or step by step, feeding back each value"
    )
    decoder_layers: int = Field(2, ge=1, le=128, description="layers of the autoregressive decoder")
    sampling: Sampling = Field(
        "steps",
        description="how scheduled sampling finds what is fed: exactly, step by step, or faster, by a pass over truth",
    )
    feedback: Feedback = Field(
        "mean", description="what training feeds back: the point forecast, or a draw from the predicted distribution"
    )
    revin: bool = Field(
        True,
        description="normalise each window by its own mean and standard deviation; expects values on a common scale "
        "(the default --scale), for a window with a variance below 1e-5 counts as constant and is only shifted",
    )
    channel_independent: bool = Field(False, description="forecast each target by itself, with shared weights")

    def faults(self) -> Iterator[str]:
        yield from super().faults()
        if self.decoder == "direct":
            for option in changed(self, "sampling", "feedback"):
                yield f"{option} needs decoder autoregressive: decoder direct feeds nothing back"

    @abstractmethod
    def layer_spec(self) -> LayerSpec:
        """What Transformer layers are like."""

    def inner(self, problem: Problem) -> Problem:
        """The problem that encoder and decoder are built for: one target under channel independence."""
        return per_channel(problem) if self.channel_independent else problem

    def build_decoder(self) -> Decoder:
        return Decoder(self.decoder_layers, self.layer_spec())

    def build_autoregressive(self, problem: Problem) -> AutoregressiveDecoder:
        """The decoder that predicts step by step, for the inner problem."""
        spec = self.layer_spec()
        return AutoregressiveDecoder(
            self.build_decoder(),
            output_of(problem),
            problem.targets,
            problem.horizon,
            positions=additive_positions(spec.positions, spec.d_model, problem.horizon),
            sampling=self.sampling,
            feedback=self.feedback,
        )

    def build_network(self, problem: Problem, encoder: nn.Module, decoder: nn.Module) -> Network:
        """Encoder and decoder, built for the inner problem, put together for the whole one.

        Raises:
            PluginError: for covariates that it does not take.
        """
        revin = RevIN(problem.channels) if self.revin else None
        return Network(problem, encoder, decoder, revin, self.channel_independent)


class TransformerOptions(ForecasterOptions):
    """Options of a forecaster with an encoder and a decoder of Transformer layers.

    A model's own Config adds what is its own, and repeats a field to change its default:

        class MyConfig(TransformerOptions):
            kernel: int = Field(3, gt=0, description="taps of each convolution")
    """

    decoder_layers: int = Field(2, ge=1, le=128, description="attention layers that look at the future")
    n_heads: int = Field(4, gt=0, le=1024, description="attention heads; divides d_model")
    encoder_layers: int = Field(
        2, ge=0, le=128, description="attention layers that look at the past; 0 leaves what comes before them"
    )
    d_ff: int = Field(
        256,
        gt=0,
        le=65536,
        description="width of the feed-forward networks; swiglu has three matrices of that width instead of two",
    )
    activation: Activation = Field("relu", description="of the feed-forward networks")
    attention_dropout: float = Field(0.0, ge=0, lt=1, description="share of attention weights dropped in training")
    norm_first: bool = Field(True, description="normalise before each sub-layer (Pre-LN) rather than after (Post-LN)")
    eps: float = Field(1e-5, gt=0, le=1, description="added to the variance in layer norms")
    positions: PositionKind = Field(
        "sinusoidal",
        description="how tokens know their order: sines or a learned table added to them (the table ends with the "
        "trained horizon), or distances in self-attention, as a bias of each head (relative) or a rotation (rotary); "
        "none leaves order to convolutions",
    )

    def faults(self) -> Iterator[str]:
        yield from super().faults()
        if not self.attends():
            return
        if self.d_model % self.n_heads:
            yield f"n_heads {self.n_heads} does not divide d_model {self.d_model}"
        elif self.positions == "rotary" and self.d_model // self.n_heads % 2:
            yield (
                f"positions rotary turn pairs of features: d_model {self.d_model} / n_heads {self.n_heads} must be even"
            )

    def attends(self) -> bool:
        """Whether there is a layer of attention; where there is none, n_heads divides nothing."""
        return True

    def unordered_past(self) -> Iterator[str]:
        """A fault where nothing but self-attention tells the order of the past, and no encoder layer has any."""
        if self.encoder_layers == 0 and self.positions in IN_ATTENTION:
            yield f"positions {self.positions} needs encoder layers, and encoder_layers is 0: the past has no order"

    def layer_spec(self) -> LayerSpec:
        return LayerSpec(
            d_model=self.d_model,
            n_heads=self.n_heads,
            d_ff=self.d_ff,
            dropout=self.dropout,
            attention_dropout=self.attention_dropout,
            norm_first=self.norm_first,
            eps=self.eps,
            activation=self.activation,
            positions=self.positions,
        )

    def build_positions(self, length: int) -> nn.Module:
        """What is added to `length` tokens before the first layer; nothing when positions act in attention."""
        return additive_positions(self.positions, self.d_model, length)

    def build_encoder(self, final_norm: bool = True) -> Encoder:
        return Encoder(self.encoder_layers, self.layer_spec(), final_norm)
