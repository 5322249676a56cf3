"""Classifiers: what they read, by hand and by perturbation."""

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tsformer.config import resolve
from tsformer.config_layer import Layer
from tsformer.data.vocabulary import CLS, PAD
from tsformer.data.windows import Batch
from tsformer.nn.classification import ClassificationHead, ClassOutput
from tsformer.nn.classifier import Classifier
from tsformer.nn.inputs import Inputs
from tsformer.nn.normalisation import RevIN
from tsformer.plugin import Problem, Task

LAYERS = {"d_model": 8, "n_heads": 2, "d_ff": 8, "encoder_layers": 1}
MODELS = {
    "transformer": LAYERS,
    "tcn_transformer": {**LAYERS, "tcn_layers": 1, "stride": 2},
    "lstm": {"d_model": 8, "n_layers": 1},
    "tcn": {"d_model": 8},
}
POOLINGS = ("mean", "cls", "max", "attention")
TOKENS = Problem(task=Task.CLASSIFY, lookback=6, vocabulary=9, classes=3)
NUMBERS = Problem(task=Task.CLASSIFY, lookback=6, past_covariates=2, classes=3)
BOTH = replace(NUMBERS, vocabulary=9, text_length=2)


class Plain(nn.Module):
    """A memory that is the input."""

    def forward(self, x, mask):
        return x, mask


def batch_of(problem, examples=4):
    """Examples of 6, 5, 4, ... steps."""
    torch.manual_seed(1)
    real = torch.arange(6) < 6 - torch.arange(examples)[:, None]
    label = torch.arange(examples) % 3
    if not problem.channels:
        tokens = torch.where(real, torch.randint(4, 9, (examples, 6)), PAD)
        return Batch(tokens=tokens, token_mask=real, label=label)
    real = real.flip(1)[..., None]
    mask = real.expand(-1, -1, 2).clone()
    mask[0, 2, 1] = False
    past = torch.where(mask, torch.randn(examples, 6, 2), 0.0)
    if not problem.text_length:
        return Batch(past=past, past_mask=mask, label=label)
    tokens = torch.where(real.expand(-1, -1, 2), torch.randint(4, 9, (examples, 6, 2)), PAD)
    return Batch(past=past, past_mask=mask, tokens=tokens, token_mask=tokens != PAD, label=label)


def built(model, problem, **options):
    torch.manual_seed(0)
    values = {"model": {"name": model, **MODELS[model], **options}, "task": "classify"}
    chosen = resolve([Layer(values)], needs_data=False)
    return chosen.model.plugin.build(chosen.model.config, problem).eval()


def test_the_mean_of_the_words_by_hand():
    torch.manual_seed(0)
    network = Classifier(Inputs(TOKENS, 5), Plain(), ClassificationHead(5, 3))
    batch = batch_of(TOKENS)
    table = network.inputs.tokens.weight * 5**0.5
    for i, logits in enumerate(network(batch)):
        words = batch.tokens[i][batch.token_mask[i]]
        torch.testing.assert_close(logits, F.linear(table[words].mean(0), *network.head.linear.parameters()))


def test_the_summary_is_the_last_step():
    torch.manual_seed(0)
    network = Classifier(Inputs(TOKENS, 5, summary=True), Plain(), ClassificationHead(5, 3, "cls"))
    expected = F.linear(network.inputs.tokens.weight[CLS] * 5**0.5, *network.head.linear.parameters())
    torch.testing.assert_close(network(batch_of(TOKENS)), expected.expand(4, -1))


def test_numbers_by_their_own_mean_and_deviation():
    torch.manual_seed(0)
    network = Classifier(Inputs(NUMBERS, 5), Plain(), ClassificationHead(2, 3, "max"), RevIN(2))
    batch = batch_of(NUMBERS)
    logits = network(batch)
    moved = torch.where(batch.past_mask, 7 * batch.past - 30, 0.0)
    torch.testing.assert_close(network(replace(batch, past=moved)), logits, rtol=1e-3, atol=1e-3)
    for i in range(4):
        seen = [batch.past[i, :, c][batch.past_mask[i, :, c]] for c in range(2)]
        values = [(x - x.mean()) / (x.var(correction=0) + 1e-5).sqrt() for x in seen]
        wanted = torch.zeros(6, 2)
        for c in range(2):
            wanted[batch.past_mask[i, :, c], c] = values[c]
        pooled = wanted[batch.past_mask[i].any(-1)].amax(0)
        torch.testing.assert_close(logits[i], F.linear(pooled, *network.head.linear.parameters()), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("problem", [TOKENS, NUMBERS, BOTH], ids=["tokens", "numbers", "both"])
@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize("model", MODELS)
def test_every_step_counts_and_nothing_else_does(model, pooling, problem):
    """Also where an encoder looks back only: each real step reaches the classes, and nothing behind a mask does."""
    module, batch = built(model, problem, pooling=pooling), batch_of(problem)
    plain = module(batch)
    assert plain.shape == (4, 3)
    assert torch.equal(module(batch, truth=1.0), plain)
    assert torch.equal(module(replace(batch, label=None)), plain)
    for step in range(6):
        if problem.channels:
            change = torch.zeros_like(batch.past)
            change[0, step] = 3.0
            past = torch.where(batch.past_mask, batch.past + change, torch.nan)
            other = module(replace(batch, past=past))
        else:
            tokens = batch.tokens.clone()
            tokens[0, step] = 4 if tokens[0, step] != 4 else 5
            other = module(replace(batch, tokens=torch.where(batch.token_mask, tokens, 8)))
        assert not torch.allclose(other[0], plain[0], atol=1e-6) or pooling == "max"
        torch.testing.assert_close(other[1:], plain[1:], rtol=0, atol=0)


@pytest.mark.parametrize("problem", [TOKENS, NUMBERS, BOTH], ids=["tokens", "numbers", "both"])
@pytest.mark.parametrize("options", [{"pooling": kind} for kind in POOLINGS] + [{"chunk": 3}], ids=str)
@pytest.mark.parametrize("model", MODELS)
def test_gradients_reach_everything_and_are_finite(model, options, problem):
    module, batch = built(model, problem, **options).train(), batch_of(problem)
    if problem.channels:
        batch = replace(batch, past=torch.where(batch.past_mask, batch.past, torch.nan))
    ClassOutput(3).loss(module(batch), batch).backward()
    for name, parameter in module.named_parameters():
        assert parameter.grad is not None, name
        assert torch.isfinite(parameter.grad).all(), name
        assert parameter.grad.any(), name


@pytest.mark.parametrize("model", MODELS)
def test_an_example_without_anything(model):
    for problem in (TOKENS, NUMBERS, BOTH):
        batch = batch_of(problem, 2)
        bare = {
            name: torch.zeros_like(tensor)
            for name in ("past", "past_mask", "tokens", "token_mask")
            if (tensor := getattr(batch, name)) is not None
        }
        for options in ({"pooling": "mean"}, {"pooling": "cls"}, {"pooling": "max"}, {"chunk": 3}):
            assert torch.isfinite(built(model, problem, **options)(replace(batch, **bare))).all()
