"""Panels that tests make, a folder of their own to run in, and the command line."""

import os
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch: models here are small, waiting for threads is not

import numpy as np
import pandas as pd
import pytest
from hypothesis import settings

from tsformer import registry
from tsformer.cli.app import main
from tsformer.data.panel import Panel, Schema

settings.register_profile("patient", deadline=None)  # a busy machine is no fault of the code
settings.load_profile("patient")


@pytest.fixture
def in_tmp(tmp_path, monkeypatch):
    """An empty current folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def own_registry(monkeypatch):
    """What a test registers is forgotten after it."""
    monkeypatch.setattr(registry, "_added", {})
    monkeypatch.setattr(registry, "_broken", {})


@pytest.fixture
def make_panel():
    """`make_panel([array, ...])`: a panel of daily series `[time, targets]`, or `[time]`, with further fields."""

    def make(series, names=None, frequency="D", **fields):
        arrays = [np.asarray(values, dtype=np.float64) for values in series]
        arrays = [values[:, None] if values.ndim == 1 else values for values in arrays]
        targets = tuple(names or (f"y{i}" for i in range(arrays[0].shape[1])))
        times = [pd.date_range("2020-01-01", periods=len(values), freq=frequency) for values in arrays]
        joined = times[0]
        for more in times[1:]:
            joined = joined.append(more)
        many = len(arrays) > 1
        return Panel(
            values=np.ascontiguousarray(np.concatenate(arrays)),
            offsets=np.cumsum([0, *map(len, arrays)]).astype(np.int64),
            times=joined,
            ids=tuple(f"s{i}" for i in range(len(arrays))) if many else ("",),
            schema=Schema(targets=targets, time="ds", id="id" if many else None, frequency=frequency),
            **fields,
        )

    return make


LOCAL_MODEL = """
import torch
from torch import nn
from tsformer import Config, Field, ModelPlugin

class Options(Config):
    width: int = Field(8, gt=0, description="width of the hidden layer", flag="--width")

class Net(nn.Module):
    def __init__(self, options, problem):
        super().__init__()
        self.problem = problem
        self.net = nn.Sequential(nn.Flatten(), nn.Linear(problem.lookback * problem.channels, options.width),
                                 nn.Tanh(),
                                 nn.Linear(options.width, problem.horizon * problem.targets * problem.outputs))

    def forward(self, batch, truth=0.0):
        past = torch.where(batch.past_mask, batch.past, 0.0)
        return self.net(past).view(-1, self.problem.horizon, self.problem.targets, self.problem.outputs)

plugin = ModelPlugin(config=Options, build=Net, example=Options())
"""


class CommandLine:
    """Runs command lines in this process.

    Attributes:
        fast: options of a fit that takes a second.
        air: a small monthly table.
        local_model: a plugin file.
    """

    fast = ("--max-steps", "3", "--model.d-model", "16", "--model.d-ff", "16")
    air = Path(__file__).parent.parent / "datasets" / "air_passengers.csv"
    local_model = LOCAL_MODEL

    def __init__(self, capsys):
        self.capsys = capsys

    def __call__(self, *words):
        """Exit code, stdout and stderr of `tsformer WORDS`."""
        with pytest.raises(SystemExit) as caught:
            main([str(word) for word in words])
        out, err = self.capsys.readouterr()
        return caught.value.code, out, err

    def fit_air(self, *words):
        """Fit on `air`: stdout and stderr."""
        code, out, err = self(
            "fit", "--model", "tcn_transformer", "--data", "csv", "--path", self.air, *self.fast, *words
        )
        assert code == 0, err
        return out, err

    @staticmethod
    def one_line(err):
        """The only line of an error."""
        lines = err.strip().splitlines()
        assert len(lines) == 1, err
        assert "Traceback" not in err
        return lines[0]


@pytest.fixture
def tsformer(capsys, in_tmp, own_registry):
    """The command line, in an empty folder."""
    return CommandLine(capsys)
