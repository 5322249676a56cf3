"""Pictures of forecasts: history, truth where there is one, forecast. Needs the `plot` extra (matplotlib)."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from tsformer.errors import UsageError
from tsformer.levels import ends_of, level_name
from tsformer.report.picture import picture

if TYPE_CHECKING:
    from tsformer.data.panel import Panel
    from tsformer.forecast import Forecast
    from tsformer.results import ForecastResult

MOST_PANELS = 6  # targets or series in one picture
LEVELS = (80.0, 95.0)  # of the bands in the picture of a fit
_SHADES = ("#fdcf9d", "#fee3c5", "#fff0df")  # of bands, the narrowest first
FORMATS = (".png", ".svg", ".pdf", ".jpg")


def available() -> bool:
    """Whether matplotlib is installed."""
    return importlib.util.find_spec("matplotlib") is not None


def require(file: Path) -> None:
    """Raises UsageError when a picture cannot be drawn: no matplotlib, or an ending that it does not know."""
    if not available():
        raise UsageError("pictures need matplotlib: pip install 'tsformer[plot]'")
    if file.suffix.lower() not in FORMATS:
        raise UsageError(f"--plot {file}: the file must end in {', '.join(FORMATS)}")


def plot_test(result: ForecastResult, file: Path) -> None:
    """The last test window of each series and target, as many as a picture can show: what the model saw, what came,
    what it said.

    Raises:
        ResourceError: the picture cannot be drawn or written.
    """
    from tsformer.preparation import origin_rows

    prepared = result.prepared
    problem, panel = prepared.problem, prepared.panel
    origins, of_series = origin_rows(prepared), np.asarray(prepared.test.series)
    targets = panel.schema.targets
    parts: list[_Part] = []
    tested = np.unique(of_series)  # gaps may leave a series without a window
    chosen = tested[_chosen(len(tested), len(targets))]
    last = np.searchsorted(of_series, chosen, side="right") - 1
    for series, window, intervals in zip(chosen.tolist(), last.tolist(), _intervals(result, last), strict=True):
        origin = int(origins[window])
        past = slice(max(panel.rows(series).start, origin - 3 * problem.lookback), origin)
        future = slice(origin, origin + problem.horizon)
        parts += [
            _Part(
                title=_name(panel, series, name),
                past=_line(panel, past, column),
                truth=(panel.times[future], panel.values[future, column]),
                forecast=(panel.times[future], result.forecast[window, :, column]),
                bands=_bands(intervals, column),
            )
            for column, name in enumerate(targets[: MOST_PANELS - len(parts)])
        ]
    title = f"{result.fitted.settings.model.name}: the last {problem.horizon} steps of the test part"
    _draw(parts, title + _shown(len(tested), len(targets)), file)


def plot_forecast(panel: Panel, forecast: Forecast, file: Path, model: str) -> None:
    """History and forecast of each series and target, as many as a picture can show.

    Args:
        panel: the rows that the forecast follows.
        forecast: of the same series.
        file: where to; its ending says the format.
        model: the model's name, for the title.

    Raises:
        ResourceError: the picture cannot be drawn or written.
    """
    horizon, targets = forecast.values.shape[1], panel.schema.targets
    parts: list[_Part] = []
    for series in _chosen(len(panel.ids), len(targets)):
        intervals = {level: [end[series] for end in forecast.interval(level)] for level in forecast.levels}
        rows = panel.rows(series)
        past = slice(max(rows.start, rows.stop - max(5 * horizon, 60)), rows.stop)
        parts += [
            _Part(
                title=_name(panel, series, name),
                past=_line(panel, past, column),
                truth=None,
                forecast=(forecast.times[series], forecast.values[series, :, column]),
                bands=_bands(intervals, column),
            )
            for column, name in enumerate(targets[: MOST_PANELS - len(parts)])
        ]
    title = f"{model}: forecast of {horizon} step{'s' if horizon > 1 else ''}"
    _draw(parts, title + _shown(len(panel.ids), len(targets)), file)


_Line = tuple[pd.Index, np.ndarray]
_Intervals = Mapping[float, Sequence[np.ndarray]]
"""By level in percent, ascending: the lower and the upper end, `[horizon, targets]`."""


class _Band(NamedTuple):
    """An interval around a forecast: level in percent, and both ends at each step."""

    level: float
    lower: np.ndarray
    upper: np.ndarray


@dataclass(frozen=True)
class _Part:
    """One small diagram.

    Attributes:
        bands: in ascending order of their levels.
    """

    title: str
    past: _Line
    truth: _Line | None
    forecast: _Line
    bands: tuple[_Band, ...] = ()


def _intervals(result: ForecastResult, windows: np.ndarray) -> list[_Intervals]:
    """Those of some test windows, none where the model does not say how values scatter."""
    from tsformer.nn.outputs import output_of
    from tsformer.predictive import Ask, predictive

    fitted, prepared = result.fitted, result.prepared
    if not output_of(fitted.problem).probabilistic:
        return [{}] * len(windows)
    ask = Ask(LEVELS)
    found = predictive(fitted, prepared.test.some(windows), prepared.data, ask).quantiles
    assert found is not None
    return [{level: ends_of(each, ask.levels, level) for level in ask.levels} for each in found]


def _bands(intervals: _Intervals, column: int) -> tuple[_Band, ...]:
    """The widest ones of a target, as many as there are shades."""
    widest = list(intervals.items())[-len(_SHADES) :]
    return tuple(_Band(level, *(end[:, column] for end in ends)) for level, ends in widest)


def _line(panel: Panel, rows: slice, column: int) -> _Line:
    """A line through the rows, which is interrupted where time is missing."""
    values, begins = panel.values[rows, column], panel.breaks - rows.start
    begins = begins[(begins > 0) & (begins < len(values))]
    order = np.insert(np.arange(len(values)), begins, begins)
    return panel.times[rows].take(order), np.insert(values, begins, np.nan)


def _chosen(series: int, targets: int) -> list[int]:
    """Which of the series are drawn: from the first to the last, evenly spaced, as many as there is room for."""
    room = -(-MOST_PANELS // targets)
    return [int(index) for index in np.linspace(0, series - 1, min(series, room)).round()]


def _name(panel: Panel, series: int, target: str) -> str:
    return f"{panel.ids[series]} {target}" if panel.schema.id else target


def _shown(series: int, targets: int) -> str:
    """The end of a title that says how many of all diagrams are there: ", 6 of 304 series", or nothing for all."""
    if series * targets <= MOST_PANELS:
        return ""
    if series == 1 or targets == 1:
        return f", {MOST_PANELS} of {series * targets} {'targets' if series == 1 else 'series'}"
    return f", {MOST_PANELS} of {series * targets} lines ({series} series, {targets} targets)"


def _draw(parts: Sequence[_Part], title: str, file: Path) -> None:
    with picture(file, 9, 1.2 + 2.4 * len(parts)) as figure:
        axes: Any = figure.subplots(len(parts), 1, squeeze=False)
        for part, axis in zip(parts, axes[:, 0], strict=True):
            _draw_part(part, axis)
        # On the line of the first diagram's title, at its right end: it hides no data there.
        legend = axes[0, 0].legend(
            loc="lower right", bbox_to_anchor=(1, 1), borderaxespad=0.1, frameon=False, ncols=6, fontsize=9
        )
        # Titles come last, when it is known how wide they may be.
        figure.draw_without_rendering()
        whole, width = figure.bbox.width, axes[0, 0].bbox.width
        beside = legend.get_window_extent().width
        _fit_in(figure.suptitle("", fontsize=11), title, 0.98 * whole)
        for row, (part, axis) in enumerate(zip(parts, axes[:, 0], strict=True)):
            _fit_in(axis.set_title("", fontsize=10, loc="left"), part.title, width - beside * (row == 0))


def _draw_part(part: _Part, axis: Any) -> None:
    axis.plot(*_xy(part.past), color="0.35", linewidth=1.2, label="history", **_dots(part.past))
    if part.truth is not None:
        truth = _joined(part.past, part.truth)
        axis.plot(*_xy(truth), color="tab:blue", linewidth=1.5, label="truth", **_dots(truth))
    line = _joined(part.past, part.forecast)
    axis.plot(*_xy(line), color="tab:orange", linewidth=1.8, linestyle="--", label="forecast")
    for place, band in enumerate(part.bands):  # each below those that are narrower
        times, lower = _xy(_joined(part.past, (part.forecast[0], band.lower)))
        _, upper = _xy(_joined(part.past, (part.forecast[0], band.upper)))
        name, shade = f"{level_name(band.level)} %", _SHADES[place]
        axis.fill_between(times, lower, upper, color=shade, linewidth=0, label=name, zorder=1 - 0.1 * place)
    axis.axvline(_xy(part.past)[0][-1], color="0.8", linewidth=0.8, zorder=0)
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(alpha=0.25)


def _dots(line: _Line) -> dict[str, Any]:
    """Small dots on a line with gaps, of which a value that stands alone would not be seen."""
    return {"marker": ".", "markersize": 3} if np.isnan(line[1]).any() else {}


def _fit_in(text: Any, words: str, width: float) -> None:
    """Set the words in one line, without what no font and no SVG can hold, and with the middle cut out if too wide."""
    words = " ".join("".join(sign if sign.isprintable() else " " for sign in words).split())
    text.set_text(words if len(words) <= 400 else f"{words[:200]} … {words[-200:]}")
    kept = min(len(words), 400)
    while kept > 8 and text.get_window_extent().width > width:
        kept = int(0.95 * kept)
        text.set_text(f"{words[: kept // 2]} … {words[-(kept // 2) :]}")


def _joined(past: _Line, then: _Line) -> _Line:
    """From the last point of the history on, so that the lines meet."""
    return past[0][-1:].append(then[0]), np.concatenate([past[1][-1:], then[1]])


def _xy(line: _Line) -> tuple[np.ndarray, np.ndarray]:
    times = line[0]
    if isinstance(times, pd.DatetimeIndex):
        times = times.tz_localize(None)
    return times.to_numpy(), line[1]
