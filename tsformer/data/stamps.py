"""Text as times, by a format of `data.clock`."""

from __future__ import annotations

import re
from datetime import UTC, timedelta, timezone, tzinfo

import numpy as np
import pandas as pd

from tsformer.data.clock import (
    FRACTION,
    OFFSET,
    OFFSET_END,
    SHEET,
    directives_of,
    in_pandas,
    is_week,
    pattern,
    write_times,
)
from tsformer.data.step import DAY
from tsformer.errors import DataError

CENTURY = 50
"""Of years in two digits 00 to 49 are 20.. and 50 to 99 are 19.. (RFC 5280, UTCTime)."""
_HUNDRED_YEARS = timedelta(days=36525)
_SECONDS = re.compile(r"%S[.,]%[1-6]?f")


class UnreadableTimeError(DataError):
    """A cell that is no time. `row` counts from 0; `count` rows are like it."""

    def __init__(self, row: int, why: str, count: int = 1) -> None:
        super().__init__(why)
        self.row, self.why, self.count = row, why, count


def read_written(cells: pd.Series, time_format: str) -> pd.DatetimeIndex:
    """Times in text `[rows]`, in microseconds; aware where the format has an offset, in UTC where offsets differ.

    The end of a day may be written 24:00. Fractions of a second may be left out in some cells.

    Raises:
        DataError: `UnreadableTimeError` with the first row that is no such time, and why.
    """
    text = pd.Series(cells.array, dtype=object)
    end = OFFSET_END.search(time_format)
    directives = directives_of(time_format)
    if not len(text):
        return pd.DatetimeIndex(np.empty(0, dtype="datetime64[us]"))
    if directives & {"%s", "%E"}:
        return _read_count(text, time_format, sheet="%E" in directives)
    if end is None:
        return _required(_read_local(text, time_format), text, time_format)
    local, offsets = _without_offset(text)
    times = _required(_read_local(local, time_format[: end.start()]).where(offsets.notna()), text, time_format)
    zones = {offset: zone_of(offset) for offset in offsets.unique()}
    if len(zones) == 1:
        return times.tz_localize(next(iter(zones.values())))
    shift = offsets.map({offset: zone.utcoffset(None) for offset, zone in zones.items()})
    return (times - pd.TimedeltaIndex(shift).as_unit("us")).tz_localize("UTC")


def zone_of(offset: str) -> tzinfo:
    """The zone that is an offset from UTC as cells write it: Z, +01, +0100, +01:00."""
    offset = offset.strip()
    if offset in ("Z", "UTC", "GMT"):
        return UTC
    digits = offset[1:].replace(":", "").ljust(4, "0")
    minutes = 60 * int(digits[:2]) + int(digits[2:])
    if minutes >= 24 * 60:
        raise UnreadableTimeError(0, "has an offset of a day or more from UTC")
    return timezone(timedelta(minutes=-minutes if offset[0] == "-" else minutes))


def _without_offset(text: pd.Series) -> tuple[pd.Series, pd.Series]:
    """Cells `[rows]` without their offsets, and these; missing where a cell has none."""
    first = re.search(OFFSET + "$", str(text.iloc[0]))
    if first and text.str.endswith(first[0]).all():
        return text.str.slice(0, -len(first[0])), pd.Series(first[0], index=text.index, dtype=object)
    found = text.str.extract(rf"^(.*?\d)({OFFSET})$")
    return found[0].fillna("").astype(object), found[1].astype(object)


def _required(times: pd.Series, text: pd.Series, time_format: str) -> pd.DatetimeIndex:
    """The times `[rows]`, all of which must be there."""
    bad = times.isna().to_numpy()
    if bad.any():
        row = int(bad.argmax())
        found = pattern(time_format).match(str(text.iloc[row]))
        parts = found.groupdict() if found else {}
        like = found is not None and int(parts.get("m", 1)) <= 12 and int(parts.get("H", 0)) <= 24
        why = "is not a date of the calendar" if like else f"is not written as {time_format!r}"
        raise UnreadableTimeError(row, why if text.iloc[row] else "is empty", int(bad.sum()))
    index = pd.DatetimeIndex(times).as_unit("us")
    if str(text.iloc[0]).isdecimal() and text.str.fullmatch(r"\d+").all():
        # 1022024 as %d%m%Y would be 10 February, though it was 01022024 before a spreadsheet took it for a number.
        lost = (text.str.len() < len(write_times(index[:1], time_format)[0])).to_numpy()
        if lost.any():
            raise UnreadableTimeError(int(lost.argmax()), f"lacks a digit of {time_format!r}", int(lost.sum()))
    return index


def _read_local(text: pd.Series, time_format: str) -> pd.Series:
    """Times `[rows]` without a zone, NaT where a cell is none."""
    if _SECONDS.search(time_format):
        found = text.str.extract(r"^(.*:\d{1,2})(?:[.,](\d{1,6})0*)?([^\d.,]*)$")
        whole = (found[0] + found[2]).fillna("").astype(object)
        micros = found[1].fillna("0").str.ljust(6, "0").astype(np.int64)
        return _read_local(whole, _SECONDS.sub("%S", time_format)) + pd.to_timedelta(micros, unit="us").dt.as_unit("us")
    if "%q" in time_format:
        found = text.str.extract(pattern(time_format))
        good = found["q"].notna()
        year = "Y" if "Y" in found else "y"
        months = (3 * found["q"][good].astype(int) - 2).astype(str)
        return _read_local(found[year][good] + "-" + months, f"%{year}-%m").reindex(text.index)
    if "%p" in time_format.lower() and text.str.contains("[ap][.]", case=False).any():
        text = text.str.replace(r"(?i)\b([ap])\.\s?m\.?", r"\1m", regex=True)
    if is_week(time_format):
        text = text + " 1"
    times = pd.Series(pd.to_datetime(text, format=in_pandas(time_format), errors="coerce"), index=text.index)
    if "%y" in time_format:
        times = times.where(~(times.dt.year >= 2000 + CENTURY), times - _HUNDRED_YEARS)
    late = times.isna()
    if late.any() and re.search("%-?H", time_format):
        times[late] = _read_midnight(text[late], time_format)
    return times


def _read_midnight(text: pd.Series, time_format: str) -> pd.Series:
    """Times `[rows]` of cells that write midnight as 24:00 of the day before, NaT where one does not."""
    shape = pattern(time_format)
    found = {row: shape.match(cell) for row, cell in text.items()}
    late = {row: hit for row, hit in found.items() if hit and hit["H"] == "24"}
    cells = [hit.string[: hit.start("H")] + "00" + hit.string[hit.end("H") :] for hit in late.values()]
    times = pd.to_datetime(pd.Series(cells, dtype=object), format=in_pandas(time_format), errors="coerce")
    times = times.where(times == times.dt.normalize()) + timedelta(days=1)
    return pd.Series(times.array, index=list(late)).reindex(text.index)


def _read_count(text: pd.Series, time_format: str, *, sheet: bool) -> pd.DatetimeIndex:
    """Times of cells `[rows]` that count seconds since 1970, or days of a spreadsheet."""
    shape = r"\d+(?:\.\d*)?" if sheet or "." in time_format else r"\d+"
    bad = ~text.str.fullmatch(shape).to_numpy(dtype=bool)
    if bad.any():
        raise UnreadableTimeError(int(bad.argmax()), f"is not written as {time_format!r}", int(bad.sum()))
    if sheet:
        micros = np.rint(text.astype(np.float64).to_numpy() * DAY).astype(np.int64)
        return pd.DatetimeIndex(SHEET + micros.view("timedelta64[us]"))
    if text.str.contains(".", regex=False).any():
        return _since_1970(np.rint(text.astype(np.float64).to_numpy() * 1e6).astype(np.int64))
    count = text.astype(np.int64).to_numpy()
    digits = sum(int(found or 6) for found in FRACTION.findall(time_format)) + 3 * time_format.endswith("000")
    finer = count % 10 ** max(digits - 6, 0) != 0
    if finer.any():
        raise UnreadableTimeError(int(finer.argmax()), "is finer than a microsecond", int(finer.sum()))
    return _since_1970(count * 10 ** (6 - digits) if digits <= 6 else count // 10 ** (digits - 6))


def _since_1970(micros: np.ndarray) -> pd.DatetimeIndex:
    return pd.DatetimeIndex(micros.view("datetime64[us]")).tz_localize("UTC")
