"""Spellings of frequencies: what pandas 2 and 3 write is read, and what is written pandas reads."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tsformer.data.frequency import normalise, season_of
from tsformer.data.step import Step
from tsformer.errors import UsageError


@st.composite
def steps(draw):
    """Any step, as `Step` would hold it."""
    count = draw(st.integers(1, 30))
    kind = draw(st.sampled_from(["length", "D", "C", "W", "months", "day", "halves", "WOM", "LWOM"]))
    if kind == "length":
        return Step.lasting(count * draw(st.sampled_from([1, 10**3, 10**6, 60 * 10**6, 3600 * 10**6])))
    if kind == "D":
        return Step(count, draw(st.sampled_from(["D", "B"])))
    if kind == "C":
        return Step.on(draw(st.sets(st.integers(0, 6), min_size=1)), count)
    if kind == "W":
        return Step(count, "W", draw(st.integers(0, 6)))
    if kind == "halves":
        unit = draw(st.sampled_from(["SMS", "SME"]))
        return Step(count, unit, day=draw(st.integers(2 if unit == "SMS" else 1, 27)))
    if kind == "WOM":
        return Step(count, "WOM", day=draw(st.integers(0, 27)))
    if kind == "LWOM":
        return Step(count, "LWOM", day=draw(st.integers(0, 6)))
    cycle = 12 if count % 12 == 0 else 3 if count == 3 else 0
    phase = draw(st.integers(0, cycle - 1)) if cycle and draw(st.booleans()) else None
    if kind == "day":
        return Step(count, "MS", phase, draw(st.integers(2, 30)))
    return Step(count, draw(st.sampled_from(["MS", "ME", "BMS", "BME"])), phase)


@given(step=steps())
def test_every_step_is_written_and_read_again(step):
    text = str(step)
    assert Step.parse(text) == step
    assert normalise(text) == text
    if step.unit not in ("LWOM", "C") and not (step.unit == "MS" and step.day):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            offset = pd.tseries.frequencies.to_offset(text)
        assert Step.parse(offset.freqstr) == step


@given(weekdays=st.sets(st.integers(0, 6), min_size=2, max_size=6), first=st.integers(-20_000, 20_000))
def test_open_days_are_counted_one_by_one(weekdays, first):
    step = Step.on(weekdays)
    days = np.arange(first, first + 30)
    ordinals, fits = step.ordinals(days)
    opened = pd.to_datetime(days, unit="D").day_of_week.isin(weekdays)
    assert (fits == opened).all()
    assert (np.diff(ordinals) == opened[1:]).all(), "a closed day has the number of the open one before it"
    assert (step.days(ordinals)[fits] == days[fits]).all()


@pytest.mark.parametrize(
    ("old", "own"),
    [
        *[("H", "h"), ("T", "min"), ("S", "s"), ("L", "ms"), ("U", "us"), ("2000N", "2us"), ("1000ns", "us")],
        *[("M", "ME"), ("Q", "QE"), ("Y", "YE"), ("A", "YE"), ("AS", "YS"), ("A-JUN", "YE-JUN"), ("AS-APR", "YS-APR")],
        *[("BM", "BME"), ("BQ", "BQE"), ("BQ-JAN", "BQE-JAN"), ("BA", "BYE"), ("BY", "BYE"), ("BA-JUN", "BYE-JUN")],
        *[
            ("BAS", "BYS"),
            ("BAS-APR", "BYS-APR"),
            ("BYE-DEC", "BYE"),
            ("BQS-OCT", "BQS"),
            ("SM", "SME"),
            ("SM-10", "SME-10"),
        ],
        *[
            ("SMS-15", "SMS"),
            ("SME-15", "SME"),
            ("Q-MAR", "QE"),
            ("QS-OCT", "QS"),
            ("QS-NOV", "QS-FEB"),
            ("W", "W-SUN"),
        ],
        *[
            ("1D", "D"),
            ("60min", "h"),
            ("90T", "90min"),
            ("3600s", "h"),
            ("24h", "24h"),
            ("YE-DEC", "YE"),
            ("2QS", "6MS"),
        ],
        *[("1h30min", "90min"), ("1.5h", "90min"), ("2H15T", "135min"), ("0.5s", "500ms"), ("12QS-FEB", "36MS")],
        *[
            ("HYS", "6MS"),
            ("BHYE-MAR", "6BME"),
            ("d", "D"),
            ("b", "B"),
            ("w-wed", "W-WED"),
            ("C-SAT-MON", "C-MON-SAT"),
            ("C-FRI", "W-FRI"),
            ("qs-mar", "QS-MAR"),
        ],
        *[("wom-3fri", "WOM-3FRI"), ("MS-1", "MS"), ("QS-JAN-20", "QS-20"), ("YS-MAR-1", "YS-MAR")],
    ],
)
def test_old_spellings(old, own):
    assert normalise(old) == own
    assert normalise(own) == own


@pytest.mark.parametrize(
    "wrong",
    [
        *["C", "C-XXX", "C-MON-5"],
        *[
            "",
            "x",
            "0D",
            "-1h",
            "W-XXX",
            "MS-MON",
            "D-MON",
            "h-JAN",
            "YS-MON",
            "B-MON",
            "0h",
            "1.5D",
            "1h30",
            "m",
            "5m",
        ],
        *["C", "CBMS", "bh", "REQ-N-DEC-MON", "WOM-5FRI", "WOM-FRI", "LWOM-1FRI", "SMS-1", "SME-28", "SMS-MON"],
        *["MS-31", "MS-09", "ME-15", "QE-MAR-15", "BMS-2", "BQS-FEB-2", "YS-FEB-15-3", "W-MON-2", "LWOM"],
    ],
)
def test_what_is_no_frequency(wrong):
    with pytest.raises(UsageError, match="is not known: use s, min, h, D") as error:
        normalise(wrong)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("fine", ["ns", "N", "500ns", "1500ns", "0.5us", "0.1ns"])
def test_nothing_is_finer_than_a_microsecond(fine):
    with pytest.raises(UsageError, match=f"{fine}' is finer than a microsecond: round the times"):
        normalise(fine)


@pytest.mark.parametrize(
    ("frequency", "season"),
    [
        *[("h", 24), ("2h", 12), ("8h", 3), ("15min", 96), ("min", 1440), ("7min", 1), ("s", 3600), ("10s", 360)],
        *[("ms", 1), ("100ms", 1), ("us", 1), ("36h", 1), ("24h", 7), ("48h", 1), ("168h", 52)],
        *[("D", 7), ("2D", 1), ("7D", 52), ("28D", 13), ("B", 5), ("5B", 1), ("W-MON", 52), ("2W-MON", 26)],
        *[("MS", 12), ("ME", 12), ("BMS", 12), ("BME", 12), ("MS-15", 12), ("WOM-3FRI", 12), ("LWOM-FRI", 12)],
        *[("3MS", 4), ("4MS", 3), ("6MS", 2), ("12MS", 1), ("SMS", 24), ("SME-10", 24), ("2SMS", 12), ("5MS", 1)],
        *[("QS", 4), ("QE-JAN", 4), ("BQE", 4), ("QS-FEB-15", 4), ("YS", 1), ("BYS", 1), ("5YS", 1), ("YS-MAR-3", 1)],
        *[(1, 1), (1 / 60, 1), (None, 1), ("H", 24), ("M", 12), ("A-JUN", 1)],
    ],
)
def test_seasons(frequency, season):
    assert season_of(frequency) == season
