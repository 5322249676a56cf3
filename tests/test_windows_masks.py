"""Windows where values are missing, time is missing, series are short, and covariates are known ahead."""

from dataclasses import fields

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tsformer.data.windows import Windows, cut_windows

OFFSETS = np.array([0, 9, 20])


def windows_of(values, mask, **more):
    shape = {"lookback": 3, "horizon": 2, "targets": 1, "known": 1}
    return cut_windows(values, OFFSETS, np.array([3, 3]), np.array([9, 11]), mask=mask, **shape, **more)


@given(seed=st.integers(0, 99), behind=st.sampled_from([np.nan, 1e30, -np.inf]))
def test_what_is_behind_the_mask_is_nowhere(seed, behind):
    rng = np.random.default_rng(seed)
    values = torch.from_numpy(rng.normal(size=(20, 3)).astype(np.float32))
    mask = torch.from_numpy(rng.random((20, 3)) < 0.6)
    batch = windows_of(torch.where(mask, values, behind), mask).batch()
    for number, origin in enumerate(batch.origin.tolist()):
        past, ahead = slice(origin - 3, origin), slice(origin, origin + 2)
        real = torch.where(mask, values, 0.0)
        assert torch.equal(batch.past[number], real[past, :2])
        assert torch.equal(batch.past_mask[number], mask[past, :2])
        assert torch.equal(batch.past_known[number], real[past, 2:])
        assert torch.equal(batch.future[number], real[ahead, :1])
        assert torch.equal(batch.future_mask[number], mask[ahead, :1])
        assert torch.equal(batch.future_known[number], real[ahead, 2:])
        assert mask[ahead, 0].any()
    origins = [o for first, stop in ((3, 8), (12, 19)) for o in range(first, stop)]
    assert batch.origin.tolist() == [o for o in origins if mask[o : o + 2, 0].any()]


@given(
    data=st.data(),
    lookback=st.integers(1, 5),
    horizon=st.integers(1, 4),
    stride=st.integers(1, 3),
)
def test_no_window_straddles_a_break(data, lookback, horizon, stride):
    breaks = data.draw(st.sets(st.sampled_from([r for r in range(1, 20) if r != 9])))
    values = torch.arange(20.0)[:, None]
    first = np.array([lookback, lookback])
    shape = {"lookback": lookback, "horizon": horizon, "targets": 1, "stride": stride}
    windows = cut_windows(values, OFFSETS, first, np.diff(OFFSETS), breaks=np.array(sorted(breaks)), **shape)
    every = cut_windows(values, OFFSETS, first, np.diff(OFFSETS), **shape).origins.tolist()
    wanted = [o for o in every if not breaks & set(range(o - lookback + 1, o + horizon))]
    assert windows.origins.tolist() == wanted
    assert windows.batch().past_mask.all()
    assert windows.batch().past[:, :, 0].tolist() == [list(range(o - lookback, o)) for o in wanted]


def test_padded_windows_begin_anew_after_a_break():
    values = torch.arange(20.0)[:, None]
    windows = cut_windows(
        values,
        OFFSETS,
        np.array([1, 1]),
        np.array([9, 11]),
        lookback=3,
        horizon=2,
        targets=1,
        breaks=np.array([4]),
        fewest=np.array([1, 1]),
    )
    assert windows.origins[windows.series == 0].tolist() == [1, 2, 5, 6, 7]
    batch = windows.batch()
    assert batch.past[:5, :, 0].tolist() == [[0, 0, 0], [0, 0, 1], [0, 0, 4], [0, 4, 5], [4, 5, 6]]
    assert batch.past_mask[2, :, 0].tolist() == [False, False, True]
    assert windows.starts[windows.series == 1].unique().tolist() == [9]


def test_only_series_that_are_padded_may_see_less():
    values = torch.arange(20.0)[:, None]
    windows = cut_windows(
        values,
        OFFSETS,
        np.array([1, 3]),
        np.array([9, 11]),
        lookback=3,
        horizon=2,
        targets=1,
        breaks=np.array([4, 13]),
        fewest=np.array([1, 3]),
    )
    assert windows.origins[windows.series == 1].tolist() == [16, 17, 18]


def test_what_is_known_ahead_is_there_without_a_future():
    values = torch.arange(30.0).view(10, 3)
    ends = torch.tensor([8])
    windows = Windows(values, torch.tensor([0]), ends, torch.tensor([0]), 4, 2, 1, known=2, future=False)
    batch = windows.batch()
    assert batch.future is batch.future_mask is None
    assert torch.equal(batch.future_known[0], values[8:, 1:])
    assert torch.equal(batch.past_known[0], values[4:8, 1:])


def test_what_is_known_of_a_series_comes_with_each_of_its_windows():
    static, codes = torch.tensor([[0.5], [1.5]]), torch.tensor([[1, 0], [2, 3]])
    windows = windows_of(torch.zeros(20, 2), None, static=static, static_codes=codes)
    batch = windows.batch(torch.tensor([0, len(windows) - 1]))
    assert torch.equal(batch.static, static)
    assert torch.equal(batch.static_codes, codes)


@pytest.mark.parametrize("known", [0, 1])
def test_without_missing_values_a_mask_changes_nothing(known):
    values = torch.randn(20, 2, generator=torch.Generator().manual_seed(0))
    shape = {"lookback": 3, "horizon": 2, "targets": 1, "known": known}
    first, stop = np.array([3, 3]), np.array([9, 11])
    plain = cut_windows(values, OFFSETS, first, stop, **shape).batch()
    masked = cut_windows(values, OFFSETS, first, stop, mask=torch.ones_like(values, dtype=torch.bool), **shape).batch()
    for field in fields(plain):
        one, other = getattr(plain, field.name), getattr(masked, field.name)
        assert (one is other is None) or torch.equal(one, other)
