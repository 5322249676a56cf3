"""What a batch holds as vectors: padding and missing values change nothing, and what is hidden cannot be seen."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from tsformer.data.vocabulary import CLS, PAD
from tsformer.data.windows import Batch
from tsformer.nn.inputs import TEXT_WIDTH, Inputs
from tsformer.plugin import Problem, Task

LENGTHS = (5, 2, 0)
NUMBERS = Problem(Task.CLASSIFY, lookback=5, targets=2, classes=3)
TOKENS = Problem(Task.CLASSIFY, lookback=5, vocabulary=11, classes=3)
TEXTS = replace(NUMBERS, vocabulary=11, text_length=4)
KINDS = {"numbers": NUMBERS, "tokens": TOKENS, "texts": TEXTS}


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


@pytest.fixture(params=KINDS)
def problem(request):
    return KINDS[request.param]


def inputs(problem: Problem, d_model: int = 8, **options) -> Inputs:
    """With every parameter away from zero, so that all of them show."""
    module = Inputs(problem, d_model, **options)
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter)
    return module


def batch_of(problem: Problem, time: int = 5) -> Batch:
    """Examples of `LENGTHS` steps in `time`, with real ones only where they should be."""
    steps = torch.arange(time)
    lengths = torch.tensor(LENGTHS)[:, None]
    left = steps >= time - lengths
    if not problem.channels:
        mask = steps < lengths
        return Batch(tokens=torch.where(mask, torch.randint(4, 11, mask.shape), PAD), token_mask=mask)
    past = torch.where(left[..., None], torch.randn(3, time, 2), 0.0)
    batch = Batch(past=past, past_mask=left[..., None].expand_as(past).clone())
    if not problem.text_length:
        return batch
    words = torch.tensor([2, 0, 4, 1, 3])[:time].expand(3, -1)  # tokens of the text at each step
    token_mask = (torch.arange(4) < words[..., None]) & left[..., None]
    tokens = torch.where(token_mask, torch.randint(4, 11, token_mask.shape), PAD)
    return replace(batch, tokens=tokens, token_mask=token_mask)


def spoiled(batch: Batch) -> Batch:
    """The same batch with something else behind its masks."""
    past, tokens = batch.past, batch.tokens
    if past is not None:
        past = torch.where(batch.past_mask, past, math.nan)
    if tokens is not None:
        tokens = torch.where(batch.token_mask, tokens, -7)  # no token at all: an embedding of it would fail
    return replace(batch, past=past, tokens=tokens)


@pytest.mark.parametrize("summary", [False, True])
def test_shapes_and_left_padding(problem, summary):
    module = inputs(problem, summary=summary)
    x, mask = module(batch_of(problem))
    time = 5 + summary
    assert x.shape == (3, time, module.width)
    assert mask.tolist() == [[step >= 5 - length for step in range(5)] + [True] * summary for length in LENGTHS]
    assert (x[~mask] == 0).all()
    assert not (x[mask] == 0).all(-1).any()


@pytest.mark.parametrize("summary", [False, True])
def test_what_stands_behind_masks_changes_neither_values_nor_gradients(problem, summary):
    module = inputs(problem, summary=summary)
    batch = batch_of(problem)
    found = []
    for given in (batch, spoiled(batch)):
        module.zero_grad()
        x, mask = module(given)
        if x.requires_grad:
            x.square().sum().backward()
        found.append([x.detach(), mask, *(p.grad.clone() for p in module.parameters())])
    for clean, dirty in zip(*found, strict=True):
        assert torch.equal(clean, dirty)


def test_more_padding_adds_zeros_on_the_left(problem):
    module = inputs(problem)
    batch = batch_of(problem)

    def padded(tensor, side):
        shape = list(tensor.shape)
        shape[1] = 3
        parts = [tensor.new_zeros(shape), tensor]
        return torch.cat(parts if side == "left" else parts[::-1], dim=1)

    side = "left" if problem.channels else "right"
    wide = {name: padded(t, side) for name, t in vars(batch).items() if t is not None}
    x, mask = module(batch)
    longer, longer_mask = module(Batch(**wide))
    assert torch.equal(longer[:, 3:], x)
    assert torch.equal(longer_mask[:, 3:], mask)
    assert not longer_mask[:, :3].any()
    assert (longer[:, :3] == 0).all()


def test_longer_texts_of_other_steps_change_nothing():
    module = inputs(TEXTS)
    batch = batch_of(TEXTS)
    room = torch.nn.functional.pad
    wide = replace(batch, tokens=room(batch.tokens, (0, 3)), token_mask=room(batch.token_mask, (0, 3)))
    torch.testing.assert_close(module(wide)[0], module(batch)[0])


def test_tokens_keep_their_order():
    module = inputs(TOKENS)
    tokens = torch.tensor([[7, 5, PAD, PAD], [4, 6, 9, 10]])
    x, _ = module(Batch(tokens=tokens, token_mask=tokens != PAD))
    expected = module.tokens.weight * math.sqrt(8)
    torch.testing.assert_close(x[0, 2:], expected[[7, 5]])
    torch.testing.assert_close(x[1], expected[[4, 6, 9, 10]])


def test_tokens_begin_with_unit_variance():
    module = Inputs(replace(TOKENS, vocabulary=5000), 64)
    tokens = torch.arange(4, 5000)[None]
    x, _ = module(Batch(tokens=tokens, token_mask=torch.ones_like(tokens, dtype=torch.bool)))
    assert x.mean().item() == pytest.approx(0, abs=0.01)
    assert x.std().item() == pytest.approx(1, abs=0.01)
    assert module.tokens.weight.std().item() == pytest.approx(1 / 8, rel=0.01)


def test_numbers_are_left_as_they_are():
    batch = batch_of(NUMBERS)
    batch.past_mask[0, 3, 1] = False
    x, mask = Inputs(NUMBERS, 8)(batch)
    assert torch.equal(x, torch.where(batch.past_mask, batch.past, 0.0))
    assert mask[0, 3]  # one of the two numbers is there


def test_texts_by_hand():
    module = inputs(TEXTS)
    batch = batch_of(TEXTS)
    batch.past_mask[0, 2, 0] = False
    x, _ = module(batch)
    weight = module.tokens.weight.detach().numpy() * np.sqrt(8)
    for step, count in enumerate([2, 0, 4, 1, 3]):
        text = np.zeros(8)
        if count:
            mean = weight[batch.tokens[0, step, :count].numpy()].mean(0)
            normal = (mean - mean.mean()) / np.sqrt(mean.var() + 1e-5)
            norm = module.text_norm
            text = normal * norm.weight.detach().numpy() + norm.bias.detach().numpy()
            text = text + module.text_modality.detach().numpy()
        numbers = batch.past[0, step] + module.numbers_modality.detach()
        numbers = torch.where(batch.past_mask[0, step], numbers, 0.0)
        np.testing.assert_allclose(x[0, step].detach(), np.concatenate([numbers, text]), atol=1e-5)


def test_a_step_with_a_text_only_is_real():
    batch = batch_of(TEXTS)
    batch.past_mask[0] = False
    x, mask = inputs(TEXTS)(batch)
    assert mask[0].tolist() == [True, False, True, True, True]  # the second text is empty
    assert (x[0, :, :2] == 0).all()


def test_width():
    assert Inputs(NUMBERS, 64).width == 2
    assert Inputs(TOKENS, 64).width == 64
    assert Inputs(TEXTS, 64).width == 2 + TEXT_WIDTH
    assert Inputs(TEXTS, 8).width == 2 + 8


@pytest.mark.parametrize("summary", [False, True])
@pytest.mark.parametrize("task", [Task.CLASSIFY, Task.PRETRAIN])
def test_gradients_reach_every_parameter(problem, task, summary):
    module = Inputs(replace(problem, task=task), 8, summary)
    batch = batch_of(problem)
    hidden = torch.tensor([[False, True, False, False, False]] * 3)
    x, _ = module(replace(batch, hidden=hidden if task is Task.PRETRAIN else None))
    if not list(module.parameters()):
        assert not x.requires_grad
        return
    (x * torch.randn_like(x)).sum().backward()
    assert all(parameter.grad.abs().sum() > 0 for parameter in module.parameters())


def test_the_summary_of_tokens_is_their_own_cls():
    module = inputs(TOKENS, summary=True)
    x, mask = module(batch_of(TOKENS))
    assert mask[:, -1].all()
    torch.testing.assert_close(x[:, -1], (module.tokens.weight[CLS] * math.sqrt(8)).expand(3, -1))
    assert [name for name, _ in module.named_parameters()] == ["tokens.weight"]


def test_hidden_steps_do_not_leak(problem):
    module = inputs(replace(problem, task=Task.PRETRAIN))
    batch = batch_of(problem)
    hidden = torch.zeros(3, 5, dtype=torch.bool)
    hidden[0, [1, 2]] = True
    hidden[1, 0 if problem is TOKENS else 3] = True  # the first real step, on either side of the padding
    hidden[2] = True  # nothing is there to be hidden
    batch = replace(batch, hidden=hidden)
    x, mask = module(batch)
    assert torch.equal(x[0, [1, 2]], module.hidden_step.expand(2, -1))
    assert torch.equal(x[1, 3], module.hidden_step)
    assert (x[2] == 0).all()
    past, tokens = batch.past, batch.tokens
    if past is not None:
        past = torch.where(hidden[..., None], torch.randn_like(past), past)
    if tokens is not None:
        away = hidden[..., None].expand_as(tokens) if tokens.ndim == 3 else hidden
        tokens = torch.where(away, torch.randint(4, 11, tokens.shape), tokens)
    other, other_mask = module(replace(batch, past=past, tokens=tokens))
    assert torch.equal(other, x)
    assert torch.equal(other_mask, mask)
    seen, _ = module(replace(batch, hidden=None))
    assert torch.equal(seen[0, [0, 3, 4]], x[0, [0, 3, 4]])
    assert not torch.equal(seen, x)


def test_what_is_hidden_among_numbers_begins_as_their_mean():
    module = Inputs(replace(NUMBERS, task=Task.PRETRAIN), 8)
    x, _ = module(replace(batch_of(NUMBERS), hidden=torch.ones(3, 5, dtype=torch.bool)))
    assert (x == 0).all()


def test_texts_of_a_forecast_are_covariates_beside_numbers_of_another_way():
    problem = replace(TEXTS, task=Task.FORECAST, horizon=1)
    module = inputs(problem)
    features = module.text_features(batch_of(problem))
    assert features.shape == (3, 5, module.text_width)
    features.square().sum().backward()
    assert all(parameter.grad.abs().sum() > 0 for parameter in module.parameters())
    assert Inputs(NUMBERS, 8).text_features(batch_of(NUMBERS)) is None


@pytest.mark.parametrize("problem", [TOKENS, TEXTS], ids=["tokens", "texts"])
def test_a_batch_without_tokens_is_refused(problem):
    with pytest.raises(ValueError, match="needs tokens"):
        Inputs(problem, 8)(replace(batch_of(problem), tokens=None))
