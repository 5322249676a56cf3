"""Panels that tests make, and a folder of their own to run in."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch: models here are small, waiting for threads is not

import numpy as np
import pandas as pd
import pytest
from hypothesis import settings

from tsformer import registry
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
    """`make_panel([array, ...])`: a panel of daily series `[time, targets]`, or `[time]`."""

    def make(series, names=None, frequency="D"):
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
        )

    return make
