"""Batches of sequences: what a plain loop would gather, each example once, and little padding."""

import time
from itertools import islice, pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tsformer.data.ragged import ragged
from tsformer.data.sequence_set import SequenceSet, cut_note, lookback_for
from tsformer.data.vocabulary import PAD, SEP

texts_of = st.lists(st.lists(st.integers(4, 99), max_size=9), min_size=1, max_size=12)


def texts(lengths, **more):
    """Texts of those lengths; the tokens count up, so that each tells where it is from."""
    stops = np.cumsum(lengths)
    tokens = ragged([np.arange(stop - length, stop) + 4 for length, stop in zip(lengths, stops, strict=True)])
    return SequenceSet(np.arange(len(lengths)), lookback=10_000, tokens=tokens, **more)


def padded(lists, least=1):
    """By a plain loop, padded on the right."""
    longest = max(least, *(len(each) for each in lists))
    tokens = [list(each) + [PAD] * (longest - len(each)) for each in lists]
    return tokens, [[place < len(each) for place in range(longest)] for each in lists]


@given(words=texts_of, lookback=st.integers(1, 10), data=st.data())
def test_pairs_are_gathered_as_by_a_plain_loop(words, lookback, data):
    answers = data.draw(st.lists(st.lists(st.integers(4, 99), max_size=5), min_size=len(words), max_size=len(words)))
    count = len(words)
    index = np.array(data.draw(st.permutations(range(count)))[: data.draw(st.integers(1, count))])
    places = data.draw(st.lists(st.integers(0, len(index) - 1), min_size=1, max_size=6))
    labels = np.arange(count) * 10
    part = SequenceSet(index, lookback, tokens=ragged(words), targets=ragged(answers), labels=labels)
    batch = part.batch(torch.tensor(places))
    tokens, mask = padded([words[index[place]][:lookback] for place in places])
    assert (batch.tokens.tolist(), batch.token_mask.tolist()) == (tokens, mask)
    tokens, mask = padded([[*answers[index[place]], SEP] for place in places])
    assert (batch.target_tokens.tolist(), batch.target_token_mask.tolist()) == (tokens, mask)
    assert batch.label.tolist() == [10 * index[place] for place in places]
    assert batch.series.tolist() == places
    assert batch.tokens.dtype == batch.target_tokens.dtype == batch.label.dtype == torch.int64
    assert batch.past is batch.past_mask is None
    assert part.lengths.tolist() == [min(lookback, len(words[i])) + len(answers[i]) + 1 for i in index]


@given(lengths=st.lists(st.integers(0, 6), min_size=1, max_size=8), lookback=st.integers(1, 7), data=st.data())
def test_series_with_texts_are_gathered_as_by_a_plain_loop(lengths, lookback, data):
    rows = sum(lengths)
    words = data.draw(st.lists(st.lists(st.integers(4, 99), max_size=4), min_size=max(1, rows), max_size=max(1, rows)))
    numbers = np.random.default_rng(rows).normal(size=(rows, 2)).astype(np.float32)
    numbers[np.random.default_rng(lookback).random((rows, 2)) < 0.2] = np.nan
    bounds = np.concatenate([[0], np.cumsum(lengths)])
    series = ragged([numbers[start:stop] for start, stop in pairwise(bounds)], np.float32)
    places = data.draw(st.lists(st.integers(0, len(lengths) - 1), min_size=1, max_size=5))
    part = SequenceSet(
        np.arange(len(lengths)), lookback, series=series, tokens=ragged(words).take(np.arange(rows)), text_length=3
    )
    batch = part.batch(torch.tensor(places))

    seen = [range(max(bounds[place], bounds[place + 1] - lookback), bounds[place + 1]) for place in places]
    longest = max(1, *(len(each) for each in seen))
    widest = max([1, *(len(words[row][:3]) for each in seen for row in each)])
    assert batch.past.shape == batch.past_mask.shape == (len(places), longest, 2)
    assert batch.tokens.shape == batch.token_mask.shape == (len(places), longest, widest)
    for i, each in enumerate(seen):
        for step, row in enumerate([None] * (longest - len(each)) + list(each)):
            expected = np.full(2, np.nan) if row is None else numbers[row]
            text = [] if row is None else words[row][:3]
            assert batch.past_mask[i, step].tolist() == (~np.isnan(expected)).tolist()
            assert batch.past[i, step].tolist() == np.nan_to_num(expected).tolist()
            assert batch.tokens[i, step].tolist() == text + [PAD] * (widest - len(text))
            assert batch.token_mask[i, step].tolist() == [place < len(text) for place in range(widest)]


def test_of_longer_texts_the_first_tokens_and_of_longer_series_the_last_steps_are_seen():
    part = SequenceSet(np.array([0]), 2, tokens=ragged([[5, 6, 7]]))
    assert part.batch().tokens.tolist() == [[5, 6]]
    part = SequenceSet(np.array([0]), 2, series=ragged([np.array([[1.0], [2.0], [3.0]])], np.float32))
    assert part.batch().past.tolist() == [[[2.0], [3.0]]]


def test_where_all_are_empty_one_masked_step_is_left():
    part = SequenceSet(np.arange(2), 5, tokens=ragged([[], []]), targets=ragged([[], []]))
    batch = part.batch()
    assert batch.tokens.tolist() == [[PAD], [PAD]]
    assert not batch.token_mask.any()
    assert batch.target_tokens.tolist() == [[SEP], [SEP]]
    assert batch.target_token_mask.all()
    series = SequenceSet(np.arange(1), 5, series=ragged([np.empty((0, 3))], np.float32)).batch()
    assert series.past.shape == (1, 1, 3)
    assert not series.past_mask.any()


def test_an_example_is_the_same_in_every_batch():
    part = texts([3, 9, 1])
    alone, among = part.batch(torch.tensor([0])), part.batch(torch.tensor([1, 0]))
    assert alone.tokens[0].tolist() == among.tokens[1, :3].tolist()
    assert not among.token_mask[1, 3:].any()


def test_the_arrays_of_a_batch_are_its_own():
    series = ragged([np.array([[1.0], [np.nan]])], np.float32)
    SequenceSet(np.array([0]), 5, series=series).batch().past.fill_(9)
    assert np.isnan(series.values[1, 0])
    assert series.values[0, 0] == 1


@given(
    lengths=st.lists(st.integers(0, 30), min_size=1, max_size=200),
    size=st.integers(1, 9),
    bucketing=st.booleans(),
    seed=st.integers(0, 9),
)
@settings(max_examples=50)
def test_each_pass_has_every_example_once(lengths, size, bucketing, seed):
    part = texts(lengths, bucketing=bucketing)
    count = -(-len(lengths) // size)
    drawn = list(islice(part.passes(size, np.random.default_rng(seed)), 2 * count))
    for each in (drawn[:count], drawn[count:]):
        assert sorted(np.concatenate(each).tolist()) == list(range(len(lengths)))
        assert sorted(map(len, each))[1:] == [size] * (count - 1)
    again = islice(part.passes(size, np.random.default_rng(seed)), 2 * count)
    assert all(np.array_equal(a, b) for a, b in zip(drawn, again, strict=True))
    held = [batch.series for batch in part.batches(size)]
    assert sorted(torch.cat(held).tolist()) == list(range(len(lengths)))
    in_order = torch.cat(held).tolist()
    if bucketing:
        assert [lengths[place] for place in in_order] == sorted(lengths, reverse=True)
    else:
        assert in_order == list(range(len(lengths)))


def test_bucketing_saves_most_of_the_padding():
    lengths = np.random.default_rng(0).geometric(0.05, size=5000)
    part = texts(lengths)
    padding = part.padding(32, np.random.default_rng(0))
    assert padding.bucketed < 0.1  # a long tail, and three pools
    assert padding.shuffled > 0.6
    equal = texts(np.full(70, 7)).padding(16, np.random.default_rng(0))
    assert (equal.bucketed, equal.shuffled) == (0, 0)


def test_padding_is_what_the_masks_of_the_batches_say():
    part = texts(np.random.default_rng(1).integers(0, 20, size=150), bucketing=False)
    share = part.padding(16, np.random.default_rng(5)).bucketed
    bucketed = SequenceSet(part.index, part.lookback, tokens=part.tokens)
    batches = [part.batch(torch.from_numpy(b)) for b in islice(bucketed.passes(16, np.random.default_rng(5)), 10)]
    real = sum(int(batch.token_mask.sum()) for batch in batches)
    assert share == pytest.approx(1 - real / sum(batch.tokens.numel() for batch in batches))


def test_thin_is_evenly_spaced_and_shares_the_arrays():
    part = SequenceSet(np.arange(100, 200), 5, tokens=ragged([[4]] * 200))
    thinned = part.thin(4)
    assert thinned.index.tolist() == [100, 133, 166, 199]
    assert thinned.tokens is part.tokens
    assert part.thin(100) is part
    assert thinned.batch().series.tolist() == [0, 1, 2, 3]


def test_64_texts_are_gathered_in_little_time():
    part = texts(np.random.default_rng(0).integers(1, 100, size=35_000))
    chosen = torch.arange(0, 35_000, 500)[:64]
    part.batch(chosen)
    seconds = []
    for _ in range(20):
        start = time.perf_counter()
        part.batch(chosen)
        seconds.append(time.perf_counter() - start)
    assert min(seconds) < 0.002


def test_lookback_is_all_up_to_512():
    assert lookback_for(np.array([3, 40])) == 40
    assert lookback_for(np.array([3, 4000])) == 512
    assert lookback_for(np.array([0])) == 1
    assert cut_note(np.array([3, 40]), 40, texts=True) is None
    note = cut_note(np.array([3, 40, 41]), 39, texts=True)
    assert note == "2 of 3 texts have more than 39 tokens; the first 39 are seen: raise --lookback to see more"
    assert "more than 2 steps; the last 2" in cut_note(np.array([3]), 2, texts=False)
