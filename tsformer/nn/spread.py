"""How values scatter around the forecast of a model that gives points only.

The location is the model's own point. Beside it stand numbers for each step and target, in units of a scale of each
window, which are learned from the errors on the validation windows: those of the training windows would be too small
for whatever was fitted to them (Hyndman & Athanasopoulos, "Forecasting: Principles and Practice", 3rd ed., section
5.5, of residuals).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from tsformer.data.windows import Batch, Windows
from tsformer.errors import PluginError
from tsformer.nn import softplus
from tsformer.nn.distributions import Normal
from tsformer.nn.lookback import target_values
from tsformer.nn.outputs import Output, output_of
from tsformer.nn.quantiles import Quantiles
from tsformer.plugin import ModelPlugin, Problem, Task

FEWEST_ERRORS = 40
"""Where there are fewer validation windows, the errors of neighbouring steps count, too, so that there are so many."""
DESCENT_STEPS = 80
NUMBERS_AT_ONCE = 2**20
"""Errors that a descent looks at; of more, evenly spaced ones."""
SMALLEST_SHARE = 0.1
"""Of the mean scale of all windows: a window in which nothing happens is not taken for one in which nothing can."""
SMALLEST_SPREAD = 1e-6


def build_with_outputs(plugin: ModelPlugin, config: Any, problem: Problem) -> nn.Module:
    """What a plugin builds for a problem, with scatter around its points where it does not describe the output itself.

    Raises:
        PluginError: when the model has neither the output nor points.
    """
    own = plugin.outputs
    if problem.task is not Task.FORECAST or own is None or problem.output in own:
        return plugin.build(config, problem)
    if "point" not in own:
        raise PluginError(f"the model has no output {problem.output}; it has: {', '.join(sorted(own))}")
    module = plugin.build(config, replace(problem, output="point", outputs=1, quantiles=()))
    return Spread(module, problem) if isinstance(module, nn.Module) else module


def inner(module: nn.Module) -> nn.Module:
    """What a plugin built, without the scatter around it."""
    return module.module if isinstance(module, Spread) else module


class Spread(nn.Module):
    """A model of points with scatter around them; `fit` learns it.

    Args:
        module: `forward(batch, truth)` gives `[batch, horizon, targets, 1]`.
        problem: whose output is another than points.

    Raises:
        PluginError: for an unknown output.
    """

    def __init__(self, module: nn.Module, problem: Problem) -> None:
        super().__init__()
        self.module = module
        self.output = output_of(problem)
        self.targets = problem.targets
        self.numbers: Tensor
        self.smallest: Tensor
        self.register_buffer("numbers", torch.zeros(problem.horizon, problem.targets, self.output.outputs - 1))
        self.register_buffer("smallest", torch.ones(problem.targets))

    def forward(self, batch: Batch, truth: float = 0.0) -> Tensor:
        """`[batch, horizon, targets, outputs]`."""
        point: Tensor = self.module(batch, truth=truth)
        return around(self.output, point[..., 0], self.scale(batch), self.numbers)

    def scale(self, batch: Batch) -> Tensor:
        """How much a target changes from step to step in each window, above 0: `[batch, 1, targets]`."""
        return (typical_step(batch, self.targets).square() + self.smallest.square()).sqrt()

    def fit(self, windows: Windows, device: torch.device | None = None) -> None:
        """Learn from the errors of the points on windows that nothing else was fitted to.

        Args:
            device: where the module is; the CPU when None.
        """
        self.eval()
        parts = []
        with torch.inference_mode():
            for batch in windows.batches(256):
                given = replace(batch, future=None, future_mask=None)
                point = self.module(given if device is None else given.to(device), truth=0.0)
                parts.append((point[..., 0].cpu(), typical_step(batch, self.targets), batch.future, batch.future_mask))
        point, steps, future, mask = (torch.cat(some) for some in zip(*parts, strict=True))
        smallest = SMALLEST_SHARE * steps.mean((0, 1))
        self.smallest.copy_(torch.where(smallest > 0, smallest, 1.0))
        scale = (steps.square() + self.smallest.cpu().square()).sqrt()
        errors = Errors(point.double(), scale.double().expand_as(point), future.double(), mask).pooled()
        self.numbers.copy_(scatter(self.output, errors))


def around(output: Output, point: Tensor, scale: Tensor, numbers: Tensor) -> Tensor:
    """A prediction `[batch, horizon, targets, outputs]` with a given point `[batch, horizon, targets]`.

    Args:
        scale: `[batch, 1, targets]`, or as the point.
        numbers: `[horizon, targets, outputs - 1]`, all but the location, in units of the scale.
    """
    standard = torch.cat([torch.zeros_like(point[..., None]), numbers.expand(len(point), -1, -1, -1)], dim=-1)
    return output.rescale(standard, scale, output.located(point))


def typical_step(batch: Batch, targets: int) -> Tensor:
    """The mean absolute difference of neighbouring real values, 0 where there are none: `[batch, 1, targets]`."""
    values, mask = target_values(batch, targets)
    pairs = mask[:, 1:] & mask[:, :-1]
    values = torch.where(mask, values, 0.0)
    steps = torch.where(pairs, (values[:, 1:] - values[:, :-1]).abs(), 0.0)
    return steps.sum(1, keepdim=True) / pairs.sum(1, keepdim=True).clamp_min(1)


@dataclass(frozen=True)
class Errors:
    """Points and what came, float64 `[windows, horizon, targets]` each.

    Attributes:
        point: the forecasts.
        scale: of the windows.
        future: the truth.
        mask: where it is real.
    """

    point: Tensor
    scale: Tensor
    future: Tensor
    mask: Tensor

    @property
    def relative(self) -> Tensor:
        """Errors in units of the scale, NaN where nothing is real."""
        return torch.where(self.mask, (self.future - self.point) / self.scale, torch.nan)

    def pooled(self) -> Errors:
        """With those of neighbouring steps beside those of a step, where there are few windows."""
        windows, horizon, _ = self.point.shape
        width = -(-FEWEST_ERRORS // windows) if windows < FEWEST_ERRORS else 1
        steps = torch.arange(horizon)[None] + torch.arange(width)[:, None] - width // 2
        return self._taken(lambda part: part[:, steps.clamp(0, horizon - 1)].flatten(0, 1))

    def thinned(self) -> Errors:
        """Of so many that a descent stays quick."""
        every = -(-self.point.numel() // NUMBERS_AT_ONCE)
        return self._taken(lambda part: part[::every])

    def _taken(self, some: Any) -> Errors:
        return Errors(*(some(part) for part in (self.point, self.scale, self.future, self.mask)))


def scatter(output: Output, errors: Errors) -> Tensor:
    """The numbers beside the location, `[horizon, targets, outputs - 1]`, finite.

    For quantiles they are order statistics of the errors, k of n standing for the probability k / (n + 1); for a normal
    distribution it is the root mean square. Others minimise their own loss.
    """
    relative = errors.relative
    if isinstance(output, Quantiles):
        return _steps_between(output, _order_statistics(relative, output.levels))
    size = _filled(relative.square().nanmean(0).sqrt())
    raw = _raw(size)[..., None]
    if isinstance(output, Normal):
        return raw
    start = torch.zeros(*size.shape, output.outputs - 1, dtype=size.dtype)
    if not output.counts:
        start[..., :1] = raw
    return _descend(output, errors.thinned(), start)


def _order_statistics(relative: Tensor, levels: Sequence[float]) -> Tensor:
    """`[errors, horizon, targets]` to `[levels, horizon, targets]`, by definition 6 of Hyndman & Fan (1996)."""
    values = relative.numpy()
    several = np.isnan(values).any(axis=0)
    found = np.quantile(values, levels, axis=0, method="weibull")
    for step, target in np.argwhere(several):
        real = values[~np.isnan(values[:, step, target]), step, target]
        found[:, step, target] = np.quantile(real, levels, method="weibull") if len(real) else np.nan
    normal = torch.special.ndtri(torch.tensor(levels, dtype=torch.float64))
    return torch.stack([_filled(torch.from_numpy(part), float(z)) for part, z in zip(found, normal, strict=True)])


def _steps_between(output: Quantiles, quantiles: Tensor) -> Tensor:
    """Of quantiles `[levels, horizon, targets]`, with the median moved to 0, what gives them as a prediction."""
    quantiles = quantiles.clone()
    quantiles[: output.below].clamp_(max=0.0)
    quantiles[output.below] = 0.0
    quantiles[output.below + 1 :].clamp_(min=0.0)
    gaps = torch.tensor(output.gaps, dtype=quantiles.dtype)
    return _raw(quantiles.diff(dim=0).movedim(0, -1) / gaps)


def _descend(output: Output, errors: Errors, start: Tensor) -> Tensor:
    """Minimise the output's own loss for each step and target by itself.

    By resilient propagation (Riedmiller & Braun 1993), whose steps are of a size of its own for each number.
    """
    numbers = start.clone().requires_grad_()
    optimizer = torch.optim.Rprop([numbers], lr=0.2, step_sizes=(1e-4, 2.0))
    truth = Batch(future=errors.future, future_mask=errors.mask)
    with torch.enable_grad():
        for _ in range(DESCENT_STEPS):
            optimizer.zero_grad()
            output.loss(around(output, errors.point, errors.scale, numbers), truth).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
    return numbers.detach()


def _raw(size: Tensor) -> Tensor:
    """The numbers whose softplus is a size, which is taken to be a little above 0 at least."""
    size = size.clamp_min(SMALLEST_SPREAD)
    return softplus.inverse_softplus(size, size.log())


def _filled(numbers: Tensor, default: float = 1.0) -> Tensor:
    """`[horizon, targets]`, with the mean of the other steps, or else the default, for a step without any error."""
    mean = numbers.nanmean(0, keepdim=True).nan_to_num(default)
    return torch.where(numbers.isnan(), mean, numbers)
