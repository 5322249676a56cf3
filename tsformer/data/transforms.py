"""The chain of transforms: fitted per series on training rows only, inverted exactly, remembered as plain JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from tsformer.data.carry import carried
from tsformer.data.clock import show
from tsformer.data.link import Link as Link
from tsformer.data.panel import Panel, by_series
from tsformer.errors import DataError, InvalidValuesError, PluginError
from tsformer.findings import Finding
from tsformer.plugin import State


@dataclass(frozen=True)
class Transformed:
    """A panel after the chain.

    Attributes:
        values: float64 `[rows, columns]`, each series shorter by `lost`; NaN where a value is missing.
        offsets: int64 `[series + 1]` into `values`.
        inputs: for each link, what went into it: float64 `[rows of that stage, columns]`, with its offsets.
        states: for each series, the state of each link.
        breaks: int64, rows of `values` that no window holds together with the row before, ascending: where a stretch
            ends, and where the next one has lost its first rows to the transforms.
    """

    values: np.ndarray
    offsets: np.ndarray
    inputs: tuple[tuple[np.ndarray, np.ndarray], ...]
    states: tuple[tuple[State, ...], ...]
    breaks: np.ndarray

    def mask(self) -> torch.Tensor | None:
        """Where values are real, boolean `[rows, columns]`; None when all are."""
        missing = np.isnan(self.values)
        return torch.from_numpy(~missing) if missing.any() else None

    def tensor(self) -> torch.Tensor:
        """What windows are cut from: float32 `[rows, columns]`, 0 where a value is missing.

        Raises:
            DataError: values that single precision cannot hold.
        """
        with np.errstate(over="ignore"):
            tensor = torch.from_numpy(np.where(np.isnan(self.values), 0.0, self.values).astype(np.float32))
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

    def pointwise(self, targets: int) -> bool:
        """Whether each step of the first columns, the targets, is brought back by itself, and not as part of a path."""
        return all(link.transform.pointwise for link in self.links if link.columns[0] < targets)

    def relative(self, targets: int) -> bool:
        """Whether the first columns, the targets, are positive, and change by ratios."""
        return any(link.relative for link in self.links if link.columns[0] < targets)

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
        return Transformed(
            np.ascontiguousarray(values), offsets, tuple(joined[:-1]), tuple(states), self._breaks(panel, offsets)
        )

    def _breaks(self, panel: Panel, offsets: np.ndarray) -> np.ndarray:
        """The panel's breaks in rows after the chain, and where each stretch after one has lost its first rows."""
        series = np.searchsorted(panel.offsets, panel.breaks, side="right") - 1
        ends = panel.breaks - panel.offsets[series] - self.lost + offsets[series]
        begins, stops = offsets[series], offsets[series + 1]  # nearer to an end than that a break leaves nothing there
        return np.unique(np.concatenate([np.maximum(ends, begins), np.minimum(ends + self.lost, stops)]))

    def inverse(
        self, path: np.ndarray, data: Transformed, series: np.ndarray, origin: np.ndarray, *, unbounded: bool = False
    ) -> np.ndarray:
        """Bring predicted paths back to the user's units.

        Args:
            path: float64 `[windows, horizon, targets]`.
            data: what `forward` returned.
            series: int64 `[windows]`, the series of each path.
            origin: int64 `[windows]`, row in `data.values` of each path's first step.
            unbounded: what is too large becomes infinite, and is no error: of many drawn paths one may be so.

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
            inputs = _anchors(inputs[:, first:stop], offsets, link.anchor_step)
            depth = max(1, link.transform.lost_rows)
            lost_after = sum(s.transform.lost_rows for s in self.links[number:])
            for index, mine in groups:
                # the same moment, counted in the rows of this stage
                here = origin[mine] - start_of[index] + lost_after + offsets[index]
                anchor = inputs[here[:, None] + np.arange(-depth, 0)]
                part = result[mine][:, :, first:stop]
                result[mine, :, first:stop] = link.inverse(
                    part, data.states[index][number], anchor, unbounded=unbounded
                )
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
                states.append(link.fit(rows[:, first:stop]))
            except InvalidValuesError as fault:
                raise self._outside(fault, link, panel, series, lost) from fault
            if link is not self.links[-1]:  # of which nothing is asked but its state
                rows = self._apply(link, rows, states[-1], panel, series, lost)
                lost += link.transform.lost_rows
        return states

    def _apply(self, link: Link, rows: np.ndarray, state: State, panel: Panel, series: int, lost: int) -> np.ndarray:
        first, stop = link.columns
        self._check_length(link, rows, panel, series)
        part = rows[:, first:stop]
        try:
            changed = link.forward(part, state)
        except InvalidValuesError as fault:
            raise self._outside(fault, link, panel, series, lost) from fault
        faulty = ~np.isfinite(changed)
        if faulty.any():
            faulty &= ~(np.isnan(changed) & link.may_lack(part))
        lost += link.transform.lost_rows
        if faulty.any():
            if np.isnan(changed[faulty]).any():
                bad = InvalidValuesError(
                    np.isnan(changed) & faulty, "become NaN in forward", "a fault of the transform"
                )
                raise PluginError(self._place(bad, link, panel, series, lost).text)
            bad = InvalidValuesError(faulty, "are too large to compute with", "choose a sensible unit")
            raise _refused(self._place(bad, link, panel, series, lost))
        result = rows[link.transform.lost_rows :].copy()
        result[:, first:stop] = changed
        if link.transform.lost_rows:
            for ends in _stretch_ends(panel, series):  # what follows is no change from one step to the next
                result[max(0, ends - lost) : ends, first:stop] = np.nan
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
        return _refused(self._place(fault, link, panel, series, lost))

    def _place(self, fault: InvalidValuesError, link: Link, panel: Panel, series: int, lost: int) -> Finding:
        """What is wrong with which values, and where the first one is."""
        bad = np.asarray(fault.bad)
        row, column = (int(i) for i in np.argwhere(bad)[0])
        channel = link.columns[0] + column
        name, place = panel.schema.columns[channel], panel.rows(series).start + row + lost
        text = (
            f"{_series(panel, series)}{self._named(link)}: {int(bad.sum())} value(s) {fault.what}, first in column "
            f"'{name}' at {show(panel.times[place])} (row {row + lost + 1} of the series); {fault.remedy}"
        )
        return Finding(
            "domain",
            text,
            "fault",
            column=name,
            row=f"row {row + lost + 1} of the series",
            count=int(bad.sum()),
            example=f"{panel.values[place, channel]:.6g}",
            remedy=fault.remedy,
        )

    def _check_length(self, link: Link, rows: np.ndarray, panel: Panel, series: int) -> None:
        if len(rows) <= link.transform.lost_rows:
            raise DataError(f"{_series(panel, series)}{len(rows)} rows are too few for the transform '{link.name}'")


def _offsets(stage: list[np.ndarray]) -> np.ndarray:
    return np.concatenate([[0], np.cumsum([len(rows) for rows in stage])]).astype(np.int64)


def _key(panel: Panel, series: int) -> str:
    """What a series' state is filed under; a single series is the same one whatever file it comes from."""
    return panel.ids[series] if panel.schema.id else ""


def _series(panel: Panel, series: int) -> str:
    return f"series '{panel.ids[series]}': " if panel.schema.id else ""


def _refused(finding: Finding) -> DataError:
    return DataError(finding.text, finding=finding)


def _stretch_ends(panel: Panel, series: int) -> np.ndarray:
    """The rows at which the later stretches of a series begin, counted from its start."""
    rows = panel.rows(series)
    return panel.breaks[(panel.breaks > rows.start) & (panel.breaks < rows.stop)] - rows.start


def _anchors(values: np.ndarray, offsets: np.ndarray, step: int) -> np.ndarray:
    """Values `[rows, channels]` from which paths can start: the last real one where one is missing, 0 before any.

    Args:
        step: with a season for a step, it is the last one at the same place in the season, if there is any.
    """
    if not np.isnan(values).any():
        return values
    lengths = np.diff(offsets)
    series = np.repeat(np.arange(len(lengths)), lengths)
    place = (np.arange(len(values)) - offsets[series]) % step
    return np.nan_to_num(carried(carried(values, series * step + place), series))
