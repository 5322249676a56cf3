"""Windows by index arithmetic on one contiguous tensor: no copies of the data, no loader, no workers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tsformer.data.ragged import Ragged
from tsformer.data.vocabulary import PAD

_UNUSED: Any = None  # what every numeric model reads is typed as a tensor, though a token task leaves it None


@dataclass(frozen=True)
class Batch:
    """What a model is given. Tensors only; what a task does not use is None. Masks: True = real.

    Series are padded on the left, tokens on the right.

    Attributes:
        past: `[batch, lookback, channels]`, targets first, then past covariates; zero where masked.
        past_mask: `[batch, lookback, channels]`.
        past_known: `[batch, lookback, known]`, future covariates over the lookback.
        future_known: `[batch, horizon, known]`, future covariates over the horizon.
        static: `[batch, static]`, numbers per series.
        static_codes: int64 `[batch, categories]`.
        future: `[batch, horizon, targets]`, the truth; None when forecasting.
        future_mask: `[batch, horizon, targets]`.
        tokens: int64 `[batch, length]`, or `[batch, lookback, length]` with a text per step.
        token_mask: like `tokens`.
        target_tokens: int64 `[batch, target_length]`.
        target_token_mask: like `target_tokens`.
        label: int64 `[batch]`.
        hidden: boolean `[batch, time]`, True = hidden from a model that is pretrained and has to find what was there.
        series: int64 `[batch]`, index of the series or example.
        origin: int64 `[batch]`, row of the first predicted step, counted in the windows' own values.
    """

    past: Tensor = _UNUSED
    past_mask: Tensor = _UNUSED
    past_known: Tensor | None = None
    future_known: Tensor | None = None
    static: Tensor | None = None
    static_codes: Tensor | None = None
    future: Tensor | None = None
    future_mask: Tensor | None = None
    tokens: Tensor | None = None
    token_mask: Tensor | None = None
    target_tokens: Tensor | None = None
    target_token_mask: Tensor | None = None
    label: Tensor | None = None
    hidden: Tensor | None = None
    series: Tensor | None = None
    origin: Tensor | None = None

    def to(self, device: torch.device | str) -> Batch:
        """The same batch on another device."""
        tensors: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(self)}
        moved: dict[str, Any] = {name: None if t is None else t.to(device) for name, t in tensors.items()}
        return Batch(**moved)


@dataclass(frozen=True)
class Windows:
    """A set of windows over one tensor of values. Memory is O(rows), whatever the lookback.

    Attributes:
        values: float32 `[rows, channels]`, series one after another, targets first.
        starts: int64 `[windows]`, first row of the series of each window.
        origins: int64 `[windows]`, row of the first predicted step.
        series: int64 `[windows]`, index of the series of each window.
        lookback, horizon, targets: the window's shape.
        known: number of future covariates, the last channels of `values`.
        future: False when the predicted steps lie beyond the data; where covariates are known ahead, rows with them
            follow all the same.
        tokens: `[rows, length]`, the text of each row, as `padded` makes it; a window sees those of its lookback. None
            without texts.
        mask: boolean `[rows, channels]`, where `values` are real; None when all are.
        static: float32 `[series, numbers]`; None without.
        static_codes: int64 `[series, categories]`; None without.
    """

    values: Tensor
    starts: Tensor
    origins: Tensor
    series: Tensor
    lookback: int
    horizon: int
    targets: int
    known: int = 0
    future: bool = True
    tokens: Tensor | None = None
    mask: Tensor | None = None
    static: Tensor | None = None
    static_codes: Tensor | None = None

    def __len__(self) -> int:
        return len(self.origins)

    def batch(self, index: Tensor | None = None) -> Batch:
        """Gather windows; rows before a series' start are masked, and so is what is missing: both are zero.

        Args:
            index: int64 `[batch]`, which windows; all of them when None.
        """
        origins, starts, series = self.origins, self.starts, self.series
        if index is not None:
            origins, starts, series = origins[index], starts[index], series[index]
        rows = origins[:, None] + torch.arange(-self.lookback, 0)
        within = rows >= starts[:, None]
        rows = rows.clamp_min(0)
        values, real = self._gather(rows, within)
        channels = values.shape[-1] - self.known
        future = future_mask = future_known = tokens = None
        if self.future or self.known:
            ahead, there = self._gather(origins[:, None] + torch.arange(self.horizon))
            if self.future:
                future, future_mask = ahead[..., : self.targets], there[..., : self.targets]
            if self.known:
                future_known = ahead[..., channels:]
        if self.tokens is not None:
            tokens = torch.where(within[:, :, None], self.tokens[rows].long(), PAD)
        return Batch(
            past=values[..., :channels],
            past_mask=real[..., :channels],
            past_known=values[..., channels:] if self.known else None,
            future_known=future_known,
            static=None if self.static is None else self.static[series],
            static_codes=None if self.static_codes is None else self.static_codes[series],
            future=future,
            future_mask=future_mask,
            tokens=tokens,
            token_mask=None if tokens is None else tokens != PAD,
            series=series,
            origin=origins,
        )

    def _gather(self, rows: Tensor, within: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Values `[batch, time, channels]` of rows `[batch, time]`, zero where they are not real, and where they are.

        Args:
            within: boolean `[batch, time]`, which rows belong to the window; all when None.
        """
        values = self.values[rows]
        real = torch.ones_like(rows, dtype=torch.bool) if within is None else within
        mask = real[:, :, None].expand_as(values) if self.mask is None else real[:, :, None] & self.mask[rows]
        if self.mask is not None or not bool(real.all()):
            values = torch.where(mask, values, 0.0)
        return values, mask

    def batches(self, size: int) -> Iterator[Batch]:
        """All windows in order, the last batch smaller when it must be."""
        for start in range(0, len(self), size):
            yield self.batch(torch.arange(start, min(start + size, len(self))))

    def passes(self, size: int, generator: np.random.Generator) -> Iterator[np.ndarray]:
        """The windows of each training step, int64 `[at most size]`, without end; each pass has all of them once."""
        while True:
            order = generator.permutation(len(self))
            yield from (order[start : start + size] for start in range(0, len(order), size))

    def part(self, start: int, stop: int) -> Windows:
        """Those from one to before another, in their order."""
        some = slice(start, stop)
        return replace(self, starts=self.starts[some], origins=self.origins[some], series=self.series[some])

    def thin(self, most: int) -> Windows:
        """At most `most` windows, evenly spaced."""
        if len(self) <= most:
            return self
        return self.some(np.linspace(0, len(self) - 1, most).round().astype(np.int64))

    def some(self, index: np.ndarray) -> Windows:
        """Those of an index, int64 `[some]`."""
        keep = torch.from_numpy(index)
        return replace(self, starts=self.starts[keep], origins=self.origins[keep], series=self.series[keep])


def cut_windows(
    values: Tensor,
    offsets: np.ndarray,
    first: np.ndarray,
    stop: np.ndarray,
    *,
    lookback: int,
    horizon: int,
    targets: int,
    known: int = 0,
    stride: int = 1,
    tokens: Tensor | None = None,
    mask: Tensor | None = None,
    breaks: np.ndarray | None = None,
    fewest: np.ndarray | None = None,
    static: Tensor | None = None,
    static_codes: Tensor | None = None,
) -> Windows:
    """All windows whose targets lie in rows `[first, stop)` of their series; inputs may reach back before `first`.

    Where `mask` leaves no target in the future of a window, there is no such window.

    Args:
        values: float32 `[rows, channels]`.
        offsets: int64 `[series + 1]`.
        first, stop: int64 `[series]`, counted from each series' start.
        stride: steps between two windows of a series.
        tokens: the text of each row of `values`, see `padded`.
        mask: boolean `[rows, channels]`, where values are real; None when all are.
        breaks: int64, rows of `values`, ascending: no window holds one together with the row before.
        fewest: int64 `[series]`, rows that a window must see after a break, the others being masked; by default the
            whole lookback.
        static, static_codes: of each series, see `Windows`.
    """
    counts = np.maximum(0, (stop - first - horizon) // stride + 1)
    series = np.repeat(np.arange(len(counts)), counts)
    number = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)  # within its series
    starts = offsets[:-1][series]
    origins = starts + first[series] + number * stride
    kept = np.ones(len(origins), dtype=bool)
    if breaks is not None and len(breaks):
        seen = lookback if fewest is None else np.minimum(fewest[series], lookback)
        before = np.searchsorted(breaks, origins - seen, side="right")  # breaks at or before what it must see
        kept &= before == np.searchsorted(breaks, origins + horizon, side="left")
        starts = np.maximum(starts, np.concatenate([offsets[:1], breaks])[before])
    if mask is not None:
        real = np.concatenate([[0], np.cumsum(mask[:, :targets].any(1).numpy())])
        kept &= real[np.minimum(origins + horizon, len(values))] > real[origins]
    return Windows(
        values,
        torch.from_numpy(starts[kept]),
        torch.from_numpy(origins[kept]),
        torch.from_numpy(series[kept]),
        lookback,
        horizon,
        targets,
        known,
        tokens=tokens,
        mask=mask,
        static=static,
        static_codes=static_codes,
    )


def padded(texts: Ragged, length: int) -> Tensor:
    """The first `length` tokens of each text, int32 `[texts, length]`, filled up with `PAD` on the right."""
    step = np.arange(length)
    real = step < texts.lengths[:, None]
    table = np.full(real.shape, PAD, dtype=np.int32)
    table[real] = texts.values[(texts.offsets[:-1, None] + step)[real]]
    return torch.from_numpy(table)
