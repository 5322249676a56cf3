"""How a table writes its times: formats, and times written in them; `data.stamps` reads.

A format is one of `strftime` with a few words more:

    %-d %-m %-H %-I %-V   without a leading zero
    %1f to %6f            a fraction of a second, of as many digits
    %^b %^B %P            months in capitals, am and pm in small letters
    %:z                   an offset from UTC with a colon
    %q                    the quarter, 1 to 4
    %y                    the year in two digits, 1950 to 2049
    %s                    seconds since 1970 (%s%3f are milliseconds); %E days of a spreadsheet, since 1899-12-30

Weeks (%G W%V) are their Monday, quarters and months their first day. Times are in microseconds, so any year from 1000
on will do.
"""

from __future__ import annotations

import re

import numpy as np
import pandas as pd

from tsformer.data.step import DAY
from tsformer.errors import UsageError

OFFSET = r"\s?(?:Z|UTC|GMT|[+-]\d{2}(?::?\d{2})?)"
"""How cells write an offset from UTC."""

_TOKEN = re.compile(r"%%|%[-^]?[A-Za-z]|%[1-6]f|%:z|[^%]+|%")
OFFSET_END = re.compile(rf"(?:(?<!%)(?:{OFFSET})|\s?%:?z)$")
FRACTION = re.compile(r"(?<!%)%([1-6]?)f")
_OWN = re.compile(r"%(?:-[A-Za-z]|\^[bB]|:z|[1-6]?f|[PqsE])")
_YEAR_FIRST = re.compile(
    r"%Y(?:[-/.]%-?m(?:[-/.]%-?d(?:[ T]%-?H:%M(?::%S(?:\.%[1-6]?f)?)?" + rf"(?:{OFFSET}|\s?%:?z)?)?)?)?"
)
_PARTS = {"Y": r"\d{4}", "G": r"\d{4}", "j": r"\d{1,3}", "q": "[1-4]", "u": "[1-7]", "f": r"\d{1,9}", "s": r"\d+"}
_PARTS |= {"y": r"\d{2}", "E": r"\d+(?:\.\d*)?", **dict.fromkeys("dmHIMSVUW", r"\d{1,2}")}
_PARTS |= dict.fromkeys("bBaApP", r"[^\W\d_][^\W\d_.]*\.?(?:[Mm]\.)?")
SHEET = np.datetime64("1899-12-30", "us")
_MONDAY = " %u"


def check_format(time_format: str) -> None:
    """Raise UsageError when a format cannot be read, or names no year."""
    try:
        pd.to_datetime(pd.Series(["x"]), format=in_pandas(OFFSET_END.sub("", time_format)), errors="coerce")
    except ValueError as error:
        raise UsageError(f"--data.time-format {time_format!r}: {error}") from None
    if not re.search(r"%[YyGcxsE]", time_format):
        raise UsageError(f"--data.time-format {time_format!r} names no year: for example '%m/%d/%Y %H:%M'")


def is_own_format(time_format: str) -> bool:
    """Whether a format begins with the year, month and day: whatever else is written like that reads alike."""
    return bool(_YEAR_FIRST.fullmatch(time_format))


def names_offset(time_format: str) -> bool:
    """Whether times in a format name their offset from UTC, or count from 1970 in UTC."""
    return bool(OFFSET_END.search(time_format)) or "%s" in _TOKEN.findall(time_format)


def in_any_zone(time_format: str) -> str:
    """The format of times that no longer have the one offset which it spells out."""
    found = OFFSET_END.search(time_format)
    if found is None or found[0].endswith("z"):
        return time_format
    blank = " " if found[0][0] == " " else ""
    return time_format[: found.start()] + blank + ("%z" if re.search(r"\d{4}$", found[0]) else "%:z")


def write_times(times: pd.DatetimeIndex, time_format: str) -> np.ndarray:
    """Times `[rows]` as text, the inverse of `stamps.read_written`; times of another zone show their own wall clock.

    "%3f" in the format is a fraction of three digits, or of as many as the times need.
    """
    text = np.full(len(times), "", dtype=object)
    plain = ""
    for token in [*_TOKEN.findall(time_format), ""]:
        if token and not _OWN.fullmatch(token):
            plain += token
            continue
        if plain:
            text = text + np.asarray(times.strftime(plain), dtype=object)
            plain = ""
        if token:
            text = text + _written(times, token)
    return text


def directives_of(time_format: str) -> set[str]:
    """The directives of a format, and what stands between them."""
    return set(_TOKEN.findall(time_format))


def as_written(cells: pd.Series, time_format: str) -> str:
    """The format in the writing of the cells `[rows]`: leading zeros, digits of a fraction, capitals."""
    text = pd.Series(cells.array, dtype=object)
    if len(text) > 3000:
        order = np.argsort(text.str.len().to_numpy(), kind="stable")
        few = np.concatenate((order[:500], order[-500:], np.linspace(0, len(text) - 1, 2000).astype(np.int64)))
        text = text.iloc[np.unique(few)]
    if text.str.fullmatch(r"\d+").all():
        return time_format
    found = text.str.extract(pattern(time_format))
    tokens = [_like(token, found) for token in _TOKEN.findall(time_format)]
    # Where all days have two digits anyway, they are written like the months, and months like the days.
    date = [token for token in tokens if token in ("%d", "%-d", "%m", "%-m")]
    either = [token for token in date if len(token) == 2 and not found[token[-1]].str.startswith("0").any()]
    bare = any(token[1] == "-" for token in date)
    return "".join(f"%-{token[1]}" if bare and token in either else token for token in tokens)


def pattern(time_format: str) -> re.Pattern[str]:
    """What cells in that format look like, a group for each directive; offsets are not looked into."""
    parts: list[str] = []
    end = OFFSET_END.search(time_format)
    for token in _TOKEN.findall(time_format[: end.start()] if end else time_format):
        part = _PARTS.get(token[-1]) if token[0] == "%" else None
        if part is None:
            parts.append(re.escape("%" if token == "%%" else token))
        elif token[-1] == "f" and parts and parts[-1].endswith((r"\.", ",")):
            mark = parts.pop()[-1]
            parts.append(rf"(?:[{mark}](?P<f>{part}))?")
        else:
            parts.append(part if f"(?P<{token[-1]}>" in "".join(parts) else f"(?P<{token[-1]}>{part})")
    return re.compile("^" + "".join(parts) + (f"(?:{OFFSET})" if end else "") + "$")


def show(time: object) -> str:
    """A time as short as it can be written: no midnight, no empty seconds."""
    if not isinstance(time, pd.Timestamp):
        return str(time)
    parts = (time.hour, time.minute, time.second, time.microsecond)  # a day may begin at 01:00: no normalize()
    clock = "" if not any(parts) else " %H:%M" if not any(parts[2:]) else " %H:%M:%S"
    return time.strftime(f"%Y-%m-%d{clock}") + (time.strftime("%z") if clock and time.tz else "")


def in_pandas(time_format: str) -> str:
    """The format as pandas knows it, for weeks with the number of a day behind; an offset is not looked into."""
    known = {"%q": "%m", "%s": "%Y", "%E": "%Y", "%P": "%p", "%:z": "%z"}
    tokens = (known.get(token, token) for token in _TOKEN.findall(time_format))
    plain = "".join(FRACTION.sub("%f", re.sub(r"^%[-^]", "%", token)) for token in tokens)
    return plain + _MONDAY if is_week(time_format) else plain


def is_week(time_format: str) -> bool:
    """Whether a format names a week and none of its days."""
    return bool(re.search("%-?V", time_format)) and not re.search("%[uwaA]", time_format)


def _written(times: pd.DatetimeIndex, token: str) -> np.ndarray:
    """What a directive that only tsformer knows writes, text `[rows]`."""
    micros = np.asarray(times.microsecond)
    match token:
        case "%q":
            return np.asarray(times.quarter.astype(str), dtype=object)
        case "%s":
            return np.asarray((times.as_unit("us").asi8 // 10**6).astype(str), dtype=object)
        case "%E":
            days = (times.tz_localize(None).as_unit("us").asi8 - SHEET.astype(np.int64)) / DAY
            return np.array([f"{day:.10f}".rstrip("0").rstrip(".") for day in days], dtype=object)
        case "%P":
            return np.asarray(times.strftime("%p").str.lower(), dtype=object)
        case "%:z":
            return np.asarray(times.strftime("%z").str.replace(r"(\d{2})(\d{2})$", r"\1:\2", regex=True), dtype=object)
        case "%^b" | "%^B":
            return np.asarray(times.strftime("%" + token[2]).str.upper(), dtype=object)
    if token[1] == "-":
        return np.asarray(times.strftime("%" + token[2]).str.replace(r"^0+(?=\d)", "", regex=True), dtype=object)
    digits = int(token[1]) if token != "%f" else 6
    while (micros % 10 ** (6 - digits)).any():
        digits += 1
    return np.array([f"{micro:06d}"[:digits] for micro in micros], dtype=object)


def _like(token: str, found: pd.DataFrame) -> str:
    """A directive as the parts of the cells `[rows, directives]` are written."""
    if token[0] != "%" or token[-1] not in found:
        return token
    cells = found[token[-1]].dropna()
    if token[-1] in "dmHIV" and len(token) == 2:
        return f"%-{token[1]}" if (cells.str.len() == 1).any() and not cells.str.match(r"0\d").any() else token
    if token in ("%b", "%B"):
        return f"%^{token[1]}" if len(cells) and cells.str.isupper().all() else token
    if token == "%p":
        return "%P" if cells.str.islower().any() else token
    if token[-1] == "f" and len(cells):
        digits = min(int(cells.str.len().max()), 6)
        return "%f" if digits == 6 else f"%{digits}f"
    return token
