"""Rolling origins: where a backtest stands, what is known there, and what is forecast from there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tsformer.data.split import Split


@dataclass(frozen=True)
class Block:
    """Origins that one fit serves. Rows are counted from the start of their series.

    Attributes:
        split: where training and validation end in each series; it has no test part (`lengths` equals `validation`),
            so that a fit sees no row from the first of its origins on.
        series: int64 `[windows]`, the series of each forecast.
        origins: int64 `[windows]`, the first row that is forecast; not before the validation part of its series ends.
        number: int64 `[windows]`, which of the plan's origins each is, from 0, the earliest.
    """

    split: Split
    series: np.ndarray
    origins: np.ndarray
    number: np.ndarray


@dataclass(frozen=True)
class Plan:
    """All blocks of a backtest, in order of time.

    Attributes:
        horizon: steps of each forecast.
        blocks: one for each fit.
        scale: None for errors in the user's units; mean and standard deviation of each series and target, float64
            `[series, targets, 2]`, where errors are of standardised values.
        before: int64 `[series]`, rows of each series before the first thing that is forecast: what MASE is scaled by.
        notes: what the user should hear of, one line each.
    """

    horizon: int
    blocks: tuple[Block, ...]
    before: np.ndarray
    scale: np.ndarray | None = None
    notes: tuple[str, ...] = ()
