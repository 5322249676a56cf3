"""How a forecasting model is put together: normalisation, encoder, decoder, and the way back."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn

from tsformer.data.windows import Batch
from tsformer.errors import PluginError
from tsformer.nn.inputs import Inputs
from tsformer.nn.normalisation import RevIN
from tsformer.nn.outputs import output_of
from tsformer.plugin import Problem


def per_channel(problem: Problem) -> Problem:
    """What encoder and decoder see of a problem under channel independence: one target, and all covariates."""
    return replace(problem, targets=1)


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

    Raises:
        PluginError: for future or static covariates, and for an unknown output.
    """

    def __init__(
        self,
        problem: Problem,
        encoder: nn.Module,
        decoder: nn.Module,
        revin: RevIN | None = None,
        channel_independent: bool = False,
        inputs: Inputs | None = None,
    ) -> None:
        super().__init__()
        if problem.future_covariates or problem.static_covariates or problem.static_cardinalities:
            raise PluginError("this model takes neither future nor static covariates: leave them out")
        self.targets = problem.targets
        self.output = output_of(problem)
        self.inputs = inputs
        self.encoder = encoder
        self.decoder = decoder
        self.revin = revin
        self.channel_independent = channel_independent

    def forward(self, batch: Batch, truth: float = 0.0) -> Tensor:
        """Forecast.

        Args:
            batch: with `past` and `past_mask`; `future` is read only when `truth` is above 0. A value behind a mask
                changes nothing; a missing true value is replaced by the last one known before it.
            truth: probability that the true previous value is fed to the decoder.

        Returns:
            `[batch, horizon, targets, outputs]`, in the units of `batch.past`.
        """
        mask = batch.past_mask
        # Zeroed first: a NaN behind the mask would come back in the gradients of the affine weights.
        past = torch.where(mask, batch.past, 0.0)
        last = last_real(past[..., : self.targets], mask[..., : self.targets])
        future = batch.future if truth > 0.0 else None
        if future is not None and batch.future_mask is not None:
            future = _filled(future, batch.future_mask, last)

        scale = shift = None
        if self.revin is not None:
            scale, shift = self.revin.statistics(past, mask)
            past = torch.where(mask, self.revin.normalise(past, scale, shift), 0.0)
            scale, shift = scale[..., : self.targets], shift[..., : self.targets]
            last = self.revin.normalise(last[:, None], scale, shift)[:, 0]
            if future is not None:
                future = self.revin.normalise(future, scale, shift)

        texts = None if self.inputs is None else self.inputs.text_features(batch)
        if texts is not None:  # after the numbers' own norm, as further past covariates
            past = torch.cat([past, texts], dim=-1)
            mask = torch.cat([mask, mask.any(-1, keepdim=True).expand_as(texts)], dim=-1)
        if self.channel_independent:
            prediction: Tensor = self._each_channel(past, mask, last, future, truth)
        else:
            memory, memory_mask = self.encoder(past, mask.any(-1))
            prediction = self.decoder(memory, memory_mask, last, future, truth)
        if scale is None or shift is None:
            return prediction
        return self.output.rescale(prediction, scale, shift)

    def _each_channel(self, past: Tensor, mask: Tensor, last: Tensor, future: Tensor | None, truth: float) -> Tensor:
        size = len(past)
        mask = fold(mask, self.targets).any(-1)
        memory, memory_mask = self.encoder(fold(past, self.targets), mask)
        if future is not None:
            future = fold(future, self.targets)
        prediction: Tensor = self.decoder(memory, memory_mask, last.reshape(-1, 1), future, truth)
        horizon, outputs = prediction.shape[1], prediction.shape[-1]
        return prediction.reshape(size, self.targets, horizon, outputs).transpose(1, 2)


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
    return _filled(values, mask, nothing)[:, -1]


def _filled(values: Tensor, mask: Tensor, first: Tensor) -> Tensor:
    """Replace what is masked by the last real value before it, and by `first` `[batch, channels]` before any."""
    steps = torch.arange(1, values.shape[1] + 1, device=values.device)[None, :, None]
    known = torch.where(mask, steps, 0).cummax(1).values
    return torch.cat([first[:, None], values], dim=1).gather(1, known)
