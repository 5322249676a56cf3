"""How well hidden steps are found: the model and the guess are judged on the same steps."""

import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from tsformer import fitting
from tsformer.config import resolve
from tsformer.config_layer import Layer
from tsformer.data.hidden_steps import HiddenSteps
from tsformer.data.panel import Panel, Schema
from tsformer.data.ragged import ragged
from tsformer.data.sequence_set import SequenceSet
from tsformer.errors import DivergedError
from tsformer.evaluation.hidden import HiddenScore, hidden_score
from tsformer.plugin import Problem, Task

CPU = torch.device("cpu")


class Says(nn.Module):
    """Whatever it is told to say of a batch."""

    def __init__(self, says):
        super().__init__()
        self.says = says

    def forward(self, batch, truth=0.0):
        return self.says(batch)


def hiding(examples):
    return HiddenSteps(examples, 0.3, 2.0, 7)


def parts(train, test, **problem):
    return SimpleNamespace(problem=Problem(task=Task.PRETRAIN, **problem), train=hiding(train), test=hiding(test))


def numbers(examples=9, channels=2, seed=0):
    generator = np.random.default_rng(seed)
    made = [generator.normal(size=(generator.integers(1, 12), channels)) for _ in range(examples)]
    made[0][:1] = np.nan
    return SequenceSet(np.arange(examples), 100, series=ragged(made, np.float32))


def tokens(texts):
    return SequenceSet(np.arange(len(texts)), 100, tokens=ragged([np.array(text, dtype=np.int64) for text in texts]))


def by_hand(part, channels):
    """Mean squared error of the mean of what is shown, example by example."""
    errors = []
    for i in range(len(part)):
        batch = part.batch(torch.tensor([i]))
        past, mask, hidden = (x[0].numpy() for x in (batch.past, batch.past_mask, batch.hidden))
        for channel in range(channels):
            shown = past[mask[:, channel] & ~hidden, channel].astype(np.float64)
            guess = shown.mean() if len(shown) else 0.0
            errors += [(value - guess) ** 2 for value in past[mask[:, channel] & hidden, channel]]
    return np.mean(errors)


def test_the_guess_is_the_mean_of_what_is_shown():
    made = parts(numbers(), numbers(seed=1), past_covariates=2)
    score = hidden_score(Says(lambda batch: batch.past), made, CPU)
    assert score.loss == 0  # it knows
    assert score.baseline == pytest.approx(by_hand(made.test, 2), rel=1e-5)
    assert (score.kind, score.examples) == ("mse", 9)


def test_a_model_that_finds_targets_only_is_compared_on_these():
    made = parts(numbers(), numbers(seed=1), targets=1, past_covariates=1)
    score = hidden_score(Says(lambda batch: torch.zeros_like(batch.past[..., :1])), made, CPU)
    assert score.baseline == pytest.approx(by_hand(made.test, 1), rel=1e-5)
    assert score.baseline != pytest.approx(by_hand(made.test, 2), rel=1e-3)


def test_a_guess_and_a_fit_are_of_the_same_channels():
    """A wild covariate, which no model is asked for, is not in the guess either."""
    generator = np.random.default_rng(0)
    values = np.stack([generator.normal(size=200), np.where(np.arange(200) > 160, 1e3, 0)], 1)
    panel = Panel(
        values=values,
        offsets=np.array([0, 200]),
        times=pd.RangeIndex(200),
        ids=("",),
        schema=Schema(targets=("y",), past_covariates=("c",)),
    )
    small = {"d_model": 8, "n_heads": 2, "d_ff": 8, "encoder_layers": 1}
    for independent in (True, False):
        model = {"name": "transformer", **small, "channel_independent": independent}
        window = {"lookback": 8, "horizon": 1, "season": 1}
        values = {"model": model, "task": "pretrain", "window": window, "scale": "none", "train": {"max_steps": 1}}
        score = fitting.fit(resolve([Layer(values)], needs_data=False), panel).score
        assert score.baseline < 10


def test_the_guess_of_tokens_is_how_often_each_occurs():
    train = tokens([[4, 4, 4, 5], [4, 5], []])
    made = parts(train, tokens([[4], [5], [6]]), vocabulary=8)
    score = hidden_score(Says(lambda batch: torch.zeros(*batch.tokens.shape, 8)), made, CPU)
    counts = np.array([1, 1, 1, 1, 5, 3, 1, 1])
    assert score.baseline == pytest.approx(-np.log(counts[[4, 5, 6]] / counts.sum()).mean(), rel=1e-6)
    assert score.loss == pytest.approx(np.log(8), rel=1e-6)
    assert score.kind == "cross_entropy"


def test_the_score_depends_on_no_batch(monkeypatch):
    from tsformer.training import loop

    made = parts(numbers(), numbers(seed=1), past_covariates=2)
    model = Says(lambda batch: torch.zeros_like(batch.past))
    whole = hidden_score(model, made, CPU)
    monkeypatch.setattr(loop.predictions, "__defaults__", (2,))
    pieces = hidden_score(model, made, CPU)
    assert (pieces.loss, pieces.baseline) == pytest.approx((whole.loss, whole.baseline), rel=1e-6)


def test_what_is_not_finite_is_said():
    made = parts(numbers(), numbers(seed=1), past_covariates=2)
    with pytest.raises(DivergedError, match="test part"):
        hidden_score(Says(lambda batch: batch.past * torch.nan), made, CPU)


def test_in_plain_numbers_and_words():
    score = HiddenScore("mse", 2.0, 1.0, 5)
    assert json.loads(json.dumps(score.to_json(), allow_nan=False)) == {
        "test": {"mse": 2.0, "examples": 5},
        "baselines": {"mean": {"mse": 1.0}},
    }
    assert list(score.cautions("m")) == ["m finds hidden steps no better than a guess: mse 2 against 1"]
    assert not list(HiddenScore("mse", 0.5, 1.0, 5).cautions("m"))
    words = HiddenScore("cross_entropy", 0.5, 1.0, 5).to_json()
    assert words == {"test": {"cross_entropy": 0.5, "examples": 5}, "baselines": {"frequency": {"cross_entropy": 1.0}}}
