"""How a forecasting model is put together: normalisation, encoder, decoder, and the way back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from tsformer.data.windows import Batch
from tsformer.errors import UsageError
from tsformer.nn.covariates import Covariates
from tsformer.nn.decoders import AutoregressiveDecoder, Units
from tsformer.nn.inputs import Inputs
from tsformer.nn.normalisation import RevIN
from tsformer.nn.outputs import output_of
from tsformer.plugin import Problem


def per_channel(problem: Problem) -> Problem:
    """What encoder and decoder see of a problem under channel independence: one target, and all covariates."""
    return replace(problem, targets=1)


class Seen(NamedTuple):
    """What a decoder is given of a batch.

    Attributes:
        memory, mask, last, future: as decoders take them; under channel independence one target after another.
        known: a decoder's `known`, where there is any.
        units: what undoes the normalisation of each window, `[batch, 1, targets]`; None where windows are not.
    """

    memory: Tensor
    mask: Tensor
    last: Tensor
    future: Tensor | None
    known: Tensor | None
    units: Units | None


class Network(nn.Module):
    """A forecaster made of an encoder and a decoder.

    The encoder, `encoder(x, mask) -> (memory, memory_mask)`, takes `[batch, lookback, channels]` and
    `[batch, lookback]`; it owns the embedding of numbers and the positions. Decoders are described in
    `tsformer.nn.decoders`.

    Args:
        problem: the whole problem.
        encoder, decoder: built for `per_channel(problem)` under channel independence, for `problem` otherwise.
        revin: normalise each window; None leaves values as they are.
        channel_independent: forecast each target by itself with the same weights, beside all past covariates (Nie et
            al. 2023, PatchTST).
        inputs: what makes further covariates of a text at each step; None when there are no texts.
        covariates: what makes features of covariates that are known ahead, or static; None when there are none.

    Raises:
        PluginError: for an unknown output.
    """

    def __init__(
        self,
        problem: Problem,
        encoder: nn.Module,
        decoder: nn.Module,
        revin: RevIN | None = None,
        channel_independent: bool = False,
        inputs: Inputs | None = None,
        covariates: Covariates | None = None,
    ) -> None:
        super().__init__()
        self.targets = problem.targets
        self.output = output_of(problem)
        self.inputs = inputs
        self.covariates = covariates
        self.encoder = encoder
        self.decoder = decoder
        self.revin = revin
        self.channel_independent = channel_independent

    def forward(self, batch: Batch, truth: float = 0.0) -> Tensor:
        """Forecast.

        A value behind a mask changes nothing. Where one is missing, of the past or of the truth that is fed, the last
        one before it stands for it, and the mean of the window where there is none. (Three sines of which 30 % are
        missing: MSE 15 % below that of zeros; channels that tell what is missing gained nothing.) A step without any
        value is zero, and not attended to.

        Args:
            batch: with `past` and `past_mask`; `future` is read only when `truth` is above 0. With `past_known`,
                `future_known`, `static` and `static_codes` where the problem has them.
            truth: probability that the true previous value is fed to the decoder.

        Returns:
            `[batch, horizon, targets, outputs]`, in the units of `batch.past`.
        """
        seen = self._seen(batch, truth)
        prediction: Tensor = self.decoder(seen.memory, seen.mask, seen.last, seen.future, truth, **self._more(seen))
        if self.channel_independent:
            prediction = prediction.reshape(-1, self.targets, *prediction.shape[1:]).squeeze(-2).transpose(1, 2)
        return prediction if seen.units is None else self.output.rescale(prediction, *seen.units)

    @property
    def rolls_out(self) -> bool:
        """Whether the distribution of a step is that given the values fed before it, so that paths have to be drawn."""
        several = isinstance(self.decoder, AutoregressiveDecoder) and self.decoder.horizon > 1
        return several and self.output.probabilistic

    @torch.no_grad()
    def draw(self, batch: Batch, samples: int) -> Tensor:
        """Sample paths of each window, drawn step by step, each fed its own values. The future is not looked at.

        Args:
            batch: as for `forward`.
            samples: paths of each window.

        Returns:
            `[batch, samples, horizon, targets]`, in the units of `batch.past`, drawn with torch's global generator.

        Raises:
            UsageError: when the decoder feeds nothing back, or the output does not say how values scatter.
        """
        if not isinstance(self.decoder, AutoregressiveDecoder):
            raise UsageError("paths are drawn step by step by decoder autoregressive only")
        seen = self._seen(batch, 0.0)
        paths = self.decoder.draw(seen.memory, seen.mask, seen.last, samples, **self._more(seen))
        if self.channel_independent:
            paths = paths.reshape(-1, self.targets, *paths.shape[1:]).squeeze(-1).movedim(1, -1)
        if seen.units is not None:
            paths = paths * seen.units.scale[:, None] + seen.units.shift[:, None]
        return paths.round() if self.output.counts else paths

    def _more(self, seen: Seen) -> dict[str, Any]:
        """What some decoders take beside the rest: what is known ahead, and the units in which counts are fed back."""
        more: dict[str, Any] = {} if seen.known is None else {"known": seen.known}
        if seen.units is not None and self.output.counts and isinstance(self.decoder, AutoregressiveDecoder):
            single = (part.reshape(-1, 1, 1) for part in seen.units)
            more["units"] = Units(*single) if self.channel_independent else seen.units
        return more

    def _seen(self, batch: Batch, truth: float) -> Seen:
        """All that comes before the decoder."""
        mask, future_mask = batch.past_mask, batch.future_mask
        # Zeroed first: a NaN behind the mask would come back in the gradients of the affine weights.
        past = torch.where(mask, batch.past, 0.0)
        future = batch.future if truth > 0.0 else None
        if future is not None and future_mask is not None:
            future = torch.where(future_mask, future, 0.0)
        scale = shift = None
        if self.revin is not None:
            scale, shift = self.revin.statistics(past, mask)
            past = self.revin.normalise(past, scale, shift)
            scale, shift = scale[..., : self.targets], shift[..., : self.targets]
            if future is not None:
                future = self.revin.normalise(future, scale, shift)
        past = filled(past, mask, torch.zeros_like(past[:, 0]))
        last = past[:, -1, : self.targets]
        if future is not None and future_mask is not None:
            future = filled(future, future_mask, last)

        texts = None if self.inputs is None else self.inputs.text_features(batch)
        if texts is not None:  # after the numbers' own norm, as further past covariates
            past = torch.cat([past, texts], dim=-1)
            mask = torch.cat([mask, mask.any(-1, keepdim=True).expand_as(texts)], dim=-1)
        copies = self.targets if self.channel_independent else 1
        if self.channel_independent:
            past, mask, last = fold(past, copies), fold(mask, copies), last.reshape(-1, 1)
            future = None if future is None else fold(future, copies)
        known: Tensor | None = None
        if self.covariates is not None:
            each = None if scale is None else scale.transpose(1, 2).reshape(len(past), 1, -1)
            behind, ahead = self.covariates(batch, each)
            past, known = torch.cat([past, behind], dim=-1), ahead
        steps = mask.any(-1)  # what is known makes no step real, for padding is known, too
        memory, memory_mask = self.encoder(torch.where(steps[..., None], past, 0.0), steps)
        units = None if scale is None or shift is None else Units(scale, shift)
        return Seen(memory, memory_mask, last, future, known, units)


def fold(x: Tensor, targets: int) -> Tensor:
    """`[batch, time, targets + covariates]` to `[batch * targets, time, 1 + covariates]`."""
    target = x[..., :targets].transpose(1, 2).unsqueeze(-1)
    covariates = x[..., targets:].unsqueeze(1).expand(-1, targets, -1, -1)
    return torch.cat([target, covariates], dim=-1).flatten(0, 1)


def last_real(values: Tensor, mask: Tensor) -> Tensor:
    """The last real value of each channel, 0 where there is none.

    Args:
        values: `[batch, time, channels]`.
        mask: boolean `[batch, time, channels]`, True = real.

    Returns:
        `[batch, channels]`.
    """
    nothing = torch.zeros_like(values[:, 0])
    return filled(values, mask, nothing)[:, -1]


def filled(values: Tensor, mask: Tensor, first: Tensor) -> Tensor:
    """Replace what is masked by the last real value before it, and by `first` before any.

    Args:
        values: `[batch, time, channels]`.
        mask: boolean `[batch, time, channels]`, True = real.
        first: `[batch, channels]`.
    """
    steps = torch.arange(1, values.shape[1] + 1, device=values.device)[None, :, None]
    known = torch.where(mask, steps, 0).cummax(1).values
    return torch.cat([first[:, None], values], dim=1).gather(1, known)
