"""Split and windows: no target of one part in another, every window that fits, masks where there is nothing."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tsformer.data.ragged import ragged
from tsformer.data.split import shortest, split_by_time
from tsformer.data.vocabulary import PAD
from tsformer.data.windows import Windows, cut_windows, padded
from tsformer.errors import DataError

sizes = st.tuples(st.integers(1, 12), st.integers(1, 8))


def parts(lengths, lookback, horizon):
    """Origins of the windows of each part, per series, counted from the series' start."""
    split = split_by_time(lengths, horizon, lookback)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    values = torch.arange(float(lengths.sum()))[:, None]
    bounds = [(np.full_like(split.train, lookback), split.train), (split.train, split.validation)]
    bounds.append((split.validation, split.lengths))
    shape = {"lookback": lookback, "horizon": horizon, "targets": 1}
    return split, offsets, [cut_windows(values, offsets, first, stop, **shape) for first, stop in bounds]


@given(sizes=sizes, extra=st.lists(st.integers(0, 60), min_size=1, max_size=4))
def test_parts_do_not_share_targets_and_miss_none(sizes, extra):
    lookback, horizon = sizes
    lengths = np.array([shortest(lookback, horizon) + more for more in extra])
    split, offsets, windows = parts(lengths, lookback, horizon)
    for series in range(len(lengths)):
        targets = []
        for part in windows:
            origins = part.origins[part.series == series].numpy() - offsets[series]
            targets.append({int(o) + step for o in origins for step in range(horizon)})
        train, validation, test = targets
        assert max(train) < min(validation) <= max(validation) < min(test)
        assert train == set(range(lookback, split.train[series]))
        assert validation == set(range(split.train[series], split.validation[series]))
        assert test == set(range(split.validation[series], lengths[series]))
        assert len(test) >= horizon <= len(validation)


@given(sizes=sizes)
def test_shortest_is_the_shortest(sizes):
    lookback, horizon = sizes
    rows = shortest(lookback, horizon)
    split_by_time(np.array([rows]), horizon, lookback)
    with pytest.raises(DataError, match=f"need {rows} rows"):
        split_by_time(np.array([rows - 1]), horizon, lookback)


def test_70_10_20():
    split = split_by_time(np.array([144, 17420]), 12, 24)
    assert split.train.tolist() == [100, 12194]
    assert (split.lengths - split.validation).tolist() == [30, 3484]


def test_a_short_series_is_named():
    with pytest.raises(DataError, match=r"series 'b' has 20 rows.*need 60.*1 of 2 series"):
        split_by_time(np.array([500, 20]), 12, 24, 0, ["a", "b"])


def test_a_batch_is_the_rows_around_its_origin():
    values = torch.arange(20.0)[:, None]
    windows = cut_windows(
        values, np.array([0, 8, 20]), np.array([3, 4]), np.array([8, 12]), lookback=3, horizon=2, targets=1
    )
    assert windows.origins.tolist() == [3, 4, 5, 6, 12, 13, 14, 15, 16, 17, 18]
    assert windows.series.tolist() == [0] * 4 + [1] * 7
    batch = windows.batch(torch.tensor([0, 4]))
    assert batch.past[:, :, 0].tolist() == [[0, 1, 2], [9, 10, 11]]
    assert batch.future[:, :, 0].tolist() == [[3, 4], [12, 13]]
    assert batch.past_mask.all()
    assert batch.future_mask.all()


def test_stride():
    values = torch.arange(20.0)[:, None]
    windows = cut_windows(
        values, np.array([0, 20]), np.array([5]), np.array([20]), lookback=5, horizon=4, targets=1, stride=3
    )
    assert windows.origins.tolist() == [5, 8, 11, 14]  # 14 + 4 = 18 is the last that fits in 20


def test_rows_before_the_start_are_masked_and_zero():
    values = torch.arange(10.0, 20.0)[:, None]
    windows = Windows(
        values, torch.tensor([0, 5]), torch.tensor([2, 7]), torch.tensor([0, 1]), lookback=4, horizon=2, targets=1
    )
    batch = windows.batch()
    assert batch.past[:, :, 0].tolist() == [[0, 0, 10, 11], [0, 0, 15, 16]]
    assert batch.past_mask[:, :, 0].tolist() == [[False, False, True, True]] * 2


def test_no_future_beyond_the_data():
    values = torch.arange(10.0)[:, None]
    windows = Windows(
        values, torch.tensor([0]), torch.tensor([10]), torch.tensor([0]), lookback=4, horizon=3, targets=1, future=False
    )
    assert windows.batch().future is None
    assert windows.batch().past[0, :, 0].tolist() == [6, 7, 8, 9]


def test_thinning_keeps_both_ends():
    values = torch.arange(100.0)[:, None]
    windows = cut_windows(
        values, np.array([0, 100]), np.array([10]), np.array([100]), lookback=10, horizon=5, targets=1
    )
    thin = windows.thin(10)
    assert len(thin) == 10
    assert (thin.origins[0], thin.origins[-1]) == (10, 95)
    assert windows.thin(1000) is windows


@given(data=st.data(), length=st.integers(1, 4))
def test_padded_texts(data, length):
    texts = data.draw(st.lists(st.lists(st.integers(4, 9), max_size=6), min_size=1, max_size=5))
    table = padded(ragged(texts), length)
    assert table.dtype == torch.int32
    assert table.tolist() == [(text + [PAD] * length)[:length] for text in texts]


@given(lengths=st.lists(st.integers(1, 6), min_size=1, max_size=3), lookback=st.integers(1, 8), seed=st.integers(0, 99))
def test_a_window_sees_the_texts_of_its_lookback_only(lengths, lookback, seed):
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    tokens = torch.from_numpy(np.random.default_rng(seed).integers(0, 5, (sum(lengths), 2)))
    series, starts = np.arange(len(lengths)), torch.from_numpy(offsets[:-1])
    ends = torch.from_numpy(offsets[1:])
    values = torch.zeros(sum(lengths), 1)
    windows = Windows(
        values, starts, ends, torch.from_numpy(series), lookback, 1, 1, future=False, tokens=tokens.to(torch.int32)
    )
    batch = windows.batch()
    assert batch.tokens.dtype == torch.int64
    for number, (start, end) in enumerate(pairwise(offsets)):
        mine = tokens[max(start, end - lookback) : end]
        before = torch.zeros(lookback - len(mine), 2, dtype=torch.int64)
        assert torch.equal(batch.tokens[number], torch.cat([before, mine]))
        assert torch.equal(batch.token_mask[number], torch.cat([before, mine]) != PAD)
    assert torch.equal(windows.batch(torch.tensor([len(lengths) - 1])).tokens[0], batch.tokens[-1])


def test_windows_without_texts_have_no_tokens():
    batch = cut_windows(
        torch.zeros(9, 1), np.array([0, 9]), np.array([3]), np.array([9]), lookback=3, horizon=1, targets=1
    ).batch()
    assert batch.tokens is batch.token_mask is None
