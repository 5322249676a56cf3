"""The score of a fitted forecaster, beside naive forecasts: as a whole, or by series, by step, by target."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, get_args

import pandas as pd

from tsformer.data.identity import split_id
from tsformer.data.panel import Panel
from tsformer.errors import UsageError
from tsformer.evaluation.backtest import Backtest, backtest
from tsformer.evaluation.cautions import not_beaten, without_forecast, without_mape, without_mase
from tsformer.evaluation.entries import Entry
from tsformer.evaluation.metrics import Metrics, overall_weighted_average
from tsformer.evaluation.windows_plan import rows_plan, test_plan
from tsformer.fitted import Fitted
from tsformer.intervals import kind_of_intervals
from tsformer.plugin import Task
from tsformer.predictive import Ask

By = Literal["series", "horizon", "target"]


def evaluate(
    fitted: Fitted,
    panel: Panel,
    *,
    held_out: bool,
    ask: Ask | None = None,
    intervals: str | None = None,
    keep: bool = False,
) -> Backtest:
    """Forecast and score all windows.

    Args:
        fitted: the model; it goes by the name of its plugin.
        panel: the data of its fit, or other rows.
        held_out: only the test part of them, as the fit had it.
        ask: levels of intervals.
        intervals: where they come from; conformal ones are made of what was known at each origin.
        keep: whether forecasts are kept.

    Raises:
        DataError: there is no window to score.
        UsageError: the model makes no forecasts, or not the intervals that are asked for.
    """
    require_forecasts(fitted)
    kind_of_intervals(fitted, ask or Ask(), intervals)
    panel, plan = (test_plan if held_out else rows_plan)(fitted, panel)
    name, season = fitted.settings.model.name, fitted.problem.season
    return backtest(
        {name: fitted}, panel, plan, ask=ask, intervals=intervals, season=season, keep=keep, by_origin=False
    )


def require_forecasts(fitted: Fitted) -> None:
    """Raises UsageError for a run of another task."""
    task = fitted.problem.task
    if task is not Task.FORECAST:
        raise UsageError(
            f"evaluate scores forecasts, and the task of this run is {task}: its score on the test part is in the "
            "metrics of its manifest.json"
        )


def cautions(found: Backtest, *, held_out: bool) -> list[str]:
    """What the user should not overlook, one line each."""
    name, part = next(iter(found.entries)), "test part" if held_out else "given rows"
    own = found.entries[name].score
    naive = {entry.name: entry.score for entry in found.entries.values() if entry.yardstick}
    rows = int(found.plan.before.max())
    return [
        *not_beaten(name, own, naive, found.season, part),
        *without_forecast(naive, part),
        *without_mase(own, found.season, rows),
        *without_mape(own),
    ]


def scores(found: Backtest, by: str | None = None) -> pd.DataFrame:
    """A row for each model and, with `by`, for each series, step or target; the model comes first.

    Raises:
        UsageError: it is none of these.
    """
    if by is not None and by not in get_args(By):
        raise UsageError(f"--by must be one of {', '.join(get_args(By))}, not {by!r}")
    rows = [row for entry in found.entries.values() for row in _rows(found, entry, by)]
    return pd.DataFrame(rows)


def _rows(found: Backtest, entry: Entry, by: str | None) -> Iterator[dict[str, Any]]:
    reference = found.entries.get(found.reference)
    naive = reference.score.overall if reference is not None else None
    naive2 = found.entries.get("naive2")
    for key, metrics, other in _parts(found, entry, by):
        row: dict[str, Any] = {"model": entry.name, **key, **metrics, "skill": skill(metrics, other or naive)}
        if by is None and naive2 is not None:
            row["owa"] = overall_weighted_average(metrics, naive2.score.overall)
        yield row


def _parts(
    found: Backtest, entry: Entry, by: str | None
) -> Iterator[tuple[dict[str, object], Metrics, Metrics | None]]:
    """Key, numbers, and those of the reference in the same part."""
    reference = found.entries.get(found.reference)
    if by is None:
        yield {}, entry.score.overall, None
    elif by == "target":
        for name, metrics in entry.score.by_target.items():
            yield {"target": name}, metrics, reference.score.by_target[name] if reference else None
    elif by == "horizon":
        others = reference.errors.by_horizon() if reference else []
        for step, metrics in enumerate(entry.errors.by_horizon()):
            yield {"step": step + 1}, metrics, others[step] if others else None
    else:
        of_series = reference.errors.by_series() if reference else {}
        for number, metrics in entry.errors.by_series().items():
            yield _names(found.panel, number, metrics), metrics, of_series.get(number)


def _names(panel: Panel, number: int, metrics: Metrics) -> dict[str, object]:
    """What tells a series apart, in the columns of the user's table; a name that a score has gets "_" behind it."""
    schema, name = panel.schema, panel.ids[number]
    if not schema.id_columns:
        columns = {schema.id or "series": name}
    else:
        columns = dict(zip(schema.id_columns, split_id(name), strict=True))
    taken = {"model", "skill", *metrics}
    found: dict[str, object] = {}
    for column, value in columns.items():
        while column in taken:
            column += "_"
        found[column] = value
        taken.add(column)
    return found


def skill(own: Metrics, naive: Metrics | None) -> float | None:
    """1 less the ratio of MASE, or of MAE where there is none, to that of the naive forecast; None where it is 0."""
    for name in ("mase", "mae"):
        mine, other = own.get(name), None if naive is None else naive.get(name)
        if mine is not None and other:
            return 1 - mine / other
    return None
