"""mean, window_average, theta, ets: against arithmetic by hand, and statsmodels on the same steps."""

import numpy as np
import pandas as pd
import pytest
import torch
from statsmodels.tsa.forecasting.theta import ThetaModel
from statsmodels.tsa.holtwinters import ExponentialSmoothing
from tsformer_plugins.models.ets import ETS, ETSConfig
from tsformer_plugins.models.mean import Mean, MeanConfig
from tsformer_plugins.models.theta import Theta, ThetaConfig
from tsformer_plugins.models.window_average import WindowAverage, WindowAverageConfig

from tsformer.data.windows import Batch
from tsformer.errors import UsageError
from tsformer.plugin import Problem

HORIZON = 4


def predict(build, config, past, season=1):
    """Of one target; None is a step without a value, with garbage behind the mask."""
    values = torch.tensor([[[float("nan") if value is None else float(value)] for value in past]])
    module = build(config, Problem(lookback=len(past), horizon=HORIZON, targets=1, season=season))
    return module(Batch(past=values, past_mask=~values.isnan()))[0, :, 0, 0].tolist()


@pytest.mark.parametrize(
    ("options", "past", "season", "forecast"),
    [
        ({}, [1, 2, 3, 5, 7], 2, [6, 6, 6, 6]),  # one season
        ({}, [1, 2, 3, 6], 1, [3, 3, 3, 3]),  # no season: the lookback
        ({"window": 3}, [1, 2, 3, 5, 7], 2, [5, 5, 5, 5]),
        ({"window": 3}, [1, 2, None, 5, 7], 2, [6, 6, 6, 6]),
        ({"window": 2}, [4, 2, None, None], 2, [3, 3, 3, 3]),  # none among them: the mean of all
        ({"window": 2}, [None, None, None], 2, [0, 0, 0, 0]),
        ({"seasonal": True}, [9, 1, 10, 3, 20], 2, [2, 15, 2, 15]),  # 1, 3 and 10, 20
        ({"seasonal": True, "seasons": 1}, [9, 1, 10, 3, 20], 2, [3, 20, 3, 20]),
        ({"seasonal": True}, [1, None, 3, None], 2, [2, 2, 2, 2]),
    ],
)
def test_window_average_by_hand(options, past, season, forecast):
    assert predict(WindowAverage, WindowAverageConfig(**options), past, season) == pytest.approx(forecast)


@pytest.mark.parametrize(
    ("past", "forecast"), [([1, 2, 6], 3), ([None, 2, 6], 4), ([1, 2, None], 1.5), ([None, None], 0)]
)
def test_mean_by_hand(past, forecast):
    assert predict(Mean, MeanConfig(), past) == pytest.approx([forecast] * HORIZON)


def test_more_than_the_lookback_holds_is_refused():
    with pytest.raises(UsageError, match="mean of 9 steps, but the lookback has 5: use --lookback 9"):
        WindowAverage(WindowAverageConfig(window=9), Problem(lookback=5, horizon=2, targets=1))


@pytest.fixture(scope="module")
def history():
    step = np.arange(72)
    noise = np.random.default_rng(3).normal(0, 0.3, 72)
    return 20 + 0.1 * step + 4 * np.sin(2 * np.pi * step / 12) + noise


def test_theta_is_that_of_statsmodels(history):
    expected = ThetaModel(pd.Series(history.astype(np.float32).astype(float)), period=12, method="multiplicative")
    found = predict(Theta, ThetaConfig(), history, season=12)
    np.testing.assert_allclose(found, expected.fit().forecast(HORIZON), rtol=1e-5)


def test_theta_takes_differences_where_values_are_not_positive(history):
    moved = history - 20
    expected = ThetaModel(pd.Series(moved.astype(np.float32).astype(float)), period=12, method="additive")
    found = predict(Theta, ThetaConfig(), moved, season=12)
    np.testing.assert_allclose(found, expected.fit().forecast(HORIZON), rtol=1e-4)


def test_ets_is_the_best_of_its_candidates(history):
    single = history.astype(np.float32).astype(float)
    criteria = {}
    for trend, seasonal in [(None, None), (None, "add"), (None, "mul"), ("add", None), ("add", "add"), ("add", "mul")]:
        fit = ExponentialSmoothing(
            single,
            trend=trend,
            damped_trend=trend is not None,
            seasonal=seasonal,
            seasonal_periods=12 if seasonal else None,
            initialization_method="heuristic",
        ).fit()
        criteria[fit.aicc] = fit.forecast(HORIZON)
    found = predict(ETS, ETSConfig(), history, season=12)
    np.testing.assert_allclose(found, criteria[min(criteria)], rtol=0.02)
    truth = 20 + 0.1 * np.arange(72, 76) + 4 * np.sin(2 * np.pi * np.arange(72, 76) / 12)
    assert np.abs(np.array(found) - truth).max() < 1.0


@pytest.mark.parametrize(("build", "config"), [(Theta, ThetaConfig()), (ETS, ETSConfig())])
@pytest.mark.parametrize("past", [[5.0], [5.0, 7.0], [3.0] * 30, [None] * 12, [None] * 20 + [1.0, 2.0, 4.0]])
def test_little_or_constant_history_repeats_the_last_value(build, config, past):
    last = next((value for value in reversed(past) if value is not None), 0.0)
    assert predict(build, config, past, season=12) == pytest.approx([last] * HORIZON)


@pytest.mark.parametrize(("build", "config"), [(Theta, ThetaConfig()), (ETS, ETSConfig())])
def test_units_change_nothing(build, config, history):
    own = np.array(predict(build, config, history, season=12))
    scaled = np.array(predict(build, config, history * 1e6, season=12))
    np.testing.assert_allclose(scaled, own * 1e6, rtol=0.01)
