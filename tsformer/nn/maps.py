"""Attention maps: the weights of every attention in a module, looked at from outside."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tsformer.nn.attention import KeyValueCache, MultiHeadAttention


@contextmanager
def attention_maps(module: nn.Module) -> Iterator[dict[str, Tensor]]:
    """Within this, each attention in `module` leaves its weights.

        with attention_maps(network) as maps, torch.inference_mode():
            network(batch)
        maps["encoder.layers.layers.0.self_attention"]

    The weights are computed beside the output, by the explicit path, and the output stays the same up to rounding. They
    are those of the newest call. A rollout step by step calls an attention once for each step, with one cache: these
    calls are put together, so that its map has a row for each step as if all had been computed at once, with zeros
    where a key came later. A training step that samples computes all steps a last time in parallel, and that is what is
    left. Weights behind a mask are zero, and attention dropout is not in them.

    Args:
        module: a network, a part of it, or one attention.

    Returns:
        Names as in `module.named_modules()`, each with `[batch, heads, queries, keys]`, detached; filled by the calls.
        Under channel independence the batch holds the targets of each window one after the other.
    """
    maps: dict[str, Tensor] = {}
    caches: dict[str, KeyValueCache | None] = {}

    def ask(part: nn.Module, arguments: Any, options: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        return arguments, {**options, "need_weights": True}

    def keep(name: str, part: nn.Module, arguments: Any, options: dict[str, Any], result: Any) -> None:
        weights, cache = result[1].detach(), options.get("cache")
        if cache is not None and cache is caches.get(name):
            earlier = F.pad(maps[name], (0, weights.shape[-1] - maps[name].shape[-1]))
            weights = torch.cat([earlier, weights], dim=-2)
        maps[name], caches[name] = weights, cache

    handles = []
    for name, part in module.named_modules():
        if isinstance(part, MultiHeadAttention):
            handles.append(part.register_forward_pre_hook(ask, with_kwargs=True))
            handles.append(part.register_forward_hook(partial(keep, name), with_kwargs=True))
    try:
        yield maps
    finally:
        for handle in handles:
            handle.remove()
