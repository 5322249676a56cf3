"""Relative positions: T5's buckets by its published formula, and distances in real steps."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from tsformer.nn import attention, layers
from tsformer.nn.layers import Decoder, Encoder, LayerSpec
from tsformer.nn.relative import RelativeBias, bucket, buckets_between

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


def test_buckets_need_no_float64() -> None:
    with Dtypes() as seen:
        bucket(torch.arange(-200, 200), True)
        bucket(torch.arange(-200, 200), False)
    assert torch.int64 in seen.dtypes
    assert torch.float64 not in seen.dtypes  # which MPS has not


class Dtypes(TorchDispatchMode):
    """Notes the types of all tensors that come out of an operation."""

    def __init__(self) -> None:
        super().__init__()
        self.dtypes: set[torch.dtype] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        self.dtypes |= {part.dtype for part in tree_leaves(result) if isinstance(part, Tensor)}
        return result


@pytest.mark.parametrize("gap", [False, True])
def test_a_stack_finds_its_buckets_once(monkeypatch: pytest.MonkeyPatch, gap: bool) -> None:
    calls = []

    def counted(*arguments: Any, **options: Any) -> Tensor:
        calls.append(arguments)
        return buckets_between(*arguments, **options)

    for module in (layers, attention):
        monkeypatch.setattr(module, "buckets_between", counted)
    spec = LayerSpec(8, 2, 8, positions="relative")
    encoder, decoder = Encoder(3, spec).eval(), Decoder(3, spec).eval()
    x, mask = torch.randn(2, 7, 8), torch.cat([row("..xxxxx"), row("xx.x.xx" if gap else "xxxxxxx")])
    together = encoder(x, mask)
    assert len(calls) == 1
    alone = torch.where(mask[..., None], x, 0.0)
    for layer in encoder.layers:
        alone = layer(alone, mask)  # each finds them for itself
    torch.testing.assert_close(together[mask], encoder.norm(alone)[mask])
    assert len(calls) == 4
    caches = decoder.caches()
    steps = torch.cat([decoder(x[:, step : step + 1], together, mask, caches=caches) for step in range(7)], 1)
    assert len(calls) == 4 + 7
    torch.testing.assert_close(steps, decoder(x, together, mask), atol=1e-5, rtol=1e-5)
    assert len(calls) == 4 + 7 + 1


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


@pytest.mark.parametrize("causal", [False, True])
def test_each_pair_gets_its_bucket(causal: bool) -> None:
    bias = RelativeBias(2)
    found = bias(buckets_between(3, 40, causal))
    assert found.shape == (1, 2, 3, 40)
    for query in range(3):
        for key in range(40):
            row = published(key - (37 + query), not causal, 32, 128)
            assert torch.equal(found[0, :, query, key], bias.table[row])


def row(text: str) -> Tensor:
    return torch.tensor([[letter == "x" for letter in text]])


def test_padding_shifts_nothing_and_a_gap_is_no_step() -> None:
    bias = RelativeBias(2)
    alone = bias(buckets_between(5, 5, False))
    mask = torch.cat([row("..xxxxx"), row("xx.x.xx"), row("xxxxx..")])
    found = bias(buckets_between(7, 7, False, mask))
    assert len(found) == 3
    for index in range(3):
        real = mask[index].nonzero()[:, 0]
        assert torch.equal(found[index][:, real][:, :, real], alone[0])


def test_without_gaps_all_rows_share_one_bias() -> None:
    mask = torch.cat([row("..xxxxx"), row("xxxxx.."), row(".......")])
    assert buckets_between(7, 7, False, mask).shape == (1, 7, 7)
