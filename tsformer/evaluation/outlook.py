"""What a fitted model says at many origins of a panel, in as few passes as can be, from nothing that comes later.

An origin is the first row that is forecast. At each one a forecast is that of a panel that ends there; only covariates
that are known ahead are read beyond it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import nn

from tsformer.data.empty_columns import without_unlearned
from tsformer.data.extension import extended
from tsformer.data.panel import Panel
from tsformer.data.precision import check_precision
from tsformer.data.selection import beginnings, blaming, selected
from tsformer.data.transforms import Chain, Transformed
from tsformer.data.windows import Windows
from tsformer.errors import DataError, DivergedError, TsformerError, UsageError
from tsformer.fitted import Fitted
from tsformer.forecast import steps_needed, tokens_of, with_horizon
from tsformer.predictive import Ask, Predictive, predictive
from tsformer.preparation import model_rows, model_statics

NUMBERS_AT_ONCE = 2**21
"""Of forecasts, with their quantiles."""
MOST_RETRIES = 64
"""Passes that may fail while those origins are looked for at which a model has an answer."""


@dataclass(frozen=True)
class Outlook:
    """What a model says of some windows.

    Attributes:
        index: int64 `[some]`, which of the windows that were asked for.
        said: of these, in the user's units; None where there is no forecast.
        reason: why there is none.
    """

    index: np.ndarray
    said: Predictive | None
    reason: TsformerError | None = None


def outlooks(
    fitted: Fitted,
    panel: Panel,
    series: np.ndarray,
    origins: np.ndarray,
    number: np.ndarray,
    horizon: int,
    ask: Ask | None = None,
) -> Iterator[Outlook]:
    """Forecasts from many origins, each window in one of what is returned.

    Series that the transforms know go through them once, with all their rows: what a window sees ends at its origin.
    Others are as new to the model as in a forecast: at each origin their transforms are fitted on the rows before it.

    Args:
        fitted: the model.
        panel: rows in the columns of `fitted.schema`, `horizon` of them after each origin.
        series: int64 `[windows]`.
        origins: int64 `[windows]`, rows of the first predicted steps, counted from the start of each series.
        number: int64 `[windows]`, groups of windows with at most one of each series.
        horizon: steps of each forecast.
        ask: what is wanted beside points.

    Raises:
        UsageError: a horizon that the model cannot do.
    """
    module, steps = fitted.module, fitted.problem.horizon
    if horizon > steps:
        module, steps = with_horizon(fitted, horizon), horizon
    if steps > horizon and fitted.problem.future_covariates and steps_needed(fitted, horizon, steps)[0] > horizon:
        raise UsageError(
            f"model '{fitted.settings.model.name}' reads what is known ahead of all {steps} steps that it was fitted "
            f"for: take --horizon {steps}"
        )
    passes = _Passes(fitted, module, panel, series, origins, steps, horizon, ask or Ask())
    few, blind = _without_past(fitted, panel, series, origins)
    needed = fitted.problem.lookback + fitted.chain.lost
    for left_out, why in (
        (few, f"fewer than the {needed} rows that the model looks back"),
        (blind & ~few, f"no value in the {needed} rows before"),
    ):
        if left_out.any():
            yield Outlook(np.flatnonzero(left_out), None, DataError(why))
    there = ~few & ~blind
    new = np.isin(panel.ids, fitted.chain.unseen(panel))[series]
    known = np.flatnonzero(there & ~new)
    if len(known):
        yield from passes.whole(known, number)
    for which in np.unique(number[there & new]):
        yield from passes.cut(np.flatnonzero(there & new & (number == which)))


@dataclass(frozen=True)
class _Stand:
    """Windows that are ready for a pass."""

    chain: Chain
    data: Transformed
    windows: Windows


class _Passes:
    """The passes of one model over one panel; arguments as of `outlooks`."""

    def __init__(
        self,
        fitted: Fitted,
        module: nn.Module,
        panel: Panel,
        series: np.ndarray,
        origins: np.ndarray,
        steps: int,
        horizon: int,
        ask: Ask,
    ) -> None:
        self._fitted, self._module, self._panel, self._ask = fitted, module, panel, ask
        self._series, self._origins, self._steps, self._horizon = series, origins, steps, horizon
        numbers = horizon * fitted.problem.targets * (1 + len(ask.probabilities) + ask.paths)
        self._at_once = max(1, NUMBERS_AT_ONCE // numbers)
        self._retries = MOST_RETRIES

    def whole(self, index: np.ndarray, number: np.ndarray) -> Iterator[Outlook]:
        """Windows of series that the transforms know, all origins in one pass over all rows."""
        keep = np.isin(np.arange(len(self._panel.ids)), self._series[index])
        place = (np.cumsum(keep) - 1)[self._series[index]]
        try:
            stand = self._stand(self._fitted.chain, selected(self._panel, keep), place, self._origins[index])
        except (DataError, DivergedError):
            # of rows after some of the origins, maybe: each by itself, then
            for which in np.unique(number[index]):
                yield from self.cut(index[number[index] == which])
            return
        yield from self._said(stand, index)

    def cut(self, index: np.ndarray) -> Iterator[Outlook]:
        """Windows of as many series, from a panel that ends at their origins but for what is known ahead."""
        while len(index):
            keep = np.isin(np.arange(len(self._panel.ids)), self._series[index])
            order = index[np.argsort(self._series[index], kind="stable")]
            rows = selected(self._panel, keep)
            try:
                stand = blaming(self._cut_stand, rows, beginnings(rows, self._origins[order]))
            except (DataError, DivergedError) as error:
                bad = np.ones(len(order), dtype=bool) if error.series is None else error.series
                yield Outlook(order[bad], None, error)
                index = order[~bad]
            else:
                yield from self._said(stand, order)
                return

    def _cut_stand(self, rows: Panel, past: Panel) -> _Stand:
        """The windows after the last rows of a panel.

        Args:
            rows: of which what is known ahead is taken.
            past: the beginnings of all its series.
        """
        origins, targets = past.lengths, past.schema.targets
        read = len(targets) + len(past.schema.past_covariates)
        ahead = beginnings(rows, origins + self._horizon)
        values = ahead.values.copy()
        later = np.arange(len(values)) - np.repeat(ahead.offsets[:-1], ahead.lengths)
        values[later >= np.repeat(origins, ahead.lengths), :read] = np.nan
        ahead = replace(ahead, values=values, masked=True)
        chain = self._fitted.chain
        new = np.isin(past.ids, chain.unseen(past))
        if new.any():
            if chain.links:
                ahead, _ = without_unlearned(ahead, np.where(new, origins, ahead.lengths))
            own, some = Chain(chain.links), selected(past, new)
            own.fit(some, some.lengths)
            chain = Chain(chain.links, {**chain.states, **own.states})
        return self._stand(chain, ahead, np.arange(len(past.ids)), origins)

    def _stand(self, chain: Chain, panel: Panel, series: np.ndarray, origins: np.ndarray) -> _Stand:
        fitted, problem, more = self._fitted, self._fitted.problem, self._steps - self._horizon
        starts = stretch_starts(panel, series, origins)
        if more and problem.future_covariates:  # of further steps nothing need be known, but there have to be rows
            times = [panel.times[stop - 1 : stop].repeat(more) for stop in panel.offsets[1:].tolist()]
            nothing = np.full((len(panel.ids), more, len(panel.schema.future_covariates)), np.nan)
            panel = extended(panel, times, nothing)
        data = chain.forward(panel)
        check_precision(panel, chain, data)
        tensor, mask = model_rows(panel, chain, data)
        numbers, codes = model_statics(panel, fitted.statics)
        windows = Windows(
            tensor,
            torch.from_numpy(data.offsets[series] + starts),
            torch.from_numpy(data.offsets[series] + origins - chain.lost),
            torch.from_numpy(series),
            problem.lookback,
            self._steps,
            problem.targets,
            problem.future_covariates,
            future=False,
            tokens=tokens_of(fitted, panel),
            mask=mask,
            static=numbers,
            static_codes=codes,
        )
        return _Stand(chain, data, windows)

    def _said(self, stand: _Stand, index: np.ndarray) -> Iterator[Outlook]:
        """The forecasts of a stand, a portion at a time."""
        for start in range(0, len(index), self._at_once):
            yield from self._tried(stand, index, np.arange(start, min(start + self._at_once, len(index))))

    def _tried(self, stand: _Stand, index: np.ndarray, some: np.ndarray) -> Iterator[Outlook]:
        """Of what cannot be forecast together the halves, down to those windows that are at fault."""
        try:
            said = self._predicted(stand, some)
        except TsformerError as error:
            self._retries -= 1
            if len(some) == 1 or self._retries < 0:
                yield Outlook(index[some], None, error)
                return
            middle = len(some) // 2
            for half in (some[:middle], some[middle:]):
                yield from self._tried(stand, index, half)
            return
        values = [each for each in (said.point, said.quantiles, said.paths) if each is not None]
        finite = np.all([np.isfinite(each).reshape(len(some), -1).all(axis=1) for each in values], axis=0)
        if finite.any():
            yield Outlook(index[some[finite]], said if finite.all() else _part(said, finite))
        if not finite.all():
            yield Outlook(index[some[~finite]], None, DivergedError("the forecast is not finite"))

    def _predicted(self, stand: _Stand, some: np.ndarray) -> Predictive:
        windows, chosen = stand.windows, torch.from_numpy(some)
        part = replace(
            windows,
            starts=windows.starts[chosen],
            origins=windows.origins[chosen],
            series=windows.series[chosen],
        )
        chain, module = stand.chain, self._module
        return predictive(self._fitted, part, stand.data, self._ask, chain=chain, module=module, horizon=self._horizon)


def stretch_starts(panel: Panel, series: np.ndarray, origins: np.ndarray) -> np.ndarray:
    """Where the stretch without a break begins that ends at each origin, in rows of the series, int64 `[windows]`."""
    starts = panel.offsets[series]
    before = np.searchsorted(panel.breaks, starts + origins)
    return np.asarray(np.maximum(np.concatenate([[0], panel.breaks])[before], starts) - starts)


def _without_past(
    fitted: Fitted, panel: Panel, series: np.ndarray, origins: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Which windows have too few rows before their origins, and which no value of a target in those that are seen."""
    lookback, lost = fitted.problem.lookback, fitted.chain.lost
    rows = origins - stretch_starts(panel, series, origins)
    few = rows < lost + (1 if fitted.settings.window.short == "pad" else lookback)
    if not panel.masked:
        return few, np.zeros_like(few)
    real = np.isfinite(panel.values[:, : len(panel.schema.targets)]).any(axis=1)
    counts = np.concatenate([[0], np.cumsum(real)])
    first = panel.offsets[series] + origins
    return few, np.asarray(counts[first] == counts[first - np.minimum(rows, lookback + lost)])


def _part(said: Predictive, some: np.ndarray) -> Predictive:
    quantiles = None if said.quantiles is None else said.quantiles[some]
    return Predictive(said.point[some], quantiles, None if said.paths is None else said.paths[some])
