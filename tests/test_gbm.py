"""Prices that are a geometric Brownian motion with drift: the bands hold what they promise at every step."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from tsformer import fitting
from tsformer.config import resolve
from tsformer.config_layer import Layer
from tsformer.data.panel import Panel, Schema
from tsformer.forecast import forecast
from tsformer.predictive import Ask

STEPS, SPREAD, DRIFT = 30, 0.02, 0.002
SMALL = {"d_model": 16, "d_ff": 16, "encoder_layers": 1}


def motion(series, rows, seed=0):
    returns = DRIFT + SPREAD * np.random.default_rng(seed).standard_normal((series, rows))
    days = pd.date_range("2000-01-01", periods=rows)
    return Panel(
        values=100 * np.exp(returns.cumsum(axis=1)).reshape(-1, 1),
        offsets=np.arange(series + 1) * rows,
        times=days.append([days] * (series - 1)),
        ids=tuple(f"s{i}" for i in range(series)),
        schema=Schema(targets=("price",), time="ds", id="id", frequency="D"),
    )


def forecast_of(panel, model, steps, samples, output="normal", lookback=12):
    layer = {
        "model": {**SMALL, **model},
        "window": {"lookback": lookback, "horizon": STEPS},
        "train": {"max_steps": steps, "eval_every": steps // 2, "output": output},
        "transform": [{"name": "log_return"}],
    }
    fitted = fitting.learn(resolve([Layer(layer)], needs_data=False), panel).fitted
    return forecast(fitted, panel, ask=Ask((80.0,), samples=samples))


def covered(made, panel):
    """Percent of what can come that lies within the band of 80 % at each step, and the band's width in logarithms over
    that of a motion whose drift is known.

    What can come is known here: a logarithm that has moved by `h * drift`, give or take `sqrt(h) * spread`. So nothing
    has to be drawn to find the share within the band, and few series do.
    """
    steps = np.arange(1, STEPS + 1)
    last = np.log(panel.values[panel.offsets[1:] - 1])
    law = stats.norm(DRIFT * steps, SPREAD * np.sqrt(steps))
    lower, upper = (np.log(end[..., 0]) - last for end in made.interval(80.0))
    ideal = 2 * stats.norm.ppf(0.9) * SPREAD * np.sqrt(steps)
    return 100 * (law.cdf(upper) - law.cdf(lower)).mean(0), (upper - lower).mean(0) / ideal


@pytest.mark.parametrize("name", ["transformer", "tcn_transformer"])
def test_the_band_of_80_percent_holds_80_percent_and_grows_like_the_root_of_time(name):
    panel = motion(150, 1000)
    coverage, width = covered(forecast_of(panel, {"name": name, "decoder": "direct", "revin": False}, 100, 400), panel)
    assert np.abs(coverage - 80).max() < 3, coverage
    assert np.abs(width - 1).max() < 0.1, width


@pytest.mark.slow
@pytest.mark.parametrize("name", ["transformer", "tcn_transformer"])
def test_so_it_does_when_paths_are_drawn_step_by_step(name):
    panel = motion(300, 1000)
    made = forecast_of(panel, {"name": name, "decoder": "autoregressive", "revin": False}, 300, 200)
    coverage, width = covered(made, panel)
    assert np.abs(coverage - 80).max() < 3, coverage
    assert np.abs(width - 1).max() < 0.1, width


@pytest.mark.slow
@pytest.mark.parametrize("output", ["normal", "student_t", "quantiles"])
@pytest.mark.parametrize("name", ["transformer", "tcn_transformer"])
def test_it_holds_as_models_come_though_each_window_guesses_the_drift_anew(name, output):
    panel = motion(300, 400)
    coverage, width = covered(
        forecast_of(panel, {"name": name, "decoder": "direct"}, 500, 200, output, lookback=60), panel
    )
    assert np.abs(coverage - 80).max() < 3, coverage
    assert (width > 0.95).all()
    assert width[-1] > 1.1 * width[0]  # for what is not known of the drift
