"""Checks of how a model learns: gradients reach everything, a batch can be learned, `fit` sees its windows only."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn

from tsformer.nn.dropout import Dropout
from tsformer.nn.outputs import output_of
from tsformer.parameters import by_gradients
from tsformer.plugin import ModelPlugin
from tsformer.testing.failure import CheckFailedError
from tsformer.testing.generators import seeded
from tsformer.testing.problem import (
    PROBLEM,
    batch_of,
    build,
    given,
    gradients,
    spoiled_behind,
    windows,
)

NOT_TRAINED = "nothing is trained by gradient"

DROPOUTS = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout, nn.FeatureAlphaDropout, Dropout)
"""Modules that drop at random in training: torch's and ours."""


def check_gradients(plugin: ModelPlugin) -> str | None:
    """Every parameter gets a finite gradient at every truth, with padded windows, and not always zero.

    Only a gradient that is exactly zero everywhere counts as none: that of a key bias in attention is zero in theory
    and rounding errors in practice. Neither does one count that is zero merely at the start, as below a head whose
    weights start at zero, or for windows with a past: zeros are looked at again after a random step and with a window
    that is masked entirely.
    """
    module = build(plugin).train()
    if not by_gradients(plugin, module):
        return NOT_TRAINED
    batch = batch_of(4)
    mask = batch.past_mask.clone()
    mask[0, :6] = False
    batch = replace(batch, past_mask=mask, past=torch.where(mask, batch.past, 0.0))
    dead = {name for name, parameter in module.named_parameters() if parameter.requires_grad}
    for truth in (1.0, 0.5, 0.0):
        for name, gradient in gradients(module, batch, truth).items():
            if gradient is None:
                raise CheckFailedError(f"parameter '{name}' gets no gradient at truth={truth}")
            if not bool(torch.isfinite(gradient).all()):
                raise CheckFailedError(f"the gradient of parameter '{name}' is not finite at truth={truth}")
            if bool(gradient.any()):
                dead.discard(name)
    if dead:
        mask[1] = False
        batch = replace(batch, past_mask=mask, past=torch.where(mask, batch.past, 0.0))
        generator = torch.Generator().manual_seed(0)
        with torch.no_grad():
            for parameter in module.parameters():
                parameter.add_(0.1 * torch.randn(parameter.shape, generator=generator))
        for truth in (1.0, 0.5, 0.0):
            found = gradients(module, batch, truth)
            dead -= {name for name, gradient in found.items() if gradient is not None and bool(gradient.any())}
    if dead:
        raise CheckFailedError(
            f"the gradient of parameter '{min(dead)}' is zero everywhere and at every truth: it changes nothing; "
            "leave it out, or let it take part"
        )
    return None


def check_overfits_one_batch(plugin: ModelPlugin) -> str | None:
    """A few hundred steps on one batch bring its loss down to a tenth, with dropout switched off.

    Dropout is there to keep a model from learning a batch by heart. What is switched off are torch's dropout modules
    and `tsformer.nn.dropout.Dropout`; a call of `torch.nn.functional.dropout` goes on.
    """
    module = build(plugin)
    if not by_gradients(plugin, module):
        return NOT_TRAINED
    batch, output = batch_of(8), output_of(PROBLEM)
    optimizer = torch.optim.Adam(module.parameters(), lr=5e-3)
    dropouts = [part for part in module.modules() if isinstance(part, DROPOUTS)]

    def loss() -> float:
        module.eval()
        with torch.no_grad():
            return float(output.loss(module(batch, truth=1.0), batch))

    before = after = loss()
    with seeded(0):
        for step in range(400):
            module.train()
            for dropout in dropouts:
                dropout.eval()
            optimizer.zero_grad()
            output.loss(module(batch, truth=1.0), batch).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            if step % 20 == 19:
                after = loss()
                if after < 0.1 * before:
                    return None
    raise CheckFailedError(
        f"400 steps on one batch of 8 windows bring the loss from {before:.3g} to {after:.3g} only; "
        "does every part take part in the computation?"
    )


def check_fit_hook(plugin: ModelPlugin) -> str | None:
    """A `fit` hook learns from its windows and from nothing behind them, leaves them alone, and repeats itself."""
    fit = plugin.fit
    if fit is None:
        return "there is no fit hook"
    train, validation = windows()
    batch = train.batch()

    def after_fit(spoil: bool = False) -> Tensor:
        module = build(plugin)
        parts = [spoiled_behind(part) if spoil else part for part in (train, validation)]
        before = [part.values.clone() for part in parts]
        with seeded(0):
            fit(module, *parts)
        if not all(torch.equal(part.values, values) for part, values in zip(parts, before, strict=True)):
            raise CheckFailedError("fit changes the windows' values in place; work on a copy")
        with torch.no_grad():
            prediction: Tensor = module.eval()(replace(batch, future=None, future_mask=None))
        return prediction

    prediction = after_fit()
    if not torch.equal(after_fit(), prediction):
        raise CheckFailedError("fit on the same windows with the same seed gives another model")
    if not torch.equal(after_fit(spoil=True), prediction):
        raise CheckFailedError(
            "rows behind the last target of the windows change what fit learns: take windows.batch() or "
            "windows.batches(size), not windows.values, which hold the later rows, too"
        )
    future = given(batch.future)
    mean = future.mean(dim=(0, 1), keepdim=True)[..., None].expand_as(prediction)
    output = output_of(PROBLEM)
    own, naive = float(output.loss(prediction, batch)), float(output.loss(mean, batch))
    if not own < 0.5 * naive:
        raise CheckFailedError(
            f"after fit the loss on the training windows, sines with little noise, is {own:.3g}; their mean has "
            f"{naive:.3g}; does fit write what it learns into the module?"
        )
    return None
