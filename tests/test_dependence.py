"""How steps depend on each other: learned from errors, kept in a run, and seen in paths whose steps stay as drawn."""

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats
from torch import nn

from tsformer import Forecaster, load
from tsformer.data.windows import cut_windows
from tsformer.dependence import PRIOR, Dependence, learn_dependence
from tsformer.errors import RunError
from tsformer.nn.outputs import build_output

HORIZON = 6


class Standard(nn.Module):
    """Says a standard normal distribution of every step."""

    def forward(self, batch, truth=0.0):
        return torch.tensor([0.0, 0.5413]).expand(len(batch.past), HORIZON, batch.past.shape[2], 2)


def windows(values, lookback=2, mask=None):
    """One window of each series `[series, lookback + 6, targets]`, or several of a longer one."""
    series, rows, targets = values.shape
    return cut_windows(
        torch.from_numpy(values).float().reshape(-1, targets),
        np.arange(series + 1) * rows,
        np.full(series, lookback),
        np.full(series, rows),
        lookback=lookback,
        horizon=HORIZON,
        targets=targets,
        mask=mask,
    )


def learned(some, most=10_000, module=None, output="normal"):
    torch.manual_seed(0)
    return learn_dependence(module or Standard(), build_output(output), some, most)


def with_common(series, share, targets=1, seed=0):
    """Standard normal values that have a part in common at all steps of a series."""
    rng = np.random.default_rng(seed)
    common = rng.standard_normal((series, 1, targets))
    return np.sqrt(share) * common + np.sqrt(1 - share) * rng.standard_normal((series, 8, targets))


def test_correlations_are_those_of_the_errors():
    values = np.concatenate([with_common(3000, 0.5), with_common(3000, 0.0, seed=1)], axis=2)
    found = learned(windows(values)).correlation.numpy()
    apart = ~np.eye(HORIZON, dtype=bool)
    believed = 3000 / (3000 + PRIOR)
    assert np.abs(found[0][apart] - 0.5 * believed).max() < 0.05
    assert np.abs(found[1][apart]).max() < 0.06
    assert (found[:, ~apart] == 1).all()


def test_few_windows_say_little_and_those_that_overlap_say_no_more():
    one = with_common(1, 1.0)
    assert abs(learned(windows(one)).correlation[0, 0, 1].item()) <= 1 / (1 + PRIOR) + 1e-6
    long = np.ones((1, 2 + 2 * HORIZON, 1))  # seven windows, of which two do not overlap
    some = windows(long)
    assert len(some) == 7
    assert learned(some).correlation[0, 0, 5] == pytest.approx(2 / (2 + PRIOR), abs=2e-3)


def test_missing_values_are_left_out():
    values = with_common(2000, 0.5)
    real = np.random.default_rng(5).random(values.shape) > 0.3
    hidden = np.where(real, values, 1e6)
    found = learned(windows(hidden, mask=torch.from_numpy(real).reshape(-1, 1))).correlation.numpy()[0]
    assert np.abs(found[~np.eye(HORIZON, dtype=bool)] - 0.5).max() < 0.08


def test_where_nothing_is_to_be_learned():
    class Rolls(Standard):
        rolls_out = True

    some = windows(with_common(3, 0.5))
    assert learned(some, module=Rolls()) is None
    assert learned(some, output="point") is None


def test_order_changes_and_values_do_not():
    steps = np.abs(np.subtract.outer(np.arange(4), np.arange(4)))
    wanted = np.stack([0.8**steps, np.eye(4)])
    torch.manual_seed(0)
    values = torch.distributions.Exponential(1.0).sample((20_000, 4, 2)).double()
    made = Dependence(torch.from_numpy(wanted).float()).ordered(values)
    assert torch.equal(made.sort(0).values, values.sort(0).values)
    for target in range(2):
        scores = stats.norm.ppf((stats.rankdata(made[:, :, target], axis=0) - 0.5) / len(made))
        assert np.abs(np.corrcoef(scores.T) - wanted[target]).max() < 0.04
    assert not torch.equal(made[:, :, 1], values[:, :, 1])


@pytest.mark.parametrize("horizon", [2, 7])
def test_a_shorter_and_a_longer_horizon(horizon):
    torch.manual_seed(0)
    made = Dependence(torch.full((1, 4, 4), 1.0)).ordered(torch.randn(500, horizon, 1).double())[..., 0].numpy()
    ranks = stats.rankdata(made, axis=0)
    assert (ranks[:, 0] == ranks[:, 1]).all()
    if horizon == 7:
        assert (ranks[:, 0] == ranks[:, 3]).all()
        assert abs(np.corrcoef(ranks[:, 0], ranks[:, 6])[0, 1]) < 0.15


def test_a_run_keeps_it(in_tmp):
    rng = np.random.default_rng(0)
    price = 100 * np.exp(np.cumsum(0.02 * rng.standard_normal(200)))
    table = pd.DataFrame({"ds": pd.date_range("2024-01-01", periods=200), "y": price})
    options = {"train_options": {"output": "normal", "max_steps": 5}, "horizon": 5, "lookback": 10}
    made = Forecaster("linear", transforms=["log_return"], **options).fit(table)
    made.save("run")
    again = load("run")
    assert torch.equal(again.fitted_.dependence.correlation, made.fitted_.dependence.correlation)
    expected = made.predict(levels=[80])
    pd.testing.assert_frame_equal(again.predict(table, levels=[80]), expected)
    file = in_tmp / "run/dependence.safetensors"
    file.write_bytes(file.read_bytes()[:-1] + b"x")
    with pytest.raises(RunError, match=r"dependence.safetensors' is damaged"):
        load("run")


@pytest.mark.parametrize("content", [b"", b"no tensors", Dependence(torch.eye(3)[None, :2]).to_bytes()])
def test_what_holds_no_correlations(content):
    with pytest.raises(ValueError, match=r"[a-z]"):
        Dependence.from_bytes(content)
