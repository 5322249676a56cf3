"""Dropout: rate, scale, independence, and where its randomness comes from."""

import pytest
import torch

from tsformer.nn.dropout import Dropout


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_rate_and_scale(p: float) -> None:
    x = torch.ones(1000, 999)
    y = Dropout(p)(x)
    rate = round(p * 256) / 256
    assert (y == 0).double().mean().item() == pytest.approx(rate, abs=0.002)
    torch.testing.assert_close(y[y != 0].unique(), torch.tensor([1 / (1 - rate)]))
    assert y.double().mean().item() == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize("p", [0.05, 0.4])
def test_every_byte_position_drops_alike(p: float) -> None:
    dropped = (Dropout(p)(torch.ones(200_000, 8)) == 0).double()
    rate = round(p * 256) / 256
    torch.testing.assert_close(dropped.mean(0), torch.full((8,), rate, dtype=torch.float64), atol=0.006, rtol=0)
    correlation = torch.corrcoef(dropped.T) - torch.eye(8, dtype=torch.float64)
    assert correlation.abs().max().item() < 0.015


def test_the_gradient_sees_the_same_mask() -> None:
    x = torch.ones(7, 13, requires_grad=True)
    y = Dropout(0.3)(x)
    y.sum().backward()
    assert torch.equal(x.grad, y.detach())
    assert 0 < (y == 0).sum() < y.numel()


def test_nothing_to_do_is_identity() -> None:
    x = torch.randn(5, 3)
    assert Dropout(0.9).eval()(x) is x
    assert Dropout(0.0)(x) is x
    assert Dropout(0.001)(x) is x


def test_randomness_is_torchs_own() -> None:
    dropout, x = Dropout(0.5), torch.ones(50, 50)
    with torch.random.fork_rng():
        torch.manual_seed(5)
        first = dropout(x)
    before = torch.get_rng_state()
    with torch.random.fork_rng():
        torch.manual_seed(5)
        second = dropout(x)
    assert torch.equal(first, second)
    assert torch.equal(torch.get_rng_state(), before)
    assert not torch.equal(dropout(x), first)


def test_a_transposed_input_and_other_precisions() -> None:
    for dtype in (torch.float64, torch.bfloat16):
        y = Dropout(0.5)(torch.ones(6, 40, dtype=dtype).T)
        assert y.shape == (40, 6)
        assert y.dtype == dtype
        assert set(y.unique().tolist()) == {0.0, 2.0}


def test_something_is_always_kept() -> None:
    assert Dropout(0.999)(torch.ones(100_000)).count_nonzero() > 0


@pytest.mark.parametrize("p", [-0.1, 1.0, float("nan")])
def test_rate_is_checked(p: float) -> None:
    with pytest.raises(ValueError, match="dropout must be in"):
        Dropout(p)
