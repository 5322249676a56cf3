"""Columns that single precision cannot hold: one huge value, tiny ones; and honest data that are left alone."""

import numpy as np
import pandas as pd
import pytest
from sklearn.preprocessing import StandardScaler

from tsformer.config import resolve
from tsformer.config_layer import Layer
from tsformer.data.frames import panel_from_frame
from tsformer.data.precision import _middle, check_precision
from tsformer.data.transforms import Chain
from tsformer.errors import DataError
from tsformer.preparation import prepare


def prepared(panel, scale="standard", transforms=()):
    values = {"model": {"name": "last_value"}, "transform": list(transforms), "scale": {"name": scale}}
    return prepare(
        resolve([Layer({**values, "window": {"lookback": 3, "horizon": 2, "season": 1}})], needs_data=False), panel
    )


def near_60(rows=144):
    return 60 + 5 * np.random.default_rng(0).normal(size=rows)


@pytest.mark.parametrize("outlier", [1e10, 1e12, 1e15, -1e20, 1e50])
def test_one_huge_value_makes_the_others_alike(make_panel, outlier):
    values = near_60()
    values[50] = outlier
    if abs(outlier) < 1e16:  # the oracle: what scikit-learn makes of it has hardly any values left in single precision
        scaled = np.delete(StandardScaler().fit_transform(values[:, None]), 50).astype(np.float32)
        assert len(np.unique(scaled)) < len(values) / 2
    with pytest.raises(DataError) as caught:
        prepared(make_panel([near_60(), values], names=["load"], frequency="MS"))
    said = str(caught.value)
    for words in ("series 's1'", "'load'", f"{outlier:g}", "at 2024-03-01 (row 51 of the series)", "--scale robust"):
        assert words in said
    assert ("--transform log" in said) == (outlier > 0)


def test_the_remedies_help(make_panel):
    values = near_60()
    values[50] = 1e12
    panel = make_panel([values])
    for remedy in ({"scale": "robust"}, {"transforms": ["log"]}):
        data = prepared(panel, **remedy).data
        assert len(np.unique(data.tensor()[:, 0])) == len(values)


def test_a_level_that_hides_the_steps(make_panel):
    panel = make_panel([1e9 + near_60()])
    prepared(panel)
    with pytest.raises(DataError, match=r"changes by .* beside values of 1e.09: .* take --scale standard"):
        prepared(panel, scale="none")


RNG = np.random.default_rng(1)
HONEST = {
    "constant": np.full(200, 3.7),
    "constant but for rounding": 0.3 + 1e-16 * RNG.integers(-2, 3, 200),
    "constant and one spike": np.where(np.arange(200) == 50, 1e15, 7.0),
    "a step": np.repeat([1.0, 1e6], 100),
    "rare counts": RNG.poisson(0.02, 2000).astype(float),
    "rare large counts": np.where(RNG.random(2000) < 0.01, 1e6, RNG.poisson(3.0, 2000)),
    "prices": 100 * np.exp(np.cumsum(0.01 * RNG.normal(size=2000))),
    "a long trend": np.arange(1_000_000.0),
    "a slow wave": np.sin(np.arange(1_000_000) / 1e5),
    "seconds since 1970": 1.7e9 + np.arange(2000.0),
    "heavy tails": RNG.standard_cauchy(5000),
    "growth": 1.02 ** np.arange(1000),
    "decay": 100 * np.exp(-0.1 * np.arange(400)),
    "zeros but for rounding, and values": np.where(
        RNG.random(2000) < 0.8, 1e-17 * RNG.normal(size=2000), RNG.gamma(2, 7, 2000)
    ),
    "smoothed intermittent demand": pd.Series(np.where(np.arange(800) % 80 == 0, 50.0, 0.0))
    .ewm(alpha=0.4)
    .mean()
    .array,
    "pulses": np.exp(-(((np.arange(960) % 48 - 24) / 2) ** 2)),
    "two regimes": np.concatenate([1e7 + 1e5 * RNG.normal(size=60), 1 + 0.1 * RNG.normal(size=200)]),
    "zeros, then a level": np.concatenate([np.zeros(200), 1e6 + 0.05 * RNG.normal(size=200)]),
}


@pytest.mark.parametrize("kind", HONEST)
def test_honest_data_are_taken(make_panel, kind):
    panel = make_panel([HONEST[kind]], frequency="s")
    for scale in ("standard", "robust", "minmax"):
        prepared(panel, scale)
    prepared(panel, transforms=["difference"])


def test_a_trend_that_is_differenced_away_is_not_lost(make_panel):
    panel = make_panel([np.arange(100.0) * 3 + 5])
    assert np.ptp(prepared(panel, transforms=["difference"]).data.values) == 0


@pytest.mark.parametrize("size", [1e-300, 1e-170, 1e-101])
def test_values_too_small_to_compute_with(size):
    frame = pd.DataFrame({"ds": pd.date_range("2020", periods=60), "y": size * near_60(60) / 100})
    assert (frame.y**2 < 1e-200).all()
    with pytest.raises(
        DataError, match=r"'y' has no value beyond .*; below 1e-100 they are too small .* sensible unit"
    ):
        panel_from_frame(frame)
    with pytest.raises(DataError, match="choose columns without: --target x"):
        panel_from_frame(frame.assign(x=near_60(60)))
    panel_from_frame(frame.assign(y=frame.y / size * 1e-90))
    panel_from_frame(frame.assign(y=np.where(np.arange(60) % 2, 0.0, frame.y / size)))


def test_no_rows_at_all_between(make_panel):
    """Series of one row each have no steps."""
    panel = make_panel([[1.0], [2.0], [1e15]])
    check_precision(panel, Chain([]), Chain([]).forward(panel))


def test_missing_values_are_neither_lost_nor_outliers(make_panel):
    values = near_60(200)
    holed = np.where(np.arange(200) % 3 == 0, np.nan, values)
    panel = make_panel([holed, np.where(np.arange(200) < 100, holed, np.nan)], masked=True)
    check_precision(panel, Chain([]), Chain([]).forward(panel))
    spoilt = holed.copy()
    spoilt[100] = 1e15
    panel = make_panel([holed, spoilt], masked=True)
    with pytest.raises(
        DataError, match=r"series 's1': column 'y0' has the value 1e\+15 at 2020-04-10 \(row 101"
    ) as error:
        prepared(panel)
    assert error.value.finding.options == {"data.sentinel": [1e15], "data.missing": "mask"}


def test_a_series_without_any_value_has_nothing_to_lose(make_panel):
    panel = make_panel([near_60(60), np.full(60, np.nan)], masked=True)
    check_precision(panel, Chain([]), Chain([]).forward(panel))


def test_what_lies_between_the_outliers_is_that_of_sorted_values():
    """Series of several lengths, holed, by plain lists: one in a hundred, at least one, is left out at each end."""
    rng = np.random.default_rng(0)
    lengths = [1, 2, 3, 3, 250, 250, 40, 0, 7]
    parts = [rng.normal(size=rows) for rows in lengths]
    for part in parts[4:6]:
        part[rng.random(len(part)) < 0.4] = np.nan
    parts[3][:] = np.nan
    wanted = []
    for part in parts:
        some = sorted(part[~np.isnan(part)].tolist()) or [0.0]
        out = min(max(1, len(some) // 100), (len(some) - 1) // 2)
        low, high = some[out], some[len(some) - 1 - out]
        wanted.append((high - low, max(abs(low), abs(high))))
    found = _middle(np.concatenate(parts), np.cumsum([0, *lengths]))
    assert list(zip(*map(list, found), strict=True)) == wanted
