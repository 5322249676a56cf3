"""Pooling: hand-computed values, what padding must not change, and rows without anything real."""

import math

import pytest
import torch

from tsformer.nn.pooling import POOLINGS, Pooling, PoolingKind

MASK = torch.tensor([[False, True, True, True], [True, True, False, True], [False, False, False, True]])


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


def _pooling(kind: PoolingKind, d_model: int = 5) -> Pooling:
    """With a query that is not zero, so that tokens weigh differently."""
    pooling = Pooling(kind, d_model)
    for parameter in pooling.parameters():
        torch.nn.init.normal_(parameter)
    return pooling


def test_by_hand() -> None:
    memory = torch.tensor([[[9.0, 9.0], [1.0, -4.0], [3.0, -2.0]]])
    mask = torch.tensor([[False, True, True]])
    assert Pooling("mean", 2)(memory, mask).tolist() == [[2.0, -3.0]]
    assert Pooling("max", 2)(memory, mask).tolist() == [[3.0, -2.0]]  # and not the 0 of a zeroed padding
    assert Pooling("cls", 2)(memory, mask).tolist() == [[3.0, -2.0]]
    attentive = Pooling("attention", 2)
    torch.testing.assert_close(attentive(memory, mask), torch.tensor([[2.0, -3.0]]))  # starts as the mean
    attentive.query.data = torch.tensor([math.sqrt(2.0), 0.0])  # scores 1 and 3
    first = 1.0 / (1.0 + math.exp(2.0))
    expected = [[first * 1.0 + (1.0 - first) * 3.0, first * -4.0 + (1.0 - first) * -2.0]]
    torch.testing.assert_close(attentive(memory, mask), torch.tensor(expected))


@pytest.mark.parametrize("kind", POOLINGS)
def test_equals_pooling_the_real_tokens_alone(kind: PoolingKind) -> None:
    pooling, memory = _pooling(kind), torch.randn(3, 4, 5)
    pooled = pooling(memory, MASK)
    for row, (tokens, real) in enumerate(zip(memory, MASK, strict=True)):
        alone = tokens[real][None]
        expected = pooling(alone, torch.ones(1, alone.shape[1], dtype=torch.bool))
        torch.testing.assert_close(pooled[row : row + 1], expected, atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("kind", POOLINGS)
def test_more_padding_changes_nothing(kind: PoolingKind) -> None:
    pooling, memory = _pooling(kind), torch.randn(3, 4, 5)
    padded = torch.cat([torch.full((3, 6, 5), 1e6), memory], dim=1)
    mask = torch.cat([torch.zeros(3, 6, dtype=torch.bool), MASK], dim=1)
    torch.testing.assert_close(pooling(padded, mask), pooling(memory, MASK), atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("kind", POOLINGS)
def test_nan_behind_the_mask_changes_neither_value_nor_gradient(kind: PoolingKind) -> None:
    pooling, clean = _pooling(kind), torch.randn(3, 4, 5)
    results = []
    for behind in (0.0, math.nan, math.inf):
        memory = torch.where(MASK[..., None], clean, behind).requires_grad_()
        pooling.zero_grad()
        pooled = pooling(memory, MASK)
        pooled.square().sum().backward()
        results.append((pooled.detach(), memory.grad, *(parameter.grad.clone() for parameter in pooling.parameters())))
    for spoilt in results[1:]:
        for ours, expected in zip(spoilt, results[0], strict=True):
            assert torch.equal(ours, expected)
    assert (results[0][1][~MASK] == 0).all()


@pytest.mark.parametrize("behind", [0.0, math.nan])
@pytest.mark.parametrize("kind", POOLINGS)
def test_nothing_real_gives_zeros_and_finite_gradients(kind: PoolingKind, behind: float) -> None:
    pooling = _pooling(kind)
    memory, mask = torch.randn(2, 4, 5), torch.ones(2, 4, dtype=torch.bool)
    memory[0], mask[0] = behind, False
    pooled = pooling(memory.requires_grad_(), mask)
    pooled.sum().backward()
    assert (pooled[0] == 0).all()
    assert (memory.grad[0] == 0).all()
    assert memory.grad[1].abs().sum() > 0
    assert all(parameter.grad.isfinite().all() for parameter in pooling.parameters())


def test_the_query_learns_from_its_start_at_zero() -> None:
    pooling = Pooling("attention", 5)
    pooling(torch.randn(3, 4, 5), MASK).square().sum().backward()
    assert (pooling.query.grad != 0).all()


@pytest.mark.parametrize("kind", POOLINGS)
def test_gradients_are_those_of_finite_differences(kind: PoolingKind) -> None:
    pooling = _pooling(kind).double()
    memory = torch.randn(3, 4, 5, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda memory: pooling(memory, MASK), memory)


def test_an_unknown_kind_is_named() -> None:
    with pytest.raises(ValueError, match="unknown pooling 'sum'; known: mean, cls, max, attention"):
        Pooling("sum", 4)
