"""Attention maps: the weights that the fused path computes, from every attention of a network, and no trace left."""

import pytest
import torch
from torch import Tensor, nn
from tsformer_plugins.models import tcn_transformer, transformer

from tsformer.data.windows import Batch
from tsformer.nn.attention import MultiHeadAttention
from tsformer.nn.maps import attention_maps
from tsformer.plugin import Problem

PROBLEM = Problem(lookback=12, horizon=5, targets=2)
ENCODER, PAST, ACROSS = (
    "encoder.layers.layers.0.self_attention",
    "decoder.layers.layers.0.self_attention",
    "decoder.layers.layers.0.cross_attention",
)


def network_of(module: object = transformer, **options: object) -> nn.Module:
    torch.manual_seed(0)
    example = module.plugin.example
    config = type(example)(**{**example.model_dump(), **options})
    network = module.plugin.build(config, PROBLEM).eval()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(0.2 * torch.randn(parameter.shape))
    return network


def batch_of() -> Batch:
    past, future = torch.randn(3, 12, 2), torch.randn(3, 5, 2)
    mask = torch.ones_like(past, dtype=torch.bool)
    mask[1, :4] = False
    return Batch(past=past, past_mask=mask, future=future, future_mask=torch.ones_like(future, dtype=torch.bool))


def by_hand(attention: MultiHeadAttention, query: Tensor, memory: Tensor, allowed: Tensor) -> Tensor:
    heads = attention.n_heads
    q, k = (part(x).unflatten(-1, (heads, -1)) for part, x in ((attention.query, query), (attention.key, memory)))
    odds = (torch.einsum("bqhd,bkhd->bhqk", q, k) / q.shape[-1] ** 0.5).exp() * allowed
    return odds / odds.sum(-1, keepdim=True)


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "relative", "rotary", "none"])
@pytest.mark.parametrize(("module", "decoder"), [(transformer, "direct"), (tcn_transformer, "autoregressive")])
def test_the_forecast_stays_and_nothing_else_does(module: object, decoder: str, positions: str) -> None:
    layers = {"decoder_layers": 1} if decoder == "autoregressive" else {}
    network, batch = network_of(module, decoder=decoder, positions=positions, **layers), batch_of()
    with torch.inference_mode():
        expected = network(batch)
        with attention_maps(network) as maps:
            found = network(batch)
        assert torch.equal(network(batch), expected)
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-6)
    assert set(maps) == {ENCODER, PAST, ACROSS}
    for name, part in network.named_modules():
        assert not part._forward_hooks, name
        assert not part._forward_pre_hooks, name


def test_hooks_go_when_the_network_fails() -> None:
    network = network_of()
    with pytest.raises(AttributeError), attention_maps(network):
        network(None)
    assert not any(part._forward_hooks or part._forward_pre_hooks for part in network.modules())


def test_weights_of_an_encoder_by_hand() -> None:
    network, batch = network_of(decoder="direct"), batch_of()
    inputs: list[Tensor] = []
    layers = network.encoder.layers
    layers.layers[0].register_forward_pre_hook(lambda _, arguments: inputs.append(arguments[0]))
    with torch.no_grad(), attention_maps(network) as maps:
        network(batch)
    mask = batch.past_mask.any(-1)
    weights = maps[ENCODER]
    assert weights.shape == (3, 2, 12, 12)
    real = mask[:, None, :, None].expand(3, 2, 12, 12)
    expected = by_hand(layers.layers[0].self_attention, inputs[0], inputs[0], mask[:, None, None])
    torch.testing.assert_close(weights[real], expected[real])
    assert not weights[1, :, :, :4].any()
    assert maps[PAST].shape == (3, 2, 5, 5)
    assert maps[ACROSS].shape == (3, 2, 5, 12)


@pytest.mark.parametrize("positions", ["sinusoidal", "relative", "rotary"])
@pytest.mark.parametrize("cache", [True, False])
def test_a_rollout_gives_the_map_of_a_parallel_pass(positions: str, cache: bool) -> None:
    network, batch = network_of(positions=positions), batch_of()
    network.decoder.cache = cache
    with torch.no_grad():
        with attention_maps(network) as rollout:
            network(batch)
            own = network(batch)  # counts, and is not added to the first
        fed = Batch(batch.past, batch.past_mask, future=own[..., 0], future_mask=batch.future_mask)
        with attention_maps(network) as parallel:
            network(fed, truth=1.0)
    assert rollout[PAST].shape == (3, 2, 5, 5)
    assert not rollout[PAST].triu(1).any()
    assert set(rollout) == set(parallel)
    for name, weights in parallel.items():
        torch.testing.assert_close(rollout[name], weights, atol=1e-5, rtol=1e-5)


def test_training_leaves_the_parallel_pass() -> None:
    network, batch = network_of().train(), batch_of()
    with attention_maps(network) as maps:
        network(batch, truth=0.5).sum().backward()
    assert maps[PAST].shape == (3, 2, 5, 5)
    assert not maps[PAST].requires_grad
    torch.testing.assert_close(maps[PAST].sum(-1), torch.ones(3, 2, 5))


def test_under_channel_independence_targets_follow_each_other() -> None:
    network, batch = network_of(decoder="direct", channel_independent=True, revin=False), batch_of()
    with torch.no_grad(), attention_maps(network) as maps:
        network(batch)
    both = maps[ENCODER]
    assert both.shape == (6, 2, 12, 12)
    past = batch.past.clone()
    past[..., 1] += 1.0
    with torch.no_grad(), attention_maps(network) as maps:
        network(Batch(past, batch.past_mask))
    same = [torch.equal(a, b) for a, b in zip(both, maps[ENCODER], strict=True)]
    assert same == [True, False] * 3


def test_one_attention_by_itself() -> None:
    attention, x = MultiHeadAttention(8, 2), torch.randn(2, 4, 8)
    with attention_maps(attention) as maps:
        attention(x)
    torch.testing.assert_close(maps[""], attention(x, need_weights=True)[1])
