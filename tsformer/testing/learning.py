"""Checks of how a model learns by gradients: they reach everything, and a batch can be learned."""

from __future__ import annotations

import torch
from torch import nn

from tsformer.nn.dropout import Dropout
from tsformer.parameters import by_gradients
from tsformer.plugin import ModelPlugin, Task
from tsformer.testing.cases import SIZE, Case, cases, masked
from tsformer.testing.failure import CheckFailedError
from tsformer.testing.generators import seeded
from tsformer.testing.problem import gradients

NOT_TRAINED = "nothing is trained by gradient"

DROPOUTS = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout, nn.FeatureAlphaDropout, Dropout)
"""Modules that drop at random in training: torch's and ours."""


def check_gradients(plugin: ModelPlugin, task: Task) -> str | None:
    """Every parameter gets a finite gradient at every truth, with padded examples, and not always zero.

    Only a gradient that is exactly zero everywhere counts as none: that of a key bias in attention is zero in theory
    and rounding errors in practice. Neither does one count that is zero merely at the start, as below a head whose
    weights start at zero, or for examples with something to read: zeros are looked at again after a random step and
    with an example that is masked entirely.
    """
    applies = False
    for case in cases(plugin, task):
        module = case.build(plugin).train()
        if by_gradients(plugin, module):
            applies = True
            _gradients(module, case)
    return None if applies else NOT_TRAINED


def _gradients(module: nn.Module, case: Case) -> None:
    batch = case.rows(4)
    if case.problem.task is Task.FORECAST:
        batch = masked(batch, 0, slice(0, 6))
    dead = {name for name, parameter in module.named_parameters() if parameter.requires_grad}
    for truth in case.truths:
        at = f"at truth={truth}{case.about}"
        for name, gradient in gradients(module, batch, truth, case.objective).items():
            if gradient is None:
                raise CheckFailedError(f"parameter '{name}' gets no gradient {at}")
            if not bool(torch.isfinite(gradient).all()):
                raise CheckFailedError(f"the gradient of parameter '{name}' is not finite {at}")
            if bool(gradient.any()):
                dead.discard(name)
    if dead:
        batch = masked(batch, 1)
        generator = torch.Generator().manual_seed(0)
        with torch.no_grad():
            for parameter in module.parameters():
                parameter.add_(0.1 * torch.randn(parameter.shape, generator=generator))
        for truth in case.truths:
            found = gradients(module, batch, truth, case.objective)
            dead -= {name for name, gradient in found.items() if gradient is not None and bool(gradient.any())}
    if dead:
        raise CheckFailedError(
            f"the gradient of parameter '{min(dead)}' is zero everywhere and at every truth{case.about}: it changes "
            "nothing; leave it out, or let it take part"
        )


def check_overfits_one_batch(plugin: ModelPlugin, task: Task) -> str | None:
    """A few hundred steps on one batch bring its loss far down, with dropout switched off.

    That of forecasts to a tenth, any other to a fifth, for an encoder that looks back only cannot know what was hidden.
    Dropout is there to keep a model from learning a batch by heart. What is switched off are torch's dropout modules
    and `tsformer.nn.dropout.Dropout`; a call of `torch.nn.functional.dropout` goes on.
    """
    applies = False
    for case in cases(plugin, task):
        module = case.build(plugin)
        if by_gradients(plugin, module):
            applies = True
            _overfit(module, case)
    return None if applies else NOT_TRAINED


def _overfit(module: nn.Module, case: Case) -> None:
    batch = case.batch
    share, rate = (0.1, 5e-3) if case.problem.task is Task.FORECAST else (0.2, 1e-2)
    optimizer = torch.optim.Adam(module.parameters(), lr=rate)
    dropouts = [part for part in module.modules() if isinstance(part, DROPOUTS)]

    def loss() -> float:
        module.eval()
        with torch.no_grad():
            return float(case.objective.loss(module(batch, truth=1.0), batch))

    before = after = loss()
    with seeded(0):
        for step in range(400):
            module.train()
            for dropout in dropouts:
                dropout.eval()
            optimizer.zero_grad()
            case.objective.loss(module(batch, truth=1.0), batch).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            if step % 10 == 9:
                after = loss()
                if after < share * before:
                    return
    raise CheckFailedError(
        f"400 steps on one batch of {SIZE} examples bring the loss from {before:.3g} to {after:.3g} "
        f"only{case.about}; does every part take part in the computation?"
    )
