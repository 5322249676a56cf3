"""One global model of many series: each one's forecast is its own, whichever others are in the table."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tsformer
from tsformer import Forecaster
from tsformer.errors import DataError

OPTIONS = {
    "model": "transformer",
    "horizon": 3,
    "lookback": 6,
    "model_options": {"d_model": 8, "d_ff": 8},
    "train_options": {"max_steps": 2},
}
NAMES = ("b", "007", "7", " süd, no. 1", "ü")


def series(name, rows, start="2024-01-01", level=1.0, seed=0):
    """Two positive targets, daily."""
    noise = np.random.default_rng(seed).lognormal(size=(2, rows))
    days = pd.date_range(start, periods=rows)
    return pd.DataFrame({"unique_id": name, "ds": days, "y": level * noise[0], "x": noise[1]})


def panel_of(names):
    """Different starts, lengths and levels, rows in order of time, so that series are interleaved."""
    parts = [
        series(name, 30 + 5 * i, pd.Timestamp("2024-01-01") + pd.Timedelta(days=3 * i), 10.0**i, seed=i)
        for i, name in enumerate(names)
    ]
    return pd.concat(parts).sort_values("ds", kind="stable").reset_index(drop=True)


TABLE = panel_of(NAMES)
NEW = series("new", 20, "2025-05-05", 300.0, seed=77)


def fitted(table=TABLE, **options):
    return Forecaster(**{**OPTIONS, "targets": ["y", "x"], **options}).fit(table)


@pytest.fixture(scope="module", params=[(), ("log_return",)], ids=["no transform", "log_return"])
def forecaster(request):
    return fitted(transforms=request.param)


def test_each_series_has_its_own_next_dates(forecaster):
    table = forecaster.predict()
    assert list(table.columns) == ["unique_id", "ds", "y", "x"]
    assert list(dict.fromkeys(table["unique_id"])) == list(NAMES)
    for name, rows in table.groupby("unique_id"):
        last = TABLE.loc[TABLE["unique_id"] == name, "ds"].max()
        assert rows["ds"].tolist() == list(pd.date_range(last, periods=4)[1:])


def in_berlin(table):
    """The same values on days of Berlin that all end on 2024-03-31, which has no 02:30; every other series is at 03:00.

    The last row of all of them is at 03:00, but not all go on at it.
    """
    parts = []
    for number, (_, rows) in enumerate(table.groupby("unique_id", sort=False)):
        clock = pd.date_range(end=f"2024-03-31 {('02:30', '03:00')[number % 2]}", periods=len(rows))
        parts.append(rows.assign(ds=clock.tz_localize("Europe/Berlin", nonexistent="shift_forward")))
    return pd.concat(parts)


@pytest.fixture(scope="module", params=["no transform", "log_return", "in Berlin"])
def known(request):
    """A forecaster, and rows of the series that it was fitted on and of another one."""
    everything = pd.concat([TABLE, NEW])
    everything = in_berlin(everything) if request.param == "in Berlin" else everything
    transforms = ("log_return",) if request.param == "log_return" else ()
    return fitted(everything[everything["unique_id"] != "new"], transforms=transforms), everything


@settings(max_examples=15)
@given(chosen=st.lists(st.sampled_from((*NAMES, "new")), min_size=1, unique=True), seed=st.integers(0, 99))
def test_a_forecast_depends_neither_on_other_series_nor_on_order(known, chosen, seed):
    forecaster, everything = known
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        alone = pd.concat([forecaster.predict(everything[everything["unique_id"] == name]) for name in chosen])
        some = everything[everything["unique_id"].isin(chosen)].sample(frac=1, random_state=seed)
        together = forecaster.predict(some)
    assert sorted(together["unique_id"].unique()) == sorted(chosen)
    alone, together = (table.sort_values(["unique_id", "ds"]).reset_index(drop=True) for table in (alone, together))
    pd.testing.assert_frame_equal(together, alone, rtol=1e-4)


def test_series_that_end_alike_go_on_at_their_own_time_of_day():
    table = in_berlin(TABLE[TABLE["unique_id"].isin(("b", "007"))])
    made = fitted(table, model="last_value", model_options={}).predict()
    assert {name: rows["ds"].dt.strftime("%d %H:%M").tolist() for name, rows in made.groupby("unique_id")} == {
        "b": ["01 02:30", "02 02:30", "03 02:30"],
        "007": ["01 03:00", "02 03:00", "03 03:00"],
    }


def test_series_keep_the_scale_of_their_training_rows(forecaster):
    (scale,) = (states[-1]["mean"] for name, states in forecaster.fitted_.chain.states.items() if name == " süd, no. 1")
    rows = TABLE.loc[TABLE["unique_id"] == " süd, no. 1", ["y", "x"]].to_numpy()
    train = rows[: 45 * 7 // 10]
    if forecaster.transforms:
        train = np.diff(np.log(train), axis=0)
    assert scale == pytest.approx(train.mean(axis=0))


def test_new_series_are_named_and_fitted_on_their_own_rows(forecaster):
    mixed = pd.concat([TABLE, NEW])
    with pytest.warns(UserWarning, match=r"^new to the model: new \(1 of 6 series\); their transforms are fitted on"):
        made = forecaster.predict(mixed)
    assert len(made) == 18
    data = forecaster.fitted_.chain.forward(tsformer.data.frames.panel_with_schema(mixed, forecaster.fitted_.schema))
    rows = NEW[["y", "x"]].to_numpy()
    rows = np.diff(np.log(rows), axis=0) if forecaster.transforms else rows
    assert data.states[-1][-1]["mean"] == pytest.approx(rows.mean(axis=0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        forecaster.predict(TABLE[TABLE["unique_id"] != "b"])


def test_a_naive_forecast_of_each_series_by_hand():
    made = fitted(model="last_value", model_options={}).predict()
    last = TABLE.sort_values("ds", kind="stable").groupby("unique_id")[["y", "x"]].last()
    np.testing.assert_allclose(made[["y", "x"]], last.loc[made["unique_id"]], rtol=1e-5)


def test_a_saved_run_knows_its_series(forecaster, tmp_path):
    again = tsformer.load(forecaster.save(tmp_path / "run"))
    pd.testing.assert_frame_equal(again.predict(TABLE), forecaster.predict(TABLE))


@pytest.mark.parametrize(
    "ids",
    [[3, 1, 2], [2.5, 1.0, 10.0], [True, False], list(pd.to_datetime(["2020-01-01", "2021-01-01"])), ["1", 2]],
    ids=str,
)
def test_ids_come_back_in_their_own_type(ids):
    table = panel_of(range(len(ids)))
    table["unique_id"] = table["unique_id"].map(dict(enumerate(ids)))
    made = fitted(table, model="last_value", model_options={}).predict()
    assert made["unique_id"].dtype == table["unique_id"].dtype
    assert list(made["unique_id"].unique()) == ids
    assert len(made.merge(table.drop_duplicates("unique_id"), on="unique_id")) == 3 * len(ids)


def test_categories_stay_categories():
    table = TABLE.astype({"unique_id": "category"})
    forecaster = fitted(table, model="last_value", model_options={})
    assert forecaster.predict()["unique_id"].dtype == table["unique_id"].dtype
    assert forecaster.predict(table[table["unique_id"] == "7"])["unique_id"].tolist() == ["7"] * 3


def test_tables_that_do_not_go_with_the_series_of_a_model(forecaster):
    one = TABLE[TABLE["unique_id"] == "b"]
    for table in (one, TABLE):
        with pytest.raises(DataError, match=r"no column 'unique_id': .*tells its series apart by 'unique_id': add it"):
            forecaster.predict(table.drop(columns="unique_id"))
    with pytest.raises(DataError, match=r"'ds' repeats 30 time\(s\) in series 'b'.*keep one row for each time$"):
        forecaster.predict(pd.concat([TABLE, one]))
    short = pd.concat([TABLE, series("n1", 4), series("n2", 5)])
    with pytest.raises(DataError, match=r"^series 'n1' has 4 rows; .* \(2 of 7 series are too short: n1, n2\); .*out$"):
        forecaster.predict(short)


def test_several_series_for_the_model_of_one():
    alone = fitted(TABLE[TABLE["unique_id"] == "ü"].drop(columns="unique_id"))
    with pytest.raises(DataError, match="fitted on a single series, and 'unique_id' seems to tell several apart"):
        alone.predict(TABLE)
    assert len(alone.predict(TABLE[TABLE["unique_id"] == "7"])) == 3


def test_short_series_are_named_before_a_fit():
    table = pd.concat([TABLE, *(series(f"n{i}", 10) for i in range(10))])
    expected = r"^series 'n0' has 10 rows; .* \(10 of 15 series are too short: n0, .*, n7 and 2 more\)"
    with pytest.raises(DataError, match=expected):
        fitted(table)


def test_a_value_outside_the_domain_names_its_series():
    table = TABLE.copy()
    table.loc[table.index[table["unique_id"] == "7"][4], "y"] = -1.0
    with pytest.raises(DataError, match=r"^series '7': transform 'log_return': 1 value\(s\).*'y' at 2024-01-11"):
        fitted(table, transforms=["log_return"])


def test_a_table_with_a_series_in_each_row(tsformer):
    wide = pd.DataFrame({"V1": [f"H{i}" for i in range(5)], **{f"V{i}": np.arange(5.0) for i in range(2, 50)}})
    wide.to_csv("wide.csv", index=False)
    words = ("fit", "--model", "last_value", "--data", "csv", "--id", "V1", "--path")
    code, _, err = tsformer(*words, "wide.csv", "--horizon", "6", "--lookback", "6")
    assert (code, "240 rows in 5 series, 1 target (value)" in err) == (0, True)
    assert "each row is a series, its numbers are the columns V2 to V49" in err
    wide.melt("V1").dropna().to_csv("long.csv", index=False)
    code, _, err = tsformer(*words, "long.csv", "--horizon", "6")
    assert (code, "240 rows in 5 series, 1 target (value)" in err) == (0, True)


def test_new_series_on_the_command_line(tsformer):
    TABLE.to_csv("old.csv", index=False)
    NEW.to_csv("new.csv", index=False)
    code, out, err = tsformer(
        *("fit", "--model", "last_value", "--data", "csv", "--path", "old.csv", "--id", "unique_id", "--horizon", 2),
        *("--lookback", 6, "--out", "run", "--json"),
    )
    assert (code, '"series": 5' in out) == (0, True), err
    code, out, err = tsformer("predict", "run", "--input", "new.csv")
    assert code == 0
    assert "note: new to the model: new (1 of 1 series)" in err
    assert [line.split(",")[:2] for line in out.splitlines()] == [
        ["unique_id", "ds"],
        ["new", "2025-05-25"],
        ["new", "2025-05-26"],
    ]
    code, out, _ = tsformer("predict", "run")
    assert [line.rsplit(",", 3)[0] for line in out.splitlines()[1::2]] == ["b", "007", "7", '" süd, no. 1"', "ü"]


def test_series_without_mase_are_counted(tsformer):
    table = TABLE.assign(y=TABLE["y"].where(TABLE["unique_id"] != "7", 2.0))
    table.to_csv("old.csv", index=False)
    table = ("--data", "csv", "--path", "old.csv", "--id", "unique_id", "--target", "y")
    code, _, err = tsformer("fit", "--model", "last_value", *table, "--horizon", 2, "--lookback", 6)
    assert (code, "warning: MASE is undefined for 1 of 5 series" in err) == (0, True), err
