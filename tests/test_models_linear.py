"""linear: against the formulas of the papers, written with numpy and pandas."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from pydantic import ValidationError
from tsformer_plugins.models.linear import Linear, LinearConfig, moving_average

from tsformer.data.windows import Batch
from tsformer.errors import UsageError
from tsformer.plugin import Problem

PROBLEM = Problem(lookback=30, horizon=4, targets=2)
VARIANTS = ("dlinear", "nlinear", "rlinear")


def batch_of(problem=PROBLEM, size=3):
    past = 3 + 2 * torch.randn(size, problem.lookback, problem.channels, generator=torch.Generator().manual_seed(1))
    return Batch(past=past, past_mask=torch.ones_like(past, dtype=torch.bool))


def linear(problem=PROBLEM, **options):
    torch.manual_seed(0)
    module = Linear(LinearConfig(**options), problem)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.uniform_(-1, 1)
    return module


@pytest.mark.parametrize("kernel", [1, 5, 25, 99])
def test_moving_average_is_that_of_pandas_with_the_ends_repeated(kernel):
    x = batch_of().past.transpose(1, 2)
    padded = np.pad(x.numpy(), ((0, 0), (0, 0), (kernel // 2, kernel // 2)), mode="edge")
    rolled = pd.DataFrame(padded.reshape(6, -1).T).rolling(kernel, center=True).mean().dropna().to_numpy().T
    np.testing.assert_allclose(moving_average(x, kernel).reshape(6, -1), rolled, atol=1e-5)


@pytest.mark.parametrize("individual", [False, True])
@pytest.mark.parametrize("variant", VARIANTS)
def test_the_formula(variant, individual):
    kernel = {"kernel": 7} if variant == "dlinear" else {}
    module, batch = linear(variant=variant, individual=individual, **kernel), batch_of()
    weight, bias = module.weight.detach().numpy(), module.bias.detach().numpy()
    prediction = module(batch).detach().numpy()
    assert prediction.shape == (3, 4, 2, 1)
    assert len(weight) == (2 if individual else 1)
    for row in range(3):
        for target in range(2):
            x, group = batch.past[row, :, target].numpy(), target if individual else 0
            scale, shift = 1.0, 0.0
            if variant == "nlinear":
                shift = x[-1]
            elif variant == "rlinear":
                scale, shift = np.sqrt(x.var() + 1e-5), x.mean()
            x = (x - shift) / scale
            if variant == "dlinear":
                trend = pd.Series(np.pad(x, 3, mode="edge")).rolling(7, center=True).mean().dropna().to_numpy()
                x = np.concatenate([trend, x - trend])
            expected = scale * (x @ weight[group] + bias[group, 0]) + shift
            np.testing.assert_allclose(prediction[row, :, target, 0], expected, atol=1e-4)


@pytest.mark.parametrize("variant", VARIANTS)
def test_past_covariates_stand_beside_each_targets_own_lookback(variant):
    problem = replace(PROBLEM, past_covariates=1)
    module, batch = linear(problem, variant=variant), batch_of(problem)
    before = module(batch)
    past = batch.past.clone()
    past[:, 10, 2] += 1  # the covariate
    assert ((module(replace(batch, past=past)) - before).abs() > 1e-4).all()
    past = batch.past.clone()
    past[:, 10, 1] += 1  # the other target
    after = module(replace(batch, past=past))
    assert torch.equal(after[:, :, 0], before[:, :, 0])
    assert ((after[:, :, 1] - before[:, :, 1]).abs() > 1e-4).all()


@pytest.mark.parametrize("variant", VARIANTS)
def test_it_starts_as_the_mean_of_the_lookback(variant):
    module, batch = Linear(LinearConfig(variant=variant), PROBLEM), batch_of()
    expected = batch.past.mean(1)[:, None].expand(-1, 4, -1)
    assert torch.allclose(module(batch)[..., 0], expected, atol=1e-5)


@pytest.mark.parametrize("individual", [False, True])
@pytest.mark.parametrize("variant", VARIANTS)
def test_covariates_and_the_spread_do_not_start_as_that_mean(variant, individual):
    problem = replace(PROBLEM, past_covariates=2, output="normal", outputs=2)
    module, batch = Linear(LinearConfig(variant=variant, individual=individual), problem), batch_of(problem)
    batch.past[..., 2:] += torch.linspace(0, 500, 30)[:, None]
    mean, spread = module.output.parameters(module(batch))
    expected = batch.past[..., :2].mean(1)[:, None].expand(-1, 4, -1)
    assert torch.allclose(mean, expected, atol=1e-4)
    scale = batch.past[..., :2].std(1, correction=0)[:, None] if variant == "rlinear" else torch.ones(3, 1, 2)
    assert torch.allclose(spread, (math.log(2) * scale).expand(-1, 4, -1), rtol=1e-3)  # softplus(0)


@pytest.mark.parametrize("variant", ["nlinear", "rlinear"])
def test_a_shifted_window_gets_a_shifted_forecast(variant):
    module, batch = linear(variant=variant), batch_of()
    shifted = replace(batch, past=batch.past + 10)
    assert torch.allclose(module(shifted), module(batch) + 10, atol=1e-4)


def test_a_normal_distribution_scales_with_its_window():
    problem = replace(PROBLEM, output="normal", outputs=2)
    module, batch = linear(problem, variant="rlinear"), batch_of()
    mean, deviation = module.output.parameters(module(batch))
    means, deviations = module.output.parameters(module(replace(batch, past=7 * batch.past)))
    assert torch.allclose(means, 7 * mean, rtol=1e-3, atol=1e-3)
    assert torch.allclose(deviations, 7 * deviation, rtol=1e-3)


def test_what_it_refuses():
    with pytest.raises(ValidationError, match="24 is even"):
        LinearConfig(variant="dlinear", kernel=24)
    with pytest.raises(ValidationError, match="kernel 7 needs variant dlinear: rlinear has no moving average"):
        LinearConfig(kernel=7)
    assert LinearConfig(variant="nlinear", kernel=25).kernel == 25  # what a saved configuration holds
    with pytest.raises(UsageError, match="'linear' reads no texts"):
        linear(replace(PROBLEM, vocabulary=9, text_length=2))


@pytest.mark.parametrize("individual", [False, True])
def test_what_is_known_is_added_in_the_units_of_the_data(individual):
    """However far a window is spread, a covariate moves the forecast by its weight."""
    problem = replace(PROBLEM, past_covariates=1, future_covariates=2, static_covariates=1, static_cardinalities=(3,))
    module, batch = linear(problem, individual=individual), batch_of(problem)
    known = {
        "past_known": torch.randn(3, 30, 2),
        "future_known": torch.randn(3, 4, 2),
        "static": torch.randn(3, 1),
        "static_codes": torch.tensor([[1], [2], [0]]),
    }
    nothing = {name: torch.zeros_like(some) for name, some in known.items()}
    one_hot = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])  # the last is unknown: the mean of the words
    row = torch.cat([known["past_known"].flatten(1), known["future_known"].flatten(1), known["static"], one_hot], 1)
    base = torch.cat([torch.zeros(3, 69), torch.full((3, 2), 0.5)], 1)
    weight = module.known_weight.expand(2, -1, -1)
    expected = torch.einsum("bk,tkh->bht", row - base, weight)
    with torch.no_grad():
        moved = module(replace(batch, **known)) - module(replace(batch, **nothing))
    torch.testing.assert_close(moved[..., 0], expected.detach(), atol=1e-4, rtol=1e-4)


def test_a_batch_without_what_the_problem_has_is_named():
    problem = replace(PROBLEM, future_covariates=1)
    with pytest.raises(ValueError, match="needs past_known"):
        linear(problem)(batch_of(problem))


@pytest.mark.parametrize("variant", ["dlinear", "nlinear"])
def test_a_missing_value_counts_as_the_last_one_before_it(variant):
    module, batch = linear(variant=variant), batch_of()
    mask = batch.past_mask.clone()
    mask[:, 20:22, 0] = mask[:, -1, 1] = False
    whole = pd.concat([pd.DataFrame(row) for row in torch.where(mask, batch.past, torch.nan).numpy()], keys=range(3))
    whole = torch.tensor(whole.groupby(level=0).ffill().to_numpy()).reshape(batch.past.shape)
    found = module(replace(batch, past_mask=mask))
    torch.testing.assert_close(found, module(replace(batch, past=whole)), atol=1e-5, rtol=1e-5)
