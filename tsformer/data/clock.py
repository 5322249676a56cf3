"""How a table writes its times: recognised, read, and written again in the same way.

Only what begins with the year can be read without being told ("2024", "2024-01", "2024/01/31", "2024-01-31T16:00Z");
for all else the order of day and month would be a guess. Times are in microseconds, so any year from 1000 on will do.
"""

from __future__ import annotations

import re
from datetime import UTC, timedelta, timezone, tzinfo

import numpy as np
import pandas as pd

from tsformer.errors import DataError, UsageError

_OFFSET = r"(?:\s?Z|\s?[+-]\d{2}(?::?\d{2})?)"
_CLOCK = rf"([ T])\d{{1,2}}:\d{{2}}(:\d{{2}}(?:\.\d{{1,6}})?)?({_OFFSET})?"
_ISO = re.compile(rf"[1-9]\d{{3}}([-/])\d{{1,2}}(?:\1\d{{1,2}}(?:{_CLOCK})?)?")
_YEAR = r"[1-9]\d{3}"
_OWN_FORMAT = re.compile(r"%Y(?:[-/]%m(?:[-/]%d(?:[ T]%H:%M(?::%S(?:\.%[1-5]?f)?)?" + _OFFSET + r"?)?)?)?")
_FRACTION = re.compile(r"(?<!%)%([1-5]?)f")
_DATE_LIKE = re.compile(
    r"\s*(?:\d{1,4}[./-]\d{1,2}([./-]\d{1,4})|\d{4}\s?-?[QW]\d|(?:\d{1,2}[ -])?[A-Z][a-z]{2,8}\.?[ -]\d{1,4}\b)"
)
_LONE_UNIT = re.compile(r"(?<![\d.])(\d)(?!\d)")

_DAYS = ("%m/%d/%Y", "%d/%m/%Y", "%d.%m.%Y", "%Y.%m.%d", "%m/%d/%y", "%d/%m/%y", "%d-%m-%Y", "%m-%d-%Y", "%Y%m%d")
_WORDS = ("%b %d, %Y", "%b %d %Y", "%d %b %Y", "%d-%b-%Y", "%d-%b-%y", "%B %d, %Y", "%b %Y", "%b-%y")
_CLOCKS = ("", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p")
_DIGITS = {4: "%Y", 6: "%Y%m", 8: "%Y%m%d", 10: "%Y%m%d%H", 12: "%Y%m%d%H%M", 14: "%Y%m%d%H%M%S"}


def looks_like_date(cell: str) -> bool:
    """Whether a person would take the cell for a date, readable or not."""
    return bool(_ISO.fullmatch(cell.strip()) or _DATE_LIKE.match(cell))


def reads_as_date(values: np.ndarray) -> bool:
    """Whether numbers `[rows]` are, every one of them, dates without separators (201701, 20201020)."""
    if not are_whole(values) or values.min() < 180000 or values.max() > 2.2e13:
        return False
    return bool(suggest_formats(pd.Series(values.astype(np.int64))))


def are_whole(values: np.ndarray) -> bool:
    """Whether numbers `[rows]` are all finite and whole, however they are stored."""
    return bool(len(values) and np.isfinite(values).all() and (values == np.rint(values)).all())


def are_years(values: np.ndarray) -> bool:
    """Whether numbers `[rows]` may all be years."""
    return are_whole(values) and bool(values.min() >= 1000 and values.max() <= 3000)


def epoch_unit(values: np.ndarray) -> str | None:
    """What numbers `[rows]` count from 1970 on, if they may all be times between 1980 and 2100; None otherwise."""
    if not are_whole(values):
        return None
    units = {"seconds": 1.0, "milliseconds": 1e3, "microseconds": 1e6, "nanoseconds": 1e9}
    first, last = float(values.min()), float(values.max())
    return next((unit for unit, size in units.items() if 3.1e8 * size <= first and last <= 4.2e9 * size), None)


def is_monotonic(values: np.ndarray) -> bool:
    """Whether numbers `[rows]`, three at least, only rise, or only fall."""
    steps = np.diff(values)
    return len(steps) > 1 and bool((steps > 0).all() or (steps < 0).all())


def is_counter(values: np.ndarray, *, several: bool) -> bool:
    """Whether numbers `[rows]` count in one step; with `several` also those of several series in one table."""
    steps = np.diff(values)
    steps = -steps if (steps <= 0).all() else steps
    ahead, other = steps[steps > 0], steps[steps <= 0]
    if len(ahead) < 2 or np.ptp(ahead) > 1e-3 * ahead.min():
        return False
    # By time (0, 0, 1, 1, 2, 2), or one series after another (0, 1, 2, 0, 1, 2); 20, 21, 20, 21 is a measurement.
    one_by_one = len(ahead) > len(steps) / 2 and (other <= -1.9 * ahead.min()).all()
    return not len(other) or (several and bool((other == 0).all() or one_by_one))


def is_own_format(time_format: str) -> bool:
    """Whether a `strftime` format is one that `read_times` finds without being told."""
    return bool(_OWN_FORMAT.fullmatch(time_format))


def read_times(cells: pd.Series, time_format: str | None = None) -> tuple[pd.DatetimeIndex, str]:
    """Times and the `strftime` format that writes them as they were read.

    Args:
        cells: text `[rows]`; the index is not looked at.
        time_format: how the user says that times are written; None reads year-first forms only. Whole numbers of
            four digits are years.

    Returns:
        times `[rows]` in microseconds, aware if the cells name an offset, and the format.

    Raises:
        DataError: `UnreadableTimeError` with the first row that is no such time, and why.
        UsageError: when the format is not one.
    """
    text = cells.astype(object).map(lambda cell: str(cell).strip()).reset_index(drop=True)
    if time_format is None:
        return _read_iso(text)
    check_format(time_format)
    try:
        times = pd.to_datetime(text, format=_FRACTION.sub("%f", time_format), errors="coerce")
    except ValueError as error:
        raise UnreadableTimeError(0, f"offsets from UTC differ ({error}): convert the times to UTC") from None
    if times.dtype == object:
        raise UnreadableTimeError(0, "offsets from UTC differ: convert the times to UTC")
    bad = times.isna().to_numpy()
    if bad.any():
        raise UnreadableTimeError(int(bad.argmax()), f"is not written as {time_format!r}", int(bad.sum()))
    index = pd.DatetimeIndex(times).as_unit("us")
    if text.str.fullmatch(r"\d+").all():
        # 1022024 as %d%m%Y would be 10 February, though it was 01022024 before a spreadsheet took it for a number.
        lost = write_times(index, time_format) != text.to_numpy()
        if lost.any():
            raise UnreadableTimeError(int(lost.argmax()), f"lacks a digit of {time_format!r}", int(lost.sum()))
    return index, _with_digits(time_format, text)


class UnreadableTimeError(DataError):
    """A cell that is no time. `row` counts from 0; `count` rows are like it."""

    def __init__(self, row: int, why: str, count: int = 1) -> None:
        super().__init__(why)
        self.row, self.why, self.count = row, why, count


def check_format(time_format: str) -> None:
    """Raise UsageError when a `strftime` format cannot be read, or names no year."""
    try:
        pd.to_datetime(pd.Series(["x"]), format=_FRACTION.sub("%f", time_format), errors="coerce")
    except ValueError as error:
        raise UsageError(f"--data.time-format {time_format!r}: {error}") from None
    if not re.search(r"%[YyGcx]", time_format):
        raise UsageError(f"--data.time-format {time_format!r} names no year: for example '%m/%d/%Y %H:%M'")


def suggest_formats(cells: pd.Series) -> list[str]:
    """The `strftime` formats that read all cells `[rows]`: none, one, or several when day and month may swap."""
    text = cells.astype(object).map(lambda cell: str(cell).strip())
    text = text[text != ""].drop_duplicates()
    if text.empty:
        return []
    if text.str.fullmatch(r"[12]\d+").all():
        formats = [_DIGITS[n] for n in set(text.str.len()) if n in _DIGITS]
    else:
        formats = [day + clock for clock in _CLOCKS for day in _DAYS + _WORDS]
    sample = text.head(3)
    return [f for f in formats if _reads(sample, f) and _reads(text, f)]


def write_times(times: pd.DatetimeIndex, time_format: str) -> np.ndarray:
    """Times `[rows]` as text, the inverse of `read_times`; times of another zone show their own wall clock.

    "%3f" in the format is a fraction of three digits, or of as many as the times need.
    """
    fraction = _FRACTION.search(time_format)
    if fraction is None or not fraction[1]:
        return np.asarray(times.strftime(time_format), dtype=object)
    digits, micros = int(fraction[1]), np.asarray(times.microsecond)
    while (micros % 10 ** (6 - digits)).any():
        digits += 1
    head = write_times(times, time_format[: fraction.start()])
    tail = write_times(times, time_format[fraction.end() :])
    middle = np.array([f"{micro:06d}"[:digits] for micro in micros], dtype=object)
    return np.asarray(head + middle + tail, dtype=object)


def show(time: object) -> str:
    """A time as short as it can be written: no midnight, no empty seconds."""
    if not isinstance(time, pd.Timestamp):
        return str(time)
    clock = "" if time == time.normalize() else " %H:%M" if time.second == time.microsecond == 0 else " %H:%M:%S"
    return time.strftime(f"%Y-%m-%d{clock}") + (time.strftime("%z") if clock and time.tz else "")


def _read_iso(text: pd.Series) -> tuple[pd.DatetimeIndex, str]:
    first = str(text.iloc[0]) if len(text) else ""
    if text.str.fullmatch(_YEAR).all():
        return _parse(text, text), "%Y"
    shape = _ISO.fullmatch(first)
    if not shape:
        raise UnreadableTimeError(0, "is empty" if not first else "is not a date that begins with the year")
    separator, blank, seconds, offset = shape[1], shape[2], shape[3], shape[4] or ""
    pattern, time_format = rf"{_YEAR}{separator}\d{{1,2}}", f"%Y{separator}%m"
    if first.count(separator, 0, 10) > 1:
        pattern, time_format = pattern + rf"{separator}\d{{1,2}}", time_format + f"{separator}%d"
    if blank:
        pattern, time_format = pattern + rf"{blank}\d{{1,2}}:\d{{2}}", f"{time_format}{blank}%H:%M"
    if seconds:
        # Fractions are left out at whole seconds by some writers, so rows may differ in that.
        pattern += r":\d{2}(?:\.\d{1,6})?"
        time_format += ":%S" + (".%f" if text.str.contains(".", regex=False).any() else "")
    bad = ~text.str.fullmatch(pattern + re.escape(offset)).to_numpy(dtype=bool)
    if bad.any():
        row = int(bad.argmax())
        if offset and re.fullmatch(pattern + _OFFSET, str(text[row])):
            raise UnreadableTimeError(row, f"has another offset from UTC than {first!r}: convert the times to UTC")
        why = "is empty" if not text[row] else f"is not written like the first, {first!r}"
        raise UnreadableTimeError(row, why, int(bad.sum()))
    local = text.str.slice(0, -len(offset)) if offset else text
    times = _parse(local, text)
    if offset:
        times = times.tz_localize(_zone(offset.strip()))
    return times, _with_digits(time_format, text) + offset


def _with_digits(time_format: str, text: pd.Series) -> str:
    """The format with a fraction of a second as long as the longest that the cells `[rows]` write."""
    if not _FRACTION.search(time_format):
        return time_format
    digits = text.str.extract(r":\d{2}[.,](\d{1,6})", expand=False).str.len().max()
    return _FRACTION.sub("%f" if pd.isna(digits) or digits == 6 else f"%{int(digits)}f", time_format)


def _parse(local: pd.Series, text: pd.Series) -> pd.DatetimeIndex:
    cells = local.str.replace("/", "-", regex=False)
    if cells.str.len().nunique() > 1 or _LONE_UNIT.search(str(cells.iloc[0])):
        cells = cells.map(lambda cell: _LONE_UNIT.sub(r"0\1", cell))
    try:
        return pd.DatetimeIndex(np.array(cells.tolist(), dtype=str).astype("datetime64[us]"))
    except ValueError:
        bad = np.array([not _exists(cell) for cell in cells])
        raise UnreadableTimeError(int(bad.argmax()), "is not a date of the calendar", int(bad.sum())) from None


def _exists(cell: str) -> bool:
    try:
        np.datetime64(cell, "us")
    except ValueError:
        return False
    return True


def _zone(offset: str) -> tzinfo:
    if offset == "Z":
        return UTC
    digits = offset[1:].replace(":", "").ljust(4, "0")
    minutes = 60 * int(digits[:2]) + int(digits[2:])
    if minutes >= 24 * 60:
        raise UnreadableTimeError(0, "has an offset of a day or more from UTC")
    return timezone(timedelta(minutes=-minutes if offset[0] == "-" else minutes))


def _reads(text: pd.Series, time_format: str) -> bool:
    try:
        times = pd.to_datetime(text, format=time_format, errors="coerce")
    except ValueError:
        return False
    if times.isna().any():
        return False
    return bool(times.dt.year.between(1800, 2200).all())
