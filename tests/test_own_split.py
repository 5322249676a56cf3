"""A split of one's own, as a published benchmark has it."""

from dataclasses import replace

import numpy as np
import pytest

from tsformer import fitting
from tsformer.config import resolve
from tsformer.config_layer import Layer
from tsformer.data.split import Split
from tsformer.errors import UsageError
from tsformer.preparation import prepare

SETTINGS = resolve(
    [Layer({"model": {"name": "last_value"}, "window": {"lookback": 6, "horizon": 4, "season": 1}})], needs_data=False
)


def rows(*numbers):
    return np.array(numbers, dtype=np.int64)


SPLIT = Split(rows(50, 20), rows(60, 30), rows(64, 40))


@pytest.fixture
def panel(make_panel):
    return make_panel([np.random.default_rng(0).normal(size=80), np.random.default_rng(1).normal(size=40)])


def test_the_windows_of_each_part(panel):
    prepared = prepare(SETTINGS, panel, SPLIT)
    assert prepared.split is SPLIT
    starts = {"train": ((6, 50), (6, 20)), "validation": ((50, 60), (20, 30)), "test": ((60, 64), (30, 40))}
    for part, series in starts.items():
        windows = getattr(prepared, part)
        for index, (first, stop) in enumerate(series):
            origins = windows.origins[windows.series == index].numpy() - prepared.panel.offsets[index]
            assert origins.tolist() == list(range(first, stop - 4 + 1)), (part, index)


def test_statistics_come_from_its_training_rows_alone(panel):
    states = prepare(SETTINGS, panel, SPLIT).chain.to_json()
    assert states["s0"][0]["mean"] == [pytest.approx(panel.values[:50].mean())]
    assert states["s1"][0]["mean"] == [pytest.approx(panel.values[80:100].mean())]


def test_a_fit_is_scored_on_its_test_part(panel):
    result = fitting.fit(SETTINGS, panel, split=SPLIT)
    assert result.test.overall["windows"] == 1 + 7
    error = np.abs(panel.values[59, 0] - panel.values[60:64, 0]).mean()
    errors = [error] + [
        np.abs(panel.values[80 + o - 1, 0] - panel.values[80 + o : 84 + o, 0]).mean() for o in range(30, 37)
    ]
    assert result.test.overall["mae"] == pytest.approx(np.mean(errors), rel=1e-5)
    scale = [np.abs(np.diff(panel.values[part, 0])).mean() for part in (slice(0, 60), slice(80, 110))]
    mase = (errors[0] / scale[0] + np.mean(errors[1:]) / scale[1]) / 2
    assert result.test.overall["mase"] == pytest.approx(mase, rel=1e-5)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"train": rows(50)}, "split.train must be an int64 array with a number for each of 2 series"),
        ({"validation": np.array([60.0, 30.0])}, "split.validation must be an int64 array"),
        ({"lengths": [64, 40]}, "split.lengths must be an int64 array"),
        ({"lengths": rows(64, 41)}, "the split of series 's1' ends at row 41, but it has 40 rows"),
        ({"train": rows(9, 20)}, "series 's0' leaves no training window: split.train is 9, and 6 rows before it"),
        ({"train": rows(50, 27)}, "series 's1' leaves no validation window: split.validation is 30, and 27 rows"),
        ({"validation": rows(61, 30)}, "series 's0' leaves no test window: split.lengths is 64"),
        ({"validation": rows(40, 30)}, "series 's0' leaves no validation window"),
        ({"lengths": rows(81, 41)}, r"'s0' ends at row 81, but it has 80 rows \(2 of 2 series are too short: s0, s1\)"),
        ({"train": rows(9, 9)}, r"'s0' leaves no training .* \(2 of 2 series are split like that: s0, s1\)$"),
    ],
)
def test_one_that_does_not_fit_is_refused(panel, change, said):
    with pytest.raises(UsageError, match=said):
        prepare(SETTINGS, panel, replace(SPLIT, **change))


def test_a_single_series_needs_no_name(make_panel):
    panel = make_panel([np.arange(80.0)])
    prepare(SETTINGS, panel, Split(rows(50), rows(60), rows(80)))
    with pytest.raises(UsageError, match=r"^the split of the series leaves no test window: .* need more$"):
        prepare(SETTINGS, panel, Split(rows(50), rows(60), rows(61)))
