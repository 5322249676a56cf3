"""Relative positions: T5's buckets by its published formula, and distances in real steps."""

import math

import pytest
import torch
from torch import Tensor

from tsformer.nn.relative import RelativeBias, bucket

# From the formula by hand, with 32 buckets and a reach of 128: bounds lie at 8 * 16^(k/8) and 16 * 8^(k/16).
BOTH_WAYS = {0: 0, -1: 1, -7: 7, -8: 8, -11: 8, -12: 9, -15: 9, -16: 10, -22: 10, -23: 11, -32: 12, -45: 12, -46: 13}
BOTH_WAYS |= {-64: 14, -90: 14, -91: 15, -128: 15, -5000: 15, 1: 17, 7: 23, 8: 24, 16: 26, 64: 30, 128: 31, 5000: 31}
CAUSAL = {0: 0, -1: 1, -15: 15, -16: 16, -18: 16, -19: 17, -31: 21, -32: 21, -64: 26, -100: 30, -112: 30, -113: 31}
CAUSAL |= {-128: 31, -5000: 31, 1: 0, 7: 0, 5000: 0}


def published(distance: int, bidirectional: bool, buckets: int, reach: int) -> int:
    """Raffel et al. 2020, as in the authors' code, for one number."""
    first, near = 0, -distance
    if bidirectional:
        buckets //= 2
        if near < 0:
            first, near = buckets, -near
    else:
        near = max(near, 0)
    exact = buckets // 2
    if near < exact:
        return first + near
    share = math.log(near / exact) / math.log(reach / exact)
    return first + min(exact + int(share * (buckets - exact)), buckets - 1)


@pytest.mark.parametrize(("bidirectional", "expected"), [(True, BOTH_WAYS), (False, CAUSAL)])
def test_buckets_by_hand(bidirectional: bool, expected: dict[int, int]) -> None:
    found = bucket(torch.tensor(list(expected)), bidirectional)
    assert dict(zip(expected, found.tolist(), strict=True)) == expected


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize(("buckets", "reach"), [(32, 128), (16, 40), (8, 1000)])
def test_buckets_by_the_published_formula(bidirectional: bool, buckets: int, reach: int) -> None:
    distance = torch.arange(-2 * reach, 2 * reach + 1)
    expected = [published(int(d), bidirectional, buckets, reach) for d in distance]
    assert bucket(distance, bidirectional, buckets, reach).tolist() == expected


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


@pytest.mark.parametrize("causal", [False, True])
def test_each_pair_gets_its_bucket(causal: bool) -> None:
    bias = RelativeBias(2)
    found = bias(3, 40, causal)
    assert found.shape == (1, 2, 3, 40)
    for query in range(3):
        for key in range(40):
            row = published(key - (37 + query), not causal, 32, 128)
            assert torch.equal(found[0, :, query, key], bias.table[row])


def row(text: str) -> Tensor:
    return torch.tensor([[letter == "x" for letter in text]])


def test_padding_shifts_nothing_and_a_gap_is_no_step() -> None:
    bias = RelativeBias(2)
    alone = bias(5, 5, False)
    mask = torch.cat([row("..xxxxx"), row("xx.x.xx"), row("xxxxx..")])
    found = bias(7, 7, False, mask)
    assert len(found) == 3
    for index in range(3):
        real = mask[index].nonzero()[:, 0]
        assert torch.equal(found[index][:, real][:, :, real], alone[0])


def test_without_gaps_all_rows_share_one_bias() -> None:
    assert RelativeBias(2)(7, 7, False, torch.cat([row("..xxxxx"), row("xxxxx.."), row(".......")])).shape == (
        1,
        2,
        7,
        7,
    )
