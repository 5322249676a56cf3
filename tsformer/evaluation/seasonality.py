"""Whether a series has a season, and how it runs, as of many moments at once: what "Naive 2" of the M4 competition
takes out before and puts back after (Makridakis, Spiliotis & Assimakopoulos 2020).

All of it is made of running sums, so that a thousand moments of a long series cost little more than one, and what is
said of a moment does not depend on the others.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

FEWEST_SEASONS = 3
LIMIT = 1.645  # 90 %, two-sided, of a normal distribution
NUMBERS_AT_ONCE = 2**22


class Seasonality:
    """The season of a series.

    Args:
        values: float64 `[time]`, none missing; the first one is at place 0 of the season.
        season: steps in one.
    """

    def __init__(self, values: np.ndarray, season: int) -> None:
        self._values, self._season = values, season

    def stands_out(self, counts: np.ndarray) -> np.ndarray:
        """Whether the autocorrelation at a season is beyond its limit (Bartlett's), the test of the M4 competition.

        Args:
            counts: int64 `[moments]`, how many of the values are known.

        Returns:
            boolean `[moments]`; False with less than three seasons.
        """
        found = counts >= FEWEST_SEASONS * self._season
        if not found.any():
            return found
        counts = counts[found]
        shifted = self._values - self._values[0]  # of values far from 0 little would be left but rounding
        sums = _running(shifted)
        mean, squares = sums[counts] / counts, _running(shifted**2)[counts]
        power = squares - counts * mean**2
        real = power > 1e-10 * squares
        others, last = np.zeros(len(counts)), np.zeros(len(counts))
        for lag in range(1, self._season + 1):
            others += last**2
            products = _running(shifted[lag:] * shifted[:-lag])[counts - lag]
            both = sums[counts] - sums[lag] + sums[counts - lag]
            covariance = products - mean * both + (counts - lag) * mean**2
            last = np.divide(covariance, power, out=np.zeros(len(counts)), where=real)
        found[found] = real & (np.abs(last) > LIMIT * np.sqrt((1 + 2 * others) / counts))
        return found

    def positive(self, counts: np.ndarray) -> np.ndarray:
        """Whether all values that are known are above 0, boolean `[moments]`."""
        return np.asarray(np.minimum.accumulate(self._values)[counts - 1] > 0)

    def index(self, counts: np.ndarray, *, by_ratio: bool) -> np.ndarray:
        """What each place of a season multiplies the level by, or adds to it: classical decomposition.

        Args:
            counts: int64 `[moments]`, how many values are known, at least two seasons.

        Returns:
            float64 `[moments, season]`, of mean 1, or 0.
        """
        season = self._season
        weights = np.full(season, 1 / season)
        if season % 2 == 0:  # a mean of two means, so that it is centred
            weights = np.concatenate([[0.5 / season], np.full(season - 1, 1 / season), [0.5 / season]])
        trend, half = np.convolve(self._values, weights, mode="valid"), len(weights) // 2
        middle = self._values[half : half + len(trend)]
        with np.errstate(divide="ignore", invalid="ignore"):  # of values that are not all positive, not asked for
            rest = middle / trend if by_ratio else middle - trend
        table = np.zeros((-(-len(rest) // season), season))
        table.reshape(-1)[: len(rest)] = rest
        sums = np.concatenate([np.zeros((1, season)), np.cumsum(table, axis=0)])
        whole, more = np.divmod(counts - len(weights) + 1, season)
        times = whole[:, None] + (np.arange(season) < more[:, None])
        found = np.take_along_axis(sums, times, axis=0) / times
        found = np.roll(found, half, axis=1)  # the first of the rest is at place `half`
        mean = found.mean(axis=1, keepdims=True)
        return np.asarray(found / mean if by_ratio else found - mean)

    def continued(self, counts: np.ndarray, horizon: int) -> np.ndarray:
        """The last known value, its season taken out before and put back after, float64 `[moments, horizon]`."""
        path, positive, ahead = np.empty((len(counts), horizon)), self.positive(counts), np.arange(horizon)
        for by_ratio in (True, False):
            for some in _portions(np.flatnonzero(positive == by_ratio), max(self._season, horizon)):
                known = counts[some]
                index, last = self.index(known, by_ratio=by_ratio), self._values[known - 1]
                steps = np.take_along_axis(index, (known[:, None] + ahead) % self._season, axis=1)
                now = index[np.arange(len(some)), (known - 1) % self._season]
                path[some] = (last / now)[:, None] * steps if by_ratio else (last - now)[:, None] + steps
        return path


def _running(values: np.ndarray) -> np.ndarray:
    """The sums of the first 0, 1, 2, ... values."""
    return np.concatenate([[0.0], np.cumsum(values)])


def _portions(index: np.ndarray, size: int) -> Iterator[np.ndarray]:
    at_once = max(1, NUMBERS_AT_ONCE // size)
    for start in range(0, len(index), at_once):
        yield index[start : start + at_once]
