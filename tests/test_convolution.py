"""Causal convolutions, strides and patches."""

import math

import pytest
import torch
import torch.nn.functional as F

from tsformer.nn.convolution import CausalConv1d, Patches, TemporalBlock, shorten

CLOSE = {"atol": 1e-5, "rtol": 1e-5}


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


@pytest.mark.parametrize("dilation", [1, 2, 4])
def test_equals_conv1d_on_a_padded_series(dilation: int) -> None:
    ours, x = CausalConv1d(3, 5, kernel=3, dilation=dilation), torch.randn(2, 11, 3)
    padded = F.pad(x.transpose(1, 2), (2 * dilation, 0))
    expected = F.conv1d(padded, ours.convolution.weight, ours.convolution.bias, dilation=dilation)
    torch.testing.assert_close(ours(x), expected.transpose(1, 2), **CLOSE)


@pytest.mark.parametrize("time", [1, 4, 9, 10, 11, 12])
@pytest.mark.parametrize(("kernel", "stride"), [(1, 4), (3, 1), (3, 2), (4, 4), (8, 4)])
def test_strides_count_back_from_the_last_step(time: int, kernel: int, stride: int) -> None:
    strided = CausalConv1d(2, 4, kernel, stride=stride)
    dense = CausalConv1d(2, 4, kernel)
    dense.load_state_dict(strided.state_dict())
    x = torch.randn(2, time, 2)
    kept = list(range(time - 1, -1, -stride))[::-1]
    output = strided(x)
    assert output.shape[1] == math.ceil(time / stride)
    torch.testing.assert_close(output, dense(x)[:, kept], **CLOSE)


@pytest.mark.parametrize("step", [0, 4, 9])
def test_a_block_is_causal(step: int) -> None:
    block, x = TemporalBlock(4, kernel=3, dilation=2), torch.randn(2, 10, 4)
    before = block(x)
    x[:, step] += 1.0
    changed = (block(x) - before).abs().amax((0, 2)) > 1e-6
    assert not changed[:step].any()
    assert changed[step]


def test_a_block_reaches_as_far_as_its_dilation_says() -> None:
    block = TemporalBlock(4, kernel=3, dilation=2)
    for convolution in block.convolutions:  # positive, so that no ReLU hides the way
        torch.nn.init.constant_(convolution.convolution.weight, 0.1)
    x = torch.ones(1, 20, 4, requires_grad=True)
    block(x)[0, -1].sum().backward()
    reached = x.grad[0].abs().amax(-1).nonzero().flatten()
    assert reached.tolist() == [11, 13, 15, 17, 19]  # two convolutions of 2 taps back each, 2 steps apart


@pytest.mark.parametrize("padding", [1, 2, 3, 4, 7])
def test_padding_shifts_nothing(padding: int) -> None:
    patches, block = Patches(2, 6, stride=4), TemporalBlock(6, kernel=3, dilation=1)
    x = torch.randn(2, 10, 2)
    short, short_mask = patches(x, torch.ones(2, 10, dtype=torch.bool))
    padded = F.pad(x, (0, 0, padding, 0), value=math.nan)
    mask = F.pad(torch.ones(2, 10, dtype=torch.bool), (padding, 0))
    long, long_mask = patches(padded, mask)
    assert short_mask.all()
    assert long_mask.sum(1).tolist() == [3, 3]
    torch.testing.assert_close(long[:, -3:], short, **CLOSE)
    torch.testing.assert_close(block(long, long_mask)[:, -3:], block(short, short_mask), **CLOSE)
    assert torch.equal(block(long, long_mask)[:, :-3], torch.zeros(2, long.shape[1] - 3, 6))


def test_a_block_masks_again_between_its_convolutions() -> None:
    block = TemporalBlock(3, kernel=3, dilation=1)
    torch.nn.init.constant_(block.convolutions[0].convolution.bias, 5.0)
    x, mask = torch.randn(1, 8, 3), torch.arange(8)[None] >= 4
    torch.testing.assert_close(block(x, mask)[:, 4:], block(x[:, 4:]), **CLOSE)


def test_shorten() -> None:
    mask = torch.tensor([[0, 0, 1, 1, 1, 1, 1], [0, 0, 0, 0, 0, 0, 1], [1, 0, 0, 0, 0, 0, 0]], dtype=torch.bool)
    expected = torch.tensor([[0, 1, 1], [0, 0, 1], [1, 0, 0]], dtype=torch.bool)
    assert torch.equal(shorten(mask, 3), expected)
    assert torch.equal(shorten(mask, 1), mask)


def test_stride_one_is_a_linear_embedding() -> None:
    patches, x = Patches(3, 5, stride=1), torch.randn(2, 4, 3)
    convolution = patches.convolution.convolution
    expected = F.linear(x, convolution.weight[..., 0], convolution.bias)
    torch.testing.assert_close(patches(x, torch.ones(2, 4, dtype=torch.bool))[0], expected, **CLOSE)


def test_patches_skip_no_steps() -> None:
    with pytest.raises(ValueError, match="would skip steps"):
        Patches(1, 4, stride=4, kernel=3)
