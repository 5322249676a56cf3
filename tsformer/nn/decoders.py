"""From memory to prediction, step by step; those that predict all steps at once are in `nn/direct.py`.

All of them are called alike, `decoder(memory, memory_mask, last, future, truth)`, with `known` after that where there
are future or static covariates, and return `[batch, horizon, targets, outputs]`:

    memory       `[batch, tokens, d_model]`
    memory_mask  boolean `[batch, tokens]`, True = real
    last         `[batch, targets]`, the last observed value of each target
    future       `[batch, horizon, targets]`, the truth, or None
    truth        probability that the true previous value is fed; direct decoders are fed none and ignore it
    known        `[batch, horizon, features]`, what is known ahead of each step; direct decoders are given it by
                 `tsformer.nn.covariates.KnownSteps`

The autoregressive one takes `units`, too, where the network normalises windows and targets are counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from tsformer.errors import UsageError
from tsformer.nn.layers import Decoder, LayerCache
from tsformer.nn.outputs import Output
from tsformer.nn.positions import SinusoidalPositions

DecoderKind = Literal["direct", "autoregressive"]
Sampling = Literal["steps", "two_pass"]
Feedback = Literal["mean", "sample"]


class Context(NamedTuple):
    """What an autoregressive decoder sees beside the values that it is fed.

    Attributes:
        memory: `[batch, tokens, d_model]`.
        mask: boolean `[batch, tokens]`, True = real.
        known: `[batch, horizon, d_model]`, embedded; None without covariates.
    """

    memory: Tensor
    mask: Tensor
    known: Tensor | None


class Units(NamedTuple):
    """What undoes the normalisation of windows: target = scale * normalised + shift. Both `[batch, 1, targets]`."""

    scale: Tensor
    shift: Tensor


class AutoregressiveDecoder(nn.Module):
    """One step after the other: `[last, target[:-1]] -> target`, in training as in prediction.

    With `truth` = 1 (teacher forcing) all steps are computed in one parallel pass. With `truth` = 0 the decoder is
    rolled out step by step and fed its own predictions. In between, a coin for each step and sample says whether it is
    fed the true value or its own (scheduled sampling, Bengio et al. 2015).

    Values of its own carry no gradient when they are fed back. That is why gradients need no slow step-by-step graph:
    the inputs are found without gradients, and one parallel pass over them gives the outputs. Inputs can be found in
    two ways:

        steps     by a rollout: its own values follow from what was fed before them. Without dropout, outputs and
                  gradients are those of a step-by-step graph.
        two_pass  by one parallel pass that is fed the truth (Mihaylova & Martins 2019, "Scheduled Sampling for
                  Transformers"): its own values follow from the true past, not from the mixed one. An approximation, at
                  the price of one parallel pass instead of `horizon` steps. Used in training only, and only strictly
                  between 0 and 1, for at 0 there is no truth to start from.

    Either way the loss is that of the last pass, which sees what prediction may show it. The pass before only finds
    inputs; as they carry no gradient, it gets none. With dropout both draw masks of their own, so that the values fed
    are those of another thinned network than the one whose outputs are returned.

    Weights do not depend on the horizon.

    Args:
        layers: the stack.
        output: what is predicted.
        targets: number of targets.
        horizon: number of steps.
        cache: keep keys and values between the steps of a rollout. Without it each step computes its whole past anew:
            the same result, and much slower.
        positions: `positions(x, mask=None, offset=0)` adds the place of each step; sinusoidal when None.
        sampling: how inputs are found between 0 and 1, "steps" or "two_pass".
        feedback: the value of its own is the "mean", or a "sample" of the predicted distribution. That only in
            training: prediction always feeds back the mean, and `draw` always samples.
        known: features that are known ahead of each step, added to the embedding from which that step is predicted.

    Raises:
        UsageError: for samples of an output that does not say how values scatter.
    """

    def __init__(
        self,
        layers: Decoder,
        output: Output,
        targets: int,
        horizon: int,
        cache: bool = True,
        positions: nn.Module | None = None,
        sampling: Sampling = "steps",
        feedback: Feedback = "mean",
        known: int = 0,
    ) -> None:
        super().__init__()
        if feedback == "sample" and not output.probabilistic:
            raise UsageError(
                f"feedback sample draws from the predicted distribution, and output {output.name} has none; "
                "choose another output, such as normal, or feedback mean"
            )
        self.layers = layers
        self.output = output
        self.targets = targets
        self.horizon = horizon
        self.cache = cache
        self.sampling = sampling
        self.feedback = feedback
        self.embed = nn.Linear(targets, layers.d_model)
        self.known = nn.Linear(known, layers.d_model, bias=False) if known else None
        self.positions = SinusoidalPositions(layers.d_model) if positions is None else positions
        self.head = nn.Linear(layers.d_model, targets * output.outputs)

    def forward(
        self,
        memory: Tensor,
        memory_mask: Tensor,
        last: Tensor,
        future: Tensor | None = None,
        truth: float = 0.0,
        known: Tensor | None = None,
        units: Units | None = None,
    ) -> Tensor:
        """`[batch, horizon, targets, outputs]`; arguments as above.

        Raises:
            ValueError: when `truth` is outside [0, 1], or above 0 without a future of `horizon` steps, and when what
                is known of each step is missing.
        """
        if not 0.0 <= truth <= 1.0:
            raise ValueError(f"truth is a probability, not {truth}")
        context = self._context(memory, memory_mask, known)
        coins = None
        if truth > 0.0:
            if future is None or future.shape[1] != self.horizon:
                raise ValueError(f"truth {truth} needs the true future of {self.horizon} steps")
            if truth == 1.0:
                return self._steps(_shifted(last, future), context)
            coins = torch.rand(len(last), self.horizon, 1, device=last.device) < truth
        if coins is not None and future is not None and self.training and self.sampling == "two_pass":
            with torch.no_grad():
                own = self._own(self._steps(_shifted(last, future), context), units)
        else:
            with torch.no_grad():
                predictions, own = self._rollout(context, last, future, coins, units)
            if not torch.is_grad_enabled():
                return predictions
        return self._steps(_shifted(last, _fed(own, future, coins)), context)

    @torch.no_grad()
    def draw(
        self,
        memory: Tensor,
        memory_mask: Tensor,
        last: Tensor,
        samples: int,
        known: Tensor | None = None,
        units: Units | None = None,
    ) -> Tensor:
        """Sample paths: at each step a value is drawn, and fed to the next one. Without gradient.

        The first step is computed once for all paths of a window, and so is what the memory gives to attention.

        Args:
            memory, memory_mask, last, known, units: as above, of each window once.
            samples: paths of each window.

        Returns:
            `[batch, samples, horizon, targets]`, drawn with torch's global generator.

        Raises:
            UsageError: for an output that does not say how values scatter.
        """
        context = self._context(memory, memory_mask, known)
        rows = torch.arange(len(last), device=last.device).repeat_interleave(samples)
        several = Context(
            memory[rows] if not self.cache else memory,  # which a cache holds by then
            memory_mask[rows],
            None if context.known is None else context.known[rows],
        )
        units = None if units is None else Units(units.scale[rows], units.shift[rows])
        caches = self.layers.caches() if self.cache else None
        prediction = self._steps(last[:, None], context, caches)[rows]
        for cache in caches or ():
            cache.past.take(rows)
            cache.memory.take(rows)
        inputs = last[rows, None]
        for step in range(self.horizon):
            if step and caches is None:
                prediction = self._steps(inputs, several)[:, -1:]
            elif step:
                prediction = self._steps(inputs[:, -1:], several, caches, offset=step)
            inputs = torch.cat([inputs, self._value(self.output.sample, prediction, units)], dim=1)
        return inputs[:, 1:].view(len(last), samples, self.horizon, self.targets)

    def _context(self, memory: Tensor, memory_mask: Tensor, known: Tensor | None) -> Context:
        """Raises ValueError when what is known of each step is missing."""
        if self.known is not None and known is None:
            raise ValueError("a decoder built for covariates needs what is known of each step")
        return Context(memory, memory_mask, None if self.known is None else self.known(known))

    def _rollout(
        self, context: Context, last: Tensor, future: Tensor | None, coins: Tensor | None, units: Units | None
    ) -> tuple[Tensor, Tensor]:
        """Predictions `[batch, horizon, targets, outputs]` and values of its own `[batch, horizon, targets]`."""
        caches = self.layers.caches() if self.cache else None
        inputs, predictions, values = last[:, None], [], []
        for step in range(self.horizon):
            if caches is None:
                prediction = self._steps(inputs, context)[:, -1:]
            else:
                prediction = self._steps(inputs[:, -1:], context, caches, offset=step)
            own = self._own(prediction, units)
            predictions.append(prediction)
            values.append(own)
            inputs = torch.cat([inputs, _fed(own, future, coins, slice(step, step + 1))], dim=1)
        return torch.cat(predictions, dim=1), torch.cat(values, dim=1)

    def _own(self, prediction: Tensor, units: Units | None) -> Tensor:
        """What it feeds back of a prediction."""
        sampled = self.feedback == "sample" and self.training
        return self._value(self.output.sample if sampled else self.output.point, prediction, units)

    def _value(self, value: Callable[[Tensor], Tensor], prediction: Tensor, units: Units | None) -> Tensor:
        """A value `[batch, steps, targets]` of a prediction, normalised as the window is."""
        if units is None or not self.output.counts:
            return value(prediction)
        return (value(self.output.rescale(prediction, *units)) - units.shift) / units.scale

    def _steps(
        self, inputs: Tensor, context: Context, caches: Sequence[LayerCache] | None = None, offset: int = 0
    ) -> Tensor:
        """Inputs `[batch, steps, targets]` to the predictions of the steps after them, from step `offset` on."""
        x = self.embed(inputs)
        if context.known is not None:
            x = x + context.known[:, offset : offset + x.shape[1]]
        x = self.positions(x, offset=offset)
        y: Tensor = self.head(self.layers(x, context.memory, context.mask, causal=True, caches=caches))
        return y.view(*y.shape[:2], self.targets, self.output.outputs)


def _shifted(last: Tensor, values: Tensor) -> Tensor:
    """What is fed when these values are the answers: each comes a step later, after `last`."""
    return torch.cat([last[:, None], values[:, :-1]], dim=1)


def _fed(own: Tensor, future: Tensor | None, coins: Tensor | None, steps: slice = slice(None)) -> Tensor:
    """The true value of the given steps where the coin says so, the decoder's own elsewhere."""
    if coins is None or future is None:
        return own
    return torch.where(coins[:, steps], future[:, steps], own)
