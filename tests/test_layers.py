"""Layers and stacks: against torch's own with the same weights, Pre- and Post-LN."""

import math

import pytest
import torch
from torch import Tensor, nn

from tsformer.nn.attention import MultiHeadAttention
from tsformer.nn.layers import Decoder, DecoderLayer, Encoder, EncoderLayer

D, HEADS, FF = 16, 4, 32
CLOSE = {"atol": 1e-5, "rtol": 1e-5}


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


def copy_attention(ours: MultiHeadAttention, theirs: nn.MultiheadAttention) -> None:
    parts = (ours.query, ours.key, ours.value)
    theirs.in_proj_weight.copy_(torch.cat([part.weight for part in parts]))
    theirs.in_proj_bias.copy_(torch.cat([part.bias for part in parts]))
    theirs.out_proj.load_state_dict(ours.output.state_dict())


@torch.no_grad()
def copy_layer(ours: EncoderLayer | DecoderLayer, theirs: nn.Module) -> None:
    """Give torch's layer our weights, norms included, whose own are made unlike each other first."""
    copy_attention(ours.self_attention, theirs.self_attn)
    if isinstance(ours, DecoderLayer):
        copy_attention(ours.cross_attention, theirs.multihead_attn)
    theirs.linear1.load_state_dict(ours.feed_forward[0].state_dict())
    theirs.linear2.load_state_dict(ours.feed_forward[2].state_dict())
    for residual, norm in zip(ours.residuals, (getattr(theirs, f"norm{i + 1}") for i in range(3)), strict=False):
        residual.norm.weight.uniform_(0.5, 1.5)
        residual.norm.bias.normal_()
        norm.load_state_dict(residual.norm.state_dict())


def padded(batch: int, time: int) -> Tensor:
    return torch.arange(time)[None] >= torch.arange(batch)[:, None]


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("eps", [1e-5, 0.1])
def test_encoder_equals_torch(norm_first: bool, eps: float) -> None:
    ours = Encoder(2, D, HEADS, FF, norm_first=norm_first, eps=eps)
    layer = nn.TransformerEncoderLayer(
        D, HEADS, FF, dropout=0.0, batch_first=True, norm_first=norm_first, layer_norm_eps=eps
    )
    final = nn.LayerNorm(D, eps=eps) if norm_first else None
    theirs = nn.TransformerEncoder(layer, 2, norm=final, enable_nested_tensor=False)
    for mine, other in zip(ours.layers, theirs.layers, strict=True):
        copy_layer(mine, other)
    x, mask = torch.randn(3, 7, D), padded(3, 7)
    torch.testing.assert_close(ours(x), theirs(x), **CLOSE)
    expected = theirs(x, src_key_padding_mask=~mask)
    torch.testing.assert_close(ours(x, mask)[mask], expected[mask], **CLOSE)


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("causal", [False, True])
def test_decoder_equals_torch(norm_first: bool, causal: bool) -> None:
    ours = Decoder(2, D, HEADS, FF, norm_first=norm_first)
    layer = nn.TransformerDecoderLayer(D, HEADS, FF, dropout=0.0, batch_first=True, norm_first=norm_first)
    theirs = nn.TransformerDecoder(layer, 2, norm=nn.LayerNorm(D) if norm_first else None)
    for mine, other in zip(ours.layers, theirs.layers, strict=True):
        copy_layer(mine, other)
    x, memory, mask = torch.randn(3, 5, D), torch.randn(3, 8, D), padded(3, 8)
    future = torch.ones(5, 5, dtype=torch.bool).triu(1) if causal else None
    expected = theirs(x, memory, tgt_mask=future, memory_key_padding_mask=~mask)
    torch.testing.assert_close(ours(x, memory, mask, causal=causal), expected, **CLOSE)


@pytest.mark.parametrize("norm_first", [False, True])
def test_decoder_with_caches_equals_without(norm_first: bool) -> None:
    decoder = Decoder(2, D, HEADS, FF, norm_first=norm_first)
    x, memory, mask = torch.randn(3, 6, D), torch.randn(3, 8, D), padded(3, 8)
    caches = decoder.caches()
    steps = [decoder(x[:, i : i + 1], memory, mask, caches=caches) for i in range(6)]
    torch.testing.assert_close(torch.cat(steps, 1), decoder(x, memory, mask), **CLOSE)


def test_a_decoder_is_causal() -> None:
    decoder = Decoder(2, D, HEADS, FF)
    x, memory = torch.randn(2, 6, D), torch.randn(2, 4, D)
    before = decoder(x, memory)
    x[:, 3] += torch.randn(2, D)
    after = decoder(x, memory)
    torch.testing.assert_close(after[:, :3], before[:, :3])
    assert ((after - before)[:, 3:].abs().amax(-1) > 1e-4).all()


@pytest.mark.parametrize("norm_first", [False, True])
def test_nan_behind_the_mask_changes_nothing(norm_first: bool) -> None:
    encoder = Encoder(2, D, HEADS, FF, norm_first=norm_first)
    x, mask = torch.randn(3, 6, D), padded(3, 6)

    def run(poison: float) -> tuple[Tensor, list[Tensor]]:
        encoder.zero_grad()
        output = encoder(torch.where(mask[..., None], x, poison), mask)[mask]
        output.square().sum().backward()
        return output, [p.grad.clone() for p in encoder.parameters()]

    (clean, clean_gradients), (dirty, dirty_gradients) = run(0.0), run(math.nan)
    assert torch.equal(clean, dirty)
    for a, b in zip(clean_gradients, dirty_gradients, strict=True):
        assert torch.equal(a, b)


def test_pre_ln_ends_in_a_norm_and_post_ln_in_its_own() -> None:
    x = 100 * torch.randn(4, 5, D)
    for norm_first in (False, True):
        output = Encoder(1, D, HEADS, FF, norm_first=norm_first)(x)
        torch.testing.assert_close(output.mean(-1), torch.zeros(4, 5), atol=1e-5, rtol=0)
        torch.testing.assert_close(output.std(-1, unbiased=False), torch.ones(4, 5), atol=1e-3, rtol=0)


def test_dropout_acts_in_training_only() -> None:
    layer, x = EncoderLayer(D, HEADS, FF, dropout=0.5), torch.randn(2, 5, D)
    assert not torch.equal(layer(x), layer(x))
    layer.eval()
    assert torch.equal(layer(x), layer(x))


def test_a_decoder_without_layers_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1 layer"):
        Decoder(0, D, HEADS, FF)
