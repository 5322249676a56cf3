"""Distributions of each predicted value, fitted by its negative log-likelihood: Normal and Student's t.

Number 0 of a prediction is the location; the others are made positive by softplus, so that any real numbers will do.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from tsformer.nn import softplus
from tsformer.nn.judged import Judged

SMALLEST_SCALE = 1e-6
"""Of a distribution, so that a value which is predicted exactly still has a finite likelihood."""
MOST_FREEDOM = 1e6
"""Degrees of freedom above which Student's t is a normal distribution in every respect."""


class _Located(Judged):
    """A distribution with a location and a scale: number 0, and the number 1 whose softplus is the scale."""

    def point(self, prediction: Tensor) -> Tensor:
        """The mean: `[batch, horizon, targets, outputs]` to `[batch, horizon, targets]`."""
        return prediction[..., 0]

    def rescale(self, prediction: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
        """`[batch, horizon, targets, outputs]` to the same; a shape stays as it is."""
        location, raw, *shape = prediction.unbind(-1)
        # SMALLEST_SCALE is left out: it is added at the end, in the units of the target. A floor here would be flat,
        # and a spread that has come below it could never widen again.
        return torch.stack([location * scale + shift, softplus.rescaled(raw, scale), *shape], dim=-1)


class Normal(_Located):
    """A normal distribution for each value: its mean, and the number whose softplus is its standard deviation."""

    name = "normal"
    outputs = 2

    def costs(self, prediction: Tensor, future: Tensor) -> Tensor:
        mean, scale = self.parameters(prediction)
        return 0.5 * ((future - mean) / scale).square() + scale.log() + 0.5 * math.log(2.0 * math.pi)

    def parameters(self, prediction: Tensor) -> tuple[Tensor, Tensor]:
        """`[..., 2]` to mean and standard deviation, `[...]` each."""
        mean, raw = prediction.unbind(-1)
        return mean, F.softplus(raw) + SMALLEST_SCALE

    def quantiles(self, prediction: Tensor, probabilities: Sequence[float]) -> Tensor:
        """`[batch, horizon, targets, 2]` to `[batch, horizon, targets, probabilities]`."""
        mean, scale = self.parameters(prediction)
        return mean[..., None] + scale[..., None] * torch.special.ndtri(mean.new_tensor(probabilities))

    def sample(self, prediction: Tensor) -> Tensor:
        """`[batch, horizon, targets, 2]` to `[batch, horizon, targets]`."""
        mean, scale = self.parameters(prediction.detach())
        return mean + scale * torch.randn_like(mean)


class StudentT(_Located):
    """Student's t for each value, for tails heavier than those of a normal distribution.

    Three numbers: the location; that whose softplus is the scale; that whose softplus, plus 2, is the number of degrees
    of freedom, so that there is a variance (Salinas et al. 2020, "DeepAR", uses the like).
    """

    name = "student_t"
    outputs = 3

    def costs(self, prediction: Tensor, future: Tensor) -> Tensor:
        location, scale, freedom = self.parameters(prediction)
        away = (future - location) / (scale * freedom.sqrt())
        constant = _log_gamma_ratio(0.5 * freedom) - 0.5 * (math.pi * freedom).log()
        return 0.5 * (freedom + 1.0) * _log1p_square(away) + scale.log() - constant

    def parameters(self, prediction: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """`[..., 3]` to location, scale and degrees of freedom, `[...]` each."""
        location, raw_scale, raw_freedom = prediction.unbind(-1)
        freedom = 2.0 + F.softplus(raw_freedom).clamp_max(MOST_FREEDOM)
        return location, F.softplus(raw_scale) + SMALLEST_SCALE, freedom

    def quantiles(self, prediction: Tensor, probabilities: Sequence[float]) -> Tensor:
        """`[batch, horizon, targets, 3]` to `[batch, horizon, targets, probabilities]`."""
        from scipy.special import stdtrit  # slow to import

        location, scale, freedom = self.parameters(prediction.detach())
        standard = stdtrit(freedom.cpu().double().numpy()[..., None], np.asarray(probabilities, dtype=np.float64))
        return location[..., None] + scale[..., None] * torch.from_numpy(standard).to(location)

    def sample(self, prediction: Tensor) -> Tensor:
        """`[batch, horizon, targets, 3]` to `[batch, horizon, targets]`."""
        location, scale, freedom = self.parameters(prediction.detach())
        gamma = torch.distributions.Gamma(0.5 * freedom, torch.full_like(freedom, 0.5), validate_args=False)
        return location + scale * torch.randn_like(location) * (freedom / gamma.sample()).sqrt()


def _log_gamma_ratio(x: Tensor) -> Tensor:
    """log(Gamma(x + 1/2) / Gamma(x)) for x of 1 and more, without the cancellation of large terms.

    From 8 on by the asymptotic series (Tricomi & Erdelyi 1951), there exact to 1e-9.
    """
    few, many = x.clamp_max(8.0), x.clamp_min(8.0)
    inverse = 1.0 / many
    series = inverse * (-1 / 8 + inverse.square() * (1 / 192 - inverse.square() / 640))
    return torch.where(x < 8.0, torch.lgamma(few + 0.5) - torch.lgamma(few), 0.5 * many.log() + series)


def _log1p_square(x: Tensor) -> Tensor:
    """log(1 + x^2), also where x^2 would overflow."""
    near, far = x.clamp(-1e3, 1e3), x.abs().clamp_min(1e3)
    return torch.where(x.abs() < 1e3, near.square().log1p(), 2.0 * far.log())
