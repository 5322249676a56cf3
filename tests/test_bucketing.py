"""Batches of like lengths: each example once, mixed anew, and no length in a place of its own."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tsformer.data.bucketing import POOL, like_lengths, padded_share


def a_pass(lengths, size, generator):
    order = generator.permutation(len(lengths))
    return list(like_lengths(order, lengths[order], size, generator))


@given(count=st.integers(1, 400), size=st.integers(1, 5), seed=st.integers(0, 99))
def test_each_example_comes_once_in_batches_of_the_size(count, size, seed):
    generator = np.random.default_rng(seed)
    batches = a_pass(generator.integers(0, 50, size=count), size, generator)
    assert sorted(np.concatenate(batches).tolist()) == list(range(count))
    assert sorted(map(len, batches)) == sorted([size] * (count // size) + [count % size] * bool(count % size))


def test_the_place_of_a_batch_says_nothing_of_its_lengths():
    """Neither the last batch nor the smaller one is of the longest, over many passes."""
    lengths, generator = np.arange(1, 104), np.random.default_rng(0)
    passes = [a_pass(lengths, 10, generator) for _ in range(300)]
    last = np.mean([lengths[batches[-1]].mean() for batches in passes])
    smaller = np.mean([lengths[min(batches, key=len)].mean() for batches in passes])
    assert last == pytest.approx(52, abs=6)  # the mean of all; 6 is three standard errors
    assert smaller == pytest.approx(52, abs=6)


def test_like_lengths_are_mixed_anew_in_each_pass():
    lengths, generator = np.arange(64) % 4 + 1, np.random.default_rng(0)
    neighbours = set()
    for _ in range(50):
        batches = a_pass(lengths, 4, generator)
        assert all(len(set(lengths[batch])) == 1 for batch in batches)
        neighbours |= {int(place) for batch in batches if 0 in batch for place in batch}
    assert neighbours == set(range(0, 64, 4))


def test_pools_are_of_one_size_and_small_enough_to_mix():
    """Batches far apart in length do not always hold the same examples: the longest is not with the second longest."""
    count = 3 * POOL
    lengths, generator = np.arange(2 * count), np.random.default_rng(0)
    together = [
        any({2 * count - 1, 2 * count - 2} == set(batch.tolist()) for batch in a_pass(lengths, 2, generator))
        for _ in range(200)
    ]
    assert 0.1 < np.mean(together) < 0.6  # a third: they are in the same one of three pools
    batches = a_pass(lengths, 2, generator)
    assert np.max([np.ptp(lengths[batch]) for batch in batches]) < 30  # neighbours among 128 of 384


def test_padded_share_counts_source_and_answer_apart():
    sides = np.array([[1, 3], [3, 2]])  # 9 real positions; 3 + 3 for each when they are together
    assert padded_share(sides, [np.array([0, 1])]) == pytest.approx(1 - 9 / 12)
    assert padded_share(sides, [np.array([0]), np.array([1])]) == 0
    assert padded_share(np.array([[0], [0]]), [np.array([0, 1])]) == 1  # one step each, and nothing in it
    assert padded_share(sides, []) == 0
