"""Sample paths of decoders that feed back what they draw: of a decoder by itself, and of whole networks."""

import math

import numpy as np
import pytest
import torch
from scipy import stats

from tsformer import registry
from tsformer.data.windows import Batch
from tsformer.errors import UsageError
from tsformer.nn.decoders import AutoregressiveDecoder
from tsformer.nn.layers import Decoder, LayerSpec
from tsformer.nn.outputs import build_output
from tsformer.plugin import Problem
from tsformer.registry import Kind

LEVELS = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
OUTPUTS = ("quantiles", "normal", "student_t", "negative_binomial")
HORIZON, TARGETS = 4, 2


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


def decoder(output="normal", **options):
    torch.manual_seed(1)
    stack = Decoder(2, LayerSpec(16, 4, 32, positions=options.pop("positions", "sinusoidal")))
    built = build_output(output, quantiles=LEVELS if output == "quantiles" else ())
    return AutoregressiveDecoder(stack, built, TARGETS, HORIZON, **options).eval()


def given(batch=3):
    mask = torch.arange(6)[None] >= torch.arange(batch)[:, None]
    return torch.randn(batch, 6, 16), mask, torch.randn(batch, TARGETS)


@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("positions", ["sinusoidal", "relative", "rotary"])
def test_the_cache_changes_nothing(output, positions):
    cached, plain = decoder(output, positions=positions), decoder(output, positions=positions, cache=False)
    seen, paths = given(), []
    for each in (cached, plain):
        torch.manual_seed(2)
        paths.append(each.draw(*seen, 5))
    assert paths[0].shape == (3, 5, HORIZON, TARGETS)
    torch.testing.assert_close(*paths, atol=1e-4, rtol=1e-4)


def test_what_is_known_of_each_step_is_used_in_both_ways():
    cached, plain = decoder(known=3), decoder(known=3, cache=False)
    seen, known, paths = given(), torch.randn(3, HORIZON, 3), []
    for each in (cached, plain):
        torch.manual_seed(2)
        paths.append(each.draw(*seen, 5, known))
    torch.testing.assert_close(*paths, atol=1e-5, rtol=1e-5)
    torch.manual_seed(2)
    later = torch.cat([known[:, :2], known[:, 2:] + 1], dim=1)
    other = cached.draw(*seen, 5, later)
    assert torch.equal(other[:, :, :2], paths[0][:, :, :2])
    assert not torch.allclose(other[:, :, 2], paths[0][:, :, 2])
    with pytest.raises(ValueError, match="needs what is known of each step"):
        cached.draw(*seen, 5)


def test_each_step_is_drawn_given_the_path_before_it():
    # what a path was fed, fed again as the truth, gives the distributions that its values came from
    each, seen = decoder(), given(1)
    paths = each.draw(*seen, 3000)[0]
    several = [part.expand(3000, *part.shape[1:]) for part in seen]
    mean, scale = each.output.parameters(each(*several, paths, 1.0))
    levels = stats.norm.cdf(((paths - mean) / scale).detach().numpy())
    for step in range(HORIZON):
        assert stats.kstest(levels[:, step].ravel(), "uniform").pvalue > 0.001
    assert abs(np.corrcoef(levels[:, 0, 0], levels[:, 1, 0])[0, 1]) < 0.08


def test_no_gradient_and_no_memory_of_an_earlier_draw():
    each, (memory, mask, last) = decoder(), given()
    paths = each.draw(memory.requires_grad_(), mask, last, 4)
    assert not paths.requires_grad
    torch.manual_seed(5)
    first = each.draw(memory, mask, last, 4)
    each.draw(memory, mask, last, 9)
    torch.manual_seed(5)
    assert torch.equal(each.draw(memory, mask, last, 4), first)
    assert not torch.equal(first[:, 0], first[:, 1])


def test_nan_behind_the_mask_changes_nothing():
    each, (memory, mask, last) = decoder(), given()
    torch.manual_seed(5)
    clean = each.draw(memory, mask, last, 4)
    torch.manual_seed(5)
    assert torch.equal(each.draw(torch.where(mask[..., None], memory, math.nan), mask, last, 4), clean)


def test_points_cannot_be_drawn():
    with pytest.raises(UsageError, match="no distribution to draw from"):
        decoder("point").draw(*given(), 4)


MODELS = {
    "transformer": {},
    "tcn_transformer": {},
    "lstm": {},
    "tcn": {"channel_independent": False},
    "not normalised": {"revin": False},
    "independent": {"channel_independent": True},
}


def network(kind, output, **problem):
    name = kind if kind in registry.entries(Kind.MODEL) else "transformer"
    plugin = registry.get(Kind.MODEL, name)
    levels = LEVELS if output == "quantiles" else ()
    whole = Problem(
        lookback=12, horizon=HORIZON, targets=TARGETS, output=output,
        outputs=build_output(output, quantiles=levels).outputs, quantiles=levels, **problem,
    )  # fmt: skip
    torch.manual_seed(3)
    config = plugin.example.model_copy(update={"decoder": "autoregressive", **MODELS[kind]})
    return plugin.build(config, whole).eval()


def batch_of(size=2, known=0):
    past = torch.from_numpy(np.random.default_rng(0).poisson(30, (size, 12, TARGETS))).float()
    mask = torch.ones_like(past, dtype=torch.bool)
    mask[0, :5] = False
    covariates = {"past_known": torch.randn(size, 12, known), "future_known": torch.randn(size, HORIZON, known)}
    return Batch(past=torch.where(mask, past, math.nan), past_mask=mask, **(covariates if known else {}))


PAIRS = [("independent", output) for output in OUTPUTS] + [(kind, "normal") for kind in MODELS if kind != "independent"]


@pytest.mark.parametrize(("kind", "output"), [*PAIRS, ("not normalised", "negative_binomial")])
def test_the_first_step_has_the_quantiles_of_its_output(kind, output):
    module, batch = network(kind, output), batch_of()
    assert module.rolls_out
    with torch.no_grad():
        prediction = module(batch)
    paths = module.draw(batch, 3000)
    assert paths.shape == (2, 3000, HORIZON, TARGETS)
    for p in (0.1, 0.5, 0.9):
        quantile = module.output.quantiles(prediction.double(), (p,))[:, 0, :, 0]
        low = (paths[:, :, 0] < quantile[:, None]).double().mean(1)
        high = (paths[:, :, 0] <= quantile[:, None]).double().mean(1)
        assert ((low - 0.03 <= p) & (p <= high + 0.03)).all()  # more than three standard errors


@pytest.mark.parametrize(("kind", "output"), [pair for pair in PAIRS if pair[1] != "negative_binomial"])
def test_without_scatter_every_path_is_the_point_forecast(kind, output):
    module, batch = network(kind, output), batch_of()
    numbers = module.decoder.output.outputs
    with torch.no_grad():
        for first in range(0, len(module.decoder.head.bias), numbers):
            module.decoder.head.weight[first + 1 : first + numbers] = 0.0
            module.decoder.head.bias[first + 1 : first + 2 if output == "student_t" else first + numbers] = -30.0
        expected = module.output.point(module(batch))
    paths = module.draw(batch, 3)
    torch.testing.assert_close(paths, expected[:, None].expand_as(paths), atol=2e-3, rtol=1e-4)


@pytest.mark.parametrize("kind", ["transformer", "independent", "not normalised"])
def test_counts_are_drawn_and_fed_back_as_counts(kind):
    module, batch = network(kind, "negative_binomial"), batch_of()
    fed = []
    module.decoder.embed.register_forward_pre_hook(lambda _, args: fed.append(args[0].clone()))
    paths = module.draw(batch, 50)
    assert torch.equal(paths, paths.round())
    assert (paths >= 0).all()
    scale, shift = (1.0, 0.0)
    if module.revin is not None:
        scale, shift = module.revin.statistics(torch.where(batch.past_mask, batch.past, 0.0), batch.past_mask)
    expected = (paths - shift[:, None]) / scale[:, None] if module.revin is not None else paths
    if module.channel_independent:
        expected = expected.movedim(-1, 1).flatten(0, 2)[..., None]
    else:
        expected = expected.flatten(0, 1)
    for step in range(1, HORIZON):
        torch.testing.assert_close(fed[step][:, 0], expected[:, step - 1], atol=1e-4, rtol=1e-4)


def test_the_mean_of_counts_is_fed_back_in_units_of_the_window():
    module, batch = network("transformer", "negative_binomial"), batch_of()
    fed = []
    module.decoder.embed.register_forward_pre_hook(lambda _, args: fed.append(args[0].clone()))
    with torch.no_grad():
        point = module.output.point(module(batch))
    scale, shift = module.revin.statistics(torch.where(batch.past_mask, batch.past, 0.0), batch.past_mask)
    torch.testing.assert_close(fed[1][:, 0], ((point - shift) / scale)[:, 0], atol=1e-4, rtol=1e-4)


def test_covariates_known_ahead_move_the_paths():
    module, batch = network("independent", "normal", future_covariates=2), batch_of(known=2)
    torch.manual_seed(4)
    before = module.draw(batch, 20)
    torch.manual_seed(4)
    batch.future_known[:, 2:] += 3.0
    after = module.draw(batch, 20)
    assert torch.equal(after[:, :, :2], before[:, :, :2])
    assert not torch.allclose(after[:, :, 2], before[:, :, 2])


def test_only_what_feeds_back_rolls_out():
    plugin = registry.get(Kind.MODEL, "transformer")

    def rolls_out(decoder="autoregressive", **problem):
        whole = Problem(**{"lookback": 12, "horizon": 4, "targets": 1, "output": "normal", "outputs": 2, **problem})
        return plugin.build(plugin.example.model_copy(update={"decoder": decoder}), whole)

    assert rolls_out().rolls_out
    assert not rolls_out(output="point", outputs=1).rolls_out
    assert not rolls_out(horizon=1).rolls_out
    direct = rolls_out("direct").eval()
    assert not direct.rolls_out
    with pytest.raises(UsageError, match="by decoder autoregressive only"):
        direct.draw(Batch(past=torch.zeros(1, 12, 1), past_mask=torch.ones(1, 12, 1, dtype=torch.bool)), 2)
