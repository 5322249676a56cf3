"""What is done about duplicates, gaps, missing values and times beside the step, against pandas and by hand."""

import itertools
import time

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tsformer.data.cells import LINE
from tsformer.data.frequency import check_steps, next_times
from tsformer.data.panel import Schema
from tsformer.data.series import assemble
from tsformer.data.table_options import TableOptions
from tsformer.errors import DataError, UsageError

NAN = np.nan


def made(frame, *, fitted=None, schema=None, **options):
    """A panel of the columns y (and x, if it is there) of a table with the columns t and, for several series, id."""
    frame = frame.set_axis(pd.RangeIndex(2, len(frame) + 2, name=LINE))
    targets = tuple(name for name in ("y", "x") if name in frame.columns)
    schema = schema or Schema(targets, "t", "id" if "id" in frame else None, frequency=fitted)
    values = [frame[name].to_numpy(dtype=float) for name in targets]
    times = pd.Index(frame["t"])
    return assemble(frame, values, times, schema, [], "table", infer=fitted is None, options=TableOptions(**options))


def fault(frame, **options):
    with pytest.raises(DataError) as error:
        made(frame, **options)
    assert "\n" not in str(error.value)
    assert error.value.finding.text == str(error.value)
    return error.value.finding


def daily(values, start="2024-01-01", **columns):
    return pd.DataFrame({"t": pd.date_range(start, periods=len(values)), "y": values, **columns})


def several(**series):
    return pd.concat([frame.assign(id=name) for name, frame in series.items()], ignore_index=True)


def said(panel):
    return [str(note) for note in panel.notes]


# Missing values


@pytest.mark.parametrize("policy", ["ffill", "linear"])
@settings(max_examples=40)
@given(data=st.data())
def test_missing_values_are_filled_as_pandas_does(policy, data):
    """Within each series; what pandas cannot fill from inside is refused with its place."""
    holes = st.one_of(st.just(NAN), st.integers(-50, 50).map(float))
    frame = several(
        **{
            name: daily(data.draw(st.lists(holes, min_size=3, max_size=12)))
            for name in data.draw(st.sets(st.sampled_from("abc"), min_size=1))
        }
    )
    if frame["y"].isna().all():
        return
    groups = frame.groupby("id", sort=False)["y"]
    if policy == "ffill":
        expected = groups.ffill()
    else:
        expected = groups.transform(lambda values: values.interpolate(limit_area="inside"))
    if expected.isna().any():
        assert fault(frame, missing=policy).options == {"data.missing": "mask"}
    else:
        panel = made(frame, missing=policy)
        np.testing.assert_allclose(panel.values[:, 0], expected, rtol=1e-12)
        assert not panel.masked
        assert (
            any(f"{frame['y'].isna().sum()} missing value(s)" in note for note in said(panel))
            == frame["y"].isna().any()
        )


def test_missing_values_are_refused_with_place_and_remedy():
    frame = several(b=daily([1.0, 2, 3]), a=daily([4, NAN, NAN, 7], x=[1, 2, 3, NAN]))
    frame["x"] = frame["x"].fillna(1.0)
    found = fault(frame)
    assert (found.kind, found.column, found.row, found.count) == ("missing", "y", "line 6", 2)
    assert (
        "column 'y' has 2 missing value(s), the first in line 6, series 'a': fill them, or --missing mask" in found.text
    )
    assert found.options == {"data.missing": "mask"}
    assert "that ffill cannot fill" in fault(daily([NAN, 1, 2, 3]), missing="ffill").text
    assert "no value stands on both sides" in fault(daily([1, 2, 3, NAN]), missing="linear").text


def test_masked_values_stay_missing_and_empty_ends_are_cut():
    frame = daily([NAN, NAN, 1, NAN, 3, NAN], x=[NAN, 5, 6, 7, NAN, NAN])
    panel = made(frame, missing="mask")
    assert panel.masked
    np.testing.assert_array_equal(panel.values, [[NAN, 5], [1, 6], [NAN, 7], [3, NAN]])
    assert panel.times[0] == pd.Timestamp("2024-01-02")
    assert said(panel) == [
        "3 missing value(s) in 2 columns (y, x) are hidden from the model (38 %)",
        "left out 2 row(s) without any value at the start or end of series",
    ]
    assert not made(daily([1, 2, 3]), missing="mask").masked


def test_a_series_without_a_value_does_not_stop_the_others():
    frame = several(a=daily([NAN] * 4), b=daily([1, 2, NAN, 4]))
    for options in ({"missing": "mask"}, {"missing": "drop", "gaps": "split"}):
        panel = made(frame, **options)
        assert panel.ids == ("b",)
        assert any("nothing is left of 1 series: a" in note for note in said(panel))
    assert fault(daily([NAN, NAN, NAN], x=[1, 2, 3]), missing="mask").options == {"data.target": ["x"]}
    assert "column 'y' has no value at all" in fault(daily([NAN, NAN, NAN]), missing="mask").text


def test_rows_without_a_target_are_left_out_and_then_lack():
    frame = daily([1, 2, NAN, 4, 5])
    assert "1 step(s) of D missing" in fault(frame, missing="drop").text
    panel = made(frame, missing="drop", gaps="split")
    assert (panel.values.ravel().tolist(), panel.breaks.tolist()) == ([1, 2, 4, 5], [2])
    with pytest.raises(UsageError, match="--gaps split"):
        made(frame, missing="drop", gaps="fill")
    trading = pd.DataFrame({"t": pd.bdate_range("2024-01-01", periods=30), "y": np.arange(30.0)})
    trading.loc[[4, 9], "y"] = NAN
    panel = made(trading, missing="drop")
    assert (panel.schema.frequency, len(panel.values), len(panel.breaks)) == ("B", 28, 0)
    assert "2 weekday(s) without a row are taken as holidays" in said(panel)


@pytest.mark.parametrize(("value", "said_of"), [(np.inf, "infinite"), (1e200, "beyond 1e+100")])
def test_numbers_beyond_all_bounds_are_refused_whatever_the_policy(value, said_of):
    found = fault(daily([1, value, 3, NAN], x=[1, 2, 3, 4.0]), missing="mask")
    assert said_of in found.text
    assert found.options == {"data.target": ["x"]}
    assert "too small to compute with" in fault(daily([1e-200, 0, 0])).text


def test_rows_without_a_value_on_closed_days_are_no_rows():
    days = pd.date_range("2024-01-01", periods=70)
    days = days[days.day_of_week != 5]
    frame = pd.DataFrame({"t": days, "y": np.where(days.day_of_week == 6, NAN, 1.0)})
    panel = made(frame)
    assert (panel.schema.frequency, len(panel.values)) == ("B", 50)
    assert said(panel) == [
        "left out 10 row(s) without any value on days that are closed, the first line 7",
        "weekends are taken as closed: frequency B",
    ]
    assert len(made(frame, fitted="B").values) == 50
    frame.loc[5, "y"] = 2.0
    assert fault(frame, fitted="B").kind == "irregular", "a value on a Sunday is none of these"


# Gaps


@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
@pytest.mark.parametrize("freq", ["h", "15min", "D", "W-FRI", "MS", "QE", "YS", "2D", "BME"])
def test_gaps_are_filled_with_the_times_that_lack(freq, zone):
    full = pd.date_range("2023-01-31", periods=40, freq=freq, tz=zone)
    frame = pd.DataFrame({"t": full, "y": np.arange(40.0)}).drop(index=[5, 6, 20])
    found = fault(frame)
    assert (found.kind, found.count) == ("gaps", 3)
    assert found.options == {"data.gaps": "fill", "data.missing": "mask"}
    panel = made(frame, gaps="fill", missing="mask")
    assert (panel.times == full).all()
    expected = np.arange(40.0)
    expected[[5, 6, 20]] = NAN
    np.testing.assert_array_equal(panel.values[:, 0], expected)
    assert "3 row(s) without values were filled in at 2 gap(s)" in said(panel)
    np.testing.assert_array_equal(made(frame, gaps="fill", missing="linear").values[:, 0], np.arange(40.0))
    assert "3 of them in rows that were filled in" in fault(frame, gaps="fill").text


def test_numbers_are_filled_in_too():
    frame = pd.DataFrame({"t": [10, 20, 50, 60, 70], "y": 1.0})
    assert made(frame, gaps="fill", missing="mask").times.tolist() == [10, 20, 30, 40, 50, 60, 70]


def test_gaps_split_series_into_stretches():
    frame = several(a=daily(np.arange(9.0)), b=daily(np.arange(6.0))).drop(index=[4, 5, 11])
    panel = made(frame, gaps="split")
    assert (panel.offsets.tolist(), panel.breaks.tolist()) == ([0, 7, 12], [4, 9])
    assert "2 gap(s) of 2 series, 3 step(s) of D: no window crosses them" in said(panel)
    frame.loc[6, "y"] = NAN
    assert "that linear cannot fill" in fault(frame, gaps="split", missing="linear").text, "not across a gap"


def test_the_text_of_rows_that_were_filled_in_is_empty():
    frame = daily([1, 2, 3, 4, 5], words=list("vwxyz")).drop(index=2)
    panel = made(frame, gaps="fill", missing="mask", schema=Schema(("y",), "t", text="words"))
    assert panel.texts == ("v", "w", "", "y", "z")


def test_far_too_much_is_not_filled_in():
    frame = pd.DataFrame({"t": pd.to_datetime([*range(5000), 10**9], unit="s"), "y": 1.0})
    assert fault(frame).options == {"data.gaps": "split"}
    assert fault(frame, gaps="fill", missing="mask").options == {"data.gaps": "split"}


# Duplicates


def test_rows_of_one_time_are_refused_by_what_they_hold():
    days = pd.date_range("2024-01-01", periods=5)
    same = pd.DataFrame({"t": days[[0, 1, 1, 2, 3, 4]], "y": [1.0, 2, 2, 3, 4, 5]})
    assert fault(same).options == {"data.duplicates": "first"}
    other = same.assign(y=range(6))
    found = fault(other)
    assert (found.kind, found.row, found.count, found.example) == ("duplicates", "line 3", 1, "2024-01-02")
    assert "repeats 1 time(s), the first 2024-01-02 in line 3 and line 4: their values differ" in found.text
    assert found.options == {"data.duplicates": "mean"}


def test_too_many_rows_of_one_time_are_no_duplicates():
    hours = pd.date_range("2024-01-01", periods=48, freq="h")
    half = [pd.Timestamp(hour.strftime("%Y-%m-%d ") + f"{hour.hour % 12:02}:00") for hour in hours]
    frame = pd.DataFrame({"t": half, "y": range(48)})
    found = fault(frame)
    assert (found.options, found.count) == ({}, 24)
    assert "--id" in found.remedy
    assert "--duplicates mean" in found.remedy
    assert len(made(frame, duplicates="mean", gaps="split").values) == 24
    assert fault(frame, freq="h").options == {}
    assert fault(frame.assign(y=1.0), freq="h").options == {"data.duplicates": "mean"}
    assert fault(frame.iloc[:14]).options == {"data.duplicates": "mean"}, "2 of 14"


@pytest.mark.parametrize("name", ["quarter", "kw", "month", "monat"])
def test_parts_of_a_time_tell_no_series_apart(name):
    frame = pd.DataFrame({"t": np.repeat(pd.date_range("2000-01-01", periods=5, freq="YS"), 4), "y": range(20)})
    assert fault(frame.assign(site=[*"abcd"] * 5)).options == {"data.id": ["site"]}
    assert fault(frame.assign(**{name: [1, 2, 3, 4] * 5})).options == {}


@pytest.mark.parametrize("policy", ["first", "last", "mean", "sum"])
@settings(max_examples=25)
@given(data=st.data())
def test_rows_of_one_time_are_joined_as_pandas_does(policy, data):
    cells = st.one_of(st.just(NAN), st.integers(-50, 50).map(float))
    days = data.draw(st.permutations([*range(6), *data.draw(st.lists(st.integers(0, 5), min_size=1, max_size=6))]))
    frame = pd.DataFrame({"t": pd.Timestamp("2024-01-01") + pd.to_timedelta(days, unit="D")})
    frame["y"], frame["x"] = ([data.draw(cells) for _ in days] for _ in "yx")
    frame.loc[frame.index[0], ["y", "x"]] = 1.0
    groups = frame.groupby("t")[["y", "x"]]
    if policy == "first":
        expected = groups.nth(0).set_axis(frame.groupby("t").nth(0)["t"]).sort_index()
    elif policy == "last":
        expected = groups.nth(-1).set_axis(frame.groupby("t").nth(-1)["t"]).sort_index()
    else:
        expected = groups.mean() if policy == "mean" else groups.sum(min_count=1)
    expected = expected.dropna(how="all")
    if expected.isna().all().any():
        return
    panel = made(frame, duplicates=policy, missing="mask")
    filled = expected.reindex(pd.date_range(expected.index[0], expected.index[-1]))
    np.testing.assert_allclose(panel.values, filled, rtol=1e-12)


def test_hours_that_come_twice_name_the_zone():
    local = pd.date_range("2023-01-01", "2023-12-31", freq="h", tz="Australia/Sydney").tz_localize(None)
    found = fault(pd.DataFrame({"t": local, "y": np.arange(float(len(local)))}))
    assert (found.kind, found.options) == ("clock_change", {"data.tz": "Australia/Sydney"})
    assert "--tz Australia/Sydney" in found.text


# Steps


@pytest.mark.parametrize(
    ("freq", "rule"),
    [("h", "h"), ("D", "D"), ("W-SUN", "W-SUN"), ("MS", "MS"), ("ME", "ME"), ("QS", "QS"), ("YE", "YE")],
)
@pytest.mark.parametrize("policy", ["sum", "mean"])
def test_finer_rows_are_brought_to_a_step_as_pandas_resamples(freq, rule, policy):
    times = pd.date_range("2022-01-05 00:00", periods=3000, freq="20min" if freq == "h" else "9h")
    frame = pd.DataFrame({"t": times, "y": np.random.default_rng(0).normal(size=len(times))})
    panel = made(frame, freq=freq, duplicates=policy, gaps="fill", missing="mask")
    resampled = frame.set_index("t")["y"].resample(rule)
    expected = resampled.sum() if policy == "sum" else resampled.mean()
    whole = resampled.count() >= 0.95 * resampled.count()[1:-1].quantile(0.1)
    expected = expected[whole | ~whole.index.isin(whole.index[[0, -1]])]
    assert (panel.times == expected.index).all()
    np.testing.assert_allclose(panel.values[:, 0], expected, rtol=1e-9)
    assert panel.schema.frequency == freq
    found = fault(frame, freq=freq)
    assert found.options == {"data.duplicates": "mean"}
    assert f"fall into a step of {freq} with another one" in found.text


def test_rows_beside_the_step_move_to_the_nearest():
    full = pd.date_range("2024-01-01 00:02", periods=300, freq="5min")
    late = full.to_series().reset_index(drop=True)
    late[[5, 40, 41]] += pd.Timedelta(seconds=50)
    late[[7, 90]] -= pd.Timedelta(seconds=70)
    panel = made(pd.DataFrame({"t": late, "y": np.arange(300.0)}), freq="5min")
    assert (panel.times == full).all()
    assert panel.values[:, 0].tolist() == list(range(300))
    assert said(panel) == ["5 of 300 times were brought to steps of 5min, by 1 min 10 s at most"]


@pytest.mark.parametrize("freq", ["W-MON", "MS", "QE", "YS-APR", "MS-15", "BME"])
def test_single_rows_beside_their_day_move_to_the_nearest(freq):
    start = {"MS-15": "2019-12-15"}.get(freq) or pd.date_range("2019-12-01", periods=1, freq=freq)[0]
    full = next_times(pd.Timestamp(start), freq, 30)
    moved = full.to_series().reset_index(drop=True)
    moved[[3, 9]] += pd.Timedelta(days=1)
    moved[[5, 20]] -= pd.Timedelta(days=2)
    found = fault(pd.DataFrame({"t": moved, "y": 1.0}))
    panel = made(pd.DataFrame({"t": moved, "y": np.arange(30.0)}), freq=found.options["data.freq"])
    assert panel.times.equals(full.as_unit(panel.times.unit))
    assert panel.values[:, 0].tolist() == list(range(30))


def test_a_quarter_hour_among_hours_goes_back_to_its_hour():
    hours = pd.date_range("2024-01-01", periods=100, freq="h")
    quarters = pd.date_range(hours[-1] + pd.Timedelta(hours=1), periods=8, freq="15min")
    frame = pd.DataFrame({"t": hours.append(quarters), "y": [0.0] * 100 + [1.0, 2, 3, 4, 5, 6, 7, 8]})
    found = fault(frame)
    assert found.options == {"data.freq": "h", "data.duplicates": "mean", "data.gaps": "fill", "data.missing": "mask"}
    panel = made(frame, freq="h", duplicates="mean")
    assert panel.values[-2:, 0].tolist() == [2.5, 6.5]
    assert panel.times[-1] == quarters[4]


def test_dates_keep_their_usual_time_of_day():
    times = (pd.bdate_range("2024-01-01", periods=30) + pd.Timedelta(hours=16)).to_series().reset_index(drop=True)
    times[[4, 9]] -= pd.Timedelta(hours=3)
    found = fault(pd.DataFrame({"t": times, "y": 1.0}))
    assert found.options["data.freq"] == "B"
    panel = made(pd.DataFrame({"t": times, "y": 1.0}), freq="B")
    assert (panel.times == times.dt.normalize() + pd.Timedelta(hours=16)).all()


def test_a_step_of_numbers_is_a_number():
    frame = pd.DataFrame({"t": [0.0, 1.1, 1.9, 3.0, 4.05], "y": 1.0})
    assert made(frame, freq="1").times.tolist() == [0, 1, 2, 3, 4]
    with pytest.raises(UsageError, match="--freq D: the times are numbers"):
        made(frame, freq="D")
    with pytest.raises(UsageError, match="frequency '2' is not known"):
        made(daily([1, 2, 3]), freq="2")


def test_rows_on_the_step_stay_where_they_are():
    first = pd.DatetimeIndex(["2024-01-02", "2024-02-01", "2024-03-01", "2024-04-02", "2024-05-01"])
    frame = pd.DataFrame({"t": first, "y": 1.0})
    assert made(frame, freq="BMS").times.equals(made(frame).times)
    assert said(made(frame, freq="BMS")) == []


def test_a_step_needs_times():
    with pytest.raises(UsageError, match="--freq D is the step of times, and table has no column of times"):
        made(daily([1, 2, 3]), schema=Schema(("y",)), freq="D")


# Several series


def test_one_irregular_series_is_brought_to_the_step_of_the_others():
    late = daily([1.0] * 9)
    late.loc[4:6, "t"] += pd.to_timedelta([5, 4, 7], unit="h")
    table = several(**{name: daily([1.0] * 9) for name in "abc"}, z=late)
    found = fault(table)
    assert (found.row, found.options["data.freq"]) == ("line 33", "D")
    assert "series 'z': steps are irregular" in found.text
    assert made(table, freq="D").lengths.tolist() == [9] * 4
    assert "frequency is D, what is asked for is h" in fault(daily([1.0] * 9), freq="h").text


def test_the_frequency_is_that_of_most_rows_and_the_others_are_named():
    months = pd.DataFrame({"t": pd.date_range("2024-01-01", periods=6, freq="MS"), "y": 1.0})
    table = several(m=months, a=daily([1.0] * 9), b=daily([1.0] * 9), n=months, one=daily([1.0]))
    found = fault(table)
    assert "series 'm': frequency is MS, series 'a' has D: one frequency is needed (2 of 5 series" in found.text
    panel = made(table, **{name.removeprefix("data."): value for name, value in found.options.items()})
    assert panel.schema.frequency == "D"
    assert panel.lengths.tolist() == [153, 9, 9, 153, 1]


@pytest.mark.parametrize("gaps", ["error", "fill", "split"])
@pytest.mark.parametrize(("fitted", "freq"), [("h", "D"), ("D", "MS"), ("h", "30min"), ("15min", "h"), ("D", "B")])
def test_another_frequency_than_the_model_knows_names_both(gaps, fitted, freq):
    frame = pd.DataFrame({"t": pd.date_range("2024-01-01", periods=40, freq=freq), "y": 1.0})
    options = {"gaps": gaps, "missing": "mask"}
    if gaps != "error" and (fitted, freq) == ("D", "B"):
        assert len(made(frame, fitted=fitted, **options).values) in (40, 54)  # days with the weekends left out
        return
    found = fault(frame, fitted=fitted, **options)
    assert f"frequency is {freq}, the model was fitted on {fitted}: one frequency is needed" in found.text
    assert found.options == {}


KINDS = {
    "seconds": st.integers(0, 400).map(lambda second: pd.Timestamp("2024-01-01") + pd.Timedelta(seconds=second)),
    "days": st.integers(0, 60).map(lambda day: pd.Timestamp("2024-01-01") + pd.Timedelta(days=day)),
    "any": st.datetimes(pd.Timestamp("1700-01-01"), pd.Timestamp("2200-01-01")).map(pd.Timestamp),
    "numbers": st.floats(allow_nan=False, allow_infinity=False),
    "whole numbers": st.integers(-50, 50),
}


@settings(max_examples=100)
@given(data=st.data(), kind=st.sampled_from(sorted(KINDS)))
def test_any_table_ends_in_a_sound_panel_or_is_refused(kind, data):
    rows = data.draw(st.integers(1, 25))
    cells = st.sampled_from([NAN, 0.0, 1.0, 2.0, 3.0, 4.0])
    frame = pd.DataFrame({"t": pd.Index([data.draw(KINDS[kind]) for _ in range(rows)])})
    frame["y"] = [data.draw(cells) for _ in range(rows)]
    if data.draw(st.booleans()):
        frame["id"] = [data.draw(st.sampled_from("ab")) for _ in range(rows)]
    options = {
        "missing": data.draw(st.sampled_from(["error", "ffill", "linear", "mask", "drop"])),
        "duplicates": data.draw(st.sampled_from(["error", "first", "last", "mean", "sum"])),
        "gaps": data.draw(st.sampled_from(["error", "fill", "split"])),
        "freq": data.draw(
            st.sampled_from([None, "1", "7"] if "numbers" in kind else [None, "10s", "D", "B", "W-TUE", "MS"])
        ),
    }
    try:
        panel = made(frame, **options)
    except (DataError, UsageError):
        return
    assert np.isfinite(panel.values[~np.isnan(panel.values)]).all()
    assert panel.masked == np.isnan(panel.values).any()
    assert options["missing"] == "mask" or not panel.masked
    edges = np.union1d(panel.offsets, panel.breaks)
    for start, stop in itertools.pairwise(edges):
        check_steps(panel.times[start:stop], panel.schema.frequency)


def test_a_million_rows_in_ten_thousand_series():
    rng = np.random.default_rng(0)
    starts = rng.integers(0, 50, 10_000)
    day = (starts[:, None] + np.arange(100)).ravel()
    times = pd.Timestamp("2024-01-01") + pd.to_timedelta(day, unit="D")
    frame = pd.DataFrame(
        {"id": np.repeat([f"s{i}" for i in range(10_000)], 100), "t": times, "y": rng.normal(size=10**6)}
    )
    frame = frame.drop(index=rng.choice(10**6, 5000, replace=False))
    made(frame[:200], gaps="fill", missing="mask")  # what is imported on first use
    begun = time.perf_counter()
    panel = made(frame, gaps="fill", missing="mask")
    assert time.perf_counter() - begun < 10, "two seconds where nobody else computes"
    assert len(panel.ids) == 10_000
    assert panel.masked
