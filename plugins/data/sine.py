"""A sine wave: the textbook case. Sums of waves, a trend and noise make it harder."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from tsformer.data.panel import Defaults, Panel, Schema
from tsformer.plugin import Config, DataPlugin, Field, Task

STEPS_PER_UNIT = 60
"""Time runs from 0 in steps of 1/60, so that the default 1,801 points end at 30."""


class SineConfig(Config):
    """Length, waves, trend and noise."""

    points: int = Field(1801, gt=2, le=100_000_000, description="length of the series, in steps of 1/60")
    period: tuple[float, ...] = Field(
        (60.0,), min_length=1, description="steps in one wave; several periods make a sum of waves"
    )
    amplitude: tuple[float, ...] = Field(
        (1.0,), min_length=1, description="height of the waves: one for all, or one for each period"
    )
    noise: float = Field(0.0, ge=0, description="standard deviation of the normal noise")
    trend: float = Field(0.0, description="rise in 1,000 steps")
    seed: int = Field(0, ge=0, description="seed of the noise")

    def faults(self) -> Iterator[str]:
        yield from super().faults()
        if any(period <= 0 for period in self.period):
            yield f"period must be positive, not {min(self.period)}"
        if len(self.amplitude) not in (1, len(self.period)):
            yield (
                f"{len(self.amplitude)} amplitudes do not go with {len(self.period)} periods: give one, or one for each"
            )


def load(config: SineConfig) -> Panel:
    steps = np.arange(config.points, dtype=np.float64)
    amplitudes = config.amplitude * len(config.period) if len(config.amplitude) == 1 else config.amplitude
    values = config.trend / 1000 * steps
    for period, amplitude in zip(config.period, amplitudes, strict=True):
        values += amplitude * np.sin(2 * np.pi * steps / period)
    values += config.noise * np.random.default_rng(config.seed).standard_normal(config.points)
    return Panel(
        values=values.reshape(-1, 1),
        offsets=np.array([0, config.points], dtype=np.int64),
        times=pd.Index(steps / STEPS_PER_UNIT),
        ids=("sine",),
        schema=Schema(targets=("value",), time="t", frequency=1 / STEPS_PER_UNIT),
    )


def defaults(panel: Panel) -> Defaults:
    """One wave of the default period to look at, half a wave to predict."""
    return Defaults(lookback=60, horizon=30)


plugin = DataPlugin(
    config=SineConfig,
    load=load,
    example=SineConfig(points=400),
    tasks={Task.FORECAST, Task.PRETRAIN},
    defaults=defaults,
)
