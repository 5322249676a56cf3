"""What a forecast knows beside the past of its channels: covariates that are known ahead, and those of a series."""

from __future__ import annotations

from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tsformer.data.windows import Batch
from tsformer.plugin import Problem

CODE_WIDTH = 16
"""Features of a word of a static covariate, at most."""


class Covariates(nn.Module):
    """Features of each step of the lookback and of the horizon: what is known ahead, beside what belongs to the series.

    Numbers are taken as they come from the scaler, for RevIN would take away the level of a covariate, which is what
    it tells. RevIN also takes away in which unit a window is, so that no map could say what a promotion is worth in it:
    where windows are normalised the logarithm of their scale is one more feature (Salinas et al. 2020, "DeepAR",
    section 3.3; without it the MSE is 2 to 9 times as large on series whose scale differs from window to window). Words
    are embedded; one that is unknown counts as the mean of all others. Under channel independence each target has a
    vector of its own, for a covariate that lifts one may lower the other, and weights are shared.

    Args:
        problem: the whole problem, with at least one future or static covariate.
        scales: targets whose scale is a feature: those of one prediction, or 0 where windows are not normalised.
        copies: how often each example follows itself: under channel independence once for each target.

    Attributes:
        width: features of a step.
    """

    def __init__(self, problem: Problem, scales: int, copies: int = 1) -> None:
        super().__init__()
        self.copies = copies
        self.known, self.numbers = problem.future_covariates, problem.static_covariates
        self.horizon = problem.horizon
        self.words = nn.ModuleList(Words(cardinality) for cardinality in problem.static_cardinalities)
        self.target = nn.Parameter(torch.randn(copies, width_of(copies))) if copies > 1 else None
        widths = [words.width for words in self.words if isinstance(words, Words)]
        widths.append(0 if self.target is None else self.target.shape[1])
        self.width = self.known + self.numbers + sum(widths) + scales

    def forward(self, batch: Batch, scale: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Features of the lookback, `[batch * copies, lookback, width]`, and of the horizon.

        Args:
            batch: with `past_known`, `future_known`, `static` and `static_codes`, where the problem has them.
            scale: `[batch * copies, 1, scales]`, of each window; None where windows are not normalised.

        Raises:
            ValueError: when the batch lacks what the problem has, or some of the steps ahead.
        """
        static = [given(batch, "static")] if self.numbers else []
        if len(self.words):
            codes = given(batch, "static_codes")
            static += [words(codes[:, place]) for place, words in enumerate(self.words)]
        each = [features.repeat_interleave(self.copies, 0)[:, None] for features in static]
        if self.target is not None:
            each.append(self.target.repeat(len(batch.past), 1)[:, None])
        if scale is not None:
            each.append(scale.log())
        past, future = [], []
        if self.known:
            behind, ahead = given(batch, "past_known"), given(batch, "future_known")
            if ahead.shape[1] != self.horizon:
                raise ValueError(f"future_known has {ahead.shape[1]} steps, and the horizon {self.horizon}")
            past.append(behind.repeat_interleave(self.copies, 0))
            future.append(ahead.repeat_interleave(self.copies, 0))
        lookback = batch.past.shape[1]
        return (
            torch.cat([*past, *(features.expand(-1, lookback, -1) for features in each)], dim=-1),
            torch.cat([*future, *(features.expand(-1, self.horizon, -1) for features in each)], dim=-1),
        )


class Words(nn.Module):
    """Embeds the codes of one static covariate, int64 `[batch]`, of which 0 is a word that training has not seen."""

    def __init__(self, cardinality: int) -> None:
        super().__init__()
        known = max(1, cardinality - 1)
        self.width = width_of(known)
        self.table = nn.Parameter(torch.randn(known, self.width))

    def forward(self, codes: Tensor) -> Tensor:
        """`[batch, width]`."""
        return F.embedding(codes, torch.cat([self.table.mean(0, keepdim=True), self.table]))


class KnownSteps(nn.Module):
    """A decoder that forecasts all steps at once, and what is known of each step added to the prediction of that step.

    It is the temporal decoder of TiDE (Das et al. 2023, "Long-term Forecasting with TiDE: Time-series Dense Encoder",
    section 4.2): one map for all steps, of what is known of the step and the mean of the memory, and a straight line
    beside it, under channel independence one for each target. Both start at zero, so that training starts from the
    forecast of the decoder alone.

    Args:
        decoder: `decoder(memory, memory_mask, last, future, truth)`, see `tsformer.nn.decoders`.
        problem: that of the decoder.
        covariates: what makes the features of a step.
        d_model: width of the memory and of the map.
    """

    def __init__(self, decoder: nn.Module, problem: Problem, covariates: Covariates, d_model: int) -> None:
        super().__init__()
        features, copies = covariates.width, covariates.copies
        numbers = problem.targets * problem.outputs
        self.decoder = decoder
        self.hidden = nn.Linear(features + d_model, d_model)
        self.output = nn.Linear(d_model, numbers, bias=False)
        self.line = nn.Parameter(torch.zeros(copies, features, numbers))
        nn.init.zeros_(self.output.weight)

    def forward(
        self, memory: Tensor, memory_mask: Tensor, last: Tensor, future: Tensor | None, truth: float, known: Tensor
    ) -> Tensor:
        """`[batch, horizon, targets, outputs]`; `known` `[batch, horizon, features]`, the others as for decoders."""
        prediction: Tensor = self.decoder(memory, memory_mask, last, future, truth)
        real = memory_mask[..., None]
        summary = torch.where(real, memory, 0.0).sum(1, keepdim=True) / real.sum(1, keepdim=True).clamp_min(1)
        step = torch.cat([known, summary.expand(-1, known.shape[1], -1)], dim=-1)
        each = known.view(-1, len(self.line), *known.shape[1:])  # [batch, copies, horizon, features]
        line = (each @ self.line).flatten(0, 1)
        return prediction + (self.output(F.relu(self.hidden(step))) + line).view_as(prediction)


def width_of(words: int) -> int:
    """Features of one of so many words."""
    return min(CODE_WIDTH, (words + 1) // 2 + 1)


def covariates_of(problem: Problem, inner: Problem, normalised: bool) -> Covariates | None:
    """What makes features of a problem's future and static covariates; None when it has neither.

    Args:
        problem: the whole problem.
        inner: that of one prediction: the same, or `per_channel` of it.
        normalised: whether windows are.
    """
    if not (problem.future_covariates or problem.static_covariates or problem.static_cardinalities):
        return None
    return Covariates(problem, inner.targets if normalised else 0, problem.targets // inner.targets)


def as_past(problem: Problem, features: int) -> Problem:
    """What encoder and decoder are built for: features are more channels of the past, and no covariates remain."""
    past = problem.past_covariates + features
    return replace(problem, past_covariates=past, future_covariates=0, static_covariates=0, static_cardinalities=())


def given(batch: Batch, name: str) -> Tensor:
    """What a batch holds by that name. Raises ValueError when it is None."""
    features: Tensor | None = getattr(batch, name)
    if features is None:
        raise ValueError(f"a batch of a problem with covariates needs {name}")
    return features
