"""Pictures of forecasts: history, truth where there is one, forecast. Needs the `plot` extra (matplotlib)."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from tsformer.errors import ResourceError, UsageError

if TYPE_CHECKING:
    from tsformer.data.panel import Panel
    from tsformer.fitting import Result
    from tsformer.forecast import Forecast

MOST_PANELS = 6  # targets or series in one picture
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


def plot_test(result: Result, file: Path) -> None:
    """The last test window of each target: what the model saw, what came, what it said."""
    from tsformer.preparation import origin_rows

    prepared = result.prepared
    problem, panel = prepared.problem, prepared.panel
    origin, series = int(origin_rows(prepared)[-1]), int(prepared.test.series[-1])
    past = slice(max(int(panel.offsets[series]), origin - 3 * problem.lookback), origin)
    future = slice(origin, origin + problem.horizon)
    parts = [
        _Part(
            title=name,
            past=(panel.times[past], panel.values[past, column]),
            truth=(panel.times[future], panel.values[future, column]),
            forecast=(panel.times[future], result.forecast[-1, :, column]),
        )
        for column, name in enumerate(panel.schema.targets[:MOST_PANELS])
    ]
    title = f"{result.fitted.settings.model.name}: the last {problem.horizon} steps of the test part"
    _draw(parts, title, file)


def plot_forecast(panel: Panel, forecast: Forecast, file: Path) -> None:
    """History and forecast of each series and target, as many as a picture can show."""
    horizon = forecast.values.shape[1]
    parts: list[_Part] = []
    for series in range(len(panel.ids)):
        rows = panel.rows(series)
        past = slice(max(rows.start, rows.stop - max(5 * horizon, 60)), rows.stop)
        for column, name in enumerate(panel.schema.targets):
            if len(parts) < MOST_PANELS:
                parts.append(
                    _Part(
                        title=f"{panel.ids[series]} {name}" if panel.schema.id else name,
                        past=(panel.times[past], panel.values[past, column]),
                        truth=None,
                        forecast=(forecast.times[series], forecast.values[series, :, column]),
                    )
                )
    _draw(parts, f"forecast of {horizon} steps", file)


_Line = tuple[pd.Index, np.ndarray]


@dataclass(frozen=True)
class _Part:
    """One small diagram."""

    title: str
    past: _Line
    truth: _Line | None
    forecast: _Line


def _draw(parts: Sequence[_Part], title: str, file: Path) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 1.2 + 2.4 * len(parts)), layout="constrained")
    FigureCanvasAgg(figure)  # no display, and no global state of pyplot
    axes: Any = figure.subplots(len(parts), 1, squeeze=False)
    for part, axis in zip(parts, axes[:, 0], strict=True):
        axis.plot(*_xy(part.past), color="0.35", linewidth=1.2, label="history")
        if part.truth is not None:
            axis.plot(*_xy(_joined(part.past, part.truth)), color="tab:blue", linewidth=1.5, label="truth")
        line = _joined(part.past, part.forecast)
        axis.plot(*_xy(line), color="tab:orange", linewidth=1.8, linestyle="--", label="forecast")
        axis.axvline(_xy(part.past)[0][-1], color="0.8", linewidth=0.8, zorder=0)
        axis.set_title(part.title, fontsize=10, loc="left")
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(alpha=0.25)
    axes[0, 0].legend(loc="upper left", frameon=False, ncols=3, fontsize=9)
    figure.suptitle(title, fontsize=11)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(file, dpi=120)
    except OSError as error:
        raise ResourceError(f"cannot write the picture '{file}': {error.strerror or error}") from None


def _joined(past: _Line, then: _Line) -> _Line:
    """From the last point of the history on, so that the lines meet."""
    return past[0][-1:].append(then[0]), np.concatenate([past[1][-1:], then[1]])


def _xy(line: _Line) -> tuple[np.ndarray, np.ndarray]:
    times = line[0]
    if isinstance(times, pd.DatetimeIndex):
        times = times.tz_localize(None)
    return times.to_numpy(), line[1]
