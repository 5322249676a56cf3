"""Every source of panels passes every check; for each check there is a bad one that fails it and no other."""

import contextlib
import sqlite3
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tsformer import registry, testing
from tsformer.data.frames import read_panel, read_table
from tsformer.data.panel import Defaults, Panel, Schema
from tsformer.errors import DataError
from tsformer.plugin import Config, DataPlugin, Field, Task
from tsformer.registry import Kind
from tsformer.testing import DATA_CHECKS, CheckFailedError
from tsformer.testing.data_leakage import check_statistics

FILE = Path(__file__).parent.parent / "datasets" / "air_passengers.csv"
PANELS = [name for name in registry.entries(Kind.DATA) if Task.FORECAST in registry.get(Kind.DATA, name).tasks]


@pytest.mark.parametrize("check", DATA_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", PANELS)
def test_data_passes(name, check):
    check(registry.get(Kind.DATA, name))


class Walks(Config):
    seed: int = Field(0, ge=0, description="seed of the steps")


class InAFile(Config):
    path: str = Field(..., description="the file")


SCHEMA = Schema(targets=("a", "b"), time="day", id="walk", frequency="D")


def panel_of(values, times=None, series=2, **schema):
    """A panel of series of equal length, daily from the same day."""
    rows = len(values) // series
    days = pd.date_range("2024-01-01", periods=rows)
    times = days.append([days] * (series - 1)) if times is None else times
    ids = tuple(f"w{i}" for i in range(series))
    return Panel(values, np.arange(series + 1) * rows, times, ids, replace(SCHEMA, **schema))


def walks(seed=0):
    return np.random.default_rng(seed).standard_normal((160, 2)).cumsum(axis=0)


def load(config):
    return panel_of(walks(config.seed))


def plugin_of(load=load, config=Walks, example=None, **more):
    return DataPlugin(config=config, load=load, example=example or config(), **more)


def returns_a_table(config):
    return pd.DataFrame(walks())


def leaves_a_value_out(config):
    values = walks()
    values[7, 1] = np.nan
    return panel_of(values)


def hides_values(config):
    values = walks(config.seed)
    values[[7, 90], 1] = np.nan
    return replace(panel_of(np.zeros_like(values)), values=values, masked=True)


def newest_first(config):
    times = load(config).times
    return panel_of(walks(), times[:80][::-1].append(times[80:]))


def says_hours(config):
    return panel_of(walks(), frequency="h")


def says_nothing_of_frequency(config):
    return panel_of(walks(), frequency=None)


def says_a_zone(config):
    return panel_of(walks(), zone="Europe/Berlin")


def names_no_id(config):
    return panel_of(walks(), id=None)


def keeps_numpy_in_the_schema(config):
    return panel_of(walks(), targets=(np.str_("a"), np.float32(2)))


def draws_unseeded(config):
    return panel_of(walks(seed=None))


def seeds_numpy(config):
    np.random.seed(config.seed)  # noqa: NPY002
    return panel_of(np.random.standard_normal((160, 2)).cumsum(axis=0))  # noqa: NPY002


def looks_back_a_year(panel):
    return Defaults(lookback=365, horizon=7)


def recommends_half_a_step(panel):
    return Defaults(lookback=20, horizon=3.5)


def recommends_in_a_dictionary(panel):
    return {"lookback": 20}


def season_from_all_rows(panel):
    return Defaults(season=2 + int(panel.values.argmax()) % 5)


def cuts_windows_itself(config):
    """Windows of 60 rows, one every ten, each a series of its own."""
    values, days = walks()[:100], pd.date_range("2024-01-01", periods=100)
    starts = range(0, 41, 10)
    times = days[:60].append([days[s : s + 60] for s in starts[1:]])
    return panel_of(np.concatenate([values[s : s + 60] for s in starts]), times, series=len(starts))


def standardises_all_rows(config):
    values = walks()
    return panel_of((values - values.mean(axis=0)) / values.std(axis=0))


def scaled(scale):
    """A source that scales a walk with statistics of all its rows."""

    def load(config):
        return panel_of(scale(walks()))

    load.__name__ = scale.__name__
    return load


def minmax(values):
    return (values - values.min(axis=0)) / np.ptp(values, axis=0)


def minmax_around_0(values):
    return 2 * minmax(values) - 1


def robust(values):
    lower, median, upper = np.quantile(values, (0.25, 0.5, 0.75), axis=0)
    return (values - median) / (upper - lower)


def spread_only(values):
    lower, upper = np.quantile(values, (0.25, 0.75), axis=0)
    return values / (upper - lower)


def centred(values):
    return values - values.mean(axis=0)


def over_the_largest(values):
    return values / np.abs(values).max(axis=0)


def nearly_standard(values):
    return 1.001 * (values - values.mean(axis=0)) / values.std(axis=0)


def in_single_precision(values):
    return ((values - values.mean(axis=0)) / values.std(axis=0)).astype(np.float32).astype(np.float64)


def smooth(values):
    """A centred moving average, which sees ten rows ahead."""
    return pd.DataFrame(values).rolling(21, center=True, min_periods=1).mean().to_numpy()


def in_a_file(scale):
    """The same for rows of a file."""

    def load(config):
        panel = reads_well(config)
        return replace(panel, values=np.ascontiguousarray(scale(panel.values)))

    load.__name__ = scale.__name__
    return load


def times_1000_over_the_largest(values):
    return 1000 * values / values.max(axis=0)


def trusts_the_file(config):
    frame = pd.read_csv(config.path, parse_dates=["month"])
    return as_months(frame)


def as_months(frame):
    schema = Schema(targets=("passengers",), time="month", frequency="MS")
    values = frame[["passengers"]].to_numpy(np.float64)
    times = pd.DatetimeIndex(pd.to_datetime(frame["month"]))
    return Panel(np.ascontiguousarray(values), np.array([0, len(frame)]), times, ("air",), schema)


def reads_well(config):
    return as_months(read_table(config.path))


def says_no_file(config):
    if not Path(config.path).is_file():
        raise FileNotFoundError(config.path)
    return trusts_the_file(config)


def hides_the_name(config):
    if not Path(config.path).is_file():
        raise DataError("the file is missing")
    return trusts_the_file(config)


def hides_the_name_plainly(config):
    if not Path(config.path).is_file():
        raise FileNotFoundError("the file is missing")
    return trusts_the_file(config)


def opens_an_empty_database(config):
    """As sqlite does, which makes the file that is not there."""
    if not Path(config.path).is_file():
        with contextlib.closing(sqlite3.connect(config.path)) as database:
            pd.read_sql("SELECT * FROM air", database)
    return trusts_the_file(config)


def makes_something_up(config):
    return trusts_the_file(config if Path(config.path).is_file() else IN_A_FILE)


def through_summer_time(config):
    """Hours of which one is skipped on the clocks of Berlin, on 31 March."""
    hours = pd.date_range("2024-03-29", periods=80, freq="h").tz_localize("UTC").tz_convert("Europe/Berlin")
    return panel_of(walks(config.seed), hours.append(hours), frequency="h", zone="Europe/Berlin")


def days_through_summer_time(config):
    """Midnights in Berlin, two of them 23 hours apart."""
    days = pd.date_range("2024-03-01", periods=80).tz_localize("Europe/Berlin")
    return panel_of(walks(config.seed), days.append(days), zone="Europe/Berlin")


def reads_by_name(config, source, schema):
    if source is not None:
        return read_panel(source, schema)
    panel = load(config)
    order = [panel.schema.columns.index(name) for name in schema.columns]
    return replace(panel, values=np.ascontiguousarray(panel.values[:, order]), schema=schema)


def reads_by_position(config, source, schema):
    return replace(load(config), schema=schema) if source is None else reads_by_name(config, source, schema)


def reads_files_by_position(config, source, schema):
    if source is None:
        return reads_by_name(config, source, schema)
    return replace(
        load(config), values=np.ascontiguousarray(pd.read_csv(source).iloc[:, 2:4].to_numpy()), schema=schema
    )


def reads_its_own_columns(config, source, schema):
    return load(config)


def reads_a_table(config, source, schema):
    return pd.DataFrame(walks())


def cannot_read_again(config, source, schema):
    raise DataError("there is nothing to read")


IN_A_FILE = InAFile(path=str(FILE))


def from_file(load):
    return plugin_of(load, InAFile, IN_A_FILE)


SCALINGS = (minmax, minmax_around_0, robust, spread_only, centred, over_the_largest, nearly_standard)

BAD = [
    ("check_panel", plugin_of(returns_a_table)),
    ("check_panel", plugin_of(leaves_a_value_out)),
    ("check_panel", plugin_of(newest_first)),
    ("check_panel", plugin_of(says_hours)),
    ("check_panel", plugin_of(says_nothing_of_frequency)),
    ("check_panel", plugin_of(says_a_zone)),
    ("check_panel", plugin_of(names_no_id)),
    ("check_panel", plugin_of(keeps_numpy_in_the_schema)),
    ("check_same_again", plugin_of(draws_unseeded)),
    ("check_leaves_rng_alone", plugin_of(seeds_numpy)),
    ("check_defaults", plugin_of(defaults=recommends_half_a_step)),
    ("check_defaults", plugin_of(defaults=looks_back_a_year)),
    ("check_defaults", plugin_of(defaults=recommends_in_a_dictionary)),
    ("check_split", plugin_of(cuts_windows_itself)),
    ("check_statistics", plugin_of(standardises_all_rows)),
    ("check_statistics", plugin_of(scaled(in_single_precision))),
    *(("check_statistics", plugin_of(scaled(scale))) for scale in SCALINGS),
    *(("check_statistics", from_file(in_a_file(scale))) for scale in (*SCALINGS, times_1000_over_the_largest, smooth)),
    ("check_statistics", plugin_of(defaults=season_from_all_rows)),
    ("check_missing_file", from_file(hides_the_name)),
    ("check_missing_file", from_file(hides_the_name_plainly)),
    ("check_missing_file", from_file(opens_an_empty_database)),
    ("check_missing_file", from_file(makes_something_up)),
    ("check_read", plugin_of(read=reads_by_position)),
    ("check_read", plugin_of(read=reads_files_by_position)),
    ("check_read", plugin_of(read=reads_its_own_columns)),
    ("check_read", plugin_of(read=reads_a_table)),
    ("check_read", plugin_of(read=cannot_read_again)),
]


def name_of(value):
    if not isinstance(value, DataPlugin):
        return value
    return next(f.__name__ for f in (value.read, value.defaults, value.load) if f is not None)


def test_every_check_has_a_bad_plugin():
    assert {check for check, _ in BAD} == {check.__name__ for check in DATA_CHECKS}


GOOD = [
    plugin_of(),
    plugin_of(read=reads_by_name),
    plugin_of(hides_values),
    plugin_of(through_summer_time),
    plugin_of(days_through_summer_time),
    *(from_file(load) for load in (reads_well, trusts_the_file, says_no_file)),
]


@pytest.mark.parametrize("good", GOOD, ids=name_of)
def test_the_good_plugins_pass(good):
    assert testing.check(good) == {}


@pytest.mark.parametrize(("check", "bad"), BAD, ids=name_of)
def test_a_bad_plugin_fails_exactly_one_check(check, bad):
    failed = testing.check(bad)
    assert list(failed) == [check], failed


def waves(config):
    """Whole waves: a mean and a median of 0, and a range of -1 to 1, by nature."""
    angle = 2 * np.pi * np.arange(80) / 40
    return panel_of(np.tile(np.column_stack([np.sin(angle), np.cos(angle)]), (2, 1)))


def shares(config):
    """A sensor that saturates at 0 and 1, and a flag."""
    share = np.clip(0.5 + walks()[:, 0] / 10, 0, 1)
    return panel_of(np.column_stack([share, (share > 0.5).astype(float)]))


def rounded(config):
    """Values with few decimals between 0 and 1."""
    values = np.random.default_rng(0).integers(0, 1001, (160, 2)) / 1000
    values[3], values[5] = 0, 1
    return panel_of(values)


@pytest.mark.parametrize("load", [waves, shares, rounded])
def test_values_that_look_scaled_by_nature_pass(load):
    assert testing.check(plugin_of(load)) == {}


def test_the_built_in_csv_is_tried_on_a_spoiled_file():
    """It would be found out if it smoothed what it reads."""
    plugin = registry.get(Kind.DATA, "csv")

    def load(config):
        panel = plugin.load(config)
        return replace(panel, values=smooth(panel.values))

    check_statistics(plugin)
    with pytest.raises(CheckFailedError, match="in the file that path names, changes row 9"):
        check_statistics(replace(plugin, load=load))


def test_a_file_of_another_kind_is_no_fault(tmp_path):
    """The check of later rows offers a CSV file; a source that takes something else is judged by the rest."""
    file = tmp_path / "rows.npy"
    np.save(file, walks())

    def load(config):
        if not Path(config.path).is_file():
            raise DataError(f"no file {config.path}")
        return panel_of(np.load(config.path))

    assert testing.check(plugin_of(load, InAFile, InAFile(path=str(file)))) == {}


def test_a_local_model_that_has_a_built_in_name_is_no_hindrance(tmp_path, own_registry):
    """A clash breaks only the name that clashes, not the check of a data source."""
    for name in ("transformer", "linear"):
        file = tmp_path / f"{name}.py"
        file.write_text("plugin = 3")
        registry.load_file(file)
    assert testing.check(plugin_of()) == {}


def test_what_does_not_apply_is_said():
    found = [outcome for outcome in testing.outcomes(plugin_of()) if outcome.passed is None]
    assert [(outcome.check, outcome.explanation) for outcome in found] == [
        ("check_missing_file", "does not apply: no option names a file")
    ]
