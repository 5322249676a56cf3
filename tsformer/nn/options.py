"""The options that networks share, and what is built of them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import replace

from torch import nn

from tsformer.errors import UsageError
from tsformer.nn.chunks import Chunks
from tsformer.nn.classification import ClassificationHead
from tsformer.nn.classifier import Classifier
from tsformer.nn.covariates import KnownSteps, as_past, covariates_of
from tsformer.nn.decoders import AutoregressiveDecoder, DecoderKind, Feedback, Sampling
from tsformer.nn.feedforward import Activation
from tsformer.nn.inputs import Inputs
from tsformer.nn.layers import Decoder, Encoder, LayerSpec
from tsformer.nn.network import Network, per_channel
from tsformer.nn.normalisation import RevIN
from tsformer.nn.outputs import output_of
from tsformer.nn.pooling import PoolingKind
from tsformer.nn.positions import IN_ATTENTION, PositionKind, additive_positions
from tsformer.nn.pretraining import HiddenStepNetwork
from tsformer.nn.seq2seq import SequenceToSequence
from tsformer.nn.token_decoder import TokenDecoder
from tsformer.plugin import Config, Field, Problem, Task, changed

READ_BY = {
    "decoder": {Task.FORECAST},
    "feedback": {Task.FORECAST},
    "sampling": {Task.FORECAST, Task.SEQUENCE},
    "decoder_layers": {Task.FORECAST, Task.SEQUENCE},
    "pooling": {Task.CLASSIFY},
    "chunk": {Task.CLASSIFY},
    "chunk_stride": {Task.CLASSIFY},
    "upper_layers": {Task.CLASSIFY},
    "tie_embeddings": {Task.SEQUENCE},
    "channel_independent": {Task.FORECAST, Task.PRETRAIN},
}
"""The tasks that read an option of a network, where some do not."""


class NetworkOptions(Config):
    """Options of a network with an encoder of any kind, for every task."""

    d_model: int = Field(64, gt=0, le=16384, search=[16, 32, 64, 128], description="width of a token or state")
    dropout: float = Field(
        0.0, ge=0, lt=1, search=(0.0, 0.5), description="share of each layer's output dropped in training"
    )
    decoder: DecoderKind = Field(
        "direct", description="predict all steps at once, or step by step, feeding back each value"
    )
    decoder_layers: int = Field(2, ge=1, le=128, search=(1, 4), description="layers of the autoregressive decoder")
    sampling: Sampling = Field(
        "steps",
        description="how scheduled sampling finds what is fed: exactly, step by step, or faster, by a pass over truth",
    )
    feedback: Feedback = Field(
        "mean", description="what training feeds back: the point forecast, or a draw from the predicted distribution"
    )
    revin: bool | None = Field(
        None,
        search=True,
        description="normalise each window by its own mean and standard deviation (default: for forecasts and "
        "pretraining, not for classes, which may differ in level); expects values on a common scale (the default "
        "--scale), for a window with a variance below 1e-5 counts as constant and is only shifted",
    )
    channel_independent: bool = Field(False, description="forecast each target by itself, with shared weights")
    pooling: PoolingKind = Field(
        "mean", description="what a class is told from: the mean or maximum of all steps, their mean by learned "
        "attention, or a step of its own behind the last one (cls)"
    )  # fmt: skip
    chunk: int | None = Field(
        None, ge=1, le=1_000_000, description="steps read at a time, for classes of long texts and series; default: all"
    )
    chunk_stride: int | None = Field(
        None, ge=1, le=1_000_000, description="steps between two chunks (default: half a chunk)"
    )
    upper_layers: int = Field(1, ge=0, le=128, description="attention layers over chunks, after those within each")
    tie_embeddings: bool = Field(
        False, description="one table of words for what is read, what is written, and what is said to come next"
    )

    def faults(self) -> Iterator[str]:
        yield from super().faults()
        if self.chunk is None:
            for option in changed(self, "chunk_stride", "upper_layers"):
                yield f"{option} needs chunk: without it sequences are read whole"
        elif self.chunk_stride is not None and self.chunk_stride > self.chunk:
            yield f"chunk_stride {self.chunk_stride} is above chunk {self.chunk}, and steps between them would be lost"
        if self.chunk is not None and self.pooling == "cls":
            yield "pooling cls sums up one sequence, not its chunks: choose mean, max or attention with chunk"

    def faults_for(self, task: Task) -> Iterator[str]:
        yield from super().faults_for(task)
        for name, tasks in READ_BY.items():
            for option in changed(self, name) if task not in tasks else ():
                yield f"{option} is for {' and '.join(sorted(tasks))}, and this is to {task}"
        if task is Task.FORECAST and self.decoder == "direct":
            for option in changed(self, "sampling", "feedback"):
                yield f"{option} needs decoder autoregressive: decoder direct feeds nothing back"

    @abstractmethod
    def layer_spec(self) -> LayerSpec:
        """What Transformer layers are like."""

    def decodes(self, task: Task) -> bool:
        """Whether there are decoder layers that write step by step."""
        return task is Task.SEQUENCE or (task is Task.FORECAST and self.decoder == "autoregressive")

    def attends(self, task: Task) -> bool:
        """Whether there is a layer of attention; where there is none, n_heads divides nothing."""
        return self.decodes(task) or (self.chunk is not None and self.upper_layers > 0)

    def normalises(self, problem: Problem) -> bool:
        """Whether windows of numbers are normalised one by one."""
        if not problem.channels:
            return False
        return problem.task in (Task.FORECAST, Task.PRETRAIN) if self.revin is None else self.revin

    def build_network(
        self,
        problem: Problem,
        encoder: Callable[[Problem], nn.Module],
        direct: Callable[[Problem], nn.Module],
    ) -> nn.Module:
        """The network for a problem of any task.

        Args:
            problem: the whole problem.
            encoder: builds an encoder, `encoder(x, mask) -> (memory, memory_mask)`, for the channels and the lookback
                of the problem that it is given; with an attribute `stride` when it shortens sequences.
            direct: builds the decoder that forecasts all steps at once, for the problem that it is given.

        Raises:
            UsageError: for options that the task does not read.
        """
        faults = [*self.faults_for(problem.task), *self._unread(problem)]
        if faults:
            raise UsageError(*faults)
        builders = {
            Task.FORECAST: self._forecaster,
            Task.CLASSIFY: self._classifier,
            Task.SEQUENCE: self._sequence_to_sequence,
            Task.PRETRAIN: self._hidden_steps,
        }
        return builders[problem.task](problem, encoder, direct)

    def _unread(self, problem: Problem) -> Iterator[str]:
        """What is set though nothing in this problem reads it."""
        if self.revin and not problem.channels:
            yield "revin is for numbers, and these data have none"
        if problem.task is Task.PRETRAIN and not problem.targets:
            for option in changed(self, "channel_independent"):
                yield f"{option} is for the targets of a table, and these data have none"

    def _forecaster(
        self, problem: Problem, encoder: Callable[[Problem], nn.Module], direct: Callable[[Problem], nn.Module]
    ) -> nn.Module:
        inputs = Inputs(problem, self.d_model) if problem.text_length else None
        inner = per_channel(problem) if self.channel_independent else problem
        covariates = covariates_of(problem, inner, self.normalises(problem))
        known = 0 if covariates is None else covariates.width
        inner = as_past(inner, known + (0 if inputs is None else inputs.text_width))
        if self.decoder == "autoregressive":
            decoder: nn.Module = self.build_autoregressive(inner, known)
        else:
            decoder = KnownSteps(direct(inner), inner, covariates, self.d_model) if covariates else direct(inner)
        revin = self._revin(problem)
        return Network(problem, encoder(inner), decoder, revin, self.channel_independent, inputs, covariates)

    def _classifier(self, problem: Problem, encoder: Callable[[Problem], nn.Module], _: object) -> nn.Module:
        inputs = Inputs(problem, self.d_model, summary=self.pooling == "cls")
        head = ClassificationHead(self.d_model, problem.classes, self.pooling, self.dropout)
        chunks, lookback = None, problem.lookback + inputs.summary
        if self.chunk is not None:
            lookback = min(self.chunk, problem.lookback)
            stride = self.chunk_stride or -(-self.chunk // 2)
            chunks = Chunks(self.chunk, stride, self.d_model, Encoder(self.upper_layers, self.layer_spec()))
        inner = _of_channels(problem, inputs.width, lookback)
        return Classifier(inputs, encoder(inner), head, self._revin(problem), chunks)

    def _sequence_to_sequence(self, problem: Problem, encoder: Callable[[Problem], nn.Module], _: object) -> nn.Module:
        inputs, spec = Inputs(problem, self.d_model), self.layer_spec()
        decoder = TokenDecoder(
            self.build_decoder(),
            problem.target_vocabulary,
            problem.horizon,
            positions=additive_positions(spec.positions, spec.d_model, problem.horizon),
            tie_embeddings=self.tie_embeddings,
            sampling=self.sampling,
        )
        inner = _of_channels(problem, inputs.width, problem.lookback)
        return SequenceToSequence(inputs, encoder(inner), decoder, self.tie_embeddings)

    def _hidden_steps(self, problem: Problem, encoder: Callable[[Problem], nn.Module], _: object) -> nn.Module:
        inner = per_channel(problem) if self.channel_independent and problem.targets else problem
        inputs = Inputs(inner, self.d_model)
        revin = self._revin(inner)
        inner = replace(inner, past_covariates=inputs.width - inner.targets)
        return HiddenStepNetwork(problem, inputs, encoder(inner), self.d_model, revin, self.channel_independent)

    def build_decoder(self) -> Decoder:
        return Decoder(self.decoder_layers, self.layer_spec())

    def build_autoregressive(self, problem: Problem, known: int = 0) -> AutoregressiveDecoder:
        """The decoder that predicts step by step, for the inner problem, with features that are known of each step."""
        spec = self.layer_spec()
        return AutoregressiveDecoder(
            self.build_decoder(),
            output_of(problem),
            problem.targets,
            problem.horizon,
            positions=additive_positions(spec.positions, spec.d_model, problem.horizon),
            sampling=self.sampling,
            feedback=self.feedback,
            known=known,
        )

    def _revin(self, problem: Problem) -> RevIN | None:
        return RevIN(problem.channels) if self.normalises(problem) else None


def _of_channels(problem: Problem, channels: int, lookback: int) -> Problem:
    """What an encoder of sequences is built for: vectors of that width, and nothing to forecast."""
    return replace(problem, targets=0, past_covariates=channels, lookback=lookback)


class TransformerOptions(NetworkOptions):
    """Options of a network with an encoder and a decoder of Transformer layers.

    A model's own Config adds what is its own, and repeats a field to change its default:

        class MyConfig(TransformerOptions):
            kernel: int = Field(3, gt=0, description="taps of each convolution")
    """

    decoder_layers: int = Field(2, ge=1, le=128, search=(1, 4), description="attention layers that look at the future")
    n_heads: int = Field(4, gt=0, le=1024, search=[2, 4, 8], description="attention heads; divides d_model")
    encoder_layers: int = Field(
        2,
        ge=0,
        le=128,
        search=(1, 4),
        description="attention layers that look at the past; 0 leaves what comes before them",
    )
    d_ff: int = Field(
        256,
        gt=0,
        le=65536,
        search=[64, 128, 256, 512],
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

    def faults_for(self, task: Task) -> Iterator[str]:
        yield from super().faults_for(task)
        if not self.attends(task):
            unread = [f"positions {self.positions}"] if self.positions in IN_ATTENTION else []
            for option in [*unread, *changed(self, "n_heads", "d_ff", "activation", "attention_dropout")]:
                yield f"{option} needs layers of attention, and encoder_layers is 0 without a decoder that has any"
            return
        if self.d_model % self.n_heads:
            yield f"n_heads {self.n_heads} does not divide d_model {self.d_model}"
        elif self.positions == "rotary" and self.d_model // self.n_heads % 2:
            yield (
                f"positions rotary turn pairs of features: d_model {self.d_model} / n_heads {self.n_heads} must be even"
            )

    def attends(self, task: Task) -> bool:
        return self.encoder_layers > 0 or super().attends(task)

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
