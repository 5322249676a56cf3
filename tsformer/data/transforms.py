"""The chain of transforms: fitted per series on training rows only, inverted exactly, remembered as plain JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from tsformer.data.clock import show
from tsformer.data.panel import Panel, by_series
from tsformer.errors import DataError, DivergedError, InvalidValuesError, PluginError, at_fault
from tsformer.plugin import State, Transform


@dataclass(frozen=True)
class Link:
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
        inputs: for each link, what went into it: float64 `[rows of that stage, columns]`, with its offsets.
        states: for each series, the state of each link.
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
        links: the transforms.
        states: per series id, the state of each link, from an earlier `fit`.
    """

    def __init__(self, links: Sequence[Link], states: Mapping[str, Sequence[State]] | None = None) -> None:
        self.links = tuple(links)
        self.states = {name: tuple(states[name]) for name in states} if states else {}

    @property
    def lost(self) -> int:
        """Rows lost at the start of each series."""
        return sum(link.transform.lost_rows for link in self.links)

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
        stages: list[list[np.ndarray]] = [[] for _ in self.links]
        states = []
        for series in range(len(panel.ids)):
            rows = panel.values[panel.rows(series)]
            known = self.states.get(_key(panel, series))
            if known is None:
                known = tuple(self._fit_series(panel, series, len(rows)))
            states.append(known)
            lost = 0
            for number, (link, state) in enumerate(zip(self.links, known, strict=True)):
                rows = self._apply(link, rows, state, panel, series, lost)
                lost += link.transform.lost_rows
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

        Raises:
            PluginError: a transform makes NaN of finite values.
            DivergedError: finite values are too large for a transform's inverse.
        """
        result = np.array(path, dtype=np.float64)
        start_of, groups = data.offsets, by_series(series)
        for number in reversed(range(len(self.links))):
            link, (inputs, offsets) = self.links[number], data.inputs[number]
            first, stop = link.columns[0], min(link.columns[1], path.shape[-1])
            if first >= stop:
                continue  # a link on covariates only
            depth = max(1, link.transform.lost_rows)
            lost_after = sum(s.transform.lost_rows for s in self.links[number:])
            for index, mine in groups:
                # the same moment, counted in the rows of this stage
                here = origin[mine] - start_of[index] + lost_after + offsets[index]
                anchor = inputs[here[:, None] + np.arange(-depth, 0)][:, :, first:stop]
                part = result[mine][:, :, first:stop]
                with at_fault(link, "inverse"), np.errstate(all="ignore"):
                    back = link.transform.inverse(part.copy(), data.states[index][number], anchor)
                result[mine, :, first:stop] = _brought_back(link, back, part)
        return result

    def to_json(self) -> dict[str, Any]:
        """The states, by series id."""
        return {name: [dict(state) for state in states] for name, states in self.states.items()}

    def _fit_series(self, panel: Panel, series: int, train: int) -> list[State]:
        rows = panel.values[panel.rows(series)][:train]
        states: list[State] = []
        lost = 0
        for link in self.links:
            first, stop = link.columns
            self._check_length(link, rows, panel, series)
            try:
                with at_fault(link, "fit"), np.errstate(all="ignore"):
                    state = link.transform.fit(rows[:, first:stop].copy())
            except InvalidValuesError as fault:
                raise self._outside(fault, link, panel, series, lost) from fault
            states.append(_plain(link, state))
            rows = self._apply(link, rows, states[-1], panel, series, lost)
            lost += link.transform.lost_rows
        return states

    def _apply(self, link: Link, rows: np.ndarray, state: State, panel: Panel, series: int, lost: int) -> np.ndarray:
        first, stop = link.columns
        self._check_length(link, rows, panel, series)
        try:
            with at_fault(link, "forward"), np.errstate(all="ignore"):
                changed = link.transform.forward(rows[:, first:stop].copy(), state)
        except InvalidValuesError as fault:
            raise self._outside(fault, link, panel, series, lost) from fault
        result = rows[link.transform.lost_rows :].copy()
        changed = _promised(link, "forward", changed, (len(result), stop - first))
        if not np.isfinite(changed).all():
            lost += link.transform.lost_rows
            if np.isnan(changed).any():
                bad = InvalidValuesError(np.isnan(changed), "become NaN in forward", "a fault of the transform")
                raise PluginError(_place(bad, self._named(link), link, panel, series, lost))
            bad = InvalidValuesError(~np.isfinite(changed), "are too large to compute with", "choose a sensible unit")
            raise DataError(_place(bad, self._named(link), link, panel, series, lost))
        result[:, first:stop] = changed
        return result

    def _named(self, link: Link) -> str:
        """A link with those before it, whose results its values are."""
        before = ", ".join(f"'{other.name}'" for other in self._before(link))
        return f"{link} after {before}" if before else str(link)

    def _before(self, link: Link) -> tuple[Link, ...]:
        return self.links[: self.links.index(link)]

    def _outside(self, fault: InvalidValuesError, link: Link, panel: Panel, series: int, lost: int) -> DataError:
        """What to raise for values outside a transform's domain: the results of other transforms, or the data's."""
        if self._before(link):
            fault = InvalidValuesError(fault.bad, fault.what, f"put '{link.name}' first, before other transforms")
        return DataError(_place(fault, self._named(link), link, panel, series, lost))

    def _check_length(self, link: Link, rows: np.ndarray, panel: Panel, series: int) -> None:
        if len(rows) <= link.transform.lost_rows:
            raise DataError(f"{_series(panel, series)}{len(rows)} rows are too few for the transform '{link.name}'")


def _offsets(stage: list[np.ndarray]) -> np.ndarray:
    return np.concatenate([[0], np.cumsum([len(rows) for rows in stage])]).astype(np.int64)


def _promised(link: Link, method: str, values: object, shape: tuple[int, ...]) -> np.ndarray:
    """A plugin's array, refused when it is none of the promised shape: numpy would stretch it silently."""
    if not isinstance(values, np.ndarray):
        raise PluginError(f"{link}: {method} returned {type(values).__name__}, not an array {shape}")
    if values.shape != shape or values.dtype.kind not in "fiu":
        got = f"an array {values.shape} of {values.dtype}"
        raise PluginError(f"{link}: {method} returned {got}, not an array {shape} of numbers")
    return values


def _brought_back(link: Link, back: object, path: np.ndarray) -> np.ndarray:
    """What a transform's inverse made of paths `[windows, horizon, channels]`."""
    values = _promised(link, "inverse", back, path.shape)
    if np.isfinite(values).all():
        return values
    # a window's steps may depend on each other; what was not finite before is no fault of the transform
    finite = np.isfinite(path).all(axis=(1, 2))
    if np.isnan(values[finite]).any():
        raise PluginError(f"{link}: inverse returned NaN for finite values")
    if not np.isfinite(values[finite]).all():
        raise DivergedError(
            f"the model predicts values so large that the {link} cannot bring them back to the data's unit: "
            "are the rows on the scale of those that it was fitted on? A smaller --lr may help, or another transform"
        )
    return values


def _plain(link: Link, state: object) -> State:
    """A state as it will come back from a run folder."""
    try:
        plain = json.loads(json.dumps(state, allow_nan=False, ensure_ascii=False).encode())
    except (TypeError, ValueError) as error:
        raise PluginError(f"{link}: fit returned what is not plain JSON ({error})") from None
    if not isinstance(plain, dict):
        raise PluginError(f"{link}: fit returned {type(state).__name__}, not a dictionary")
    return plain


def _key(panel: Panel, series: int) -> str:
    """What a series' state is filed under; a single series is the same one whatever file it comes from."""
    return panel.ids[series] if panel.schema.id else ""


def _series(panel: Panel, series: int) -> str:
    return f"series '{panel.ids[series]}': " if panel.schema.id else ""


def _place(fault: InvalidValuesError, transform: str, link: Link, panel: Panel, series: int, lost: int) -> str:
    """What is wrong with which values, and where the first one is."""
    bad = np.asarray(fault.bad)
    row, column = (int(i) for i in np.argwhere(bad)[0])
    name = panel.schema.columns[link.columns[0] + column]
    place = panel.rows(series).start + row + lost
    return (
        f"{_series(panel, series)}{transform}: {int(bad.sum())} value(s) {fault.what}, first in column "
        f"'{name}' at {show(panel.times[place])} (row {row + lost + 1} of the series); {fault.remedy}"
    )
