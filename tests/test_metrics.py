"""Metrics against scikit-learn and hand-computed numbers; baselines against their definition."""

import numpy as np
import pytest
from sklearn.metrics import mean_absolute_error, root_mean_squared_error

from tsformer.evaluation.baselines import last_value, seasonal_naive
from tsformer.evaluation.metrics import Errors, score, seasonal_scale


def test_against_scikit_learn():
    rng = np.random.default_rng(0)
    forecast, truth = rng.normal(size=(7, 4, 2)), rng.normal(size=(7, 4, 2))
    result = score(forecast, truth, np.zeros(7, dtype=int), np.ones((1, 2)), ["a", "b"])
    flat = truth.reshape(-1), forecast.reshape(-1)
    assert result.overall["mae"] == pytest.approx(mean_absolute_error(*flat))
    assert result.overall["rmse"] == pytest.approx(root_mean_squared_error(*flat))
    assert result.by_target["b"]["mae"] == pytest.approx(np.abs(forecast - truth)[:, :, 1].mean())
    assert result.overall["windows"] == 7


def test_smape_by_hand():
    result = score(np.array([[[110.0], [0.0]]]), np.array([[[90.0], [0.0]]]), np.array([0]), np.ones((1, 1)), ["y"])
    assert result.overall["smape"] == pytest.approx((200 * 20 / 200 + 0) / 2)


def test_mase_by_hand(make_panel):
    # before the test part: 1, 2, 4, 7; seasonal errors with season 2: |4-1| = 3, |7-2| = 5, mean 4
    panel = make_panel([[1.0, 2.0, 4.0, 7.0, 100.0, 200.0]])
    scale = seasonal_scale(panel, np.array([4]), 2)
    assert scale.tolist() == [[4.0]]
    result = score(np.array([[[90.0], [196.0]]]), np.array([[[100.0], [200.0]]]), np.array([0]), scale, ["y"])
    assert result.overall["mase"] == pytest.approx(7 / 4)


def test_mase_is_averaged_over_series_not_windows(make_panel):
    panel = make_panel([[0.0, 1.0, 0.0, 1.0], [0.0, 10.0, 0.0, 10.0]])
    scale = seasonal_scale(panel, np.array([4, 4]), 1)
    truth = np.zeros((3, 1, 1))
    forecast = np.array([2.0, 2.0, 10.0]).reshape(3, 1, 1)  # two windows of the first series, one of the second
    assert score(forecast, truth, np.array([0, 0, 1]), scale, ["y"]).overall["mase"] == pytest.approx((2 + 1) / 2)


def test_undefined_is_none_and_counted(make_panel):
    season = np.sin(2 * np.pi * np.arange(40) / 8)  # repeats itself up to rounding
    panel = make_panel([np.full(40, 3.0), season, np.arange(40.0)])
    scale = seasonal_scale(panel, np.array([30, 30, 30]), 8)
    assert np.isnan(scale[:2]).all()
    truth = np.ones((3, 2, 1))
    result = score(truth + 1, truth, np.arange(3), scale, ["y"])
    assert result.overall["mase"] == pytest.approx(1 / 8)
    assert result.without_mase == ("y",)
    alone = score(truth[:1] + 1, truth[:1], np.array([0]), scale, ["y"])
    assert alone.overall["mase"] is None


def test_baselines(make_panel):
    panel = make_panel([np.arange(10.0), np.arange(100.0, 110.0)])
    series, origin = np.array([0, 1]), np.array([8, 17])
    assert last_value(panel, series, origin, 2, 3)[:, :, 0].tolist() == [[7, 7], [106, 106]]
    assert seasonal_naive(panel, series, origin, 4, 3)[:, :, 0].tolist() == [[5, 6, 7, 5], [104, 105, 106, 104]]


def test_seasonal_naive_without_a_season_before_it_is_undefined(make_panel):
    panel = make_panel([np.arange(10.0), np.arange(100.0, 110.0)])
    path = seasonal_naive(panel, np.array([1, 1]), np.array([12, 14]), 2, 4)
    assert np.isnan(path[0]).all()
    assert path[1, :, 0].tolist() == [100, 101]
    result = score(path[:1], np.ones((1, 2, 1)), np.array([1]), np.ones((2, 1)), ["y"])
    assert set(result.overall.values()) == {None, 1}


def test_errors_added_up_in_parts_are_those_of_all_windows():
    rng = np.random.default_rng(0)
    forecast, truth = rng.normal(size=(50, 4, 2)), rng.normal(size=(50, 4, 2))
    series, scale = np.sort(rng.integers(0, 9, 50)), rng.uniform(1, 2, size=(9, 2))
    scale[3, 1] = np.nan
    errors = Errors(scale, ["a", "b"])
    for start in range(0, 50, 7):
        errors.add(*(array[start : start + 7] for array in (forecast, truth, series)))
    parts, whole = errors.score(), score(forecast, truth, series, scale, ["a", "b"])
    assert parts.overall == pytest.approx(whole.overall)
    assert parts.by_target["b"] == pytest.approx(whole.by_target["b"])
    assert (parts.series, parts.series_without_mase, parts.without_mase) == (9, 1, ("b",))
    by_hand = [np.abs(forecast - truth)[series == s, :, 1].mean() / scale[s, 1] for s in range(9) if s != 3]
    assert parts.by_target["b"]["mase"] == pytest.approx(np.mean(by_hand))
