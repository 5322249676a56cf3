"""A module's weights as bytes: safetensors, nothing executable."""

from __future__ import annotations

from collections.abc import Mapping

import safetensors.torch
from torch import Tensor, nn


def save(module: nn.Module) -> bytes:
    """The state dict; of tensors that share their memory (tied weights) only the first."""
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in module.state_dict().items()}
    twins = _twins(tensors)
    return safetensors.torch.save({name: tensor for name, tensor in tensors.items() if name not in twins})


def read(content: bytes) -> dict[str, Tensor]:
    """Saved weights by name. Raises ValueError when the bytes hold none."""
    try:
        return safetensors.torch.load(content)
    except safetensors.SafetensorError as error:
        raise ValueError(" ".join(str(error).split())) from None


def load(module: nn.Module, content: bytes) -> None:
    """Put saved weights into a module of the same shapes.

    Raises:
        ValueError: the bytes hold no weights, or those of another module.
    """
    tensors = read(content)
    try:
        twins = _twins(module.state_dict())
        module.load_state_dict(tensors | {name: tensors[twin] for name, twin in twins.items() if twin in tensors})
    except RuntimeError as error:
        raise ValueError(" ".join(str(error).split())) from None


def _twins(tensors: Mapping[str, Tensor]) -> dict[str, str]:
    """Names of tensors that share their memory with an earlier one, with that one's name."""
    first: dict[tuple[int, tuple[int, ...]], str] = {}
    found = {}
    for name, tensor in tensors.items():
        key = (tensor.data_ptr(), tuple(tensor.shape))
        if tensor.numel() and key in first:
            found[name] = first[key]
        first.setdefault(key, name)
    return found
