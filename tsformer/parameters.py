"""What a module has to learn: how many numbers, and whether step by step."""

from __future__ import annotations

import itertools

from torch import nn
from torch.nn.parameter import is_lazy

from tsformer.plugin import ModelPlugin


def parameters_of(module: nn.Module) -> int:
    """How many numbers a module has to learn."""
    return sum(parameter.numel() for parameter in module.parameters())


def first_lazy(module: nn.Module) -> str | None:
    """The name of the first parameter or buffer that has no shape yet; None where all have one."""
    tensors = itertools.chain(module.named_parameters(), module.named_buffers())
    return next((name for name, tensor in tensors if is_lazy(tensor)), None)


def by_gradients(plugin: ModelPlugin, module: nn.Module) -> bool:
    """Whether a plugin's module is trained by gradients: not where it has a `fit` of its own, or nothing to train."""
    return plugin.fit is None and any(parameter.requires_grad for parameter in module.parameters())
