"""The days on which a country or an exchange is closed, from the package `holidays` (extra: calendar)."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import numpy as np

from tsformer.errors import UsageError, did_you_mean


def closed_days(name: str, years: Iterable[int]) -> np.ndarray:
    """The holidays of these years, datetime64[D] in order of time.

    Args:
        name: an exchange ("NYSE", "ECB"), a country ("US", "DE"), or a part of one ("US-CA", "DE-BY").
        years: they may go beyond those that are certain: rules are carried on.

    Raises:
        UsageError: for a name that is not known, or without the package.
    """
    return _closed_days(name, tuple(sorted(set(years))))


@lru_cache(maxsize=64)
def _closed_days(name: str, years: tuple[int, ...]) -> np.ndarray:
    try:
        import holidays
    except ModuleNotFoundError:
        raise UsageError("holidays need a package: pip install 'tsformer[calendar]'") from None
    exchanges = holidays.list_supported_financial()
    countries = holidays.list_supported_countries()
    country, _, part = name.partition("-")
    if name in exchanges:
        found = holidays.financial_holidays(name, years=years)
    elif country in countries and (not part or part in countries[country]):
        found = holidays.country_holidays(country, subdiv=part or None, years=years)
    else:
        parts = [f"{country}-{known}" for known in countries.get(country, ())]
        hint = did_you_mean(name.upper(), [*exchanges, *countries, *parts])
        raise UsageError(f"--holidays {name}: no country (US, DE, US-CA) or exchange (NYSE, ECB) has that name{hint}")
    return np.array(sorted(found), dtype="datetime64[D]")
