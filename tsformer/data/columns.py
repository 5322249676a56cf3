"""What columns are called: like times, like a part of one, or like what tells the time again."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pandas as pd

from tsformer.errors import DataError
from tsformer.tables.time_numbers import are_whole, are_years, epoch_format, is_counter, is_monotonic

DATES = frozenset({"ds", "date", "datetime", "timestamp", "datum", "fecha", "日期", "날짜", "日時", "일시"})
_STAMPS = {*DATES, "time", "ts", "year", "unix", "epoch", "unixtime", "epochtime", "unixtimestamp", "zeit", "jahr"}
_COUNTERS = {"t", "step", "index", "timestep"}
_NUMBERED = {"day": 366, "week": 53, "month": 12, "quarter": 4}
_LARGEST = {"m": 12, "q": 4, "V": 53, "d": 366, "j": 366, "H": 24, "M": 60, "S": 60, "dayofweek": 7, "weekday": 7}
_RANKS = {**dict.fromkeys(_STAMPS, 0), **dict.fromkeys(_COUNTERS, 1), **dict.fromkeys(_NUMBERED, 2)}
_WORDS = {*_STAMPS, *_NUMBERED}
_ROLES = {
    "Y": {"year", "yr", "yyyy", "jahr", "ano", "año", "année", "annee", "anno"},
    "m": {"month", "mon", "mo", "mnth", "monat", "mes", "mois", "mese", "monthofyear", "monthnumber"},
    "q": {"quarter", "qtr", "quartal", "trimestre"},
    "V": {"week", "weekofyear", "weeknumber", "isoweek", "kw", "wk", "woche", "kalenderwoche", "semana", "semaine"},
    "d": {"day", "dayofmonth", "dateofmonth", "dom", "mday", "tag", "dia", "día", "jour", "giorno"},
    "j": {"dayofyear", "doy", "yday", "julianday"},
    "H": {"hour", "hr", "hours", "hourofday", "he", "hourending", "hourbeginning", "stunde", "hora", "heure", "ora"},
    "M": {"minute", "minutes"},
    "S": {"second", "seconds"},
}
_WEEKS = {*_ROLES["V"], "yearweek", "weeks"}
_ROLE_OF = {name: role for role, names in _ROLES.items() for name in names}
_CLOCKS = {
    "time",
    "clock",
    "hour",
    "hr",
    "he",
    "hhmm",
    "hourending",
    "hourbeginning",
    "zeit",
    "uhrzeit",
    "stunde",
    "hora",
    "heure",
    "ora",
}


def is_time_name(name: str) -> bool:
    """Whether a column is called like a time: ds, Date, date_time, MapDate, week_start ..."""
    return _plain(name) in _RANKS or not _WORDS.isdisjoint(_words(name))


def is_date_name(name: str) -> bool:
    """Whether a column is called like a date, whatever else its name says."""
    return "".join(_words(name)) in DATES or not DATES.isdisjoint(_words(name))


def is_clock_name(name: str) -> bool:
    """Whether a column is called like a time of day."""
    return not _CLOCKS.isdisjoint(_words(name))


def is_week_name(name: str) -> bool:
    """Whether a column is called like a week: week, year_week, KW, but not weekday."""
    return part_of_time(name) == "V" or not _WEEKS.isdisjoint(_words(name))


def part_of_time(name: str) -> str | None:
    """Which part of a time a column is called, as a directive of `strftime`: Y, m, d, H, M, S, q, V (week), j."""
    return _ROLE_OF.get(_plain(name))


def rank(name: str) -> tuple[int, bool]:
    """How much a column is called like a time, the smaller the more."""
    nameless = name.startswith("Unnamed: ")
    return 1 if nameless else _RANKS.get(_plain(name), 3), nameless


_NAMELESS = re.compile(r"Unnamed: \d+|c\d+")
"""What columns are called that the table does not name; those of a table without any names are c1, c2, ..."""


def kind_of(name: str, values: np.ndarray) -> str:
    """What numbers `[rows]` in a column of that name are to the time: "years", "epoch" (seconds since 1970), "counter",
    "irregular" (a time by its name, which cannot be taken), or "" (a measurement)."""
    grade, words, monotonic = _RANKS.get(_plain(name)), _words(name), is_monotonic(values)
    ordered = monotonic or is_counter(values, several=True)
    if are_years(values) and (grade == 0 or "year" in words) and (ordered or part_of_time(name) == "Y"):
        return "years"
    if not is_time_name(name):
        if not _NAMELESS.fullmatch(name) or not is_counter(values, several=True):
            return ""
        return "epoch" if epoch_format(values) else "counter" if name.startswith("Unnamed: ") else ""
    if epoch_format(values) and (grade == 0 or monotonic):
        return "epoch"
    # A name that only contains a word of time (travel_time) needs one step from the first row to the last.
    if is_counter(values, several=grade in (0, 1)):
        return "counter"
    named = grade is not None and (are_whole(values) or (grade == 0 and monotonic))
    return "irregular" if named or is_date_name(name) else ""


def tells_time_again(name: str, values: np.ndarray) -> bool:
    """Whether numbers `[rows]` beside the column of times are times too: years, months, counters, seconds."""
    kind = kind_of(name, values)
    if kind == "years":
        return "year" in _words(name) or is_counter(values, several=True)
    largest = _LARGEST.get(part_of_time(name) or _plain(name))
    return kind in ("epoch", "counter") or (
        largest is not None and are_whole(values) and bool(values.min() >= 0 and values.max() <= largest)
    )


def index_name(frame: pd.DataFrame, source: str) -> str:
    """What an index of dates is called; where it has no name, one that no column has.

    Raises:
        DataError: when another column has its name.
    """
    if frame.index.name is None:
        return free_name(frame)
    name = str(frame.index.name)
    if name in frame and not pd.Index(frame[name]).equals(frame.index):
        raise DataError(
            f"{source}: the index and a column are both called {name!r}: rename_axis('time') renames the index"
        )
    return name


def free_name(frame: pd.DataFrame) -> str:
    """A name for a column of times that no column has."""
    free = itertools.chain(("time", "date", "ds"), (f"time_{i}" for i in itertools.count()))
    return next(name for name in free if name not in frame)


def _plain(name: str) -> str:
    return re.sub(r"[\W_]+", "", name.lower())


def _words(name: str) -> list[str]:
    """The words of a name, also those that only a capital letter tells apart."""
    parts = re.findall(r"[^\W\d_]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name))
    return [part.lower() for part in parts]
