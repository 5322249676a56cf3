"""naive2 against statsmodels' classical decomposition, and arithmetic by hand."""

import numpy as np
import pytest
from statsmodels.tsa.seasonal import seasonal_decompose

from tsformer.evaluation.baselines import last_value, naive2, seasonal_index


def wave(rows=60, level=50.0, seed=0):
    step = np.arange(rows)
    return level + 0.2 * step + 8 * np.sin(2 * np.pi * step / 12) + np.random.default_rng(seed).normal(0, 0.5, rows)


@pytest.mark.parametrize("season", [4, 7, 12])
@pytest.mark.parametrize("by_ratio", [True, False])
def test_the_index_is_that_of_statsmodels(season, by_ratio):
    values = wave()
    model = "multiplicative" if by_ratio else "additive"
    expected = seasonal_decompose(values, model=model, period=season).seasonal[:season]
    np.testing.assert_allclose(seasonal_index(values, season, by_ratio=by_ratio), expected, rtol=1e-10, atol=1e-10)


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
