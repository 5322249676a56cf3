"""Tables of polars and pyarrow: through the same checks as those of pandas, and back."""

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from tsformer.data.frames import panel_from_frame
from tsformer.errors import DataError, UsageError
from tsformer.tables.border import is_table, like, to_pandas

pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")

STAMPS = [datetime.datetime(2024, 3, 30, 22) + i * datetime.timedelta(hours=1) for i in range(6)]
DAYS = [datetime.date(2024, 1, 1) + datetime.timedelta(days=i) for i in range(6)]


def polars(**columns):
    return pl.DataFrame(columns)


def arrow(**columns):
    return pa.table({name: list(cells) for name, cells in columns.items()})


@pytest.mark.parametrize("made", [polars, arrow])
def test_columns_keep_what_they_hold(made):
    given = made(
        day=DAYS,
        whole=[2**60 + 1, None, 3, 4, 5, 6],
        real=[0.1, None, 0.3, 0.4, 0.5, 0.6],
        money=[Decimal("1.25"), None] * 3,
        word=["a", None, "b", "a", "b", "a"],
        flag=[True, False, None, True, True, True],
    )
    frame = to_pandas(given, "table")
    assert frame["day"].tolist() == [pd.Timestamp(day) for day in DAYS]
    assert frame["whole"].iloc[0] == 2**60 + 1
    assert frame["whole"].isna().tolist() == [False, True, *[False] * 4]
    assert frame["real"].iloc[2] == 0.3
    assert np.isnan(frame["real"].iloc[1])
    assert frame["money"].tolist()[0] == 1.25
    assert frame["word"].iloc[:3].tolist() == ["a", None, "b"]
    assert frame["flag"].tolist()[:3] == [True, False, None]


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
def test_times_keep_their_zone_and_the_hour_that_is_left_out(unit, zone):
    utc = pd.Series(STAMPS)
    expected = pd.DatetimeIndex(utc.dt.tz_localize("UTC").dt.tz_convert(zone) if zone else utc)
    column = pl.Series("t", STAMPS).cast(pl.Datetime(unit, "UTC" if zone else None))
    column = column.dt.convert_time_zone(zone) if zone else column
    stamps = pa.array(STAMPS, pa.timestamp(unit, tz=zone))
    for given in (pl.DataFrame({"t": column, "y": range(6)}), pa.table({"t": stamps, "y": list(range(6))})):
        times = pd.DatetimeIndex(to_pandas(given, "table")["t"])
        assert (times == expected).all()
        assert str(times.tz) == str(expected.tz)
        assert panel_from_frame(given).schema.zone == zone


def test_a_missing_time_is_refused_and_not_1970():
    with pytest.raises(DataError, match=r"no time in 1 row\(s\), the first in row 1"):
        panel_from_frame(polars(ds=[STAMPS[0], None, *STAMPS[2:]], y=range(6)))


def test_categories_are_words():
    given = pl.DataFrame({"shop": ["a"] * 6 + ["b"] * 6, "ds": DAYS * 2, "y": range(12)})
    for kind in (pl.Categorical, pl.Enum(["a", "b"])):
        assert panel_from_frame(given.with_columns(pl.col("shop").cast(kind))).ids == ("a", "b")
    encoded = given.to_arrow().set_column(0, "shop", pa.array(["a"] * 6 + ["b"] * 6).dictionary_encode())
    assert panel_from_frame(encoded).ids == ("a", "b")


def test_a_lazy_frame_has_to_be_collected():
    with pytest.raises(UsageError, match=r"LazyFrame is not computed yet: call \.collect\(\)"):
        panel_from_frame(polars(ds=DAYS, y=range(6)).lazy())
    for other in ([1, 2], {"y": [1]}, np.zeros((2, 2)), None, "a.csv"):
        assert not is_table(other)
        with pytest.raises(UsageError, match=f"not {type(other).__name__}"):
            panel_from_frame(other)


@pytest.mark.parametrize("made", [polars, arrow])
def test_the_same_kind_comes_back(made):
    table = pd.DataFrame(
        {"id": ["a", "b"], "n": [1, 2], "y": [0.5, np.nan], "t": pd.to_datetime(STAMPS[:2]).tz_localize("Europe/Paris")}
    )
    back = like(table, made(y=[1.0]))
    assert type(back) is type(made(y=[1.0]))
    again = to_pandas(back, "table")
    assert again["y"].iloc[0] == 0.5
    assert (pd.DatetimeIndex(again["t"]) == pd.DatetimeIndex(table["t"])).all()
    assert again["n"].tolist() == [1, 2]
    assert like(table, pd.DataFrame()) is table
    assert like(table, None) is table


def test_names_that_repeat_are_refused():
    frame = pd.concat([pd.DataFrame({"y": [1.0]}), pd.DataFrame({"y": [2.0]})], axis=1)
    assert is_table(frame)
    with pytest.raises(DataError, match="several columns called y"):
        to_pandas(frame, "table")
