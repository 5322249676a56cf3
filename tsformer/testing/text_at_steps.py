"""Checks of a forecast that reads a text beside the numbers of each step."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from tsformer.data.vocabulary import PAD, SPECIAL
from tsformer.data.windows import Batch
from tsformer.errors import PluginError, UsageError
from tsformer.nn.outputs import output_of
from tsformer.parameters import by_gradients
from tsformer.plugin import ModelPlugin
from tsformer.testing.failure import CheckFailedError
from tsformer.testing.problem import PROBLEM, batch_of, build, close, given, gradients

VOCABULARY, LENGTH = 12, 3
WITH_TEXT = replace(PROBLEM, vocabulary=VOCABULARY, text_length=LENGTH)


def check_text_at_steps(plugin: ModelPlugin) -> str | None:
    """Texts beside the numbers of a forecast are read by their mask, or left alone, or refused in words by build."""
    if plugin.fit is not None:
        return "a fit hook is given no texts here"
    try:
        module = build(plugin, problem=WITH_TEXT)
    except (PluginError, UsageError) as refusal:
        return str(refusal)
    batch = _with_texts(batch_of(4))
    with torch.no_grad():
        clean = module.eval()(batch)
    wanted = (4, PROBLEM.horizon, PROBLEM.targets, PROBLEM.outputs)
    if tuple(clean.shape) != wanted or not bool(torch.isfinite(clean).all()):
        raise CheckFailedError(
            f"with a text at each step, some of them empty, forward returns {tuple(clean.shape)}, or numbers that are "
            f"not finite; wanted {wanted}"
        )
    mask = given(batch.token_mask)
    dirty = replace(batch, tokens=torch.where(mask, given(batch.tokens), VOCABULARY - 1))
    with torch.no_grad():
        if not close(module(dirty), clean):
            raise CheckFailedError(
                "other tokens behind token_mask change the prediction; average or attend over real tokens only"
            )
        more = replace(
            batch,
            tokens=torch.nn.functional.pad(given(batch.tokens), (0, 2), value=PAD),
            token_mask=torch.nn.functional.pad(mask, (0, 2)),
        )
        if not close(module(more), clean):
            raise CheckFailedError("two more tokens of padding in each text change the prediction; go by token_mask")
    if by_gradients(plugin, module):
        for truth in (1.0, 0.0):
            for name, gradient in gradients(module.train(), batch, truth, output_of(WITH_TEXT)).items():
                if gradient is not None and not bool(torch.isfinite(gradient).all()):
                    raise CheckFailedError(f"the gradient of parameter '{name}' is not finite with empty texts")
    return None


def _with_texts(batch: Batch) -> Batch:
    """Texts of up to `LENGTH` tokens at each step; every fourth has none, and neither has a whole window."""
    generator = np.random.default_rng(5)
    steps = batch.past.shape[:2]
    lengths = np.arange(steps.numel()).reshape(steps) % (LENGTH + 1)
    lengths[1] = 0
    mask = torch.from_numpy(np.arange(LENGTH) < lengths[..., None])
    tokens = torch.from_numpy(generator.integers(len(SPECIAL), VOCABULARY, mask.shape))
    return replace(batch, tokens=torch.where(mask, tokens, PAD), token_mask=mask)
