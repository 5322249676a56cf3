"""What a run is configured by: the plugins with their options, the window, the training."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import pydantic

from tsformer import registry
from tsformer.errors import at_fault
from tsformer.plugin import Config, Field, Problem, Task
from tsformer.registry import Kind

if TYPE_CHECKING:
    from tsformer.members import Member

DEFAULT_STEPS = 500
DEFAULT_QUANTILES = (0.025, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.975)
"""Those of the bands of 50, 80, 90 and 95 %."""
DEFAULT_ANSWER_STEPS = 1000  # of what writes an answer token by token
MOST_STEPS = 1_000_000  # of a window
DEVICES = r"auto|cpu|cuda(:\d{1,3})?|mps"


class WindowConfig(Config):
    """The windows cut from each series."""

    lookback: int | None = Field(
        None,
        ge=1,
        le=MOST_STEPS,
        flag="--lookback",
        description="steps that the model sees (default: chosen from season and horizon); of longer texts and labelled "
        "series it sees that many tokens or steps (default: as many as the longest of the training part, up to 512)",
    )
    horizon: int | None = Field(
        None, ge=1, le=MOST_STEPS, flag="--horizon", description="steps to predict (default: chosen from the frequency)"
    )
    season: int | None = Field(
        None,
        ge=1,
        le=MOST_STEPS,
        flag="--season",
        description="steps in one season (default: from the frequency, else 1)",
    )
    stride: int | None = Field(None, ge=1, le=MOST_STEPS, description="steps between two training windows (default: 1)")
    short: Literal["error", "skip", "pad"] = Field(
        "error",
        flag="--short",
        description="series with too few rows: error, leave them out (skip), or fill up what the model sees before "
        "their first row (pad)",
    )


class TokensConfig(Config):
    """How texts become tokens."""

    tokenizer: Literal["char", "word", "bpe", "wordpiece"] | None = Field(
        None,
        description="characters, words (Chinese ones with the package jieba), or pieces of words that are learned from "
        "the texts (with the package tokenizers) (default: word where words stand apart, else char)",
    )
    min_count: int = Field(1, ge=1, description="occurrences in the training texts below which a token is unknown")
    max_size: int = Field(30_000, ge=8, le=10_000_000, description="tokens in the vocabulary at most, special ones too")
    lower: bool = Field(True, description="capital letters count as small ones")


class TransferConfig(Config):
    """What is taken over from an earlier run."""

    init_from: str | None = Field(
        None, flag="--init-from", min_length=1, description="an earlier run, of any task, whose encoder is loaded"
    )
    freeze: bool = Field(False, flag="--freeze", description="leave what was loaded as it is")
    loaded_rate: float = Field(
        1.0, gt=0, le=1000, description="learning rate of what was loaded, as a share of train.lr"
    )
    numbers_rate: float = Field(
        1.0, gt=0, le=1000, description="learning rate of what embeds numbers, as a share of train.lr"
    )
    text_rate: float = Field(1.0, gt=0, le=1000, description="the same of what embeds tokens")

    @pydantic.field_validator("init_from")
    @classmethod
    def _from_any_folder(cls, run: str | None) -> str | None:
        """A run that is here is remembered by its full path."""
        here = run is not None and os.path.isdir(os.path.expanduser(run))
        return os.path.realpath(os.path.expanduser(run)) if run is not None and here else run

    def faults(self) -> Iterator[str]:
        yield from super().faults()
        if self.init_from is None and (self.freeze or self.loaded_rate != 1.0):
            yield "freeze and loaded_rate are for what was loaded: give init_from RUN"
        if self.freeze and self.loaded_rate != 1.0:
            yield f"freeze leaves what was loaded as it is, and loaded_rate {self.loaded_rate:g} has nothing to do"


class TrainConfig(Config):
    """The training loop."""

    epochs: int | None = Field(None, ge=1, flag="--epochs", description="passes over all training windows")
    max_steps: int | None = Field(
        None,
        ge=1,
        flag="--max-steps",
        description=f"optimiser steps at most (default: the epochs, or {DEFAULT_STEPS}; {DEFAULT_ANSWER_STEPS} for "
        "sequences of tokens)",
    )
    batch_size: int | None = Field(
        None,
        ge=1,
        search=[16, 32, 64, 128],
        description="windows in one step (default: 64, or a quarter of all where there are fewer than 256)",
    )
    lr: float = Field(1e-3, gt=0, flag="--lr", search=(1e-4, 1e-2), description="highest learning rate of AdamW")
    weight_decay: float = Field(0.01, ge=0, search=(1e-4, 0.3), description="weight decay of AdamW")
    lr_schedule: Literal["cosine", "linear", "noam", "constant"] = Field(
        "cosine", description="how the learning rate falls after the warm-up; noam: with the inverse square root"
    )
    warmup: int | None = Field(
        None, ge=1, description="steps of linear warm-up (default: 50, or a tenth of all steps where that is less)"
    )
    clip: float = Field(1.0, gt=0, description="largest norm of the gradient")
    output: Literal["point", "quantiles", "normal", "student_t", "negative_binomial"] = Field(
        "point",
        description="what is predicted of each value: one number, quantiles, or a distribution, fitted by its "
        "likelihood (negative_binomial: of counts)",
    )
    quantiles: tuple[float, ...] = Field(
        (),
        description="probabilities of the quantiles of output quantiles (default: "
        f"{', '.join(map(str, DEFAULT_QUANTILES))}); 0.5 is always among them",
    )
    loss: Literal["mse", "mae", "huber", "log_cosh"] = Field(
        "mse", search=["mse", "mae", "huber"], description="what a point forecast minimises, on transformed values"
    )
    huber_delta: float = Field(1.0, gt=0, description="error above which huber is no longer squared but absolute")
    label_smoothing: float = Field(
        0.0, ge=0, lt=1, description="share of each label that is spread evenly over all classes or words"
    )
    class_weights: Literal["none", "balanced"] = Field(
        "none", description="weight of each class in the loss; balanced: rare ones count as much as frequent ones"
    )
    hidden_share: float = Field(
        0.15, gt=0, lt=1, description="share of the steps that are hidden from a model that is pretrained"
    )
    hidden_span: float = Field(
        3.0,
        ge=1,
        le=1000,
        description="mean length of a stretch of hidden steps of numbers; tokens are hidden one by one",
    )
    bucketing: bool | None = Field(
        None,
        description="batches of like lengths, where examples are of unequal length (default: yes, but not for "
        "sequences of tokens, which learn slower from such batches)",
    )
    ema: float = Field(
        0.0,
        ge=0,
        lt=1,
        description="decay of a moving average of the weights, which is then validated and kept in their place; 0.999 "
        "is usual, 0 takes no average",
    )
    eval_every: int = Field(20, ge=1, description="steps between two evaluations on the validation part")
    eval_windows: int = Field(512, ge=1, description="validation windows at most, evenly spaced")
    patience: int = Field(10, ge=1, description="evaluations without improvement before training stops early")
    truth_start: float = Field(
        1.0, ge=0, le=1, description="probability that the decoder is fed the truth at the first step (1: always)"
    )
    truth_end: float = Field(1.0, ge=0, le=1, description="the same at the last step (scheduled sampling)")
    truth_schedule: Literal["linear", "exponential", "inverse_sigmoid", "constant"] = Field(
        "linear", description="the way from truth_start to truth_end; constant stays at truth_start"
    )
    truth_decay: float = Field(
        10.0, gt=0, le=1000, description="how steep exponential and inverse_sigmoid are over the run; towards 0: linear"
    )
    seed: int = Field(0, ge=0, lt=2**63, flag="--seed", description="same seed, same machine: same result")
    device: str = Field("auto", flag="--device", pattern=f"^({DEVICES})$", description="auto, cpu, cuda, cuda:1 or mps")

    def faults(self) -> Iterator[str]:
        yield from super().faults()
        if self.output != "point" and self.loss != "mse":
            yield f"loss {self.loss} is for point forecasts, leave it out with output {self.output}"
        if self.quantiles and self.output != "quantiles":
            yield f"quantiles need output quantiles, not {self.output}"
        if not all(0 < level < 1 for level in self.quantiles):
            yield f"quantiles are probabilities between 0 and 1, not {', '.join(map(str, self.quantiles))}"
        if self.loss != "huber" and self.huber_delta != 1.0:
            yield f"huber_delta {self.huber_delta:g} needs loss huber, not {self.loss}"
        if self.truth_schedule == "constant":
            if self.truth_end not in (1.0, self.truth_start):
                yield (
                    f"truth_schedule constant stays at truth_start {self.truth_start:g} and never reaches "
                    f"truth_end {self.truth_end:g}"
                )
        elif self.truth_schedule != "linear" and self.truth_start == self.truth_end:
            yield f"truth_schedule {self.truth_schedule} needs another truth_end than truth_start {self.truth_start:g}"
        if self.truth_schedule in ("linear", "constant") and self.truth_decay != 10.0:
            yield (
                f"truth_decay {self.truth_decay:g} needs truth_schedule exponential or inverse_sigmoid, "
                f"not {self.truth_schedule}"
            )

    @property
    def counts(self) -> bool:
        """Whether targets are counts, which no transform may change."""
        return self.output == "negative_binomial"

    def quantile_levels(self) -> tuple[float, ...]:
        """The probabilities of the quantiles that are predicted, ascending; none of other outputs."""
        if self.output != "quantiles":
            return ()
        return tuple(sorted({0.5, *(self.quantiles or DEFAULT_QUANTILES)}))

    def warmup_for(self, steps: int) -> int:
        """Steps of the warm-up of a run: what was asked for, even where the run ends before the warm-up does."""
        return self.warmup or min(50, max(1, steps // 10))

    def batch_for(self, windows: int) -> int:
        """Windows in one step: few windows make several batches all the same, whose noise curbs overfitting."""
        return self.batch_size or max(1, min(64, windows // 4))

    def steps_for(self, windows: int) -> int:
        """Optimiser steps of a whole run over that many training windows."""
        by_epochs = None if self.epochs is None else self.epochs * -(-windows // self.batch_for(windows))
        limits = [limit for limit in (by_epochs, self.max_steps) if limit is not None]
        return min(limits, default=DEFAULT_STEPS)


@dataclass(frozen=True)
class Chosen:
    """A plugin by name, with its options."""

    kind: Kind
    name: str
    plugin: Any
    config: Config

    @property
    def origin(self) -> str:
        """Where the plugin comes from, in words."""
        return registry.entries(self.kind)[self.name].origin

    @property
    def members(self) -> tuple[Member, ...]:
        """The models that a model is made of; none of most."""
        made_of = getattr(self.plugin, "members", None)
        return () if made_of is None else tuple(made_of(self.config))

    @property
    def persistent(self) -> bool:
        """Whether a model can be saved."""
        return bool(self.plugin.persistent) and all(member.persistent for member in self.members)

    @property
    def steps_apart(self) -> bool:
        """As `ModelPlugin.steps_apart`, of all members where there are any."""
        members = self.members
        return all(member.steps_apart for member in members) if members else bool(self.plugin.steps_apart)

    def least_lookback(self, season: int) -> int | None:
        """The fewest steps that a model has to see; None when any number will do."""
        least = self.plugin.lookback
        found: int | None = None if least is None else least(self.config, season)
        return found

    def unread(self, problem: Problem) -> list[str]:
        """As `ModelPlugin.unread`; where there are members, what none of them reads."""
        kinds: list[str] = self.plugin.unread(problem)
        for member in self.members[:1]:
            kinds = member.unread(problem)
        for member in self.members[1:]:
            kinds = [kind for kind in kinds if kind in member.unread(problem)]
        return kinds

    def __str__(self) -> str:
        return f"{self.kind} '{self.name}' ({self.origin})"

    def at_fault(self, doing: str) -> AbstractContextManager[None]:
        """Within this, what goes wrong is this plugin's fault and said so; see `errors.at_fault`."""
        return at_fault(self, doing)

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, **self.config.model_dump(mode="json")}


@dataclass(frozen=True)
class Settings:
    """Everything that a run is configured by.

    Attributes:
        data: None when rows come from Python.
        scale: None when it is "none", and when it is replaced.
        scale_replaced: a scaler among the transforms takes its place; then nothing is said of it in a file.
        task: what the model is asked to do.
    """

    model: Chosen
    data: Chosen | None
    transforms: tuple[Chosen, ...]
    scale: Chosen | None
    window: WindowConfig
    train: TrainConfig
    scale_replaced: bool = False
    task: Task = Task.FORECAST
    tokens: TokensConfig = field(default_factory=TokensConfig)
    transfer: TransferConfig = field(default_factory=TransferConfig)

    def to_json(self) -> dict[str, Any]:
        """What a configuration file holds, complete; `resolve` reads it back."""
        return {
            "task": self.task.value,
            "model": self.model.to_json(),
            **({"data": self.data.to_json()} if self.data else {}),
            "transform": [chosen.to_json() for chosen in self.transforms],
            **({} if self.scale_replaced else {"scale": self.scale.to_json() if self.scale else {"name": "none"}}),
            "window": self.window.model_dump(mode="json"),
            "tokens": self.tokens.model_dump(mode="json"),
            "train": self.train.model_dump(mode="json"),
            "transfer": self.transfer.model_dump(mode="json"),
        }
