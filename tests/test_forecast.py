"""Forecasts of panels as people have them: what is known ahead, what is missing, and which series can be forecast."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from tsformer import fitting, registry
from tsformer.config import resolve
from tsformer.config_layer import Layer
from tsformer.data.panel import Panel, Schema
from tsformer.data.selection import selected
from tsformer.errors import DataError, DivergedError
from tsformer.forecast import forecast
from tsformer.predictive import Predictive, predictive
from tsformer.registry import Kind

SMALL = {"d_model": "16", "d_ff": "16", "encoder_layers": "1", "tcn_layers": "1"}
SHOPS = Schema(
    ("sales", "visitors"),
    "day",
    "shop",
    past_covariates=("rain",),
    future_covariates=("promo",),
    frequency="D",
    static_covariates=("region", "size"),
    calendar=("dayofweek", "month"),
)


def shops(lengths=(90, 60, 75), schema=SHOPS, end="2024-06-30", missing=True):
    """Shops that all end on the same day, some values missing."""
    rng = np.random.default_rng(3)
    parts, times = [], []
    for shop, rows in enumerate(lengths):
        days = pd.date_range(end=end, periods=rows)
        promo = rng.integers(0, 2, rows)
        week = np.sin(2 * np.pi * np.arange(rows) / 7)
        sales = 100.0 * (shop + 1) * (1 + promo) + 10 * week + rng.normal(size=rows)
        columns = {"sales": sales, "visitors": 2 * sales, "rain": rng.normal(size=rows), "promo": promo}
        parts.append(pd.DataFrame(columns))
        times.append(days)
    values = pd.concat(parts)[list(schema.columns)].to_numpy(dtype=np.float64).copy("C")
    if missing:
        values[rng.random(values.shape) < 0.05] = np.nan
    table = pd.DataFrame({"region": ["south", "north", "south"], "size": [1.0, 2.0, 3.0]})
    return Panel(
        values=values,
        offsets=np.cumsum([0, *lengths]).astype(np.int64),
        times=times[0].append(times[1:]).as_unit("us"),
        ids=tuple("abc"),
        schema=schema,
        masked=missing,
        static=table[list(schema.static_covariates)] if schema.static_covariates else None,
    )


def ahead(steps=4, ids="abc", start="2024-07-01", fill=np.nan, schema=SHOPS):
    """What is known of the next days, with `fill` where nothing may be looked at."""
    values = np.full((len(ids) * steps, len(schema.columns)), fill)
    values[:, -1] = np.arange(len(values)) % 2
    days = pd.date_range(start, periods=steps).as_unit("us")
    return Panel(
        values=values,
        offsets=steps * np.arange(len(ids) + 1),
        times=days.append([days] * (len(ids) - 1)) if len(ids) > 1 else days,
        ids=tuple(ids),
        schema=replace(schema, static_covariates=()),
        masked=True,
    )


def fitted_on(panel, name="tcn_transformer", **values):
    model = {"name": name, **(SMALL if name == "tcn_transformer" else {})}
    window = {"lookback": 14, "horizon": 4, **values.pop("window", {})}
    layer = {"model": model, "window": window, "train": {"max_steps": 30, "lr": "0.01"}, **values}
    return fitting.fit(resolve([Layer(layer)], needs_data=False), panel).fitted


@pytest.fixture(scope="module")
def fitted():
    return fitted_on(shops())


def test_the_next_days_of_each_series(fitted):
    made = forecast(fitted, shops(), future=ahead())
    assert made.values.shape == (3, 4, 2)
    assert np.isfinite(made.values).all()
    for days in made.times:
        assert list(days) == list(pd.date_range("2024-07-01", periods=4))
    assert list(made.to_frame().columns) == ["shop", "day", "sales", "visitors"]


def test_of_the_future_only_what_is_known_ahead_counts(fitted):
    plain = forecast(fitted, shops(), future=ahead()).values
    for fill in (0.0, 1e9, -1e30):
        assert np.array_equal(forecast(fitted, shops(), future=ahead(fill=fill)).values, plain)
    other = ahead()
    other.values[:, -1] = 1 - other.values[:, -1]
    assert not np.allclose(forecast(fitted, shops(), future=other).values, plain)


def test_a_series_is_forecast_as_if_it_were_alone(fitted):
    together = forecast(fitted, shops(), future=ahead()).values
    for series in range(3):
        alone = selected(shops(), np.arange(3) == series)
        made = forecast(fitted, alone, future=ahead())
        np.testing.assert_allclose(made.values[0], together[series], rtol=1e-5)
        assert "8 of 12 rows" in made.notes[0]


def test_a_shorter_horizon_needs_its_own_rows_only(fitted):
    short = forecast(fitted, shops(), 2, ahead(2))
    assert short.values.shape == (3, 2, 2)
    assert [len(days) for days in short.times] == [2, 2, 2]
    with pytest.raises(DataError, match=r"lacks 6 row\(s\), the first of series 'a' at 2024-07-03"):
        forecast(fitted, shops(), 4, ahead(2))


READERS = {
    "transformer": {"d_model": "8", "n_heads": "2", "d_ff": "8", "encoder_layers": "1"},
    "tcn_transformer": SMALL,
    "lstm": {"d_model": "8"},
    "tcn": {"d_model": "8"},
    "linear": {},
    "ridge": {},
}
"""Every model that reads what is known ahead, small."""


@pytest.mark.parametrize("name", READERS)
def test_a_shorter_forecast_is_the_start_of_the_long_one(name):
    fitted = fitted_on(shops(), model={"name": name, **READERS[name]}, train={"max_steps": 8, "lr": "0.05"})
    long = forecast(fitted, shops(), future=ahead()).values
    changed = ahead()
    changed.values[3::4, -1] = 30.0
    moved = np.abs(forecast(fitted, shops(), future=changed).values - long).max(axis=(0, 2))
    assert moved[3] > 1e-3
    np.testing.assert_allclose(forecast(fitted, shops(), 2, ahead()).values, long[:, :2], rtol=1e-6)
    if name in ("linear", "ridge"):  # one map from all steps to all steps
        assert (moved[:2] > 1e-3).all()
        with pytest.raises(
            DataError, match=f"the next 4 .*model '{name}' reads those of all 4 steps that it was fitte"
        ):
            forecast(fitted, shops(), 2, ahead(2))
    else:
        np.testing.assert_allclose(forecast(fitted, shops(), 2, ahead(2)).values, long[:, :2], rtol=1e-5)


def test_these_are_the_models_that_read_what_is_known_ahead():
    plugins = {name: registry.get(Kind.MODEL, name) for name in registry.entries(Kind.MODEL)}
    assert {name for name, plugin in plugins.items() if "future" in plugin.covariates} == {
        *READERS,
        "ensemble",  # as far as its members do
        "gradient_boosting",
    }


@pytest.mark.parametrize("name", ["last_value", "drift", "seasonal_naive"])
def test_a_model_that_reads_no_covariates_asks_for_none(name):
    fitted = fitted_on(shops(), name)
    made = forecast(fitted, shops())
    assert np.isfinite(made.values).all()
    assert not any("future" in note for note in made.notes)
    given = forecast(fitted, shops(), future=ahead())
    assert given.values.tolist() == made.values.tolist()
    assert any("not looked at" in note for note in given.notes)


def test_beyond_the_trained_horizon_more_has_to_be_known():
    fitted = fitted_on(shops(), model={"name": "tcn_transformer", **SMALL, "decoder": "autoregressive"})
    made = forecast(fitted, shops(), 6, ahead(6))
    assert made.values.shape == (3, 6, 2)
    assert np.isfinite(made.values).all()
    with pytest.raises(DataError, match=r"lacks 6 row\(s\), the first of series 'a' at 2024-07-05"):
        forecast(fitted, shops(), 6, ahead(4))


def test_holidays_are_left_out_of_weekdays():
    days = pd.bdate_range("2024-05-01", "2024-07-03").as_unit("us")
    schema = Schema(("y",), "ds", frequency="B", holidays="US")
    panel = Panel(np.arange(float(len(days)))[:, None], np.array([0, len(days)]), days, ("",), schema)
    fitted = fitted_on(panel, "last_value", window={"lookback": 4, "horizon": 2})
    (found,) = forecast(fitted, panel).times
    assert list(found) == [pd.Timestamp("2024-07-05"), pd.Timestamp("2024-07-08")]  # the Fourth is a Thursday


def test_what_is_needed_and_not_there(fitted):
    with pytest.raises(DataError, match=r"needs promo .*columns shop, day, promo .*next 4 step\(s\) of each series"):
        forecast(fitted, shops())


def test_the_calendar_alone_needs_no_table():
    schema = replace(SHOPS, future_covariates=(), past_covariates=(), static_covariates=())
    fitted = fitted_on(shops(schema=schema))
    assert fitted.problem.future_covariates == 4
    made = forecast(fitted, shops(schema=schema))
    assert np.isfinite(made.values).all()
    assert any("not looked at" in note for note in forecast(fitted_plain(), plain_panel(), future=ahead()).notes)


def plain_panel(values=None, **more):
    schema = Schema(("y",), "ds", "id", frequency="D")
    table = np.arange(60.0).reshape(2, 30) if values is None else values
    days = pd.date_range("2024-01-01", periods=table.shape[1]).as_unit("us")
    return Panel(
        values=np.ascontiguousarray(table.reshape(-1, 1)),
        offsets=table.shape[1] * np.arange(len(table) + 1),
        times=days.append([days] * (len(table) - 1)),
        ids=tuple("abcdef"[: len(table)]),
        schema=schema,
        **more,
    )


def fitted_plain(**window):
    return fitted_on(plain_panel(), "last_value", window={"lookback": 4, "horizon": 2, **window}, scale="none")


def test_new_regions_and_new_series_are_named(fitted):
    new = replace(shops(), ids=tuple("axc"), static=pd.DataFrame({"region": ["east", "north", "south"], "size": 1.0}))
    made = forecast(fitted, new, future=ahead(ids="axc"))
    assert np.isfinite(made.values).all()
    assert any("'region'" in note and "east" in note for note in made.notes)
    assert any(note.startswith("new to the model: x (1 of 3 series)") for note in made.notes)


def test_a_new_series_is_scaled_by_its_history_alone(fitted, monkeypatch):
    seen = []

    def spy(fitted, windows, *rest, **options):
        seen.append(windows.batch())
        return Predictive(np.zeros((len(windows), 4, 2)))

    monkeypatch.setattr("tsformer.forecast.predictive", spy)
    new, far = replace(shops(), ids=tuple("axc")), ahead(ids="axc")
    far.values[:, -1] *= 1e3
    forecast(fitted, new, future=ahead(ids="axc"))
    forecast(fitted, new, future=far)
    near, far = seen
    assert near.past_known.equal(far.past_known)
    assert near.past.equal(far.past)
    assert not near.future_known.equal(far.future_known)


def test_the_last_real_value_is_carried_on():
    table = np.arange(60.0).reshape(2, 30)
    table[0, 28:] = np.nan
    table[1, 10:27] = np.nan
    made = forecast(fitted_plain(), plain_panel(table, masked=True))
    assert made.values[:, :, 0].tolist() == [[27.0, 27.0], [59.0, 59.0]]


def test_a_series_without_any_value_to_look_back_on_is_left_out():
    table = np.arange(60.0).reshape(2, 30)
    table[0, 26:] = np.nan
    made = forecast(fitted_plain(), plain_panel(table, masked=True))
    assert made.history.ids == ("b",)
    assert made.values[:, :, 0].tolist() == [[59.0, 59.0]]
    assert made.notes[0] == "not forecast, with no value in the last 4 rows: 1 of 2 series (a)"
    table[1, 26:] = np.nan
    with pytest.raises(DataError, match="the last 4 rows hold no value of y"):
        forecast(fitted_plain(), plain_panel(table, masked=True))


def test_a_target_without_any_value_is_named(fitted):
    panel = shops()
    panel.values[panel.rows(1), 1] = np.where(np.arange(60) < 40, panel.values[panel.rows(1), 1], np.nan)
    made = forecast(fitted, panel, future=ahead())
    assert np.isfinite(made.values).all()
    assert "'visitors' has no value in the last 14 rows of 1 of 3 series (b)" in made.notes


def uneven(rows):
    """The first of two series has so many rows only."""
    both = plain_panel()
    return replace(
        both,
        values=np.concatenate([both.values[:rows], both.values[30:]]),
        offsets=np.array([0, rows, rows + 30]),
        times=both.times[:rows].append(both.times[30:]),
    )


@pytest.mark.parametrize(
    ("short", "rows", "ids"), [("skip", 3, "b"), ("pad", 3, "ab"), ("pad", 1, "ab"), ("skip", 4, "ab")]
)
def test_short_series(short, rows, ids):
    made = forecast(fitted_plain(short=short), uneven(rows))
    assert "".join(made.history.ids) == ids
    assert made.values[-1, :, 0].tolist() == [59.0, 59.0]
    if len(ids) == 2:
        assert made.values[0, :, 0].tolist() == [rows - 1.0] * 2
        assert list(made.times[0]) == list(pd.date_range("2024-01-01", periods=rows + 2)[-2:])
        padded = "padded what the model sees of 1 of 2 series (a), with fewer than 4 rows"
        assert (padded in made.notes) == (rows < 4)
    else:
        assert made.notes[0] == "not forecast, with too few rows: 1 of 2 series (a)"


@pytest.mark.parametrize("rows", [1, 3])
def test_a_short_series_is_refused_unless_something_is_said(rows):
    with pytest.raises(DataError, match=rf"series 'a' has {rows} rows; the model looks back 4 rows"):
        forecast(fitted_plain(), uneven(rows))


def test_all_too_short():
    panel = plain_panel(np.ones((2, 3)))
    with pytest.raises(DataError, match="looks back 4 rows"):
        forecast(fitted_plain(short="skip"), panel)


def test_only_the_last_stretch_is_looked_back_on():
    panel = plain_panel(breaks=np.array([20, 57]))
    with pytest.raises(DataError, match=r"series 'b' has 3 rows; the model looks back 4 rows since the last gap"):
        forecast(fitted_plain(), panel)
    made = forecast(fitted_plain(short="pad"), panel)
    assert made.values[:, :, 0].tolist() == [[29.0, 29.0], [59.0, 59.0]]


def test_what_lies_before_a_gap_is_not_seen():
    schema = replace(SHOPS, future_covariates=(), past_covariates=(), static_covariates=(), calendar=())
    panel = shops(schema=schema, missing=False)
    fitted = fitted_on(panel, window={"short": "pad"})
    broken = replace(panel, breaks=panel.offsets[1:] - 6)
    plain = forecast(fitted, broken).values
    changed = broken.values.copy()
    for stop in panel.offsets[1:]:
        changed[stop - 20 : stop - 6] *= -5
    assert np.array_equal(forecast(fitted, replace(broken, values=changed)).values, plain)
    assert not np.allclose(forecast(fitted, replace(panel, values=changed)).values, plain)


def test_history_and_forecast_in_one_table():
    table = np.arange(60.0).reshape(2, 30)
    table[0, 3] = np.nan
    made = forecast(fitted_plain(), plain_panel(table, masked=True))
    whole = made.with_history()
    assert list(whole.columns) == ["id", "ds", "y", "kind"]
    assert whole["id"].tolist() == ["a"] * 32 + ["b"] * 32
    assert whole["kind"].tolist() == (["history"] * 30 + ["forecast"] * 2) * 2
    np.testing.assert_array_equal(whole["y"], [*table[0], 29, 29, *table[1], 59, 59])
    for _, rows in whole.groupby("id"):
        assert rows["ds"].tolist() == list(pd.date_range("2024-01-01", periods=32))


def test_the_column_that_tells_them_apart_takes_a_free_name():
    panel = plain_panel()
    named = replace(panel, schema=replace(panel.schema, targets=("kind",)))
    fitted = fitted_on(named, "last_value", window={"lookback": 4, "horizon": 2})
    assert list(forecast(fitted, named).with_history().columns) == ["id", "ds", "kind", "kind_"]


def test_what_the_data_do_not_have(fitted):
    panel = shops()
    misspelt = replace(panel, schema=replace(panel.schema, past_covariates=("rains",)))
    with pytest.raises(DataError, match="needs the column 'rain'; did you mean 'rains'"):
        forecast(fitted, misspelt, future=ahead())
    bare = replace(panel, static=None, schema=replace(panel.schema, static_covariates=()))
    with pytest.raises(DataError, match="needs the column 'region'"):
        forecast(fitted, bare, future=ahead())


def test_values_outside_the_domain_stop_no_other_series():
    panel = shops(schema=replace(SHOPS, future_covariates=(), calendar=()), missing=False)
    logs = fitted_on(panel, "last_value", transform=["log"])
    plain = forecast(logs, panel).values
    panel.values[panel.offsets[2] - 1, 0] = -1.0
    made = forecast(logs, panel)
    assert made.history.ids == ("a", "c")
    assert np.array_equal(made.values, plain[[0, 2]])
    assert [len(days) for days in made.times] == [4, 4]
    (note,) = made.notes
    assert note.startswith("not forecast: 1 of 3 series (b): series 'b': transform 'log': 1 value(s) are not positive")
    with pytest.raises(DataError, match="series 'b': transform 'log'"):
        forecast(logs, selected(panel, np.array([False, True, False])))
    panel.values[:, 0] = -1.0
    with pytest.raises(DataError, match="series 'a': transform 'log'"):
        forecast(logs, panel)


def test_what_is_not_known_ahead_stops_no_other_series(fitted):
    plain = forecast(fitted, shops(), future=ahead()).values
    known = ahead()
    known.values[5, -1] = np.nan
    less = selected(known, np.array([True, True, False]))
    made = forecast(fitted, shops(), future=less)
    np.testing.assert_allclose(made.values, plain[:1], rtol=1e-5)
    assert made.notes[0].startswith("not forecast: 1 of 3 series (c): the future table lacks 4 row(s)")
    assert made.notes[1].startswith("not forecast: 1 of 2 series (b): the future table has no value in column 'promo'")
    with pytest.raises(DataError, match="--future FILE"):
        forecast(fitted, shops())


def test_times_off_the_step_stop_no_other_series():
    panel = plain_panel()
    late = panel.times.to_series().to_numpy().copy()
    late[29] += np.timedelta64(5, "h")
    made = forecast(fitted_plain(), replace(panel, times=pd.DatetimeIndex(late)))
    assert made.history.ids == ("b",)
    assert made.values[:, :, 0].tolist() == [[59.0, 59.0]]
    assert made.notes == ("not forecast: 1 of 2 series (a): 2024-01-30 05:00 does not lie on frequency D",)


def test_what_is_not_finite_stops_no_other_series(monkeypatch):
    def exploding(fitted, windows, *rest, **options):
        made = predictive(fitted, windows, *rest, **options)
        made.point[windows.series.numpy() == len(windows) - 2] = np.inf
        return made

    monkeypatch.setattr("tsformer.forecast.predictive", exploding)
    made = forecast(fitted_plain(), plain_panel())
    assert made.history.ids == ("b",)
    assert made.notes[0].startswith("not forecast: 1 of 2 series (a): the forecast of series 'a' is not finite")
    monkeypatch.setattr("tsformer.forecast.predictive", lambda *args, **options: Predictive(np.full((2, 2, 1), np.nan)))
    with pytest.raises(DivergedError, match="series 'a' is not finite"):
        forecast(fitted_plain(), plain_panel())


@pytest.mark.parametrize("name", ["promo", "rain"])
def test_a_column_that_a_series_did_not_have_in_training(name):
    panel, column = shops(), SHOPS.columns.index(name)
    rows = slice(panel.rows(1).start, panel.rows(1).start + 48)
    panel.values[rows, column] = np.nan
    panel.values[panel.rows(1).start + 48 : panel.rows(1).stop, column] = 1e6  # which no scale is known of
    notes = []
    layer = {"model": {"name": "ridge"}, "window": {"lookback": 14, "horizon": 4}}
    found = fitting.fit(resolve([Layer(layer)], needs_data=False), panel, watch=fitting.Watch(note=notes.append)).fitted
    assert f"{name!r} is left out, without a value in the training rows, of 1 of 3 series (b)" in notes
    panel.values[panel.rows(1), column] = np.nan
    without = fitting.fit(resolve([Layer(layer)], needs_data=False), panel).fitted
    for key, weights in found.module.state_dict().items():
        assert np.array_equal(weights.numpy(), without.module.state_dict()[key].numpy()), key
    values = ahead()
    plain = forecast(found, panel, future=values).values
    values.values[values.rows(1), -1] *= 1e6
    assert np.array_equal(forecast(found, panel, future=values).values, plain) == (name == "promo")
