"""What a run is configured by: the plugins with their options, the window, the training."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Literal

from tsformer import registry
from tsformer.errors import at_fault
from tsformer.plugin import Config, Field
from tsformer.registry import Kind

DEFAULT_STEPS = 500
MOST_STEPS = 1_000_000  # of a window
DEVICES = r"auto|cpu|cuda(:\d{1,3})?|mps"


class WindowConfig(Config):
    """The windows cut from each series."""

    lookback: int | None = Field(
        None,
        ge=1,
        le=MOST_STEPS,
        flag="--lookback",
        description="steps that the model sees (default: chosen from season and horizon)",
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


class TrainConfig(Config):
    """The training loop."""

    epochs: int | None = Field(None, ge=1, flag="--epochs", description="passes over all training windows")
    max_steps: int | None = Field(
        None, ge=1, flag="--max-steps", description=f"optimiser steps at most (default: {DEFAULT_STEPS}, or the epochs)"
    )
    batch_size: int | None = Field(
        None, ge=1, description="windows in one step (default: 64, or a quarter of all where there are fewer than 256)"
    )
    lr: float = Field(1e-3, gt=0, flag="--lr", description="highest learning rate of AdamW")
    weight_decay: float = Field(0.01, ge=0, description="weight decay of AdamW")
    lr_schedule: Literal["cosine", "linear", "noam", "constant"] = Field(
        "cosine", description="how the learning rate falls after the warm-up; noam: with the inverse square root"
    )
    warmup: int | None = Field(
        None, ge=1, description="steps of linear warm-up (default: 50, or a tenth of all steps where that is less)"
    )
    clip: float = Field(1.0, gt=0, description="largest norm of the gradient")
    output: Literal["point", "normal"] = Field(
        "point",
        description="what is predicted: one number for each value, or a normal distribution, fitted by its likelihood",
    )
    loss: Literal["mse", "mae", "huber", "log_cosh"] = Field(
        "mse", description="what a point forecast minimises, on transformed values"
    )
    huber_delta: float = Field(1.0, gt=0, description="error above which huber is no longer squared but absolute")
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
    seed: int = Field(0, ge=0, lt=2**63, flag="--seed", description="same seed, same machine: same forecast")
    device: str = Field("auto", flag="--device", pattern=f"^({DEVICES})$", description="auto, cpu, cuda, cuda:1 or mps")

    def faults(self) -> Iterator[str]:
        yield from super().faults()
        if self.output != "point" and self.loss != "mse":
            yield f"loss {self.loss} is for point forecasts, leave it out with output {self.output}"
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
    """

    model: Chosen
    data: Chosen | None
    transforms: tuple[Chosen, ...]
    scale: Chosen | None
    window: WindowConfig
    train: TrainConfig
    scale_replaced: bool = False

    def to_json(self) -> dict[str, Any]:
        """What a configuration file holds, complete; `resolve` reads it back."""
        return {
            "model": self.model.to_json(),
            **({"data": self.data.to_json()} if self.data else {}),
            "transform": [chosen.to_json() for chosen in self.transforms],
            **({} if self.scale_replaced else {"scale": self.scale.to_json() if self.scale else {"name": "none"}}),
            "window": self.window.model_dump(mode="json"),
            "train": self.train.model_dump(mode="json"),
        }
