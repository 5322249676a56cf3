"""Hidden steps: what is said of each step is about that step, and what is hidden cannot be seen."""

from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tsformer import fitting
from tsformer.config import resolve
from tsformer.config_layer import Layer
from tsformer.data.vocabulary import PAD
from tsformer.data.windows import Batch
from tsformer.nn.inputs import Inputs
from tsformer.nn.normalisation import RevIN
from tsformer.nn.pretraining import HiddenOutput, HiddenStepNetwork
from tsformer.plugin import Problem, Task


class Patchwise(nn.Module):
    """A memory that is the steps themselves, `stride` of them to a token, padded on the left."""

    def __init__(self, stride):
        super().__init__()
        self.stride = stride

    def forward(self, x, mask):
        missing = -x.shape[1] % self.stride
        x, mask = F.pad(x, (0, 0, missing, 0)), F.pad(mask, (missing, 0))
        return x.reshape(len(x), -1, self.stride * x.shape[2]), mask.view(len(x), -1, self.stride).any(-1)


def identity(problem, stride, revin, channel_independent):
    """A network that says of each step what it is shown there."""
    inner = replace(problem, targets=1) if channel_independent else problem
    inputs = Inputs(inner, 5)
    width = inputs.width
    network = HiddenStepNetwork(
        problem, inputs, Patchwise(stride), stride * width, RevIN(width) if revin else None, channel_independent
    )
    with torch.no_grad():
        kept = torch.zeros(stride, network.outputs, stride, width)
        for step in range(stride):
            for channel in range(network.outputs):
                kept[step, channel, step, channel] = 1.0
        network.head.weight.copy_(kept.view(stride * network.outputs, stride * width))
        network.head.bias.zero_()
    return network


def numbers(time=7, targets=2, covariates=1, examples=3):
    torch.manual_seed(0)
    past = torch.randn(examples, time, targets + covariates) * 3 + 5
    mask = torch.ones_like(past, dtype=torch.bool)
    mask[1, :3] = False
    mask[2, 4, 0] = False
    hidden = torch.zeros(examples, time, dtype=torch.bool)
    hidden[0, 2:4] = hidden[1, 5] = hidden[2, 4] = True
    return Batch(past=torch.where(mask, past, 0.0), past_mask=mask, hidden=hidden)


@pytest.mark.parametrize("stride", [1, 2, 3, 7, 9])
@pytest.mark.parametrize("revin", [False, True])
@pytest.mark.parametrize("channel_independent", [False, True])
def test_what_is_said_of_a_step_lines_up_with_it(stride, revin, channel_independent):
    """In the units of the batch, whatever the stride, and each target in its own place."""
    problem = Problem(task=Task.PRETRAIN, lookback=7, horizon=1, targets=2, past_covariates=1)
    network, batch = identity(problem, stride, revin, channel_independent), numbers()
    found = network(batch)
    assert found.shape == (3, 7, 2)
    shown = (batch.past_mask & ~batch.hidden[..., None])[..., : found.shape[-1]]
    torch.testing.assert_close(found[shown], batch.past[..., : found.shape[-1]][shown])


def test_what_is_said_of_a_token_lines_up_with_it():
    problem = Problem(task=Task.PRETRAIN, lookback=6, vocabulary=9)
    tokens = torch.tensor([[4, 5, 6, 7, 8, 4], [5, 6, PAD, PAD, PAD, PAD], [PAD] * 6, [8, 7, 6, 5, PAD, PAD]])
    for stride in (1, 2, 4):
        network = HiddenStepNetwork(problem, Inputs(problem, 9), Patchwise(stride), 9 * stride, None, False)
        with torch.no_grad():
            network.inputs.tokens.weight.copy_(torch.eye(9))
            network.head.weight.copy_(torch.eye(9 * stride))
            network.head.bias.zero_()
        found = network(Batch(tokens=tokens, token_mask=tokens != PAD))
        assert found.shape == (4, 6, 9)
        real = tokens != PAD
        assert found.argmax(-1)[real].tolist() == tokens[real].tolist()


MODELS = {
    "transformer": {"d_model": 8, "n_heads": 2, "d_ff": 8, "encoder_layers": 1},
    "tcn_transformer": {"d_model": 8, "n_heads": 2, "d_ff": 8, "encoder_layers": 1, "tcn_layers": 1, "stride": 3},
    "lstm": {"d_model": 8, "n_layers": 1},
    "tcn": {"d_model": 8},
}


def built(model, problem, **options):
    torch.manual_seed(0)
    values = {"model": {"name": model, **MODELS[model], **options}, "task": "pretrain"}
    chosen = resolve([Layer(values)], needs_data=False)
    return chosen.model.plugin.build(chosen.model.config, problem).eval()


@pytest.mark.parametrize("channel_independent", [False, True])
@pytest.mark.parametrize("revin", [False, True])
@pytest.mark.parametrize("model", MODELS)
def test_hidden_numbers_cannot_be_seen(model, revin, channel_independent):
    problem = Problem(task=Task.PRETRAIN, lookback=7, horizon=1, targets=2, past_covariates=1)
    module = built(model, problem, revin=revin, channel_independent=channel_independent)
    batch = numbers()
    other = torch.where(batch.hidden[..., None], batch.past + 1e4, batch.past)
    first, second = module(batch), module(replace(batch, past=torch.where(batch.past_mask, other, torch.nan)))
    torch.testing.assert_close(first, second, rtol=0, atol=0)
    shown = replace(batch, past=torch.where(batch.hidden[..., None], batch.past, batch.past + torch.randn(3, 7, 3)))
    assert not torch.allclose(first, module(shown))


@pytest.mark.parametrize("model", MODELS)
def test_hidden_tokens_cannot_be_seen(model):
    problem = Problem(task=Task.PRETRAIN, lookback=6, vocabulary=9)
    module = built(model, problem)
    tokens = torch.tensor([[4, 5, 6, 7, 8, 4], [5, 6, 7, PAD, PAD, PAD]])
    hidden = torch.tensor([[0, 1, 0, 0, 1, 0], [1, 0, 0, 0, 0, 0]], dtype=torch.bool)
    batch = Batch(tokens=tokens, token_mask=tokens != PAD, hidden=hidden)
    first = module(batch)
    second = module(replace(batch, tokens=torch.where(hidden, 7, tokens)))
    torch.testing.assert_close(first, second, rtol=0, atol=0)
    assert not torch.allclose(first[0], module(replace(batch, hidden=~hidden & (tokens != PAD)))[0])


@pytest.mark.parametrize("model", MODELS)
def test_padding_changes_nothing(model):
    problem = Problem(task=Task.PRETRAIN, lookback=12, targets=0, past_covariates=2)
    module, batch = built(model, problem), numbers(targets=1)
    wider = Batch(
        past=F.pad(batch.past, (0, 0, 5, 0), value=9.0),
        past_mask=F.pad(batch.past_mask, (0, 0, 5, 0)),
        hidden=F.pad(batch.hidden, (5, 0)),
    )
    real = batch.past_mask.any(-1)
    torch.testing.assert_close(module(wider)[:, 5:][real], module(batch)[real], rtol=1e-4, atol=1e-5)
    problem = Problem(task=Task.PRETRAIN, lookback=12, vocabulary=9)
    module, tokens = built(model, problem), torch.tensor([[4, 5, 6], [5, 6, PAD]])
    hidden = torch.tensor([[0, 1, 0], [1, 0, 0]], dtype=torch.bool)
    narrow = Batch(tokens=tokens, token_mask=tokens != PAD, hidden=hidden)
    wide = Batch(tokens=F.pad(tokens, (0, 4)), token_mask=F.pad(tokens != PAD, (0, 4)), hidden=F.pad(hidden, (0, 4)))
    real = tokens != PAD
    torch.testing.assert_close(module(wide)[:, :3][real], module(narrow)[real], rtol=1e-4, atol=1e-5)


def test_the_loss_of_numbers_is_over_hidden_real_ones():
    batch = numbers()
    prediction = torch.randn(3, 7, 3)
    errors = [
        (float(prediction[i, t, c]) - float(batch.past[i, t, c])) ** 2
        for i, t in ((0, 2), (0, 3), (1, 5), (2, 4))
        for c in range(3)
        if batch.past_mask[i, t, c]
    ]
    assert len(errors) == 11
    assert float(HiddenOutput().loss(prediction, batch)) == pytest.approx(np.mean(errors))
    elsewhere = torch.where(batch.hidden[..., None] & batch.past_mask, prediction, torch.nan).requires_grad_()
    loss = HiddenOutput().loss(elsewhere, batch)
    loss.backward()
    assert loss.item() == pytest.approx(np.mean(errors))
    assert torch.isfinite(elsewhere.grad).all()
    assert not elsewhere.grad[~(batch.hidden[..., None] & batch.past_mask)].any()


def test_the_loss_of_tokens_is_over_hidden_ones():
    tokens = torch.tensor([[4, 5, 6], [5, 6, PAD]])
    hidden = torch.tensor([[0, 1, 0], [1, 0, 0]], dtype=torch.bool)
    batch = Batch(tokens=tokens, token_mask=tokens != PAD, hidden=hidden)
    logits = torch.randn(2, 3, 9)
    expected = -(logits[0, 1].log_softmax(-1)[5] + logits[1, 0].log_softmax(-1)[5]) / 2
    assert float(HiddenOutput().loss(logits, batch)) == pytest.approx(float(expected))
    assert HiddenOutput().tally(logits, batch)[1] == 2
    assert HiddenOutput().verdict(HiddenOutput().tally(logits, batch).tolist()).loss == pytest.approx(float(expected))


def test_nothing_hidden_costs_nothing():
    batch = replace(numbers(), hidden=torch.zeros(3, 7, dtype=torch.bool))
    assert float(HiddenOutput().loss(torch.randn(3, 7, 3), batch)) == 0
    tokens = torch.full((2, 1), PAD)
    empty = Batch(tokens=tokens, token_mask=tokens != PAD, hidden=torch.zeros(2, 1, dtype=torch.bool))
    assert float(HiddenOutput().loss(torch.randn(2, 1, 9), empty)) == 0
    with pytest.raises(ValueError, match="nothing is hidden"):
        HiddenOutput().loss(torch.randn(3, 7, 3), replace(batch, hidden=None))


def test_hidden_steps_of_a_wave_are_found(make_panel):
    """A network that learns fills gaps better than the mean does, and better than at first."""
    panel = make_panel([np.sin(np.arange(300) / 3)])
    layer = {"model": {"name": "transformer", **MODELS["transformer"], "d_model": 16}, "task": "pretrain"}
    window = {"lookback": 16, "horizon": 1, "season": 1}
    losses = []
    for steps in (1, 150):
        train = {"max_steps": steps, "lr": 0.01}
        chosen = resolve([Layer({**layer, "window": window, "train": train})], needs_data=False)
        losses.append(fitting.fit(chosen, panel).score)
    assert losses[1].loss < 0.5 * losses[1].baseline
    assert losses[1].loss < losses[0].loss
    assert losses[1].baseline == losses[0].baseline
