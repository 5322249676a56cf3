"""Adaptive conformal inference: how many misses to aim at, where errors drift.

Gibbs & Candes (2021), "Adaptive Conformal Inference Under Distribution Shift", equation 2: after a miss the interval is
made wider, after a hit a little narrower, so that in the long run as many are missed as ought to be. They forecast one
step ahead. Of forecasts that overlap, a miss far ahead is known late, and then many others come with it that tell the
same. So each counts the less, the more forecasts are made before it is known.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

RATE = 0.3
"""How far errors move what is aimed at, as a share of it: gamma of the paper is 0.015 for 95 %, and 0.06 for 80 %."""
MOST_COMPARED = 2 * 10**8
"""Pairs of errors that are compared; where there are more, only the later ones are followed."""
FEWEST_FOLLOWED = 50
MOST_COMPARED_ONCE = 2 * 10**10
"""The same, where all moments are followed in one go."""


@dataclass(frozen=True, eq=False)
class Standing:
    """How each error stands among those that were known when its forecast was made; of the last forecasts.

    Attributes:
        smaller: how many of them are smaller, int64 `[forecasts, horizon, targets]`.
        count: how many there are, of the same shape.
        real: where there is an error, of the same shape.
        open: how many forecasts had been made that were not known yet, itself among them, int64 `[forecasts, horizon]`.
        begins: the time of the first step, float64 `[forecasts]`, ascending.
        known: the time of each step, from then on its error is known, float64 `[forecasts, horizon]`.
    """

    smaller: np.ndarray
    count: np.ndarray
    real: np.ndarray
    open: np.ndarray
    begins: np.ndarray
    known: np.ndarray

    @classmethod
    def of(cls, size: np.ndarray, begins: np.ndarray, known: np.ndarray, *, every: bool = False) -> Standing:
        """From absolute errors, float64 `[windows, horizon, targets]`, NaN where there is none, and their times.

        Args:
            every: all forecasts are followed, however many there are.
        """
        windows, real = len(size), np.isfinite(size)
        followed = windows if every else min(windows, max(FEWEST_FOLLOWED, MOST_COMPARED // max(1, size.size)))
        smaller = np.zeros((followed, *size.shape[1:]), dtype=np.int64)
        count, unknown = np.zeros_like(smaller), np.zeros((followed, size.shape[1]), dtype=np.int64)
        last = slice(windows - followed, None)
        for place, begin in enumerate(begins[last].tolist()):
            there = known[: np.searchsorted(begins, begin)] < begin
            unknown[place] = np.searchsorted(begins, begin, side="right") - there.sum(axis=0)
            usable = there[..., None] & real[: len(there)]
            count[place] = usable.sum(axis=0)
            smaller[place] = (usable & (size[: len(there)] < size[last][place])).sum(axis=0)
        return cls(smaller, count, real[last], unknown, begins[last], known[last])

    def aimed_at(self, alpha: float, fewest: int) -> np.ndarray:
        """The share of misses to aim at after the last error, float64 `[horizon, targets]`, from 0 to 1; see `aims`."""
        return np.asarray(self.aims(alpha, fewest)[-1])

    def aims(self, alpha: float, fewest: int) -> np.ndarray:
        """The share of misses to aim at when each forecast is made, and after the last error, float64
        `[forecasts + 1, horizon, targets]`, from 0 to 1.

        Each forecast in turn is judged by what was known when it was made.

        Args:
            alpha: the share that ought to be missed.
            fewest: with fewer errors than that known, a forecast is not judged.
        """
        judged = (self.count >= fewest) & self.real
        rate = RATE * alpha / self.open
        moves = np.zeros(self.smaller.shape)
        aimed = np.full(self.smaller.shape[1:], alpha)
        aims = np.empty((len(self.begins) + 1, *aimed.shape))
        told = np.zeros(self.known.shape, dtype=bool)
        oldest = 0
        for window, begin in enumerate([*self.begins.tolist(), np.inf]):
            some = slice(oldest, window)
            new = (self.known[some] < begin) & ~told[some]
            if new.any():
                aimed = np.clip(aimed + (moves[some] * new[..., None]).sum(axis=0), 0.0, 1.0)
                told[some] |= new
                while oldest < window and told[oldest].all():
                    oldest += 1
            aims[window] = aimed
            if window < len(self.begins):
                # it is missed when as many are smaller as the rank of the one that the interval reaches to
                missed = self.smaller[window] >= rank(self.count[window], aimed)
                moves[window] = np.where(judged[window], rate[window][:, None] * (alpha - missed), 0.0)
        return aims


def rank(count: np.ndarray, missed: np.ndarray) -> np.ndarray:
    """Which of n errors in ascending order an interval reaches to, ceil((n + 1)(1 - missed)), int64; from 1 to n."""
    place = np.ceil(np.round((count + 1) * (1 - missed), 9)).astype(np.int64)
    return np.asarray(np.clip(place, 1, np.maximum(count, 1)))
