"""What a backtest keeps of each model: its errors, added up while forecasts come in, its time, and where it failed."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tsformer.data.cells import listed
from tsformer.data.panel import Panel
from tsformer.errors import TsformerError
from tsformer.evaluation.losses import Losses
from tsformer.evaluation.metrics import Errors, Score
from tsformer.evaluation.outlook import NUMBERS_AT_ONCE
from tsformer.evaluation.parts import Part
from tsformer.evaluation.plan import Block, Plan
from tsformer.evaluation.scales import seasonal_scale
from tsformer.predictive import Predictive


@dataclass(frozen=True)
class Failure:
    """Windows that a model has no forecast of.

    Attributes:
        numbers: the origins, ascending.
        windows: how many windows.
        reason: in one line.
        exit_code: that of the error.
    """

    numbers: tuple[int, ...]
    windows: int
    reason: str
    exit_code: int

    def at(self) -> str:
        """The origins, counted from 1, in words."""
        several = [str(number + 1) for number in self.numbers]
        return f"origin{'s' if len(several) > 1 else ''} {listed(several)}"

    def to_json(self) -> dict[str, Any]:
        """Origins are counted from 1."""
        origins = [number + 1 for number in self.numbers]
        return {"origins": origins, "windows": self.windows, "reason": self.reason, "exit_code": self.exit_code}


@dataclass(frozen=True)
class Entry:
    """One model of a backtest, measured.

    Attributes:
        name: that it goes by.
        yardstick: whether it is one of the naive forecasts that are always there.
        score: over all windows.
        errors: of which the score is made, for parts of them.
        losses: by series and origin.
        seconds: of fits and forecasts.
        fits: how often it was fitted.
        failures: where it has no forecast, and why.
        notes: what its fits said, one line each.
        forecasts: one for each block, NaN where there is none; None unless they are kept.
    """

    name: str
    yardstick: bool
    score: Score
    errors: Errors
    losses: Losses
    seconds: float
    fits: int
    failures: tuple[Failure, ...] = ()
    notes: tuple[str, ...] = ()
    forecasts: tuple[Predictive, ...] | None = None


class Truth:
    """True values of windows, and the units that errors are of.

    Args:
        panel: all rows.
        plan: with a scale, errors are of standardised values.
        season: steps in one season, by which errors are scaled.
        by_origin: whether losses are told apart by origin; where they are not, all of them are of one.
    """

    def __init__(self, panel: Panel, plan: Plan, season: int, *, by_origin: bool = True) -> None:
        self.panel, self.plan = panel, plan
        self.targets = panel.schema.targets
        self.origins = 1 + max(int(block.number.max()) for block in plan.blocks) if by_origin else 1
        self.scale = seasonal_scale(panel, plan.before, season)
        self.squared = seasonal_scale(panel, plan.before, season, squared=True)
        if plan.scale is not None:
            self.scale, self.squared = self.scale / plan.scale[..., 1], self.squared / plan.scale[..., 1] ** 2

    @property
    def at_once(self) -> int:
        """Windows that are looked at together."""
        return max(1, NUMBERS_AT_ONCE // (self.plan.horizon * len(self.targets)))

    def of(self, block: Block, some: np.ndarray) -> np.ndarray:
        """True values in the user's units, float64 `[some, horizon, targets]`."""
        first = self.panel.offsets[block.series[some]] + block.origins[some]
        return self.panel.values[first[:, None] + np.arange(self.plan.horizon), : len(self.targets)]

    def measured(self, values: np.ndarray, series: np.ndarray) -> np.ndarray:
        """Values `[windows, horizon, targets]`, or `[..., probabilities]`, in the units that errors are of."""
        if self.plan.scale is None:
            return values
        scale = self.plan.scale[series][:, None]  # [windows, 1, targets, 2]
        mean, spread = scale[..., 0], scale[..., 1]
        if values.ndim == 4:
            mean, spread = mean[..., None], spread[..., None]
        return np.asarray((values - mean) / spread)


class Tally:
    """Adds up what one model says.

    Args:
        truth: what comes of it.
        probabilities: of the quantiles that are asked for.
        keep: whether forecasts are kept.
    """

    def __init__(self, truth: Truth, probabilities: Sequence[float], *, keep: bool) -> None:
        self._truth, self._probabilities = truth, probabilities
        self._errors = Errors(truth.scale, truth.targets, probabilities, truth.squared)
        self._losses = Losses(truth.scale, truth.origins, probabilities, truth.squared)
        self._forecasts: list[Predictive] | None = [] if keep else None
        self._seconds, self._fits = 0.0, 0
        self._notes: dict[str, None] = {}
        self._failures: list[Failure] = []

    def take(self, block: Block, part: Part) -> None:
        """Count the forecasts of a block."""
        started = time.perf_counter()
        left = np.ones(len(block.series), dtype=bool)
        kept = None if self._forecasts is None else self._room(block)
        for outlook in part.outlooks:
            index, said = outlook.index, outlook.said
            if said is None:
                self._fails(block, index, outlook.reason)
                continue
            left[index] = False
            self._add(block, index, said.point, said.quantiles)
            if kept is not None:
                kept.point[index] = said.point
                if kept.quantiles is not None and said.quantiles is not None:
                    kept.quantiles[index] = said.quantiles
        without, size = np.flatnonzero(left), self._truth.at_once
        for start in range(0, len(without), size):
            some = without[start : start + size]
            self._add(block, some, np.full_like(self._truth.of(block, some), np.nan), None)
        if self._forecasts is not None and kept is not None:
            self._forecasts.append(kept)
        self._seconds += part.seconds + time.perf_counter() - started
        self._fits += part.fits
        self._notes.update(dict.fromkeys(part.notes))

    def entry(self, name: str, *, yardstick: bool = False) -> Entry:
        """What it comes to so far."""
        return Entry(
            name,
            yardstick,
            self._errors.score(),
            self._errors,
            self._losses,
            self._seconds,
            self._fits,
            tuple(self._failures),
            tuple(self._notes),
            None if self._forecasts is None else tuple(self._forecasts),
        )

    def _room(self, block: Block) -> Predictive:
        shape = (len(block.series), self._truth.plan.horizon, len(self._truth.targets))
        quantiles = np.full((*shape, len(self._probabilities)), np.nan) if self._probabilities else None
        return Predictive(np.full(shape, np.nan), quantiles)

    def _add(self, block: Block, index: np.ndarray, point: np.ndarray, quantiles: np.ndarray | None) -> None:
        truth, series = self._truth, block.series[index]
        wanted = truth.measured(truth.of(block, index), series)
        point = truth.measured(point, series)
        quantiles = None if quantiles is None else truth.measured(quantiles, series)
        self._errors.add(point, wanted, series, quantiles)
        number = np.minimum(block.number[index], truth.origins - 1)
        self._losses.add(point, wanted, series, number, quantiles)

    def _fails(self, block: Block, index: np.ndarray, error: TsformerError | None) -> None:
        assert error is not None
        numbers = tuple(np.unique(block.number[index]).tolist())
        self._failures.append(Failure(numbers, len(index), error.sentence(), error.exit_code))
