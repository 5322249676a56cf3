"""Days on which a country or an exchange is closed, and the steps that leave them out."""

import sys

import numpy as np
import pandas as pd
import pytest
from pandas.tseries.holiday import USFederalHolidayCalendar

from tsformer.data.frequency import next_times, season_of
from tsformer.data.holidays import closed_days
from tsformer.errors import UsageError

CHRISTMAS = np.datetime64("2024-12-25")


@pytest.fixture(scope="module", autouse=True)
def _package():
    pytest.importorskip("holidays")


def test_holidays_of_the_united_states_are_those_of_pandas():
    days = closed_days("US", [2023, 2024])
    assert days.dtype == "datetime64[D]"
    assert set(USFederalHolidayCalendar().holidays("2023-01-01", "2024-12-31").to_numpy("datetime64[D]")) <= set(days)
    assert (np.diff(days) > np.timedelta64(0)).all()


def test_exchanges_and_parts_of_countries():
    assert np.datetime64("2024-03-29") in closed_days("NYSE", [2024]), "Good Friday"
    assert CHRISTMAS in closed_days("ECB", range(2024, 2025))
    assert np.datetime64("2024-08-15") in closed_days("DE-SL", [2024]), "Assumption Day, in Saarland"
    assert np.datetime64("2024-08-15") not in closed_days("DE", [2024])


@pytest.mark.parametrize(("name", "meant"), [("nyse", "NYSE"), ("us", "US"), ("DE-BX", "DE-HB")])
def test_unknown_names(name, meant):
    with pytest.raises(UsageError, match=f"--holidays {name}: no country .* did you mean '{meant}"):
        closed_days(name, [2024])


def test_without_the_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "holidays", None)
    with pytest.raises(UsageError, match=r"pip install 'tsformer\[calendar\]'"):
        closed_days("US", [1999])


def test_next_times_leave_holidays_out():
    last = pd.Timestamp("2024-12-20 16:00")
    made = next_times(last, "B", 250, holidays="NYSE")
    days = pd.bdate_range("2024-12-23", "2026-12-31")
    opened = days[~days.isin(pd.DatetimeIndex(closed_days("NYSE", range(2024, 2027))))][:250]
    assert (made == opened + pd.Timedelta(hours=16)).all()
    assert pd.Timestamp("2024-12-25 16:00") in next_times(last, "B", 5)
    shop = next_times(pd.Timestamp("2024-12-23"), "C-MON-TUE-WED-THU-FRI-SAT", 4, holidays="DE")
    assert [f"{day:%a %d}" for day in shop] == ["Tue 24", "Fri 27", "Sat 28", "Mon 30"]
    assert len(next_times(last, "D", 10, holidays="NYSE").difference(pd.date_range(last, periods=11))) == 0


def test_the_season_of_open_days_is_the_week():
    assert season_of("C-MON-TUE-WED-THU-FRI-SAT") == 6
    assert season_of("B") == 5
    assert season_of("2C-MON-TUE-WED-SAT") == 2
