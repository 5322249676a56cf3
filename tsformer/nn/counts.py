"""The negative binomial distribution of counts: whole numbers from 0 on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from tsformer.nn import softplus
from tsformer.nn.judged import Judged

SMALLEST_DISPERSION = 1e-8
"""With which counts scatter as a Poisson distribution does."""
MOST_DRAWN = 1e15
"""Of a mean that is drawn from, beyond which a generator of Poisson numbers overflows."""
SMALLEST_MEAN = 1e-6
"""Of a mean that is made of a point forecast of 0."""


class NegativeBinomial(Judged):
    """A negative binomial distribution for each value, by mean and dispersion.

    Two numbers: the location, whose softplus is the mean, and that whose softplus is the dispersion; the variance is
    mean + dispersion * mean^2 (Hilbe 2011, "Negative Binomial Regression", NB2; Salinas et al. 2020, "DeepAR"). The
    dispersion has no unit. An affine change acts on the location, before softplus: large counts follow it, and a mean
    never comes below 0.
    """

    name = "negative_binomial"
    outputs = 2
    counts = True

    def costs(self, prediction: Tensor, future: Tensor) -> Tensor:
        location, raw = _precise(prediction).unbind(-1)
        y = _precise(future)
        dispersion = F.softplus(raw) + SMALLEST_DISPERSION
        number = 1.0 / dispersion
        log_mean = softplus.log_softplus(location)
        log_more = (dispersion * F.softplus(location)).log1p()
        successes = y * (log_mean + dispersion.log() - log_more) - number * log_more
        combinations = torch.lgamma(y + number) - torch.lgamma(number) - torch.lgamma(y + 1.0)
        return -(successes + combinations).to(prediction.dtype)

    def parameters(self, prediction: Tensor) -> tuple[Tensor, Tensor]:
        """`[..., 2]` to mean and dispersion, `[...]` each."""
        location, raw = prediction.unbind(-1)
        return F.softplus(location), F.softplus(raw) + SMALLEST_DISPERSION

    def point(self, prediction: Tensor) -> Tensor:
        """The mean: `[batch, horizon, targets, 2]` to `[batch, horizon, targets]`."""
        return F.softplus(prediction[..., 0])

    def located(self, point: Tensor) -> Tensor:
        """The location of a mean; what is not above 0 counts as next to nothing."""
        mean = point.clamp_min(SMALLEST_MEAN)
        return softplus.inverse_softplus(mean, mean.log())

    def quantiles(self, prediction: Tensor, probabilities: Sequence[float]) -> Tensor:
        """`[batch, horizon, targets, 2]` to `[batch, horizon, targets, probabilities]`, whole numbers."""
        from scipy.special import betainc, nbdtrik  # slow to import

        mean, dispersion = (part.cpu().numpy()[..., None] for part in self.parameters(prediction.detach().double()))
        levels = np.asarray(probabilities, dtype=np.float64)
        number, chance = 1.0 / dispersion, np.clip(1.0 / (1.0 + dispersion * mean), 1e-300, 1.0)
        found = np.maximum(np.ceil(nbdtrik(levels, number, chance)), 0.0)
        below = betainc(number, np.maximum(found, 1.0), chance)  # the probability of less
        found = np.where(below >= levels, found - 1.0, found)
        found = np.where(betainc(number, 1.0, chance) >= levels, 0.0, found)
        return torch.from_numpy(found).to(prediction)

    def sample(self, prediction: Tensor) -> Tensor:
        """`[batch, horizon, targets, 2]` to `[batch, horizon, targets]`: Poisson draws of means drawn from a gamma."""
        mean, dispersion = self.parameters(_precise(prediction.detach()))
        number = 1.0 / dispersion
        means = (
            mean * dispersion * torch.distributions.Gamma(number, torch.ones_like(number), validate_args=False).sample()
        )
        return torch.poisson(means.clamp_max(MOST_DRAWN)).to(prediction.dtype)

    def rescale(self, prediction: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
        """`[batch, horizon, targets, 2]` to the same."""
        location, raw = prediction.unbind(-1)
        return torch.stack([location * scale + shift, raw.expand_as(location * scale)], dim=-1)


def _precise(x: Tensor) -> Tensor:
    """In float64 where there is such a thing: the logarithms of factorials of 1e5 leave float32 no decimals."""
    return x if x.device.type == "mps" else x.double()
