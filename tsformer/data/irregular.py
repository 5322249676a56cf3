"""What is wrong with times that take no regular step: one line that says what, where, and what to do."""

from __future__ import annotations

from typing import NoReturn

import numpy as np
import pandas as pd

from tsformer.data.clock import show
from tsformer.data.grid import Frequency
from tsformer.data.months import DAY_RULES, weekday_of
from tsformer.data.pattern import by_month, is_regular, propose_days
from tsformer.data.step import DAY, MICROSECONDS, Step, commonest
from tsformer.data.wall import calendar, passed, shown
from tsformer.errors import DataError
from tsformer.findings import Finding
from tsformer.tables.zones import clock_changes, zone_of_days

LONG_STRETCH = 64
"""Rows without a gap that are worth a stretch of their own."""

MOST_FILLED = 20
"""Rows that may be filled in for each one that is there."""

_FEW_WEEKENDS = 0.05
"""Share of rows on weekends below which days are trading days, or working days, all the same."""

_USUAL = [
    count * MICROSECONDS[unit]
    for unit, counts in (("ms", (1, 10, 100)), ("s", (1, 5, 10, 15, 30)), ("min", (1, 2, 5, 10, 15, 30)), ("h", (1, 2)))
    for count in counts
]
_USUAL += [hours * MICROSECONDS["h"] for hours in (3, 4, 6, 8, 12, 24, 7 * 24)]
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def refuse_gaps(
    times: pd.Index, missing: np.ndarray, frequency: Frequency, everywhere: np.ndarray | None = None
) -> NoReturn:
    """Raise DataError for `missing` steps `[rows - 1]` after the times `[rows]` of a series.

    Args:
        everywhere: the same of all series in the table, which choose the remedy; None if this one is alone.
    """
    first, longest = int((missing > 0).argmax()), int(missing.argmax())
    count, gaps = int(missing.sum()), int((missing > 0).sum())
    step = "weekday(s)" if frequency == "B" else f"step(s) of {frequency}"
    message = (
        f"{count} {step} missing in {gaps} gap(s): the first, {int(missing[first])} missing, between "
        f"{show(times[first])} and {show(times[first + 1])}; the longest, {int(missing[longest])} missing, after "
        f"{show(times[longest])}"
    )
    if frequency == "D" and isinstance(times, pd.DatetimeIndex):
        message += _weekdays_left_out(times)
    kind, remedy, options = _settlement(times, missing if everywhere is None else everywhere, frequency)
    message = f"{message}: {remedy}"
    example = f"{show(times[first])} to {show(times[first + 1])}"
    finding = Finding(kind, message, "fault", count=count, example=example, remedy=remedy, options=options)
    raise DataError(message, finding=finding)


def _settlement(times: pd.Index, missing: np.ndarray, frequency: Frequency) -> tuple[str, str, dict[str, object]]:
    """Kind, remedy and options of gaps in the times `[rows]`; `missing` steps are those of the whole table."""
    if isinstance(times, pd.DatetimeIndex) and isinstance(frequency, str):
        zone = clock_changes(times) if times.tz is None and Step.parse(frequency).absolute else None
        if zone:
            return "clock_change", zone_remedy(zone), {"data.tz": zone}
        if frequency == "D" and 0 < _on_weekends(times).sum() < _FEW_WEEKENDS * len(times):
            remedy = "--freq B --duplicates last counts these with their Friday, or add the missing rows"
            return "gaps", remedy, {"data.freq": "B", "data.duplicates": "last"}
    options = gap_options(missing)
    return "gaps", _gap_remedy(options), options


def zone_remedy(zone: str) -> str:
    """What to do about local times that a zone's clock changes explain."""
    return (
        f"the clock changes of {zone} (and of zones with the same changes) skip or repeat it; --tz {zone} reads the "
        "times so, or write the times in UTC"
    )


def gap_options(missing: np.ndarray) -> dict[str, object]:
    """What settles `missing` steps `[rows - 1]`: rows without values where these are few or stretches short."""
    rows, count = len(missing) + 1, int(np.maximum(missing, 0).sum())
    edges = np.concatenate(([0], np.flatnonzero(missing > 0) + 1, [rows]))
    stretches = np.diff(edges)
    in_long = int(stretches[stretches >= LONG_STRETCH].sum())
    if count > MOST_FILLED * rows or (count > rows and in_long > rows / 2):
        return {"data.gaps": "split"}
    return {"data.gaps": "fill", "data.missing": "mask"}


def step_histogram(times: pd.Index) -> list[tuple[str, int]]:
    """The steps from one of the times `[rows]` to the next in words, "1 h 30 min", and how many; most first."""
    dates = isinstance(times, pd.DatetimeIndex)
    found, counts = np.unique(np.diff(_values(times)), return_counts=True)
    most = np.argsort(-counts, kind="stable")
    return [(span_in_words(found[i]) if dates else f"{found[i]:.6g}", int(counts[i])) for i in most]


def refuse_steps(times: pd.Index, frequency: Frequency, fits: np.ndarray, *, alone: bool = True) -> NoReturn:
    """Raise DataError for times `[rows]` without a regular step, or that do not fit `[rows]` the frequency.

    Args:
        alone: False says that other series do take the frequency, which is then the remedy as well.
    """
    values, histogram = _values(times), step_histogram(times)
    options = step_options(times, frequency) if alone else _brought_to(frequency)
    remedy = "bring the rows to one step, for example by resampling"
    listed = ", ".join(f"{span} ({count}x)" for span, count in histogram[:4])
    if isinstance(times, pd.DatetimeIndex):
        wall = calendar(times)
        if not wall.keeps_clock.all() and _are_dates(wall.days, values):
            first = show(times[int((~wall.keeps_clock).argmax())])
            where = f"{int((~wall.keeps_clock).sum())} row(s) at another time of day, the first {first}"
            zone = None if times.tz is None else zone_of_days(times)
            if zone is not None:
                remedy = f"--tz {zone} reads them as days, all of which begin at midnight there"
                _refuse(f"steps are irregular: {listed}; {where}", remedy, first, {"data.tz": zone})
            options = step_options(times, str(propose_days(wall.days))) if alone else options
            _refuse(f"steps are irregular: {listed}; {where}", _date_remedy(times), first, options)
        unit = Step.parse(frequency).unit if isinstance(frequency, str) else ""
        if by_month(wall.days) or (unit in DAY_RULES and not fits.all()):
            remedy = "data by the month, quarter or year need the same day of it: the first, the last, the 15th"
    at = int((~fits).argmax())
    where = "" if fits.all() else f"{show(times[at])} does not lie on {frequency}"
    if not where and len(histogram) > 1:
        at = int((np.diff(values) != commonest(np.diff(values))).argmax())
        where = f"the first that differs from {show(times[at])} to {show(times[at + 1])}"
    steps = f"steps are irregular: {listed}{' and others' if len(histogram) > 4 else ''}" if listed else ""
    _refuse("; ".join(part for part in (steps, where) if part), remedy, show(times[at]), options)


def step_options(times: pd.Index, frequency: Frequency) -> dict[str, object]:
    """What settles irregular times `[rows]`: the step that most of them nearly take, if one does."""
    steps = np.diff(_values(times))
    if len(steps) < 3:
        return {}
    if isinstance(times, pd.DatetimeIndex):
        by_days = isinstance(frequency, str) and not Step.parse(frequency).absolute
        length = commonest(steps)
        if not by_days and 2 * (steps == length).sum() <= len(steps):
            length = _round_length(float(np.median(steps)))
        chosen: Frequency = frequency if by_days else str(Step.lasting(length))
        usual = float(np.median(steps)) if by_days else float(length)
    else:
        usual = float(np.median(steps))
        chosen = f"{usual:.10g}"
    if 2 * (np.abs(steps - usual) < usual / 2).sum() <= len(steps):
        return {}
    return _brought_to(chosen)


def _brought_to(frequency: Frequency) -> dict[str, object]:
    return {"data.freq": str(frequency), "data.duplicates": "mean", "data.gaps": "fill", "data.missing": "mask"}


def _refuse(what: str, remedy: str, example: str, options: dict[str, object]) -> NoReturn:
    if "data.freq" in options:
        remedy += f"; --freq {options['data.freq']} --duplicates mean --gaps fill --missing mask does so"
    message = f"{what}: {remedy}"
    finding = Finding("irregular", message, "fault", example=example, remedy=remedy, options=options)
    raise DataError(message, finding=finding)


def _values(times: pd.Index) -> np.ndarray:
    return passed(times) if isinstance(times, pd.DatetimeIndex) else times.to_numpy()


def _round_length(microseconds: float) -> int:
    """The usual length of time that is nearest, by ratio."""
    return min(_USUAL, key=lambda length: abs(np.log(microseconds / length)))


def _gap_remedy(options: dict[str, object]) -> str:
    if options["data.gaps"] == "split":
        return "add the missing rows, or --gaps split, with which no window crosses a gap"
    return (
        "add the missing rows, or --gaps fill with --missing mask, which hides them from the model "
        "(--gaps split: no window crosses a gap)"
    )


def _on_weekends(times: pd.DatetimeIndex) -> np.ndarray:
    """Which of the times `[rows]` are on a Saturday or Sunday."""
    return np.asarray(times.day_of_week >= 5)


def _weekdays_left_out(times: pd.DatetimeIndex) -> str:
    """What the weekdays of nearly daily times `[rows]` tell of their gaps."""
    found = np.bincount(weekday_of(shown(times) // DAY), minlength=7)
    weekend = _on_weekends(times)
    if 0 < weekend.sum() < _FEW_WEEKENDS * len(times):
        at = show(times[int(weekend.argmax())])
        return f"; most rows are weekdays, but {int(weekend.sum())} fall on a weekend, the first {at}"
    left_out = np.flatnonzero(found == 0)
    if len(times) < 20 or not 0 < len(left_out) < 3:
        return ""
    return f"; no row is a {' or a '.join(_WEEKDAYS[day] for day in left_out)}"


def _date_remedy(times: pd.DatetimeIndex) -> str:
    """What to do with dates whose time of day is not always the same."""
    hours = np.unique(shown(times) % DAY)
    if times.tz is not None and len(hours) == 2 and (hours[1] - hours[0]) in (DAY // 24, DAY - DAY // 24):
        return "write the dates without the time of day, or convert the times to the zone whose days they are"
    return "write the dates without the time of day"


def _are_dates(days: np.ndarray, values: np.ndarray) -> bool:
    """Whether days from 1970-01-01 `[rows]`, at times that are irregular, would do without the time of day."""
    if len(days) < 3 or (np.diff(days) < 1).any():
        return False
    # Gaps and the like are for the next message, once the steps are days.
    return is_regular(days) or commonest(np.diff(values)) % DAY == 0


def span_in_words(microseconds: int) -> str:
    """A length of time in words: 31 days, 1 h 30 min."""
    rest, words = int(microseconds), []
    for unit, size in (("d", DAY), *reversed(MICROSECONDS.items())):
        count, rest = divmod(rest, size)
        if count:
            words.append(f"{count} {unit}")
    return " ".join(words) or "0"
