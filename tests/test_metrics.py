"""Metrics against scikit-learn and hand-computed numbers; baselines against their definition."""

import numpy as np
import pytest
from sklearn.metrics import mean_absolute_error, root_mean_squared_error

from tsformer.evaluation.baselines import last_value, seasonal_naive
from tsformer.evaluation.metrics import Errors, score
from tsformer.evaluation.scales import seasonal_scale


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


def holed(shape, seed=0):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=shape)
    values[rng.random(shape) < 0.3] = np.nan
    return values


def test_only_true_values_that_are_there_count():
    truth, forecast = holed((7, 4, 2)), np.random.default_rng(1).normal(size=(7, 4, 2))
    truth[3] = np.nan
    result = score(forecast, truth, np.zeros(7, dtype=int), np.ones((1, 2)), ["a", "b"])
    there = ~np.isnan(truth)
    assert result.overall["mae"] == pytest.approx(mean_absolute_error(truth[there], forecast[there]))
    assert result.overall["rmse"] == pytest.approx(root_mean_squared_error(truth[there], forecast[there]))
    error = np.abs(forecast - truth)
    assert result.by_target["b"]["mae"] == pytest.approx(np.nanmean(error[..., 1]))
    assert result.overall["mase"] == pytest.approx((np.nanmean(error[..., 0]) + np.nanmean(error[..., 1])) / 2)
    smape = 200 * error / (np.abs(forecast) + np.abs(truth))
    assert result.overall["smape"] == pytest.approx(np.nanmean(smape))
    assert result.overall["windows"] == 6
    assert (result.values, result.left_out) == (there.sum(), 0)


def test_what_has_no_forecast_is_left_out_and_counted():
    truth, forecast = np.ones((3, 2, 1)), np.full((3, 2, 1), 3.0)
    forecast[1, 0] = np.nan
    result = score(forecast, truth, np.zeros(3, dtype=int), np.ones((1, 1)), ["y"])
    assert (result.overall["mae"], result.values, result.left_out) == (2.0, 6, 1)


def test_a_series_without_true_values_has_no_mase_and_is_no_constant_one():
    truth, forecast = np.ones((2, 2, 2)), np.zeros((2, 2, 2))
    truth[1] = np.nan
    truth[0, :, 1] = np.nan
    result = score(forecast, truth, np.arange(2), np.array([[2.0, 2.0], [np.nan, np.nan]]), ["a", "b"])
    assert (result.overall["mase"], result.without_mase, result.series) == (0.5, (), 1)
    assert result.by_target["b"]["mae"] is None


def test_the_scale_of_mase_is_of_real_steps_within_a_stretch(make_panel):
    nan = np.nan
    # season 1: |2-1| = 1, then a missing value, then |9-6| = 3; a break before 100, then |104-100| = 4
    series = [1.0, 2.0, nan, 6.0, 9.0, 100.0, 104.0, 500.0]
    panel = make_panel([series], masked=True, breaks=np.array([5]))
    assert seasonal_scale(panel, np.array([7]), 1).tolist() == [[pytest.approx((1 + 3 + 4) / 3)]]
    assert np.isnan(seasonal_scale(panel, np.array([7]), 5)).all()  # every season lies across the gap


def test_the_scale_of_mase_is_that_of_each_series_alone(make_panel):
    """Many holed series with gaps, some shorter than a season, against sums by hand."""
    rng = np.random.default_rng(0)
    lengths, season = rng.integers(1, 30, 40), 4
    series = [rng.normal(size=(rows, 2)) for rows in lengths]
    for values in series:
        values[rng.random(values.shape) < 0.2] = np.nan
    series[3] = np.tile(rng.normal(size=(season, 2)), (5, 1)) + 1e9  # repeats itself
    series[4] = np.full((20, 2), np.nan)
    lengths = np.array([len(values) for values in series])
    before = rng.integers(0, lengths + 1)
    before[3] = 17
    breaks = np.flatnonzero(rng.random(lengths.sum()) < 0.1)
    panel = make_panel(series, masked=True, breaks=breaks[~np.isin(breaks, np.cumsum(lengths)) & (breaks > 0)])
    scale = seasonal_scale(panel, before, season)
    assert np.isnan(scale).any()
    for number, values in enumerate(series):
        start = int(panel.offsets[number])
        gaps = {int(row) - start for row in panel.breaks}
        for target in range(2):
            steps = []
            for row in range(season, int(before[number])):
                there, here = values[row - season, target], values[row, target]
                if not gaps & set(range(row - season + 1, row + 1)) and not np.isnan(here - there):
                    steps.append(abs(here - there))
            if number == 3 or not steps:
                assert np.isnan(scale[number, target])
            else:
                assert scale[number, target] == pytest.approx(np.mean(steps), rel=1e-12)
    assert np.isnan(seasonal_scale(panel, before, 10_000)).all()


def test_naive_forecasts_of_missing_values(make_panel):
    nan = np.nan
    panel = make_panel([[nan, nan, 3.0], [1.0, 20.0, nan, 11.0, nan, nan, 7.0]], masked=True)
    series, origin = np.array([1, 1, 1]), np.array([7, 9, 10])  # of the second series: rows 4, 6 and 7
    assert last_value(panel, series, origin, 2, 1)[:, :, 0].tolist() == [[11, 11], [11, 11], [7, 7]]
    # places 0, 1, 2 of row 4: 11 (row 3), 20 (row 1), and nothing, hence the last value
    seasonal = seasonal_naive(panel, series, origin, 3, 3)[:, :, 0]
    assert seasonal.tolist() == [[20, 11, 11], [11, 20, 11], [20, 7, 7]]


def test_naive_forecasts_do_not_look_across_a_gap(make_panel):
    panel = make_panel([np.arange(10.0)], breaks=np.array([4]))
    origin = np.array([3, 4, 5, 6, 9])
    zeros = np.zeros(5, dtype=int)
    path = seasonal_naive(panel, zeros, origin, 2, 2)[:, :, 0]
    assert path.tolist()[0] == [1, 2]
    assert path.tolist()[1] == [2, 3]  # rows before the gap: the window begins there
    assert np.isnan(path[2]).all()  # one row since the gap is no season
    assert path.tolist()[3:] == [[4, 5], [7, 8]]


@pytest.mark.parametrize("season", [1, 3])
def test_naive_forecasts_are_those_of_filled_seasons(make_panel, season):
    """Where a whole season is real the forecast is the same with masked rows further back."""
    values = holed((40, 2))
    values[30:37] = np.arange(14.0).reshape(7, 2)
    panel = make_panel([values], masked=True)
    origin, series = np.array([34, 37]), np.zeros(2, dtype=int)
    found = seasonal_naive(panel, series, origin, 5, season)
    filled = make_panel([np.nan_to_num(values)])
    np.testing.assert_array_equal(found, seasonal_naive(filled, series, origin, 5, season))
