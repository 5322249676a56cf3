"""Layers and stacks: against torch's own with the same weights, Pre- and Post-LN."""

import math

import pytest
import torch
from torch import Tensor, nn

from tsformer.nn.attention import MultiHeadAttention
from tsformer.nn.layers import Decoder, DecoderLayer, Encoder, EncoderLayer, LayerSpec

D, HEADS, FF = 16, 4, 32
CLOSE = {"atol": 1e-5, "rtol": 1e-5}
POSITIONS = ("sinusoidal", "learned", "relative", "rotary", "none")
ACTIVATIONS = ("relu", "gelu", "swiglu")


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


def spec(**options: object) -> LayerSpec:
    return LayerSpec(**{"d_model": D, "n_heads": HEADS, "d_ff": FF, **options})


def shaken(stack: nn.Module) -> nn.Module:
    """Moved away from weights that start at zero or one."""
    with torch.no_grad():
        for parameter in stack.parameters():
            parameter.add_(0.2 * torch.randn(parameter.shape))
    return stack


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
    theirs.linear1.load_state_dict(ours.feed_forward.inner.state_dict())
    theirs.linear2.load_state_dict(ours.feed_forward.outer.state_dict())
    for residual, norm in zip(ours.residuals, (getattr(theirs, f"norm{i + 1}") for i in range(3)), strict=False):
        residual.norm.weight.uniform_(0.5, 1.5)
        residual.norm.bias.normal_()
        norm.load_state_dict(residual.norm.state_dict())


def padded(batch: int, time: int) -> Tensor:
    return torch.arange(time)[None] >= torch.arange(batch)[:, None]


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("eps", [1e-5, 0.1])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_encoder_equals_torch(norm_first: bool, eps: float, activation: str) -> None:
    ours = Encoder(2, spec(norm_first=norm_first, eps=eps, activation=activation))
    layer = nn.TransformerEncoderLayer(
        D, HEADS, FF, 0.0, activation, batch_first=True, norm_first=norm_first, layer_norm_eps=eps
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
@pytest.mark.parametrize(("activation", "eps"), [("relu", 1e-5), ("gelu", 0.1)])
def test_decoder_equals_torch(norm_first: bool, causal: bool, activation: str, eps: float) -> None:
    ours = Decoder(2, spec(norm_first=norm_first, activation=activation, eps=eps))
    layer = nn.TransformerDecoderLayer(
        D, HEADS, FF, 0.0, activation, batch_first=True, norm_first=norm_first, layer_norm_eps=eps
    )
    theirs = nn.TransformerDecoder(layer, 2, norm=nn.LayerNorm(D, eps=eps) if norm_first else None)
    for mine, other in zip(ours.layers, theirs.layers, strict=True):
        copy_layer(mine, other)
    x, memory, mask = torch.randn(3, 5, D), torch.randn(3, 8, D), padded(3, 8)
    future = torch.ones(5, 5, dtype=torch.bool).triu(1) if causal else None
    expected = theirs(x, memory, tgt_mask=future, memory_key_padding_mask=~mask)
    torch.testing.assert_close(ours(x, memory, mask, causal=causal), expected, **CLOSE)


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("positions", POSITIONS)
def test_decoder_with_caches_equals_without(norm_first: bool, positions: str) -> None:
    decoder = shaken(Decoder(2, spec(norm_first=norm_first, positions=positions)))
    x, memory, mask = torch.randn(3, 6, D), torch.randn(3, 8, D), padded(3, 8)
    caches = decoder.caches()
    steps = [decoder(x[:, i : i + 1], memory, mask, caches=caches) for i in range(6)]
    torch.testing.assert_close(torch.cat(steps, 1), decoder(x, memory, mask), **CLOSE)


@pytest.mark.parametrize("positions", POSITIONS)
def test_a_decoder_is_causal(positions: str) -> None:
    decoder = shaken(Decoder(2, spec(positions=positions)))
    x, memory = torch.randn(2, 6, D), torch.randn(2, 4, D)
    before = decoder(x, memory)
    x[:, 3] += torch.randn(2, D)
    after = decoder(x, memory)
    torch.testing.assert_close(after[:, :3], before[:, :3])
    assert ((after - before)[:, 3:].abs().amax(-1) > 1e-4).all()


OPTIONS = [
    ("norm_first", False),
    *(("positions", kind) for kind in POSITIONS),
    *(("activation", f) for f in ACTIVATIONS),
]


@pytest.mark.parametrize(("option", "value"), OPTIONS)
def test_nan_behind_the_mask_changes_nothing(option: str, value: object) -> None:
    encoder = shaken(Encoder(2, spec(**{option: value})))
    x, mask = torch.randn(4, 6, D), padded(4, 6)
    mask[3] = False

    def run(poison: float) -> tuple[Tensor, list[Tensor]]:
        encoder.zero_grad()
        output = encoder(torch.where(mask[..., None], x, poison), mask)[mask]
        output.square().sum().backward()
        return output, [p.grad.clone() for p in encoder.parameters()]

    (clean, clean_gradients), (dirty, dirty_gradients) = run(0.0), run(math.nan)
    assert torch.equal(clean, dirty)
    for a, b in zip(clean_gradients, dirty_gradients, strict=True):
        assert a.isfinite().all()
        assert torch.equal(a, b)


@pytest.mark.parametrize("positions", POSITIONS)
@pytest.mark.parametrize("need", ["encoder", "decoder"])
def test_a_sample_with_nothing_to_attend_to_stays_finite(positions: str, need: str) -> None:
    x, mask = torch.randn(2, 5, D, requires_grad=True), torch.tensor([[False] * 5, [True] * 5])
    stack = shaken((Encoder if need == "encoder" else Decoder)(1, spec(positions=positions)))
    output = stack(x, mask) if need == "encoder" else stack(torch.randn(2, 3, D), x, mask)
    output.sum().backward()
    assert output.isfinite().all()
    assert x.grad.isfinite().all()
    assert not x.grad[0].any()
    assert all(p.grad.isfinite().all() for p in stack.parameters())


@pytest.mark.parametrize("positions", ["relative", "rotary"])
@pytest.mark.parametrize("gaps", [False, True])
def test_positions_in_attention_count_real_steps(positions: str, gaps: bool) -> None:
    """Six steps alike, alone and among padding and gaps."""
    encoder = shaken(Encoder(2, spec(positions=positions)))
    x = torch.randn(2, 6, D)
    where = torch.tensor([[2, 3, 5, 6, 7, 9], [4, 5, 6, 7, 8, 9]] if gaps else [[3, 4, 5, 6, 7, 8]] * 2)
    spread = torch.randn(2, 10, D).scatter(1, where[..., None].expand(-1, -1, D), x)
    mask = torch.zeros(2, 10, dtype=torch.bool).scatter(1, where, True)
    found = encoder(spread, mask)[mask].view(2, 6, D)
    torch.testing.assert_close(found, encoder(x), **CLOSE)


@pytest.mark.parametrize(("positions", "changes"), [("relative", True), ("rotary", True), ("none", False)])
def test_order_matters_to_positions_only(positions: str, changes: bool) -> None:
    encoder, x = shaken(Encoder(2, spec(positions=positions))), torch.randn(2, 6, D)
    turned = encoder(x.flip(1)).flip(1)
    assert torch.allclose(turned, encoder(x), **CLOSE) is not changes


def test_pre_ln_ends_in_a_norm_and_post_ln_in_its_own() -> None:
    x = 100 * torch.randn(4, 5, D)
    for norm_first in (False, True):
        output = Encoder(1, spec(norm_first=norm_first))(x)
        torch.testing.assert_close(output.mean(-1), torch.zeros(4, 5), atol=1e-5, rtol=0)
        torch.testing.assert_close(output.std(-1, unbiased=False), torch.ones(4, 5), atol=1e-3, rtol=0)


@pytest.mark.parametrize("rate", ["dropout", "attention_dropout"])
def test_dropout_acts_in_training_only(rate: str) -> None:
    layer, x = EncoderLayer(spec(**{rate: 0.5})), torch.randn(2, 5, D)
    assert not torch.equal(layer(x), layer(x))
    layer.eval()
    assert torch.equal(layer(x), layer(x))


def test_a_decoder_without_layers_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1 layer"):
        Decoder(0, spec())
