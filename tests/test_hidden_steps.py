"""Hidden steps: a share of what is real and nothing else, the same for validation, others in each training step."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tsformer.data.hidden_steps import HiddenSteps
from tsformer.data.ragged import ragged
from tsformer.data.sequence_set import SequenceSet
from tsformer.data.windows import Windows, cut_windows


def texts(lengths):
    return SequenceSet(np.arange(len(lengths)), 10_000, tokens=ragged([np.full(length, 4) for length in lengths]))


def series(lengths):
    values = [np.ones((length, 2)) for length in lengths]
    return SequenceSet(np.arange(len(lengths)), 10_000, series=ragged(values, np.float32))


def stretches(row):
    """Lengths of the runs of True."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], row.astype(int), [0]])))
    return edges[1::2] - edges[::2]


def without_padding(batch, mask):
    """What is hidden of each example, by its place, for comparing batches of other padding."""
    real = mask.reshape(*mask.shape[:2], -1).any(-1)
    return {int(place): batch.hidden[i][real[i]].tolist() for i, place in enumerate(batch.series)}


@given(
    lengths=st.lists(st.integers(0, 40), min_size=1, max_size=10),
    share=st.floats(0.01, 0.99),
    span=st.floats(1, 20),
    fresh=st.booleans(),
    kind=st.sampled_from([texts, series]),
)
def test_the_share_of_the_real_steps_is_hidden_one_at_least(lengths, share, span, fresh, kind):
    batch = HiddenSteps(kind(lengths), share, span, np.random.default_rng(1) if fresh else 1).batch()
    mask = batch.token_mask if batch.past is None else batch.past_mask.all(-1)
    assert batch.hidden.shape == mask.shape
    assert batch.hidden.dtype == torch.bool
    assert not batch.hidden[~mask].any()
    for hidden, length in zip(batch.hidden.sum(1).tolist(), lengths, strict=True):
        expected = min(max(round(share * length), 1), max(1, length - 1)) if length else 0
        assert hidden == expected


@pytest.mark.parametrize("kind", [texts, series])
def test_validation_hides_the_same_steps_whatever_the_batch(kind):
    examples = kind([5, 30, 0, 12, 7, 19])
    hiding = HiddenSteps(examples, 0.3, 3.0, 7)
    whole = hiding.batch()
    mask = whole.token_mask if whole.past is None else whole.past_mask
    expected = without_padding(whole, mask)
    for size in (1, 2, 4):
        found = {}
        for batch in hiding.batches(size):
            found |= without_padding(batch, batch.token_mask if batch.past is None else batch.past_mask)
        assert found == expected
    other = HiddenSteps(examples, 0.3, 3.0, 8).batch()
    assert not torch.equal(other.hidden, whole.hidden)


def test_windows_are_told_apart_by_their_origin():
    values = torch.arange(60.0)[:, None]
    windows = cut_windows(
        values, np.array([0, 30, 60]), np.array([10, 10]), np.array([30, 30]), lookback=20, horizon=1, targets=1
    )
    hiding = HiddenSteps(windows, 0.2, 3.0, 0)
    whole = hiding.batch()
    assert len({tuple(row) for row in whole.hidden.tolist()}) > len(windows) / 2
    assert not whole.hidden[~whole.past_mask.any(-1)].any()
    again = torch.cat([batch.hidden for batch in hiding.batches(7)])
    assert torch.equal(again, whole.hidden)
    thinned = hiding.thin(5)
    assert isinstance(thinned.examples, Windows)
    places = np.linspace(0, len(windows) - 1, 5).round().astype(int)
    assert torch.equal(thinned.batch().hidden, whole.hidden[places])


def test_training_hides_others_each_time_and_the_same_again_from_the_same_seed():
    examples = series([50] * 4)
    first, second = (HiddenSteps(examples, 0.3, 3.0, np.random.default_rng(0)) for _ in range(2))
    drawn = [first.batch().hidden for _ in range(3)]
    assert not torch.equal(drawn[0], drawn[1])
    assert all(torch.equal(hidden, second.batch().hidden) for hidden in drawn)


@pytest.mark.parametrize("seed", [0, np.random.default_rng(0)])
@pytest.mark.parametrize(("share", "span"), [(0.15, 3.0), (0.15, 10.0), (0.5, 4.0)])
def test_numbers_are_hidden_in_stretches_of_that_mean_length(share, span, seed):
    hidden = HiddenSteps(series([4000] * 30), share, span, seed).batch().hidden.numpy()
    lengths = np.concatenate([stretches(row) for row in hidden])
    assert hidden.mean() == pytest.approx(share, abs=1e-4)
    assert lengths.mean() == pytest.approx(span, rel=0.06)
    assert lengths.var() == pytest.approx(span * (span - 1), rel=0.2)  # geometric


def test_tokens_are_hidden_one_by_one():
    hidden = HiddenSteps(texts([4000] * 30), 0.15, 3.0, 0).batch().hidden.numpy()
    lengths = np.concatenate([stretches(row) for row in hidden])
    assert lengths.mean() == pytest.approx(1 / 0.85, rel=0.02)  # as chance has it


@pytest.mark.parametrize("seed", [3, np.random.default_rng(3)])
def test_every_step_is_hidden_equally_often(seed):
    """The steps beside the padding and beside a gap, too."""
    values = np.ones((20, 1))
    values[8:12] = np.nan
    examples = SequenceSet(np.arange(4000), 99, series=ragged([values] * 3999 + [np.ones((25, 1))], np.float32))
    hidden = HiddenSteps(examples, 0.25, 3.0, seed).batch().hidden[:-1].numpy()
    shares = hidden.mean(axis=0)
    assert not shares[:5].any()  # padding
    assert not shares[13:17].any()  # missing
    np.testing.assert_allclose(shares[[*range(5, 13), *range(17, 25)]], 0.25, atol=0.035)


def test_a_step_with_numbers_and_a_text_is_hidden_as_a_whole():
    part = SequenceSet(
        np.arange(1),
        9,
        series=ragged([np.array([[np.nan], [1.0], [np.nan]])], np.float32),
        tokens=ragged([[], [], [5, 6]]),
        text_length=4,
    )
    drawn = HiddenSteps(part, 0.5, 1.0, np.random.default_rng(0))
    hidden = torch.cat([drawn.batch().hidden for _ in range(50)])
    assert hidden.any(0).tolist() == [False, True, True]
    assert (hidden.sum(1) == 1).all()
    assert drawn.batch().past.tolist() == part.batch().past.tolist()
