"""gradient_boosting: what trees are shown, and what they learn."""

import numpy as np
import pytest
import torch
from tsformer_plugins.models.gradient_boosting import GradientBoosting, GradientBoostingConfig, plugin

from tsformer import fitting, run
from tsformer.config import resolve
from tsformer.config_layer import Layer
from tsformer.data.windows import Batch
from tsformer.errors import RunError, UsageError
from tsformer.forecast import forecast
from tsformer.plugin import Problem

SMALL = {"trees": 50, "learning_rate": 0.2, "leaves": 8, "lags": 6}


def settings(**window):
    window = {"lookback": 24, "horizon": 6, "season": 12, **window}
    return resolve([Layer({"model": {"name": "gradient_boosting", **SMALL}, "window": window})], needs_data=False)


def wave(rows=240, noise=0.05):
    step = np.arange(rows)
    return 100 + 10 * np.sin(2 * np.pi * step / 12) + noise * np.random.default_rng(0).normal(size=rows) + 0.2 * step


def test_seasons_before_each_step():
    problem = Problem(lookback=8, horizon=5, targets=1, season=3)
    module = GradientBoosting(GradientBoostingConfig(seasons=3), problem)
    past = torch.arange(1.0, 9.0)[None, :, None]
    rows, scale, shift = module.rows(Batch(past=past, past_mask=torch.ones_like(past, dtype=torch.bool)))
    values = rows[0, :, 0, :3] * scale[0, 0, 0] + shift[0, 0, 0]
    expected = [[6, 3, None], [7, 4, 1], [8, 5, 2], [6, 3, None], [7, 4, 1]]
    for found, places in zip(values.tolist(), expected, strict=True):
        assert found == pytest.approx([np.nan if place is None else place for place in places], nan_ok=True)


def test_it_learns_a_wave_on_a_trend(make_panel):
    result = fitting.fit(settings(), make_panel([wave()]))
    assert result.test.overall["mase"] < 0.2
    assert result.test.overall["mae"] < 0.5 * result.baselines["seasonal_naive"].overall["mae"]


def test_a_level_far_from_all_seen_is_added(make_panel):
    panel = make_panel([wave()])
    fitted = fitting.learn(settings(), panel).fitted
    far = make_panel([wave() + 1e4])
    near = forecast(fitted, panel).values
    np.testing.assert_allclose(forecast(fitted, far).values - 1e4, near, atol=0.5)


def test_missing_values_are_left_to_the_trees(make_panel):
    values = wave()
    values[np.random.default_rng(1).random(len(values)) < 0.2] = np.nan
    result = fitting.fit(settings(), make_panel([values], masked=True))
    assert np.isfinite(result.forecast).all()
    assert result.test.overall["mase"] < 0.5


def test_a_run_of_it_cannot_be_loaded(make_panel, tmp_path):
    writer = run.Writer(tmp_path / "run")
    result = fitting.fit(settings(), make_panel([wave()]), watch=fitting.Watch(start=writer.start))
    writer.finish(result.fitted, result.summary())
    with pytest.raises(RunError, match="its model cannot be saved"):
        run.load(tmp_path / "run")


def test_texts_are_refused():
    with pytest.raises(UsageError, match="reads no texts"):
        plugin.build(GradientBoostingConfig(), Problem(lookback=4, horizon=2, targets=1, text_length=3))
