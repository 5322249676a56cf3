"""Scatter around models that give points only: learned from errors of the validation part, for every output."""

import numpy as np
import pytest
import torch
from scipy import stats
from torch import nn

from tsformer import fitting, registry, run
from tsformer.config import resolve
from tsformer.config_layer import Layer
from tsformer.data.windows import Batch, cut_windows
from tsformer.errors import PluginError
from tsformer.nn.outputs import output_of
from tsformer.nn.quantiles import Quantiles
from tsformer.nn.spread import Errors, Spread, build_with_outputs, inner, scatter, typical_step
from tsformer.plugin import Config, Field, ModelPlugin, Problem
from tsformer.registry import Kind

LEVELS = (0.05, 0.1, 0.5, 0.9, 0.95)
KINDS = {"quantiles": 5, "normal": 2, "student_t": 3, "negative_binomial": 2}


def problem(output, horizon=3, targets=1):
    levels = LEVELS if output == "quantiles" else ()
    return Problem(lookback=8, horizon=horizon, targets=targets, output=output, outputs=KINDS[output], quantiles=levels)


def windows_of(values, horizon=3, lookback=8, mask=None):
    values = torch.as_tensor(np.asarray(values)).float()
    rows = np.array([len(values)])
    return cut_windows(
        values, np.array([0, *rows]), np.array([lookback]), rows,
        lookback=lookback, horizon=horizon, targets=values.shape[1], mask=mask,
    )  # fmt: skip


def spread(output, values, horizon=3, model="last_value", mask=None):
    module = build_with_outputs(
        registry.get(Kind.MODEL, model), registry.get(Kind.MODEL, model).example,
        problem(output, horizon, np.asarray(values).shape[1]),
    )  # fmt: skip
    windows = windows_of(values, horizon, mask=mask)
    module.fit(windows)
    return module, windows.batch()


def walk(rows=600, seed=0, targets=1):
    return np.random.default_rng(seed).normal(0, 1, (rows, targets)).cumsum(0)


@pytest.mark.parametrize("output", ["quantiles", "normal", "student_t"])
def test_bands_hold_what_they_say_and_widen_like_a_random_walk(output):
    module, _ = spread(output, walk(3000), horizon=9)
    batch = windows_of(walk(3000, seed=1), 9).batch()
    ends = module.output.quantiles(module(batch).double(), (0.1, 0.9)).float()
    inside = ((batch.future >= ends[..., 0]) & (batch.future <= ends[..., 1])).float().mean((0, 2))
    assert inside.numpy() == pytest.approx(np.full(9, 0.8), abs=0.05)
    width = (ends[..., 1] - ends[..., 0]).mean((0, 2))
    assert (width / width[0]).numpy() == pytest.approx(np.sqrt(np.arange(1, 10)), rel=0.1)


@pytest.mark.parametrize("output", KINDS)
def test_the_point_stays_the_models_own(output):
    values = np.random.default_rng(0).poisson(9, (80, 2)).astype(float)
    module, batch = spread(output, values)
    torch.testing.assert_close(module.output.point(module(batch)), module.module(batch)[..., 0], atol=1e-4, rtol=1e-4)
    assert module(batch).shape == (len(batch.past), 3, 2, KINDS[output])


def test_normal_scatter_is_the_root_mean_square_error():
    module, batch = spread("normal", walk())
    relative = (batch.future - module.module(batch)[..., 0]) / module.scale(batch)
    ours = module.output.parameters(module(batch))[1] / module.scale(batch)
    torch.testing.assert_close(ours, relative.square().mean(0).sqrt().expand_as(ours), atol=1e-4, rtol=1e-4)


def test_quantiles_are_order_statistics():
    errors = torch.arange(1.0, 20.0, dtype=torch.float64)[:, None, None] - 10.0
    ones = torch.ones_like(errors)
    output = Quantiles(LEVELS)
    found = scatter(output, Errors(0 * ones, ones, errors, ones.bool()))
    values = output.values(torch.cat([torch.zeros(1, 1, 1), found], dim=-1))[0, 0]
    assert values.tolist() == pytest.approx([-9.0, -8.0, 0.0, 8.0, 9.0])  # the 1st, 2nd, 18th and 19th of 19


def test_student_t_finds_heavy_tails_and_counts_their_dispersion():
    generator = np.random.default_rng(0)
    ones = torch.ones(4000, 1, 1, dtype=torch.float64)
    heavy = torch.from_numpy(stats.t(4, 0, 3).rvs((4000, 1, 1), random_state=generator))
    output = output_of(problem("student_t"))
    numbers = scatter(output, Errors(0 * ones, ones, heavy, ones.bool()))
    _, scale, freedom = (part.item() for part in output.parameters(torch.cat([0 * ones[:1, 0], numbers[0]], dim=-1)))
    theirs = stats.t.fit(heavy.numpy().ravel(), floc=0)
    assert (freedom, scale) == pytest.approx((theirs[0], theirs[2]), rel=0.02)
    counts = torch.from_numpy(generator.negative_binomial(4, 4 / 24, (4000, 1, 1)).astype(float))
    output = output_of(problem("negative_binomial"))
    numbers = scatter(output, Errors(20 * ones, ones, counts, ones.bool()))
    assert output.parameters(torch.cat([0 * ones[:1, 0], numbers[0]], dim=-1))[1].item() == pytest.approx(0.25, rel=0.1)


def test_each_window_has_its_own_scale():
    quiet, wild = walk(8), 100 * walk(8)
    past = torch.from_numpy(np.stack([quiet, wild])).float()
    module, _ = spread("normal", walk())
    scale = module.output.parameters(module(Batch(past=past, past_mask=torch.ones_like(past, dtype=torch.bool))))[1]
    assert (scale[1] / scale[0]).numpy() == pytest.approx(np.full((3, 1), 100.0), rel=0.02)


def test_a_step_is_between_real_values():
    past = torch.tensor([[0.0], [torch.nan], [5.0], [7.0], [4.0]])[None]
    assert typical_step(Batch(past=past, past_mask=~past.isnan()), 1).item() == 2.5
    nothing = torch.zeros_like(past, dtype=torch.bool)
    assert typical_step(Batch(past=past, past_mask=nothing), 1).item() == 0.0


@pytest.mark.parametrize("output", KINDS)
@pytest.mark.parametrize("kind", ["constant", "one window", "mostly missing"])
def test_little_to_learn_from_is_no_nan(output, kind):
    values = np.random.default_rng(0).poisson(5, (40, 2)).astype(float)
    mask = None
    if kind == "constant":
        values[:] = 3.0
    elif kind == "one window":
        values = values[:11]
    else:
        mask = torch.from_numpy(np.random.default_rng(0).random((40, 2)) < 0.2)
        mask[:, 1] &= torch.arange(40) < 9
        mask[5:9, 1] = True
    module, batch = spread(output, values, mask=mask)
    assert all(buffer.isfinite().all() for buffer in module.buffers())
    prediction = module(batch)
    assert prediction.isfinite().all()
    assert module.output.loss(prediction, batch).isfinite()
    assert (module.output.quantiles(prediction.double(), (0.1, 0.9)).diff(dim=-1) >= 0).all()


def test_of_few_windows_errors_of_neighbouring_steps_count():
    point = torch.zeros(2, 30, 1, dtype=torch.float64)
    future = torch.arange(30.0, dtype=torch.float64)[None, :, None].expand(2, -1, -1)
    pooled = Errors(point, point + 1, future, torch.ones_like(point, dtype=torch.bool)).pooled()
    assert pooled.point.shape == (40, 30, 1)
    assert sorted(set(pooled.future[:, 15, 0].tolist())) == list(range(5, 25))
    many = Errors(*(part.expand(40, -1, -1)[:, :, :] if len(part) == 1 else part.repeat(20, 1, 1) for part in (
        point, point + 1, future, torch.ones_like(point, dtype=torch.bool))))  # fmt: skip
    assert torch.equal(many.pooled().future, many.future)


class TrendConfig(Config):
    start: float = Field(0.0, description="of the slope")


class Trend(nn.Module):
    """Points only, and trained."""

    def __init__(self, config, problem):
        super().__init__()
        assert (problem.output, problem.outputs, problem.quantiles) == ("point", 1, ())
        self.slope = nn.Parameter(torch.full((problem.horizon, 1), config.start))

    def forward(self, batch, truth=0.0):
        return (batch.past[:, -1:] + self.slope)[..., None]


TREND = ModelPlugin(config=TrendConfig, build=Trend, example=TrendConfig(), outputs={"point"})


def settings(model, output, **train):
    window = {"lookback": 8, "horizon": 3}
    values = {"model": model, "scale": "none", "window": window, "train": {"output": output, **train}}
    return resolve([Layer(values)], needs_data=False)


def test_what_is_trained_is_trained_on_its_points_first(make_panel, own_registry):
    registry.register("trend", TREND)
    panel = make_panel([np.arange(300.0) * 0.5 + np.random.default_rng(0).normal(0, 0.1, 300)])
    result = fitting.fit(settings("trend", "normal", max_steps=200, lr=0.05), panel)
    module = result.fitted.module
    assert isinstance(module, Spread)
    assert inner(module).slope.detach().flatten().numpy() == pytest.approx([0.5, 1.0, 1.5], abs=0.1)
    batch = result.prepared.test.batch()
    spread = module.output.parameters(module(batch))[1]
    assert spread.mean().item() == pytest.approx(0.1 * np.sqrt(2), rel=0.25)


def test_only_the_validation_part_is_looked_at(make_panel):
    def scatter_of(panel):
        return fitting.fit(settings("last_value", "normal"), panel).fitted.module.numbers

    values = walk(200)
    expected = scatter_of(make_panel([values]))
    training, test = values.copy(), values.copy()
    training[:120] *= 50.0
    test[161:] = 1e3
    training[120:] += training[119] - values[119]
    assert torch.equal(scatter_of(make_panel([test])), expected)
    torch.testing.assert_close(scatter_of(make_panel([np.concatenate([values[:1] * 50, values[1:]])])), expected)
    validation = values.copy()
    validation[140:160] *= 3.0
    assert not torch.allclose(scatter_of(make_panel([validation])), expected)


@pytest.mark.parametrize("output", KINDS)
def test_a_run_keeps_it(make_panel, tmp_path, output):
    values = np.random.default_rng(0).poisson(9, 120).astype(float)
    result = fitting.fit(settings("ridge", output), make_panel([values]))
    writer = run.Writer(tmp_path / "run")
    writer.start(result.fitted)
    writer.finish(result.fitted, result.summary())
    again, _ = run.load(tmp_path / "run")
    batch = result.prepared.test.batch()
    assert torch.equal(again.module(batch), result.fitted.module(batch))
    assert result.fitted.module.numbers.any()


def test_what_a_model_describes_itself_is_not_wrapped():
    plugin = ModelPlugin(config=TrendConfig, build=lambda config, problem: nn.Identity(), example=TrendConfig())
    assert isinstance(build_with_outputs(plugin, TrendConfig(), problem("normal")), nn.Identity)
    point = Problem(lookback=8, horizon=3, targets=1)
    assert isinstance(build_with_outputs(TREND, TrendConfig(), point), Trend)
    only = ModelPlugin(
        config=TrendConfig, build=lambda config, problem: nn.Identity(), example=TrendConfig(), outputs={"normal"}
    )
    assert isinstance(build_with_outputs(only, TrendConfig(), problem("normal")), nn.Identity)
    with pytest.raises(PluginError, match="has no output student_t; it has: normal"):
        build_with_outputs(only, TrendConfig(), problem("student_t"))
    with pytest.raises(TypeError, match=r"ModelPlugin\.outputs must be None or a set of"):
        ModelPlugin(config=TrendConfig, build=Trend, example=TrendConfig(), outputs={"points"})
