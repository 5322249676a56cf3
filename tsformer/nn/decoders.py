"""From memory to prediction: autoregressive, by queries, or by a flat head.

All of them are called alike, `decoder(memory, memory_mask, last, future, truth)`, and return
`[batch, horizon, targets, outputs]`:

    memory       `[batch, tokens, d_model]`
    memory_mask  boolean `[batch, tokens]`, True = real
    last         `[batch, targets]`, the last observed value of each target
    future       `[batch, horizon, targets]`, the truth, or None
    truth        probability that the true previous value is fed; direct decoders are fed none and ignore it
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from tsformer.nn.layers import Decoder, LayerCache
from tsformer.nn.outputs import Output
from tsformer.nn.positions import SinusoidalPositions, sinusoid


class AutoregressiveDecoder(nn.Module):
    """One step after the other: `[last, target[:-1]] -> target`, in training as in prediction.

    With `truth` = 1 (teacher forcing) all steps are computed in one parallel pass. Otherwise the decoder is rolled out
    step by step and fed with its own point forecasts, or, by a coin for each step and sample, with the true value
    (scheduled sampling, Bengio et al. 2015). Values fed back carry no gradient. That is why gradients need no slow
    step-by-step graph: the rollout finds the inputs without gradients, and one parallel pass over them gives the
    outputs. Without dropout, in evaluation or at a rate of 0, these are the outputs and the gradients of a
    step-by-step graph. With dropout they are not: rollout and parallel pass draw masks of their own, so that the values
    fed are point forecasts of another thinned network than the one whose outputs are returned. Outputs and gradients
    are exact for the inputs that were fed and the masks of the parallel pass.

    Weights do not depend on the horizon.

    Args:
        layers: the stack.
        output: what is predicted; its point forecast is what is fed back.
        targets: number of targets.
        horizon: number of steps.
        cache: keep keys and values between the steps of a rollout. Without it each step computes its whole past anew:
            the same result, and much slower.
    """

    def __init__(
        self,
        layers: Decoder,
        output: Output,
        targets: int,
        horizon: int,
        cache: bool = True,
    ) -> None:
        super().__init__()
        self.layers = layers
        self.output = output
        self.targets = targets
        self.horizon = horizon
        self.cache = cache
        self.embed = nn.Linear(targets, layers.d_model)
        self.positions = SinusoidalPositions(layers.d_model)
        self.head = nn.Linear(layers.d_model, targets * output.outputs)

    def forward(
        self, memory: Tensor, memory_mask: Tensor, last: Tensor, future: Tensor | None = None, truth: float = 0.0
    ) -> Tensor:
        """`[batch, horizon, targets, outputs]`; arguments as above.

        Raises:
            ValueError: when `truth` is outside [0, 1], or above 0 without a future of `horizon` steps.
        """
        if not 0.0 <= truth <= 1.0:
            raise ValueError(f"truth is a probability, not {truth}")
        coins = None
        if truth > 0.0:
            if future is None or future.shape[1] != self.horizon:
                raise ValueError(f"truth {truth} needs the true future of {self.horizon} steps")
            if truth == 1.0:
                return self._steps(torch.cat([last[:, None], future[:, :-1]], dim=1), memory, memory_mask)
            coins = torch.rand(len(last), self.horizon, 1, device=last.device) < truth
        with torch.no_grad():
            predictions = self._rollout(memory, memory_mask, last, future, coins)
        if not torch.is_grad_enabled():
            return predictions
        fed = self._fed(predictions, future, coins)
        return self._steps(torch.cat([last[:, None], fed[:, :-1]], dim=1), memory, memory_mask)

    def _rollout(
        self, memory: Tensor, memory_mask: Tensor, last: Tensor, future: Tensor | None, coins: Tensor | None
    ) -> Tensor:
        caches = self.layers.caches() if self.cache else None
        inputs, predictions = last[:, None], []
        for step in range(self.horizon):
            if caches is None:
                prediction = self._steps(inputs, memory, memory_mask)[:, -1:]
            else:
                prediction = self._steps(inputs[:, -1:], memory, memory_mask, caches, offset=step)
            predictions.append(prediction)
            fed = self._fed(prediction, future, coins, slice(step, step + 1))
            inputs = torch.cat([inputs, fed], dim=1)
        return torch.cat(predictions, dim=1)

    def _fed(
        self, prediction: Tensor, future: Tensor | None, coins: Tensor | None, steps: slice = slice(None)
    ) -> Tensor:
        """What is fed after the given steps: the true value where the coin says so, the point forecast elsewhere."""
        own = self.output.point(prediction)
        if coins is None or future is None:
            return own
        return torch.where(coins[:, steps], future[:, steps], own)

    def _steps(
        self,
        inputs: Tensor,
        memory: Tensor,
        memory_mask: Tensor,
        caches: Sequence[LayerCache] | None = None,
        offset: int = 0,
    ) -> Tensor:
        """Inputs `[batch, steps, targets]` to the predictions of the steps after them."""
        x = self.positions(self.embed(inputs), offset=offset)
        y: Tensor = self.head(self.layers(x, memory, memory_mask, causal=True, caches=caches))
        return y.view(*y.shape[:2], self.targets, self.output.outputs)


class QueryDecoder(nn.Module):
    """All steps at once: a learned query for each step of the horizon attends to the memory.

    Queries start as sinusoidal positions, so that steps can be told apart from the first update on. Their number is
    the horizon, beyond which the decoder cannot go.

    Args:
        layers: the stack, used without causal mask.
        output: what is predicted.
        targets: number of targets.
        horizon: number of steps.
    """

    def __init__(self, layers: Decoder, output: Output, targets: int, horizon: int) -> None:
        super().__init__()
        self.layers = layers
        self.output = output
        self.targets = targets
        self.queries = nn.Parameter(sinusoid(horizon, layers.d_model))
        self.head = nn.Linear(layers.d_model, targets * output.outputs)

    def forward(
        self, memory: Tensor, memory_mask: Tensor, last: Tensor, future: Tensor | None = None, truth: float = 0.0
    ) -> Tensor:
        """`[batch, horizon, targets, outputs]`; `last`, `future` and `truth` are ignored."""
        queries = self.queries.expand(len(memory), -1, -1)
        y: Tensor = self.head(self.layers(queries, memory, memory_mask, causal=False))
        return y.view(*y.shape[:2], self.targets, self.output.outputs)


class FlatHead(nn.Module):
    """All steps at once, by one linear map of the whole memory (Nie et al. 2023, PatchTST, section 3.1).

    Both the number of tokens and the horizon are fixed by the weights.

    Args:
        output: what is predicted.
        targets: number of targets.
        horizon: number of steps.
        tokens: number of tokens of the memory.
        d_model: their width.
    """

    def __init__(self, output: Output, targets: int, horizon: int, tokens: int, d_model: int) -> None:
        super().__init__()
        self.shape = (horizon, targets, output.outputs)
        self.tokens = tokens
        self.head = nn.Linear(tokens * d_model, horizon * targets * output.outputs)

    def forward(
        self, memory: Tensor, memory_mask: Tensor, last: Tensor, future: Tensor | None = None, truth: float = 0.0
    ) -> Tensor:
        """`[batch, horizon, targets, outputs]`; `last`, `future` and `truth` are ignored.

        Raises:
            ValueError: when the memory has another number of tokens than the head was built for.
        """
        if memory.shape[1] != self.tokens:
            raise ValueError(f"a flat head built for {self.tokens} tokens was given {memory.shape[1]}")
        memory = torch.where(memory_mask[..., None], memory, 0.0)
        y: Tensor = self.head(memory.flatten(1))
        return y.view(-1, *self.shape)
