"""The chain of transforms: fitted per series on training rows only, inverted exactly, remembered as plain JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from tsformer.data.panel import Panel, by_series
from tsformer.errors import DataError, InvalidValuesError, PluginError, at_fault
from tsformer.plugin import State, Transform


@dataclass(frozen=True)
class Step:
    """One transform of the chain.

    Attributes:
        name: the plugin's name.
        transform: what its `build` returned.
        columns: the columns of the panel that it changes, `(start, stop)`.
    """

    name: str
    transform: Transform
    columns: tuple[int, int]

    def __str__(self) -> str:
        return f"transform '{self.name}'"


@dataclass(frozen=True)
class Transformed:
    """A panel after the chain.

    Attributes:
        values: float64 `[rows, columns]`, each series shorter by `lost`.
        offsets: int64 `[series + 1]` into `values`.
        inputs: for each step, what went into it: float64 `[rows of that stage, columns]`, with its offsets.
        states: for each series, the state of each step.
    """

    values: np.ndarray
    offsets: np.ndarray
    inputs: tuple[tuple[np.ndarray, np.ndarray], ...]
    states: tuple[tuple[State, ...], ...]

    def tensor(self) -> torch.Tensor:
        """What windows are cut from: float32 `[rows, columns]`.

        Raises:
            DataError: values that single precision cannot hold.
        """
        with np.errstate(over="ignore"):
            tensor = torch.from_numpy(self.values.astype(np.float32))
        if not bool(torch.isfinite(tensor).all()):
            raise DataError(
                "after the transforms some values are too large for single precision; "
                "use --scale standard, or bring the columns to a sensible unit"
            )
        return tensor


class Chain:
    """Transforms one after another: those of the targets in the order given, then the scaler on every column.

    Args:
        steps: the transforms.
        states: per series id, the state of each step, from an earlier `fit`.
    """

    def __init__(self, steps: Sequence[Step], states: Mapping[str, Sequence[State]] | None = None) -> None:
        self.steps = tuple(steps)
        self.states = {name: tuple(states[name]) for name in states} if states else {}

    @property
    def lost(self) -> int:
        """Rows lost at the start of each series."""
        return sum(step.transform.lost_rows for step in self.steps)

    def fit(self, panel: Panel, train: np.ndarray) -> None:
        """Learn each series' state from its first `train[i]` rows, and from nothing else."""
        self.states = {
            _key(panel, series): tuple(self._fit_series(panel, series, int(train[series])))
            for series in range(len(panel.ids))
        }

    def unseen(self, panel: Panel) -> list[str]:
        """The ids of the series that were not in `fit`."""
        return [id for series, id in enumerate(panel.ids) if _key(panel, series) not in self.states]

    def forward(self, panel: Panel) -> Transformed:
        """Transform whole series; one that was not seen in `fit` is fitted on its own rows.

        Raises:
            DataError: a value outside a transform's domain; names column, row, date and count.
        """
        stages: list[list[np.ndarray]] = [[] for _ in self.steps]
        states = []
        for series in range(len(panel.ids)):
            rows = panel.values[panel.rows(series)]
            known = self.states.get(_key(panel, series))
            if known is None:
                known = tuple(self._fit_series(panel, series, len(rows)))
            states.append(known)
            lost = 0
            for number, (step, state) in enumerate(zip(self.steps, known, strict=True)):
                rows = self._apply(step, rows, state, panel, series, lost)
                lost += step.transform.lost_rows
                stages[number].append(rows)
        joined = [(panel.values, panel.offsets), *((np.concatenate(stage), _offsets(stage)) for stage in stages)]
        values, offsets = joined[-1]
        return Transformed(np.ascontiguousarray(values), offsets, tuple(joined[:-1]), tuple(states))

    def inverse(self, path: np.ndarray, data: Transformed, series: np.ndarray, origin: np.ndarray) -> np.ndarray:
        """Bring predicted paths back to the user's units.

        Args:
            path: float64 `[windows, horizon, targets]`.
            data: what `forward` returned.
            series: int64 `[windows]`, the series of each path.
            origin: int64 `[windows]`, row in `data.values` of each path's first step.
        """
        result = np.array(path, dtype=np.float64)
        start_of, groups = data.offsets, by_series(series)
        for number in reversed(range(len(self.steps))):
            step, (inputs, offsets) = self.steps[number], data.inputs[number]
            first, stop = step.columns[0], min(step.columns[1], path.shape[-1])
            if first >= stop:
                continue  # a step on covariates only
            depth = max(1, step.transform.lost_rows)
            lost_after = sum(s.transform.lost_rows for s in self.steps[number:])
            for index, mine in groups:
                # the same moment, counted in the rows of this stage
                here = origin[mine] - start_of[index] + lost_after + offsets[index]
                anchor = inputs[here[:, None] + np.arange(-depth, 0)][:, :, first:stop]
                part = result[mine][:, :, first:stop]
                with at_fault(step, "inverse"), np.errstate(all="ignore"):
                    back = step.transform.inverse(part.copy(), data.states[index][number], anchor)
                result[mine, :, first:stop] = _promised(step, "inverse", back, part.shape)
        return result

    def to_json(self) -> dict[str, Any]:
        """The states, by series id."""
        return {name: [dict(state) for state in states] for name, states in self.states.items()}

    def _fit_series(self, panel: Panel, series: int, train: int) -> list[State]:
        rows = panel.values[panel.rows(series)][:train]
        states: list[State] = []
        lost = 0
        for step in self.steps:
            first, stop = step.columns
            self._check_length(step, rows, panel, series)
            try:
                with at_fault(step, "fit"), np.errstate(all="ignore"):
                    state = step.transform.fit(rows[:, first:stop].copy())
            except InvalidValuesError as fault:
                raise _outside(fault, self._named(step), step, panel, series, lost) from fault
            states.append(_plain(step, state))
            rows = self._apply(step, rows, states[-1], panel, series, lost)
            lost += step.transform.lost_rows
        return states

    def _apply(self, step: Step, rows: np.ndarray, state: State, panel: Panel, series: int, lost: int) -> np.ndarray:
        first, stop = step.columns
        self._check_length(step, rows, panel, series)
        try:
            with at_fault(step, "forward"), np.errstate(all="ignore"):
                changed = step.transform.forward(rows[:, first:stop].copy(), state)
        except InvalidValuesError as fault:
            raise _outside(fault, self._named(step), step, panel, series, lost) from fault
        result = rows[step.transform.lost_rows :].copy()
        changed = _promised(step, "forward", changed, (len(result), stop - first))
        if not np.isfinite(changed).all():
            bad = InvalidValuesError(~np.isfinite(changed), "are too large to compute with", "choose a sensible unit")
            raise _outside(bad, self._named(step), step, panel, series, lost + step.transform.lost_rows)
        result[:, first:stop] = changed
        return result

    def _named(self, step: Step) -> str:
        """A step with those before it, whose results its values are."""
        before = ", ".join(f"'{other.name}'" for other in self.steps[: self.steps.index(step)])
        return f"{step} after {before}" if before else str(step)

    def _check_length(self, step: Step, rows: np.ndarray, panel: Panel, series: int) -> None:
        if len(rows) <= step.transform.lost_rows:
            raise DataError(f"{_series(panel, series)}{len(rows)} rows are too few for the transform '{step.name}'")


def _offsets(stage: list[np.ndarray]) -> np.ndarray:
    return np.concatenate([[0], np.cumsum([len(rows) for rows in stage])]).astype(np.int64)


def _promised(step: Step, method: str, values: object, shape: tuple[int, ...]) -> np.ndarray:
    """A plugin's array, refused when it is none of the promised shape: numpy would stretch it silently."""
    if not isinstance(values, np.ndarray) or values.shape != shape or values.dtype.kind not in "fiu":
        got = values.shape if isinstance(values, np.ndarray) else type(values).__name__
        raise PluginError(f"{step}: {method} returned {got}, not an array {shape}")
    return values


def _plain(step: Step, state: object) -> State:
    """A state as it will come back from a run folder."""
    try:
        plain = json.loads(json.dumps(state, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise PluginError(f"{step}: fit returned what is not plain JSON ({error})") from None
    if not isinstance(plain, dict):
        raise PluginError(f"{step}: fit returned {type(state).__name__}, not a dictionary")
    return plain


def _key(panel: Panel, series: int) -> str:
    """What a series' state is filed under; a single series is the same one whatever file it comes from."""
    return panel.ids[series] if panel.schema.id else ""


def _series(panel: Panel, series: int) -> str:
    return f"series '{panel.ids[series]}': " if panel.schema.id else ""


def _outside(fault: InvalidValuesError, transform: str, step: Step, panel: Panel, series: int, lost: int) -> DataError:
    bad = np.asarray(fault.bad)
    row, column = (int(i) for i in np.argwhere(bad)[0])
    name = panel.schema.columns[step.columns[0] + column]
    place = panel.rows(series).start + row + lost
    return DataError(
        f"{_series(panel, series)}{transform}: {int(bad.sum())} value(s) {fault.what}, first in column "
        f"'{name}' at {panel.times[place]} (row {row + lost + 1} of the series); {fault.remedy}"
    )
