"""RevIN: statistics under a mask, and the way back."""

import math

import pytest
import torch

from tsformer.nn.normalisation import RevIN


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


def random_revin(affine: bool, channels: int = 3) -> RevIN:
    revin = RevIN(channels, affine=affine)
    for parameter in revin.parameters():
        torch.nn.init.normal_(parameter)
    return revin


@pytest.mark.parametrize("affine", [False, True])
def test_the_way_back(affine: bool) -> None:
    revin = random_revin(affine)
    past = 50 + 7 * torch.randn(4, 12, 3)
    scale, shift = revin.statistics(past, torch.ones_like(past, dtype=torch.bool))
    assert scale.shape == shift.shape == (4, 1, 3)
    normalised = revin.normalise(past, scale, shift)
    torch.testing.assert_close(normalised * scale + shift, past, atol=1e-3, rtol=1e-5)
    if affine:
        normalised = (normalised - revin.bias) / revin.log_weight.exp()  # equation 2 of the paper, undone
    torch.testing.assert_close(normalised.mean(1), torch.zeros(4, 3), atol=1e-4, rtol=0)
    torch.testing.assert_close(normalised.std(1, unbiased=False), torch.ones(4, 3), atol=1e-4, rtol=0)


@pytest.mark.parametrize("affine", [False, True])
def test_only_real_steps_count(affine: bool) -> None:
    revin = random_revin(affine)
    past = torch.randn(2, 10, 3)
    mask = torch.ones_like(past, dtype=torch.bool)
    mask[0, :4] = False
    mask[1, 5, 1] = False
    dirty = torch.where(mask, past, math.nan)
    scale, shift = revin.statistics(dirty, mask)
    for row, channel in ((0, 0), (0, 2), (1, 1), (1, 0)):
        real = past[row, mask[row, :, channel], channel][None, :, None].expand(1, -1, 3)
        expected = revin.statistics(real, torch.ones_like(real, dtype=torch.bool))
        torch.testing.assert_close(scale[row, 0, channel], expected[0][0, 0, channel])
        torch.testing.assert_close(shift[row, 0, channel], expected[1][0, 0, channel])
    (scale.sum() + shift.sum()).backward() if affine else None
    assert all(p.grad.isfinite().all() for p in revin.parameters())


def test_a_constant_window_is_only_shifted() -> None:
    past = torch.full((1, 8, 1), 1000.1)
    scale, shift = RevIN(1).statistics(past, torch.ones_like(past, dtype=torch.bool))
    assert scale.item() == 1.0
    assert shift.item() == pytest.approx(1000.1, rel=1e-6)


def test_a_window_without_real_steps_is_left_alone() -> None:
    past = torch.full((1, 8, 2), math.nan)
    scale, shift = RevIN(2).statistics(past, torch.zeros_like(past, dtype=torch.bool))
    assert torch.equal(scale, torch.ones(1, 1, 2))
    assert torch.equal(shift, torch.zeros(1, 1, 2))
