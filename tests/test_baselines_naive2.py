"""naive2 against statsmodels' classical decomposition, and arithmetic by hand."""

from dataclasses import replace

import numpy as np
import pytest
from statsmodels.tsa.seasonal import seasonal_decompose
from statsmodels.tsa.stattools import acf

from tsformer.evaluation.baselines import last_value, naive2
from tsformer.evaluation.seasonality import Seasonality


def wave(rows=60, level=50.0, seed=0):
    step = np.arange(rows)
    return level + 0.2 * step + 8 * np.sin(2 * np.pi * step / 12) + np.random.default_rng(seed).normal(0, 0.5, rows)


@pytest.mark.parametrize("season", [4, 7, 12])
@pytest.mark.parametrize("by_ratio", [True, False])
def test_the_index_is_that_of_statsmodels(season, by_ratio):
    values = wave()
    model = "multiplicative" if by_ratio else "additive"
    expected = seasonal_decompose(values, model=model, period=season).seasonal[:season]
    found = Seasonality(values, season).index(np.array([len(values)]), by_ratio=by_ratio)
    np.testing.assert_allclose(found[0], expected, rtol=1e-10, atol=1e-10)


def test_the_season_is_put_back(make_panel):
    values = wave(72)
    panel = make_panel([values])
    index = seasonal_decompose(values[:60], model="multiplicative", period=12).seasonal[:12]
    expected = values[59] / index[59 % 12] * index[np.arange(60, 74) % 12]
    found = naive2(panel, np.array([0]), np.array([60]), 14, 12)[0, :, 0]
    np.testing.assert_allclose(found, expected)
    assert np.abs(found[:12] - values[60:72]).mean() < 3


def test_values_below_zero_take_differences(make_panel):
    values = wave(72) - 60
    index = seasonal_decompose(values[:60], model="additive", period=12).seasonal[:12]
    found = naive2(make_panel([values]), np.array([0]), np.array([60]), 5, 12)[0, :, 0]
    np.testing.assert_allclose(found, values[59] - index[11] + index[:5])


@pytest.mark.parametrize("rows", [30, 60])
def test_without_a_season_it_is_the_last_value(make_panel, rows):
    noise = 100 + np.random.default_rng(1).normal(size=72)
    panel, where = make_panel([noise]), (np.array([0]), np.array([rows]), 6)
    np.testing.assert_array_equal(naive2(panel, *where, 12), last_value(panel, *where, 12))


def test_of_rows_before_the_origin_and_since_the_last_gap(make_panel):
    values = wave(100)
    spoiled = values.copy()
    spoiled[60:] = 1e6
    args = (np.array([0]), np.array([60]), 6, 12)
    expected = naive2(make_panel([values]), *args)
    np.testing.assert_array_equal(naive2(make_panel([spoiled]), *args), expected)
    spoiled[:12] = -1e6
    after = naive2(make_panel([spoiled], breaks=np.array([12])), *args)
    np.testing.assert_allclose(after, naive2(make_panel([values[12:]]), np.array([0]), np.array([48]), 6, 12))


@pytest.mark.parametrize("season", [4, 7])
def test_the_test_of_a_season_is_bartletts(season):
    """Of series around the limit, far from 0, as of several moments."""
    rng, counts = np.random.default_rng(3), np.array([21, 40, 55, 80])
    verdicts = []
    for strength in np.linspace(0, 1.5, 40):
        values = 1e6 + strength * np.sin(2 * np.pi * np.arange(90) / season) + rng.normal(size=90)
        found = Seasonality(values, season).stands_out(counts)
        for count, verdict in zip(counts, found, strict=True):
            *others, last = acf(values[:count], nlags=season)[1:]
            limit = 1.645 * np.sqrt((1 + 2 * np.square(others).sum()) / count)
            assert verdict == (abs(last) > limit)
        verdicts += found.tolist()
    assert 20 < sum(verdicts) < len(verdicts) - 20


def test_a_moment_does_not_depend_on_the_others(make_panel):
    rng = np.random.default_rng(0)
    values = np.stack([wave(150, seed=1), wave(150, level=-5, seed=2)], axis=1)
    values[rng.random(values.shape) < 0.1] = np.nan
    panel = make_panel([values, wave(80)[:, None].repeat(2, 1)], masked=True, breaks=np.array([90]))
    series = np.repeat([0, 1], [100, 40])
    origin = np.concatenate([np.arange(45, 145), 150 + np.arange(36, 76)])
    order = rng.permutation(len(origin))
    together = naive2(panel, series[order], origin[order], 15, 12)
    assert (together != last_value(panel, series[order], origin[order], 15, 12)).any(axis=(1, 2)).sum() > 50
    for place, window in enumerate(order[:30]):
        cut = origin[window]
        rows = panel.values.copy()
        rows[cut:] = 1e300  # what comes later
        alone = naive2(replace(panel, values=rows), series[[window]], origin[[window]], 15, 12)
        np.testing.assert_array_equal(together[place], alone[0])
