"""What the user should not overlook about a score: naive forecasts that are not beaten, and errors without a scale."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tsformer.data.cells import listed
from tsformer.evaluation.metrics import Metrics, Score

METRICS = {"mase": "MASE", "mae": "MAE", "rmse": "RMSE", "smape": "sMAPE"}


def not_beaten(
    model: str, test: Score, baselines: Mapping[str, Score], season: int, part: str = "test part"
) -> Iterator[str]:
    """A line for each naive forecast that has no larger error than the model by some metric: which, and both errors.

    Args:
        model: its name; a naive forecast is not compared with itself.
        test: the model's errors.
        baselines: those of the naive forecasts.
        season: with a season of 1 the seasonal naive forecast is the last value once more.
        part: what was scored, in words.
    """
    if season == 1:
        if model in baselines:
            return
        baselines = {name: score for name, score in baselines.items() if name != "seasonal_naive"}
    for name, score in baselines.items():
        worse = list(_not_better(test.overall, score.overall)) if name != model else []
        if worse:
            yield f"{model} does not beat {name} on the {part}: {', '.join(worse)}"


def _not_better(own: Metrics, naive: Metrics) -> Iterator[str]:
    for key, metric in METRICS.items():
        mine, other = own[key], naive[key]
        if mine is not None and other is not None and mine >= other and mine > 0:  # both may be perfect
            yield f"{metric} {mine:.4g} against {other:.4g}"


def without_forecast(baselines: Mapping[str, Score], part: str = "test part") -> Iterator[str]:
    """A line for each naive forecast that has nothing to say for some values: how many were left out of its errors."""
    for name, score in baselines.items():
        if 0 < score.left_out < score.values:
            yield (
                f"{name} has no value to repeat for {score.left_out} of {score.values} values of the {part}; left "
                "out of its errors"
            )


def too_narrow(test: Score, intervals: str | None, part: str = "test part") -> Iterator[str]:
    """A line where intervals miss half as many values again as they may.

    Args:
        intervals: where they come from.
    """
    for name, held in test.overall.items():
        level = float(name.removeprefix("coverage_")) / 100 if name.startswith("coverage_") else None
        if level is not None and held is not None and 1 - held > 1.5 * (1 - level) and test.values > 20 / (1 - level):
            why = (
                "the rows before it are not like it"
                if intervals in ("conformal", "adaptive")
                else "they are too narrow"
            )
            yield f"{100 * level:.10g} % intervals hold only {100 * held:.1f} % of the {part}: {why}"


def without_mase(test: Score, season: int, rows: int) -> Iterator[str]:
    """A line on what has no MASE, and why.

    Args:
        rows: before the test part, of the longest series.
    """
    if not test.without_mase:
        return
    if rows <= season:
        yield f"MASE is undefined: the season of {season} is not shorter than the {rows} rows before the test part"
    elif test.series > 1:
        yield (
            f"MASE is undefined for {test.series_without_mase} of {test.series} series, which repeat themselves each "
            "season or have no more than one before the test part; left out of it"
        )
    else:
        yield (
            f"MASE is undefined where a series repeats itself each season; left out of it: {listed(test.without_mase)}"
        )


def without_mape(test: Score) -> Iterator[str]:
    """A line on how many true values are 0, and have no MAPE."""
    if test.zeros:
        yield f"MAPE leaves out {test.zeros} of {test.values} values, which are 0"
