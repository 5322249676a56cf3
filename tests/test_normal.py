"""Models that predict a distribution: every one that says it can, and the way from the command line to a score."""

import json

import numpy as np
import pytest
import torch

from tsformer import fitting, registry
from tsformer.cli.app import main
from tsformer.config import resolve
from tsformer.config_layer import Layer
from tsformer.data.windows import Batch
from tsformer.nn.distributions import Normal
from tsformer.nn.outputs import output_of
from tsformer.plugin import Problem, Task
from tsformer.registry import Kind

PROBLEM = Problem(lookback=20, horizon=5, targets=2, season=10, output="normal", outputs=2)
PLUGINS = {name: registry.get(Kind.MODEL, name) for name in registry.entries(Kind.MODEL)}
MODELS = [
    name
    for name, each in PLUGINS.items()
    if Task.FORECAST in each.tasks and each.outputs is None and each.members is None
]


def batch_of(size):
    past = torch.randn(size, 20, 2)
    whole = torch.ones(size, 20, 2, dtype=torch.bool)
    return Batch(past=past, past_mask=whole, future=torch.randn(size, 5, 2), future_mask=whole[:, :5])


def built(name, **options):
    torch.manual_seed(0)
    plugin = PLUGINS[name]
    return plugin.build(plugin.example.model_copy(update=options), PROBLEM)


@pytest.mark.parametrize("name", MODELS)
def test_a_model_predicts_a_distribution_and_learns_all_of_it(name):
    module, batch = built(name), batch_of(4)
    for truth in (0.0, 0.5, 1.0):
        module.zero_grad()
        prediction = module(batch, truth=truth)
        assert prediction.shape == (4, 5, 2, 2)
        output_of(PROBLEM).loss(prediction, batch).backward()
        for parameter in module.parameters():
            assert parameter.grad is not None
            assert parameter.grad.isfinite().all()


@pytest.mark.parametrize("name", MODELS)
def test_the_distribution_follows_the_window_s_own_scale(name):
    # what RevIN and the like undo must be undone in mean and standard deviation alike
    module, batch = built(name).eval(), batch_of(4)
    moved = Batch(past=300 * batch.past + 7, past_mask=batch.past_mask)
    with torch.no_grad():
        mean, scale = Normal().parameters(module(batch))
        ours = Normal().parameters(module(moved))
    for got, expected in zip(ours, (300 * mean + 7, 300 * scale), strict=True):
        torch.testing.assert_close(got, expected, atol=0.05, rtol=1e-3)


def settings(model, **train):
    return resolve([Layer({"model": model, "window": {"lookback": 8, "horizon": 4}, "train": train})], needs_data=False)


def test_it_finds_how_values_scatter(make_panel):
    values = np.random.default_rng(0).normal(3.0, 2.0, 2000)  # 0 and 1 once they are scaled
    model = {"name": "linear", "variant": "dlinear"}
    result = fitting.fit(settings(model, output="normal", max_steps=300, lr=0.02), make_panel([values]))
    batch = result.prepared.test.batch()
    with torch.no_grad():
        mean, scale = Normal().parameters(result.fitted.module(batch))
    assert float((scale - 1).abs().mean()) < 0.1
    off = (batch.future - mean) / scale
    assert abs(float(off.std()) - 1.0) < 0.1
    assert result.test.overall["rmse"] == pytest.approx(2.0, abs=0.2)  # of the mean, in the user's units


def test_samples_change_training_and_the_same_seed_gives_the_same_bytes(make_panel):
    panel = make_panel([np.sin(np.arange(200.0) / 3)])
    small = {"name": "transformer", "d_model": 8, "n_heads": 2, "d_ff": 8, "decoder": "autoregressive"}

    def forecast(**model):
        train = {"output": "normal", "max_steps": 5, "truth_start": 0.5, "truth_end": 0.0}
        return fitting.fit(settings({**small, **model}, **train), panel).forecast

    first, again = forecast(feedback="sample"), forecast(feedback="sample")
    assert np.array_equal(first, again)
    assert not np.array_equal(first, forecast(feedback="mean"))
    assert not np.array_equal(first, forecast(feedback="sample", sampling="two_pass"))


LINE = ["fit", "--model", "transformer", "--data", "sine", "--max-steps", "2", "--model.d-model", "8"]
SAMPLES = ["--model.decoder", "autoregressive", "--model.feedback", "sample"]


def run(capsys, *words):
    with pytest.raises(SystemExit) as caught:
        main(list(words))
    out, err = capsys.readouterr()
    return caught.value.code, out, err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (SAMPLES, "output point has none; choose another output, such as normal, or feedback mean"),
        (["--model.feedback", "sample"], "feedback sample needs decoder autoregressive"),
        (["--train.output", "normal", "--train.loss", "huber"], "loss huber is for point forecasts"),
        (["--train.huber-delta", "0.5"], "huber_delta 0.5 needs loss huber"),
    ],
)
def test_what_does_not_fit_together_is_refused_in_one_line_before_anything_is_written(capsys, in_tmp, words, message):
    code, out, err = run(capsys, *LINE, *words, "--quiet")
    assert (code, out) == (2, "")
    assert len(err.strip().splitlines()) == 1
    assert message in err
    assert list(in_tmp.iterdir()) == []


def test_a_distribution_from_fit_to_predict(capsys, in_tmp):
    code, out, err = run(
        capsys, *LINE, *SAMPLES, "--train.output", "normal", "--train.truth-end", "0", "--train.ema=0.9"
    )
    assert code == 0, err
    code, out, err = run(capsys, "predict", out.strip(), "--json", "--quiet")
    assert code == 0, err
    rows = json.loads(out)["forecast"]
    assert len(rows) == 30
    assert all(np.isfinite(value) for row in rows for value in row.values() if isinstance(value, float))
