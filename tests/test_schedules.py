"""Schedules against torch's own, the papers' formulas, and figures by hand."""

import itertools
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.optim.lr_scheduler import CosineAnnealingLR, LambdaLR, LinearLR, LRScheduler, SequentialLR

from tsformer.training.schedules import ema_decay, rate, truth

STEPS, WARMUP = 100, 10
TRUTHS = ["linear", "exponential", "inverse_sigmoid", "constant"]


def rates(schedule, steps=STEPS, warmup=WARMUP):
    return [rate(schedule, step, steps, warmup) for step in range(steps)]


def truths(schedule, steps=101, start=1.0, end=0.0, decay=10.0):
    return [truth(schedule, step, steps, start, end, decay) for step in range(steps)]


def afterwards(schedule, optimizer) -> LRScheduler:
    left = STEPS - WARMUP
    if schedule == "cosine":
        return CosineAnnealingLR(optimizer, left)
    if schedule == "linear":
        return LinearLR(optimizer, 1.0, 0.0, left)
    return LambdaLR(optimizer, lambda step: 1.0)


@pytest.mark.parametrize("schedule", ["cosine", "linear", "constant"])
def test_rate_equals_torch(schedule):
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    warmup = LinearLR(optimizer, 1 / WARMUP, 1.0, WARMUP - 1)
    theirs = SequentialLR(optimizer, [warmup, afterwards(schedule, optimizer)], [WARMUP])
    expected = []
    for _ in range(STEPS):
        expected.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        theirs.step()
    assert rates(schedule) == pytest.approx(expected, abs=1e-9)


def test_noam_equals_the_formula_of_the_paper():
    d_model = 512
    paper = [d_model**-0.5 * min(n**-0.5, n * WARMUP**-1.5) for n in range(1, STEPS + 1)]  # equation 3
    assert rates("noam") == pytest.approx([value / max(paper) for value in paper])
    assert rates("noam")[4 * WARMUP - 1] == pytest.approx(0.5)  # after four warm-ups half the rate is left


@pytest.mark.parametrize("schedule", ["cosine", "linear", "noam", "constant"])
def test_rate_begins_above_zero_reaches_one_and_takes_no_step_for_nothing(schedule):
    got = rates(schedule)
    assert got[0] == pytest.approx(1 / WARMUP)
    assert got[WARMUP - 1] == max(got) == 1.0
    assert got[WARMUP - 1 :] == sorted(got[WARMUP - 1 :], reverse=True)
    assert got[-1] > 0.0
    assert rate(schedule, 0, 1, 1) == 1.0


def test_rates_by_hand():
    assert rates("cosine")[55] == pytest.approx(0.5)
    assert rates("linear")[55] == pytest.approx(0.5)
    assert 0 < rates("cosine")[-1] < 0.001
    assert rates("linear")[-1] == pytest.approx(1 / 90)


@given(
    schedule=st.sampled_from(TRUTHS[:3]),
    start=st.floats(0, 1),
    end=st.floats(0, 1),
    steps=st.integers(2, 300),
    decay=st.floats(1e-6, 1000),
)
def test_truth_starts_and_ends_exactly_as_told_and_goes_one_way(schedule, start, end, steps, decay):
    got = truths(schedule, steps, start, end, decay)
    assert (got[0], got[-1]) == (start, end)
    steps_taken = [(after - before) * (1 if end > start else -1) for before, after in itertools.pairwise(got)]
    assert min(steps_taken) > -1e-12


@given(schedule=st.sampled_from(TRUTHS), same=st.floats(0, 1), step=st.integers(0, 99))
def test_truth_that_is_the_same_at_both_ends_stays_exactly_that(schedule, same, step):
    assert truth(schedule, step, 100, same, same, 10.0) == same


def test_constant_truth_stays_at_its_start():
    assert set(truths("constant", start=0.25, end=1.0)) == {0.25}


def test_linear_truth_by_hand():
    assert truths("linear", 5) == pytest.approx([1, 0.75, 0.5, 0.25, 0])
    assert truths("linear", 5, 0.9, 0.1) == pytest.approx([0.9, 0.7, 0.5, 0.3, 0.1])
    assert truths("linear", 3, 0.0, 0.5) == pytest.approx([0, 0.25, 0.5])
    assert truths("linear", 1, 0.3, 0.1) == [0.3]


@pytest.mark.parametrize("decay", [0.5, 5.0, 20.0])
def test_exponential_truth_is_the_paper_s_curve_brought_to_the_ends(decay):
    k = math.exp(-decay / 100)
    paper = [k**i for i in range(101)]  # section 2.4
    expected = [(value - paper[-1]) / (paper[0] - paper[-1]) for value in paper]
    assert truths("exponential", decay=decay) == pytest.approx(expected)


@pytest.mark.parametrize("k", [10.0, 20.0])
def test_inverse_sigmoid_truth_is_the_paper_s_curve_brought_to_the_ends(k):
    steps = round(2 * k * math.log(k))  # over which the paper's curve has its middle, at i = k log k, in the middle
    paper = [k / (k + math.exp((i + k * math.log(k) - steps / 2) / k)) for i in range(steps + 1)]
    expected = [(value - paper[-1]) / (paper[0] - paper[-1]) for value in paper]
    assert truths("inverse_sigmoid", steps + 1, decay=steps / k) == pytest.approx(expected)


def test_shapes_differ_as_they_should():
    linear, exponential, sigmoid = (truths(schedule) for schedule in TRUTHS[:3])
    assert exponential[10] == pytest.approx(math.exp(-1), abs=1e-3)
    assert sigmoid[50] == pytest.approx(0.5)
    assert all(e < straight for e, straight in zip(exponential[1:-1], linear[1:-1], strict=True))
    assert all(s > straight for s, straight in zip(sigmoid[1:50], linear[1:50], strict=True))
    for schedule in TRUTHS[1:3]:
        assert truths(schedule, decay=1e-9) == pytest.approx(linear, abs=1e-6)


def test_ema_decay_by_hand():
    assert [ema_decay(step, 0.999) for step in (0, 8, 80)] == pytest.approx([0.1, 0.5, 0.9])
    assert ema_decay(10_000, 0.999) == 0.999
    assert ema_decay(80, 0.5) == 0.5
