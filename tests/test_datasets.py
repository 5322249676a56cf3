"""The shipped data sets: what they hold, and that they load by name."""

import importlib.resources
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from tsformer_plugins.data import series
from tsformer_plugins.data.csv import CsvConfig, plugin

FOLDER = importlib.resources.files("tsformer_datasets")
WEEKENDS = "weekends are taken as closed: frequency B"
HOLIDAYS = "224 weekday(s) without a row are taken as holidays"

# name: frequency, rows, first day, last day, {column: sum}, notes
EXPECTED = {
    "air_passengers": ("MS", 144, "1949-01-01", "1960-12-01", {"passengers": 40363}, ()),
    "brent": ("B", 8195, "1987-05-20", "2019-08-26", {"price": 379295.62}, (WEEKENDS, HOLIDAYS)),
    "us_gasoline": ("W-MON", 1355, "1991-02-04", "2017-01-16", {"barrels": 11589.727}, ()),
    "sunspots": ("YS", 309, "1700-01-01", "2008-01-01", {"activity": 15373.4}, ()),
    "seattle_weather": (
        "D",
        1461,
        "2012-01-01",
        "2015-12-31",
        {"precipitation": 4426.0, "temp_max": 24017.5, "temp_min": 12031.0, "wind": 4735.3},
        ("ignored columns that are not numbers: weather",),
    ),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_a_data_set_is_what_it_is_said_to_be(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frequency, rows, first, last, sums, notes = EXPECTED[name]
    panel = plugin.load(CsvConfig(path=name))
    assert panel.schema.frequency == frequency
    assert panel.values.shape == (rows, len(sums))
    assert (str(panel.times[0].date()), str(panel.times[-1].date())) == (first, last)
    assert panel.schema.targets == tuple(sums)
    assert np.allclose(panel.values.sum(axis=0), list(sums.values()), rtol=1e-12)
    assert tuple(map(str, panel.notes)) == notes


def test_labelled_series_are_what_they_are_said_to_be(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = series.plugin.load(series.plugin.example)
    assert (len(found), found.schema.channels, found.series.values.shape) == (90, ("value",), (5808, 1))
    assert Counter(found.labels) == {"cylinder": 30, "bell": 30, "funnel": 30}
    assert (found.series.lengths.min(), found.series.lengths.max()) == (56, 72)
    highest = {name: [] for name in ("bell", "funnel")}  # where the ramp ends: late in a bell, early in a funnel
    for index, label in enumerate(found.labels):
        if label in highest:
            highest[label].append(found.series[index][:, 0].argmax())
    assert np.mean(highest["bell"]) > np.mean(highest["funnel"]) + 15


def test_the_messy_table_is_what_it_is_said_to_be(tmp_path, monkeypatch):
    """Against pandas, which is told everything."""
    monkeypatch.chdir(tmp_path)
    panel = plugin.load(CsvConfig(path="kiosks", missing="mask"))
    with (FOLDER / "kiosks.csv").open() as file:
        table = pd.read_csv(file, sep=";", decimal=",", thousands=".", skiprows=2, na_values="-")
    table["day"] = pd.to_datetime(table["day"], format="%d/%m/%Y")
    assert panel.schema.frequency == "C-MON-TUE-WED-THU-FRI-SAT"
    assert panel.schema.targets == ("takings", "promotion", "temperature")
    assert sorted(panel.ids) == ["Harbour", "Museum", "Station"]
    for number, kiosk in enumerate(panel.ids):
        mine = table[table["kiosk"] == kiosk].sort_values("day")
        assert list(panel.times[panel.rows(number)]) == list(mine["day"])
        np.testing.assert_array_equal(panel.values[panel.rows(number)], mine[list(panel.schema.targets)])
    assert np.isnan(panel.values).sum() == 9


def test_all_files_are_described_and_tested():
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    files = [file.name for file in FOLDER.iterdir() if file.name.endswith((".csv", ".tsv"))]
    others = ["cylinder_bell_funnel.csv", "kiosks.csv", "kiosks_ahead.csv", "reviews.tsv"]
    assert sorted(files) == sorted([*(f"{name}.csv" for name in EXPECTED), *others])
    assert "| `cylinder_bell_funnel.csv` | 5,808 |" in readme
    assert "| `reviews.tsv` | 240 |" in readme
    assert "| `kiosks.csv` | 897 |" in readme
    for name, (frequency, rows, *_) in EXPECTED.items():
        line = next(line for line in readme.splitlines() if line.startswith(f"| `{name}.csv` |"))
        assert f"| {rows:,} |" in line
        assert f"(`{frequency}`)" in line


def test_files_are_small_and_plain():
    for file in FOLDER.iterdir():
        if file.name.endswith(".csv"):
            content = file.read_bytes()
            assert len(content) < 200_000
            assert content.isascii()
            assert b"\r" not in content
            assert content.endswith(b"\n")
