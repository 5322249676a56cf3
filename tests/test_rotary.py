"""Rotary positions: as complex numbers, and only the distance counts."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from tsformer.nn.rotary import RotaryPositions


def turned(x: Tensor, steps: Tensor) -> Tensor:
    """Su et al. 2021, equation 12 for each pair: f(x, m) = x e^(i m theta)."""
    d_head = x.shape[-1]
    theta = 10_000.0 ** (-2 * torch.arange(d_head // 2, dtype=torch.float64) / d_head)
    pairs = torch.view_as_complex(x.double().unflatten(-1, (-1, 2)))
    angles = steps.double()[..., None] * theta
    return torch.view_as_real(pairs * torch.polar(torch.ones_like(angles), angles)).flatten(-2).float()


@pytest.mark.parametrize("d_head", [2, 6, 16])
@pytest.mark.parametrize("offset", [0, 5, 1000])
def test_equals_complex_numbers(d_head: int, offset: int) -> None:
    torch.manual_seed(0)
    x = torch.randn(2, 3, 7, d_head)
    expected = turned(x, torch.arange(offset, offset + 7))
    torch.testing.assert_close(RotaryPositions(d_head)(x, offset=offset), expected, atol=1e-5, rtol=1e-5)


@given(m=st.integers(0, 2000), n=st.integers(0, 2000), shift=st.integers(0, 2000), seed=st.integers(0, 1000))
def test_products_depend_on_the_distance_only(m: int, n: int, shift: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    query, key = torch.randn(2, 1, 1, 1, 8, generator=generator)
    rotary = RotaryPositions(8)

    def product(m: int, n: int) -> Tensor:
        return (rotary(query, offset=m) * rotary(key, offset=n)).sum()

    torch.testing.assert_close(product(m + shift, n + shift), product(m, n), atol=1e-5, rtol=1e-5)


def test_lengths_stay() -> None:
    x = torch.randn(2, 3, 9, 8)
    torch.testing.assert_close(RotaryPositions(8)(x).norm(dim=-1), x.norm(dim=-1))


def test_real_steps_are_counted() -> None:
    x, mask = torch.randn(2, 3, 5, 8), torch.tensor([[False, False, True, False, True], [True] * 5])
    rotary = RotaryPositions(8)
    found = rotary(x, mask)
    torch.testing.assert_close(found[0, :, 2], x[0, :, 2])
    torch.testing.assert_close(found[0, :, 4], turned(x[0, :, 4], torch.tensor(1)))
    assert torch.equal(found[1], rotary(x)[1])
    assert torch.equal(rotary(x[:, :, 3:], mask, offset=3), found[:, :, 3:])


def test_is_not_saved() -> None:
    rotary = RotaryPositions(8)
    rotary(torch.zeros(1, 1, 5, 8))
    assert rotary.state_dict() == {}


def test_an_odd_head_is_refused() -> None:
    with pytest.raises(ValueError, match="even d_model / n_heads, not 5"):
        RotaryPositions(5)
