"""Attention: against torch's own, and where torch's own fails."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tsformer.nn.attention import KeyValueCache, MultiHeadAttention, attention, attention_with_weights


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


def theirs(ours: MultiHeadAttention, d_model: int) -> nn.MultiheadAttention:
    """torch's module with the same weights."""
    module = nn.MultiheadAttention(d_model, ours.n_heads, batch_first=True)
    with torch.no_grad():
        parts = (ours.query, ours.key, ours.value)
        module.in_proj_weight.copy_(torch.cat([part.weight for part in parts]))
        module.in_proj_bias.copy_(torch.cat([part.bias for part in parts]))
        module.out_proj.weight.copy_(ours.output.weight)
        module.out_proj.bias.copy_(ours.output.bias)
    return module


def padded(batch: int, keys: int) -> Tensor:
    """Left padding of a different length in each row; the first row has none."""
    return torch.arange(keys)[None] >= torch.arange(batch)[:, None]


@pytest.mark.parametrize("cross", [False, True])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("need_weights", [False, True])
def test_equals_torch(cross: bool, masked: bool, need_weights: bool) -> None:
    ours = MultiHeadAttention(16, 4)
    query = torch.randn(3, 6, 16)
    memory = torch.randn(3, 9, 16) if cross else None
    source = query if memory is None else memory
    mask = padded(3, source.shape[1]) if masked else None
    output, weights = ours(query, memory, mask, need_weights=need_weights)
    expected, expected_weights = theirs(ours, 16)(
        query, source, source, key_padding_mask=None if mask is None else ~mask, average_attn_weights=False
    )
    # In self-attention a masked step asks as well, and the two zero its question or not: nobody reads the answer.
    real = mask if masked and not cross else torch.ones(3, 6, dtype=torch.bool)
    torch.testing.assert_close(output[real], expected[real], atol=1e-5, rtol=1e-5)
    if need_weights:
        weights, expected_weights = weights.transpose(1, 2), expected_weights.transpose(1, 2)
        torch.testing.assert_close(weights[real], expected_weights[real], atol=1e-5, rtol=1e-5)
    else:
        assert weights is None


@pytest.mark.parametrize("need_weights", [False, True])
def test_causal_equals_torch(need_weights: bool) -> None:
    ours = MultiHeadAttention(16, 2)
    x = torch.randn(2, 7, 16)
    output, _ = ours(x, causal=True, need_weights=need_weights)
    future = torch.ones(7, 7, dtype=torch.bool).triu(1)
    torch.testing.assert_close(output, theirs(ours, 16)(x, x, x, attn_mask=future)[0], atol=1e-5, rtol=1e-5)


def test_true_means_may_attend() -> None:
    query, key = torch.randn(1, 1, 2, 4), torch.randn(1, 1, 3, 4)
    value = torch.tensor([[1.0], [10.0], [100.0]])[None, None]
    mask = torch.tensor([[False, True, False]])
    for output in (attention(query, key, value, mask), attention_with_weights(query, key, value, mask)[0]):
        torch.testing.assert_close(output, torch.full((1, 1, 2, 1), 10.0))


def test_weights_by_hand() -> None:
    query, key = torch.tensor([[[[1.0, 0.0]]]]), torch.tensor([[[[2.0, 5.0], [0.0, 5.0]]]])
    weights = attention_with_weights(query, key, key)[1]
    odds = math.exp(2 / math.sqrt(2))
    torch.testing.assert_close(weights, torch.tensor([[[[odds / (1 + odds), 1 / (1 + odds)]]]]))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_a_bias_is_added_to_the_scaled_scores(causal: bool, masked: bool) -> None:
    query, key, value = torch.randn(3, 2, 2, 6, 4)
    bias = torch.randn(1, 2, 6, 6, requires_grad=True)
    allowed = torch.ones(6, 6, dtype=torch.bool).tril() if causal else torch.ones(6, 6, dtype=torch.bool)
    mask = padded(2, 6)[:, None, None] if masked else None
    if mask is not None:
        allowed = allowed & mask
    scores = torch.einsum("bhqd,bhkd->bhqk", query, key) / 2 + bias
    odds = scores.exp() * allowed
    expected_weights = odds / odds.sum(-1, keepdim=True).clamp_min(1e-30)
    real = allowed.any(-1).expand(2, 2, 6)
    expected = (expected_weights @ value)[real]
    gradient = torch.autograd.grad(expected.square().sum(), bias)[0]
    found, weights = attention_with_weights(query, key, value, mask, causal, bias)
    torch.testing.assert_close(weights[real], expected_weights[real])
    for output in (found, attention(query, key, value, mask, causal, bias)):
        torch.testing.assert_close(output[real], expected)
        assert not output[~real].any()
        found_gradient = torch.autograd.grad(output[real].square().sum(), bias)[0]
        torch.testing.assert_close(found_gradient, gradient, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("biased", [False, True])
def test_a_fully_masked_row_gives_zeros_and_finite_gradients(causal: bool, biased: bool) -> None:
    shape = (2, 2, 5, 4)
    bias = torch.randn(1, 2, 5, 5, requires_grad=True) if biased else None
    mask = torch.ones(2, 1, 5, 5, dtype=torch.bool)
    mask[0, :, 2] = False
    for function in (attention, lambda *a: attention_with_weights(*a)[0]):
        q, k, v = (torch.randn(shape, requires_grad=True) for _ in range(3))
        output = function(q, k, v, mask, causal, bias)
        assert torch.equal(output[0, :, 2], torch.zeros(2, 4))
        assert output[1].abs().min() > 0
        output.sum().backward()
        for tensor in (q, k, v, *([] if bias is None else [bias])):
            assert tensor.grad is not None
            assert tensor.grad.isfinite().all()
        assert torch.equal(q.grad[0, :, 2], torch.zeros(2, 4))


def test_a_fully_masked_sample_gives_the_bias_of_the_output() -> None:
    ours = MultiHeadAttention(8, 2)
    mask = torch.tensor([[False, False, False], [True, True, True]])
    output, weights = ours(torch.randn(2, 3, 8), mask=mask, need_weights=True)
    torch.testing.assert_close(output[0], ours.output.bias.expand(3, -1))
    assert torch.equal(weights[0], torch.zeros(2, 3, 3))
    output.sum().backward()
    assert all(p.grad.isfinite().all() for p in ours.parameters())


@pytest.mark.parametrize("cross", [False, True])
@pytest.mark.parametrize("need_weights", [False, True])
def test_nan_behind_the_mask_changes_nothing(cross: bool, need_weights: bool) -> None:
    ours = MultiHeadAttention(8, 2)
    query, memory, mask = torch.randn(3, 5, 8), torch.randn(3, 5, 8), padded(3, 5)

    def run(poison: float) -> tuple[Tensor, list[Tensor]]:
        dirty = torch.where(mask[..., None], memory if cross else query, poison)
        output, _ = ours(query, dirty, mask, need_weights=need_weights) if cross else ours(dirty, None, mask)
        real = output if cross else output[mask]
        ours.zero_grad()
        real.square().sum().backward()
        return real, [p.grad.clone() for p in ours.parameters()]

    (clean, clean_gradients), (dirty, dirty_gradients) = run(0.0), run(math.nan)
    assert torch.equal(clean, dirty)
    for a, b in zip(clean_gradients, dirty_gradients, strict=True):
        assert torch.equal(a, b)


every_positions = pytest.mark.parametrize("positions", ["relative", "rotary", "none"])


@every_positions
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("causal", [False, True])
def test_weights_do_not_change_the_output(positions: str, masked: bool, causal: bool) -> None:
    ours, x, mask = (
        MultiHeadAttention(16, 4, positions=positions),
        torch.randn(3, 6, 16),
        padded(3, 6) if masked else None,
    )
    output, weights = ours(x, mask=mask, causal=causal, need_weights=True)
    torch.testing.assert_close(ours(x, mask=mask, causal=causal)[0], output, atol=1e-6, rtol=1e-6)
    values = ours.value(x).view(3, 6, 4, 4).transpose(1, 2)
    torch.testing.assert_close(ours.output((weights @ values).transpose(1, 2).flatten(2)), output)


@pytest.mark.parametrize("causal", [False, True])
def test_a_relative_bias_has_all_buckets_for_the_past_when_causal(causal: bool) -> None:
    ours = MultiHeadAttention(16, 4, positions="relative")
    nn.init.zeros_(ours.query.weight)
    nn.init.zeros_(ours.query.bias)  # nothing but the bias is left of the scores
    weights = ours(torch.randn(1, 12, 16), causal=causal, need_weights=True)[1]
    newest = [*range(11, 7, -1)] if causal else [8] * 4  # of the distances 11 to 8
    newest += range(7, -1, -1)
    expected = ours.relative.table[newest].softmax(0).T
    torch.testing.assert_close(weights[0, :, -1], expected)


@pytest.mark.parametrize("positions", ["relative", "rotary"])
def test_positions_do_not_act_across(positions: str) -> None:
    ours, plain = MultiHeadAttention(16, 4, positions=positions), MultiHeadAttention(16, 4)
    plain.load_state_dict(ours.state_dict(), strict=False)
    query, memory = torch.randn(2, 3, 16), torch.randn(2, 5, 16)
    assert torch.equal(ours(query, memory)[0], plain(query, memory)[0])
    assert not torch.allclose(ours(memory)[0], plain(memory)[0], atol=1e-3)


def test_dropped_weights_are_others_and_keep_the_mean() -> None:
    ours, x = MultiHeadAttention(16, 2, dropout=0.25), torch.randn(1, 4, 16)
    expected, weights = ours.eval()(x, need_weights=True)
    ours.train()
    torch.testing.assert_close(ours(x, need_weights=True)[1], weights)  # before dropout
    drawn = ours(x.expand(5000, -1, -1))[0]
    assert (drawn[0] - expected[0]).abs().max() > 1e-2
    torch.testing.assert_close(drawn.mean(0), expected[0], atol=2e-2, rtol=0)


def test_dropout_drops_weights_not_features() -> None:
    """With one key a head is there as a whole or not at all."""
    ours = MultiHeadAttention(4, 1, dropout=0.5)
    nn.init.eye_(ours.output.weight)
    nn.init.zeros_(ours.output.bias)
    x = torch.randn(200, 1, 4)
    ratio = ours(x)[0] / ours.value(x)
    assert set(ratio.round().flatten().tolist()) == {0.0, 2.0}
    assert torch.equal(ratio.round().amin(-1), ratio.round().amax(-1))


@every_positions
@pytest.mark.parametrize("steps", [1, 2, 3])
def test_a_cache_continues_causal_attention(steps: int, positions: str) -> None:
    ours, cache = MultiHeadAttention(16, 4, positions=positions), KeyValueCache()
    x = torch.randn(2, 6, 16)
    whole, _ = ours(x, causal=True)
    parts = [ours(x[:, i : i + steps], causal=True, cache=cache)[0] for i in range(0, 6, steps)]
    torch.testing.assert_close(torch.cat(parts, 1), whole, atol=1e-5, rtol=1e-5)
    assert len(cache) == 6


@every_positions
@pytest.mark.parametrize("hole", [None, 2, 4])
def test_a_mask_covers_the_cached_steps(positions: str, hole: int | None) -> None:
    ours, cache = MultiHeadAttention(16, 4, positions=positions), KeyValueCache()
    x, mask = torch.randn(3, 6, 16), padded(3, 6)
    if hole is not None:
        mask[0, hole] = False
    whole, _ = ours(x, mask=mask, causal=True)
    first, _ = ours(x[:, :4], mask=mask[:, :4], causal=True, cache=cache)
    second, _ = ours(x[:, 4:], mask=mask, causal=True, cache=cache)
    torch.testing.assert_close(torch.cat([first, second], 1), whole, atol=1e-5, rtol=1e-5)


def test_the_memory_is_projected_once() -> None:
    ours, cache = MultiHeadAttention(16, 4), KeyValueCache()
    query, memory, mask = torch.randn(2, 3, 16), torch.randn(2, 5, 16), padded(2, 5)
    calls: list[int] = []
    ours.key.register_forward_hook(lambda *_: calls.append(1))
    expected, _ = ours(query, memory, mask)
    for _ in range(3):
        output, _ = ours(query, memory, mask, cache=cache)
        assert torch.equal(output, expected)
    assert len(calls) == 2
    assert len(cache) == 5


def test_equals_the_kernel_without_mask() -> None:
    q, k, v = (torch.randn(2, 2, n, 4) for n in (3, 5, 5))
    torch.testing.assert_close(attention(q, k, v), F.scaled_dot_product_attention(q, k, v))


def test_heads_must_divide() -> None:
    with pytest.raises(ValueError, match="10 is not a multiple of n_heads 4"):
        MultiHeadAttention(10, 4)


def test_positions_must_be_known() -> None:
    with pytest.raises(ValueError, match="unknown positions 'rotery'; known: sinusoidal, learned, relative, rotary"):
        MultiHeadAttention(8, 2, positions="rotery")


@pytest.mark.parametrize(("device", "dropped"), [("cpu", []), ("meta", [0.25, 0.0])])
def test_off_the_cpu_the_kernel_drops_weights(
    monkeypatch: pytest.MonkeyPatch, device: str, dropped: list[float]
) -> None:
    kernel, rates = F.scaled_dot_product_attention, []

    def recorded(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, dropout: float) -> Tensor:
        rates.append(dropout)
        return kernel(query, key, value, mask, dropout)

    monkeypatch.setattr(F, "scaled_dot_product_attention", recorded)
    ours, x = MultiHeadAttention(8, 2, dropout=0.25).to(device), torch.randn(2, 5, 8, device=device)
    ours(x)
    ours(x, need_weights=True)  # which the kernel does not give
    if device == "meta":
        ours.eval()(x)
    assert rates == dropped


def test_the_kernel_drops_the_share_asked_for() -> None:
    q, k, v = torch.zeros(1, 1, 64, 4), torch.zeros(1, 1, 256, 4), torch.ones(1, 1, 256, 4)
    mask = torch.ones(1, 1, 64, 256, dtype=torch.bool)
    for options in ({}, {"mask": mask}, {"bias": torch.zeros(1, 1, 64, 256)}):
        output = attention(q, k, v, dropout=0.25, **options)
        assert output.std().item() == pytest.approx(math.sqrt(0.25 / 0.75 / 256), rel=0.3)  # of a mean of 256 coins
        assert output.mean().item() == pytest.approx(1.0, abs=0.02)
