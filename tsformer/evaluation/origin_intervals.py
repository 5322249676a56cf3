"""Conformal intervals around forecasts of a backtest, made of what was known at each origin and of nothing later."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from tsformer.calibration import clock
from tsformer.data.panel import Panel
from tsformer.errors import UsageError
from tsformer.evaluation.conformal import Calibration, series_scale
from tsformer.evaluation.outlook import Outlook
from tsformer.evaluation.plan import Block
from tsformer.levels import level_name


def with_intervals(
    outlooks: Iterable[Outlook],
    calibration: Calibration,
    panel: Panel,
    block: Block,
    levels: Sequence[float],
    season: int,
    *,
    adaptive: bool,
    note: Callable[[str], None],
) -> Iterator[Outlook]:
    """The outlooks of a block with intervals around their points; without where too few errors are known.

    The adaptive kind follows the errors of the block's own earlier origins, too, each from the time on at which it is
    known.

    Args:
        calibration: errors of the model on rows that it did not learn from; those that are not known yet at an origin,
            as a run may hold some, are not looked at there.
        panel: all rows, in the columns of the model.
        season: steps in one season, by which errors of series that the calibration does not know are scaled.
        note: told where there are no intervals, and why.
    """
    times = clock(panel)
    first = panel.offsets[block.series] + block.origins
    scale = _scales(calibration, panel, block, season)
    if adaptive:  # whose errors come later is told apart by their times
        outlooks = list(outlooks)
        calibration = _with_own(outlooks, calibration, panel, first, scale, times)
    begins, missing = times[first], _Missing(len(first))
    for outlook in outlooks:
        said = outlook.said
        if said is None:
            yield outlook
            continue
        ends = np.full((*said.point.shape, 2 * len(levels)), np.nan)
        mine = begins[outlook.index]
        latest = calibration.known.max(initial=-np.inf)
        moments = [None] if latest < mine.min() else np.unique(mine).tolist()
        for at in moments:
            here = np.ones(len(mine), dtype=bool) if at is None else mine == at
            point, own = said.point[here], scale[outlook.index[here]]
            try:
                ends[here] = calibration.intervals(point, levels, own, adaptive=adaptive, at=at)
            except UsageError:  # of one level there may be enough
                for place, level in enumerate(levels):
                    try:
                        pair = calibration.intervals(point, (level,), own, adaptive=adaptive, at=at)
                    except UsageError as error:
                        missing.add(level, len(point), error)
                    else:
                        ends[here, :, :, len(levels) - 1 - place] = pair[..., 0]
                        ends[here, :, :, len(levels) + place] = pair[..., 1]
        yield replace(outlook, said=replace(said, quantiles=ends))
    for line in missing.lines():
        note(line)


class _Missing:
    """Counts forecasts without an interval.

    Args:
        every: how many forecasts there are.
    """

    def __init__(self, every: int) -> None:
        self._every = every
        self._counts: dict[float, int] = {}
        self._reasons: dict[float, str] = {}

    def add(self, level: float, count: int, error: UsageError) -> None:
        self._counts[level] = self._counts.get(level, 0) + count
        self._reasons.setdefault(level, error.sentence())

    def lines(self) -> Iterator[str]:
        """One for each level, with the first reason."""
        for level, count in self._counts.items():
            lead = f"no interval of {level_name(level)} % around {count} of {self._every} forecasts"
            yield f"{lead}: {self._reasons[level]}"


def _scales(calibration: Calibration, panel: Panel, block: Block, season: int) -> np.ndarray:
    """What errors of each window are multiplied by, float64 `[windows, targets]`: of a series that the calibration does
    not know by its rows before the origin."""
    names = np.array(panel.ids if panel.schema.id else ("",), dtype=object)
    new = ~np.isin(names, list(calibration.scales))
    if calibration.relative or not new.any():
        return calibration.scale_of(panel, season)[block.series]
    found = np.empty((len(block.series), len(panel.schema.targets)))
    for window, series in enumerate(block.series.tolist()):
        if not new[series]:
            found[window] = calibration.scales[names[series]]
    for number in np.unique(block.number[new[block.series]]).tolist():
        here = np.flatnonzero((block.number == number) & new[block.series])
        before = np.zeros(len(panel.ids), dtype=np.int64)
        before[block.series[here]] = block.origins[here]
        found[here] = series_scale(panel, before, season)[block.series[here]]
    return found


def _with_own(
    outlooks: Sequence[Outlook],
    calibration: Calibration,
    panel: Panel,
    first: np.ndarray,
    scale: np.ndarray,
    times: np.ndarray,
) -> Calibration:
    """The calibration with the errors of all forecasts of a block."""
    for outlook in outlooks:
        if outlook.said is not None:
            point = outlook.said.point
            steps = point.shape[1]
            if steps != calibration.horizon:
                return calibration  # errors of fewer steps than were fitted cannot stand beside them
            rows = first[outlook.index][:, None] + np.arange(steps)
            truth = panel.values[rows, : point.shape[2]]
            errors = calibration.errors_of(point, truth, scale[outlook.index])
            calibration = calibration.extended(errors, times[rows[:, 0]], times[rows])
    return calibration
