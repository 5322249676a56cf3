"""Every output from a fit to a forecast of a run that was loaded again, with intervals in the user's units."""

import numpy as np
import pytest

from tsformer import fitting, run
from tsformer.config import resolve
from tsformer.config_layer import Layer
from tsformer.plugin import Problem
from tsformer.predictive import Ask, predictive

SMALL = {"d_model": 8, "n_heads": 2, "d_ff": 8}
MODELS = {
    "seasonal_naive": {"name": "seasonal_naive"},
    "ridge": {"name": "ridge"},
    "linear": {"name": "linear"},
    "transformer": {"name": "transformer", "encoder_layers": 1, "decoder_layers": 1, **SMALL},
    "autoregressive": {"name": "tcn_transformer", "decoder": "autoregressive", **SMALL},
    "lstm": {"name": "lstm", "d_model": 8},
    "tcn": {"name": "tcn", "d_model": 8},
}
OUTPUTS = ["quantiles", "normal", "student_t", "negative_binomial"]


PAIRS = [(model, output) for model in ("ridge", "autoregressive") for output in OUTPUTS]
PAIRS += [
    ("seasonal_naive", "quantiles"),
    ("linear", "negative_binomial"),
    ("transformer", "quantiles"),
    ("lstm", "student_t"),
    ("tcn", "negative_binomial"),
]


@pytest.mark.parametrize(("model", "output"), PAIRS)
def test_from_fit_to_intervals_of_a_loaded_run(make_panel, tmp_path, model, output):
    generator = np.random.default_rng(0)
    panel = make_panel([generator.poisson(size, (100, 2)) for size in (20, 300)])
    values = {
        "model": MODELS[model],
        "window": {"lookback": 14, "horizon": 3, "season": 7},
        "train": {"output": output, "max_steps": 3, "seed": 1},
    }
    result = fitting.fit(resolve([Layer(values)], needs_data=False), panel)
    writer = run.Writer(tmp_path / "run")
    writer.start(result.fitted)
    writer.finish(result.fitted, result.summary())
    again, _ = run.load(tmp_path / "run")
    assert again.problem == result.fitted.problem
    test, data, ask = result.prepared.test.thin(3), result.prepared.data, Ask(levels=(80.0, 95.0), paths=2, samples=80)
    before = predictive(result.fitted, test, data, ask)
    after = predictive(again, test, data, ask)
    assert np.array_equal(before.quantiles, after.quantiles)
    assert np.array_equal(before.paths, after.paths)
    assert after.quantiles.shape == (3, 3, 2, 4)
    assert (np.diff(after.quantiles, axis=-1) >= 0).all()
    assert np.isfinite(after.quantiles).all()
    assert after.paths.shape == (3, 2, 3, 2)
    if output == "negative_binomial":
        assert np.array_equal(after.paths, after.paths.round())
        assert (after.quantiles >= 0).all()


def test_a_problem_of_an_earlier_version_has_no_quantiles():
    document = Problem(lookback=4, horizon=2, targets=1, output="normal", outputs=2).to_json()
    del document["quantiles"]
    assert Problem.from_json(document).quantiles == ()
    levels = Problem(lookback=4, horizon=2, targets=1, output="quantiles", outputs=3, quantiles=(0.1, 0.5, 0.9))
    assert Problem.from_json(levels.to_json()) == levels
