"""Cells that are intervals without blanks: hours of a day (00:00-01:00), years that begin in one (2000/01)."""

from __future__ import annotations

import pandas as pd

_HOURS = r"^(?P<start>(?:.*[ T])?(?P<H>\d{1,2})[:.](?P<M>\d{2}))-(?P<toH>\d{1,2})[:.](?P<toM>\d{2})$"
_YEARS = r"^(?P<year>\d{4})[-/](?P<next>\d{2})$"


def starts_of(cells: pd.Series) -> pd.Series | None:
    """The starts of distinct cells `[rows]` that are intervals, every one; None where one is not.

    The whole column tells: an end that is always as long after the start is no offset from UTC, and no month is always
    the next year.
    """
    if len(cells) < 2:
        return None
    hours = _extracted(cells, _HOURS)
    if hours is not None:
        clock = hours[["H", "M", "toH", "toM"]].astype(int)
        lasting = (60 * (clock["toH"] - clock["H"]) + clock["toM"] - clock["M"]) % (24 * 60)
        if lasting.nunique() == 1 and lasting.iloc[0] > 0 and len(clock[["H", "M"]].drop_duplicates()) > 1:
            return hours["start"].astype(object)
    years = _extracted(cells, _YEARS)
    if years is not None and ((years["year"].astype(int) + 1) % 100 == years["next"].astype(int)).all():
        return years["year"].astype(object)
    return None


def _extracted(cells: pd.Series, shape: str) -> pd.DataFrame | None:
    found = cells.head(1).str.extract(shape)
    if found.iloc[0].isna().any():
        return None
    found = cells.str.extract(shape)
    return None if found.isna().any(axis=None) else found
