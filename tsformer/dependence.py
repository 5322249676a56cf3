"""How the steps of one forecast depend on each other, learned from the validation part.

A direct decoder says how each step scatters, and nothing of whether an error at one step comes with one at the next. It
does: a trend that is misjudged is misjudged at all steps. Paths whose steps are drawn each by itself are too rough, and
what is cumulated of them, as prices are of returns, scatters too little.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import safetensors.torch
import torch
from torch import Tensor, nn

from tsformer import weights
from tsformer.building import device_in_use
from tsformer.data.windows import Batch, Windows
from tsformer.nn.outputs import Output
from tsformer.training.loop import predictions

MOST_NUMBERS = 2**20
"""Of correlations, targets times squared steps; beyond that steps are taken as independent."""
DRAWS = 199
"""Values that are drawn to find the place of a true value among them."""
MOST_DRAWN = 2**25
PRIOR = 20.0
"""Windows that the assumption of no dependence is worth: with so many windows that do not overlap, half is believed."""


def rolls_out(module: nn.Module) -> bool:
    """Whether the distribution of a step is that given what was fed before it, so that only paths know the rest."""
    return bool(getattr(module, "rolls_out", False))


@dataclass(frozen=True)
class Dependence:
    """Correlations between the steps of a forecast, those of normal scores (a Gaussian copula).

    Attributes:
        correlation: float32 `[targets, horizon, horizon]`, positive semidefinite, 1 on the diagonal.
    """

    correlation: Tensor

    def ordered(self, values: Tensor) -> Tensor:
        """Put values, drawn for each step by itself, together to paths whose steps go up and down together.

        Only the order changes: at each step the values are the same ones (Clark et al. 2004, "The Schaake shuffle",
        with a Gaussian template in place of earlier observations). Steps beyond those learned depend on nothing.

        Args:
            values: float64 `[samples, horizon, targets]`, on the CPU.

        Returns:
            The same shape; torch's global generator is drawn from.
        """
        samples, horizon, targets = values.shape
        learned = self.correlation.shape[1]
        template = self.factors @ torch.randn(targets, learned, samples, dtype=torch.float64)
        if horizon > learned:
            beyond = torch.randn(targets, horizon - learned, samples, dtype=torch.float64)
            template = torch.cat([template, beyond], dim=1)
        order = template[:, :horizon].numpy().argsort(-1)  # numpy sorts several times faster than torch
        ordered = np.empty(order.shape)
        np.put_along_axis(ordered, order, np.sort(values.permute(2, 1, 0).numpy()), axis=-1)
        return torch.from_numpy(ordered).permute(2, 1, 0)

    @cached_property
    def factors(self) -> Tensor:
        """`[targets, horizon, horizon]`: times white noise, noise of these correlations."""
        values, vectors = torch.linalg.eigh(self.correlation.double())
        factors = vectors * values.clamp_min(0.0).sqrt()[:, None]
        return factors / factors.norm(dim=-1, keepdim=True).clamp_min(1e-12)

    def to_bytes(self) -> bytes:
        """As a run keeps them."""
        return safetensors.torch.save({"correlation": self.correlation.contiguous()})

    @classmethod
    def from_bytes(cls, content: bytes) -> Dependence:
        """Raises ValueError when they are none."""
        correlation = weights.read(content).get("correlation")
        if correlation is None or correlation.ndim != 3 or correlation.shape[1] != correlation.shape[2]:
            raise ValueError("no correlations of steps")
        return cls(correlation)


def learn_dependence(module: nn.Module, output: Output, windows: Windows, most: int) -> Dependence | None:
    """From the errors of a model on windows that it was not fitted on; None where nothing can be learned, or has to be.

    Each true value is placed in the distribution that was predicted of it, and these places are correlated as normal
    scores, around 0, so that a trend which is misjudged at all steps counts as dependence. With few windows the
    correlations are drawn towards 0. torch's global generator is drawn from.

    Args:
        windows: of the validation part.
        most: windows at most that are looked at.
    """
    targets, horizon = windows.targets, windows.horizon
    if not output.probabilistic or rolls_out(module) or horizon == 1 or targets * horizon**2 > MOST_NUMBERS:
        return None
    windows = windows.thin(min(most, max(1, MOST_DRAWN // (DRAWS * horizon * targets))))
    products = torch.zeros(targets, horizon, horizon, dtype=torch.float64)
    pairs = torch.zeros_like(products)
    for prediction, batch in predictions(module, windows, device_in_use(module)):
        for scores, real in _scores(output, prediction.cpu().double(), batch):
            products += scores.T[:, :, None] * scores.T[:, None, :]
            pairs += real.T[:, :, None] * real.T[:, None, :]
    covariance = products / pairs.clamp_min(1.0)
    deviation = covariance.diagonal(dim1=1, dim2=2).clamp_min(1e-12).sqrt()
    correlation = covariance / (deviation[:, :, None] * deviation[:, None, :])
    believed = _apart(windows) / (_apart(windows) + PRIOR)
    correlation = (believed * correlation).clamp(-1.0, 1.0)
    correlation.diagonal(dim1=1, dim2=2).fill_(1.0)
    return Dependence(correlation.float()) if bool(torch.isfinite(correlation).all()) else None


def _scores(output: Output, prediction: Tensor, batch: Batch) -> list[tuple[Tensor, Tensor]]:
    """For each window the normal scores of its true values, 0 where one is missing, and where they are real, `[horizon,
    targets]` each."""
    assert batch.future is not None
    found = []
    for said, truth, real in zip(prediction, batch.future, _real(batch), strict=True):
        drawn = output.sample(said.expand(DRAWS, *said.shape))
        below = (drawn < truth).double().sum(0) + 0.5 * (drawn == truth).double().sum(0)
        scores = torch.special.ndtri((below + 0.5) / (DRAWS + 1))
        found.append((torch.where(real, scores, 0.0), real.double()))
    return found


def _real(batch: Batch) -> Tensor:
    assert batch.future is not None
    return torch.ones_like(batch.future, dtype=torch.bool) if batch.future_mask is None else batch.future_mask


def _apart(windows: Windows) -> int:
    """How many windows do not overlap."""
    series, origins = windows.series.numpy(), windows.origins.numpy()
    count, last, of = 0, 0, -1
    for index, origin in zip(series.tolist(), origins.tolist(), strict=True):
        if index != of or origin >= last + windows.horizon:
            count, last, of = count + 1, origin, index
    return count
