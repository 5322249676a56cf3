"""What several predictions of the same values come to: their quantile functions are averaged.

At each probability the quantile of the whole is the weighted mean of the members' quantiles (Vincent 1912; Lichtendahl,
Grushka-Cockayne & Winkler 2013, "Is it better to average probabilities or quantiles?"). So quantiles never cross, a
normal distribution stays one, and the width is the mean of the widths; averaged probabilities would give wider bands.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from tsformer.errors import PluginError
from tsformer.nn import softplus
from tsformer.nn.counts import SMALLEST_DISPERSION, NegativeBinomial
from tsformer.nn.distributions import Normal, StudentT
from tsformer.nn.outputs import Output
from tsformer.nn.points import Point
from tsformer.nn.quantiles import Quantiles


def averaged(output: Output, predictions: Sequence[Tensor], weights: Tensor) -> Tensor:
    """The weighted mean of predictions.

    Exact for points, quantiles and normal distributions, and for those of Student's t with the same degrees of freedom.
    Of other degrees of freedom it takes the mean of their inverse; of negative binomial distributions the mean of the
    means and of the standard deviations.

    Args:
        output: what the numbers mean.
        predictions: `[batch, horizon, targets, outputs]` each.
        weights: `[predictions]`, above 0, with sum 1.

    Returns:
        `[batch, horizon, targets, outputs]`.

    Raises:
        PluginError: for an output of which no mean is known.
    """
    stacked = torch.stack(tuple(predictions))
    shares = weights.view(-1, 1, 1, 1)
    first = stacked[..., 0]
    if isinstance(output, Point | Quantiles | Normal):
        positive = _mean_softplus(stacked[..., 1:], shares[..., None])
        return torch.cat([(shares * first).sum(0)[..., None], positive], dim=-1)
    if isinstance(output, StudentT):
        _, _, freedom = output.parameters(stacked)
        excess = 1.0 / (shares / freedom).sum(0) - 2.0
        scale = _mean_softplus(stacked[..., 1], shares)
        return torch.stack([(shares * first).sum(0), scale, _raw(excess)], dim=-1)
    if isinstance(output, NegativeBinomial):
        mean, dispersion = output.parameters(stacked)
        deviation = (shares * (mean + dispersion * mean.square()).sqrt()).sum(0)
        whole = (shares * mean).sum(0)
        more = (deviation.square() - whole) / whole.square().clamp_min(torch.finfo(whole.dtype).tiny)
        return torch.stack([_mean_softplus(first, shares), _raw(more.clamp_min(SMALLEST_DISPERSION))], dim=-1)
    raise PluginError(f"predictions of output {output.name} cannot be averaged")


def _mean_softplus(raw: Tensor, shares: Tensor) -> Tensor:
    """The numbers whose softplus is the weighted mean of softplus over the first axis."""
    mean = (shares * F.softplus(raw)).sum(0)
    return softplus.inverse_softplus(mean, (softplus.log_softplus(raw) + shares.log()).logsumexp(0))


def _raw(positive: Tensor) -> Tensor:
    """The numbers whose softplus is that, which is taken to be above 0."""
    positive = positive.clamp_min(SMALLEST_DISPERSION)
    return softplus.inverse_softplus(positive, positive.log())
