"""The .tsf files of the Monash archive: attributes, then a series a line, "name:start:1,2,?".

Godahewa et al., Monash Time Series Forecasting Archive, 2021. Each becomes a long table: unique_id, ds, y.
"""

from __future__ import annotations

import re

import numpy as np
import pandas as pd

from tsformer.errors import DataError
from tsformer.findings import Finding

_STEPS = {
    "yearly": (12, "M"),
    "quarterly": (3, "M"),
    "monthly": (1, "M"),
    "weekly": (7, "D"),
    "daily": (1, "D"),
    "hourly": (1, "h"),
    "half_hourly": (30, "m"),
    "minutely": (1, "m"),
    "secondly": (1, "s"),
}
_UNITS = {"minutes": "m", "seconds": "s", "hours": "h"}


def is_tsf(content: bytes) -> bool:
    """Whether a text is one: attributes of series, then @data."""
    return content.startswith((b"#", b"@")) and re.search(rb"(?mi)^@attribute\b", content[:65536]) is not None


def read(text: str, name: str) -> tuple[pd.DataFrame, tuple[Finding, ...]]:
    """The table, with a counter for times where series have no start; attributes other than name and start are said.

    Raises:
        DataError: a line that is no series, or attributes that are missing.
    """
    attributes: list[tuple[str, str]] = []
    frequency = ""
    ids: list[str] = []
    starts: list[str] = []
    values: list[np.ndarray] = []
    rows = enumerate(text.splitlines(), 1)
    for _, line in rows:
        word, _, rest = line.strip().partition(" ")
        if word.lower() == "@attribute":
            attribute, _, kind = rest.strip().partition(" ")
            attributes.append((attribute, kind.strip()))
        elif word.lower() == "@frequency":
            frequency = rest.strip()
        elif word.lower() == "@data":
            break
    else:
        raise DataError(f"{name} has no @data line: it is no .tsf file")
    names = [attribute for attribute, _ in attributes]
    date = next((place for place, (_, kind) in enumerate(attributes) if kind == "date"), None)
    key = names.index("series_name") if "series_name" in names else 0
    for number, line in rows:
        if not line.strip() or line.startswith("#"):
            continue
        parts = line.strip().split(":")
        if len(parts) != len(attributes) + 1:
            raise DataError(f"{name} line {number} has {len(parts) - 1} attribute(s), not {len(attributes)}: {names}")
        try:
            values.append(np.array(parts[-1].replace("?", "nan").split(","), dtype=np.float64))
        except ValueError:
            raise DataError(f"{name} line {number} holds values that are no numbers: {parts[-1][:40]!r}") from None
        ids.append(parts[key])
        starts.append("" if date is None else parts[date])
    if not ids:
        raise DataError(f"{name} has no series below @data")
    lengths = np.array([len(series) for series in values])
    counter = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    times = counter + 1 if date is None else _times(starts, lengths, counter, frequency, name)
    frame = pd.DataFrame(
        {
            "unique_id": pd.Series(np.repeat(np.array(ids, dtype=object), lengths), dtype=object),
            "ds": times,
            "y": np.concatenate(values),
        }
    )
    others = [attribute for place, attribute in enumerate(names) if place not in (key, date)]
    begun = "" if date is None else _begun(starts, times, lengths)
    left = f"; attributes left out: {', '.join(others)}" if others else ""
    step = frequency or "no frequency"
    text = f"{len(ids)} series of a .tsf file as the columns unique_id, ds and y, {step}{begun}{left}"
    return frame, (Finding("tsf", text, count=len(ids)),)


def _times(starts: list[str], lengths: np.ndarray, counter: np.ndarray, frequency: str, name: str) -> pd.DatetimeIndex:
    """Steps of calendar months are counted in months, others in their unit; days are kept, or the last of a month.

    Where series of years or quarters begin in different months of them, the first day stands for each year or quarter.
    """
    found = re.fullmatch(r"(\d+)_(\w+)", frequency)
    if found and found[2] in _UNITS:
        count, unit = int(found[1]), _UNITS[found[2]]
    elif frequency in _STEPS:
        count, unit = _STEPS[frequency]
    else:
        raise DataError(f"{name} has the frequency {frequency!r}: one of {', '.join(_STEPS)} or 10_minutes is needed")
    try:
        first = np.array([_stamp(start) for start in starts], dtype="datetime64[s]")
    except ValueError as error:
        raise DataError(f"{name} has a start that is no time, {error}: 1990-01-31 12-00-00 is one") from None
    origin = np.repeat(first, lengths)
    if unit != "M":
        days = unit == "D"
        origin = origin.astype("datetime64[D]").astype("datetime64[s]") if days else origin
        return pd.DatetimeIndex((origin + (counter * count).astype(f"timedelta64[{unit}]")).astype("datetime64[us]"))
    month = origin.astype("datetime64[M]")
    day = (origin.astype("datetime64[D]") - month.astype("datetime64[D]")).astype(np.int64)
    since = month.astype(np.int64) % count
    if np.ptp(since):
        month, day = month - since, np.zeros_like(day)
    moved = month + counter * np.timedelta64(count, "M")
    last = (moved + 1).astype("datetime64[D]") - moved.astype("datetime64[D]") - np.timedelta64(1, "D")
    return pd.DatetimeIndex(
        (moved.astype("datetime64[D]") + np.minimum(day, last.astype(np.int64))).astype("datetime64[us]")
    )


def _begun(starts: list[str], times: pd.DatetimeIndex, lengths: np.ndarray) -> str:
    """What to say of series whose first day is not that of the file."""
    days = np.array([start.strip().partition(" ")[0] for start in starts], dtype="datetime64[D]")
    moved = int((days != times[np.cumsum(lengths) - lengths].to_numpy().astype("datetime64[D]")).sum())
    return f"; {moved} of them begin within a year or quarter, for which its first day stands" if moved else ""


def _stamp(text: str) -> np.datetime64:
    date, _, clock = text.strip().partition(" ")
    return np.datetime64(f"{date}T{clock.replace('-', ':') or '00:00:00'}", "s")
