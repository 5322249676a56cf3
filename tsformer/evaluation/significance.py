"""Whether one model's errors are really smaller than another's, or might be so by chance.

Two tests of equal expected loss. With few series the losses of each origin are averaged, and Diebold and Mariano's test
looks at how their difference varies from origin to origin. With many series that says little, for there are few origins
and much to learn from the series: then both are drawn anew, again and again (a bootstrap).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import stats

MANY = 20
"""Series from which on differences are judged by the bootstrap."""
FEWEST = 3
"""Origins that it takes to say how losses vary from one to the next."""
DRAWS = 2000
REAL = 0.05
"""A p-value below this is called a real difference."""
DRAWN_AT_ONCE = 2**22


@dataclass(frozen=True)
class Difference:
    """How two models' losses differ.

    Attributes:
        mean: of the first's loss less the second's, over all series and origins that both have.
        p: two-sided: how often a difference as large would be seen if there were none; None where that cannot be told.
        test: "Diebold-Mariano", "bootstrap", or "" when none could be made.
        origins, series: that it was made from.
    """

    mean: float
    p: float | None
    test: str
    origins: int
    series: int


def compare(one: np.ndarray, other: np.ndarray, overlap: int = 1, seed: int = 0) -> Difference | None:
    """Compare losses of two models; None when they have no series and origin in common.

    Args:
        one, other: float64 `[series, origins]`, NaN where there is none.
        overlap: origins whose forecasts share true values with those of a given one, itself included: the horizon over
            the step between origins, rounded up.
        seed: of the bootstrap.
    """
    difference = one - other
    difference = difference[np.isfinite(difference).any(axis=1)][:, np.isfinite(difference).any(axis=0)]
    if not difference.size:
        return None
    series, origins = difference.shape
    mean = float(np.nanmean(difference))
    if series >= MANY:
        return Difference(mean, bootstrap(difference, overlap, seed), "bootstrap", origins, series)
    p = diebold_mariano(np.nanmean(difference, axis=0), overlap)
    return Difference(mean, p, "" if p is None else "Diebold-Mariano", origins, series)


def diebold_mariano(difference: np.ndarray, overlap: int = 1) -> float | None:
    """The p-value of Diebold and Mariano's test (1995), two-sided, as Harvey, Leybourne and Newbold (1997) correct it
    for few observations.

    The variance of the mean has all autocovariances of lags below the overlap, with equal weights. Where that gives
    nothing positive it is that of no overlap.

    Args:
        difference: of losses, float64 `[origins]`, in order of time.
        overlap: see `compare`.

    Returns:
        None when there are too few origins, or the difference is the same at all of them.
    """
    count, lags = len(difference), overlap
    if count < FEWEST or not difference.any():
        return 1.0 if count >= FEWEST else None
    if lags >= count:
        return None
    centred = difference - difference.mean()
    covariances = [float(centred[lag:] @ centred[: count - lag]) / count for lag in range(lags)]
    variance = (covariances[0] + 2 * sum(covariances[1:])) / count
    if variance <= 0:
        lags, variance = 1, covariances[0] / count
    if variance <= (1e-12 * float(np.abs(difference).max())) ** 2:
        return None
    corrected = (count + 1 - 2 * lags + lags * (lags - 1) / count) / count
    statistic = difference.mean() / np.sqrt(variance) * np.sqrt(corrected)
    return float(2 * stats.t.sf(abs(statistic), count - 1))


def bootstrap(difference: np.ndarray, overlap: int = 1, seed: int = 0) -> float | None:
    """The p-value of the mean of differences, two-sided, by a bootstrap over series and blocks of origins.

    Series are drawn with replacement, each with all its origins, for the errors of one series are alike; and so are
    origins, for one moment may be hard for all series at once, in circular blocks as long as forecasts overlap (Politis
    & Romano 1992). The variances of both are added, which counts once too often what is neither: the test errs on the
    safe side. The mean is compared with a t distribution whose degrees of freedom follow from both (Satterthwaite
    1946), for there are few origins. With a single origin there are only series to draw, and the result holds for that
    moment.

    Args:
        difference: of losses, float64 `[series, origins]`, NaN where there is none.
        overlap: see `compare`.
        seed: same seed, same result.

    Returns:
        None when all differences are the same and not 0, or there is one series.
    """
    real = np.isfinite(difference)
    values, counts = np.where(real, difference, 0.0), real.astype(np.float64)
    if not values.any():
        return 1.0
    series, origins = difference.shape
    generator = np.random.default_rng(seed)
    length = max(1, min(overlap, origins // 2))
    of_series = _variance(
        values.sum(axis=1), counts.sum(axis=1), series, lambda draws: _alone(series, draws, generator)
    )
    of_origins = _variance(
        values.sum(axis=0),
        counts.sum(axis=0),
        origins // length,
        lambda draws: _blocks(origins, length, draws, generator),
    )
    variance, mean = of_series + of_origins, float(values.sum() / counts.sum())
    if variance <= (1e-12 * float(np.abs(values).max())) ** 2:
        return None
    freedom = variance**2 / (of_series**2 / max(1, series - 1) + of_origins**2 / max(1, origins // length - 1))
    return float(2 * stats.t.sf(abs(mean) / np.sqrt(variance), freedom))


def _variance(totals: np.ndarray, counts: np.ndarray, units: int, drawn: Callable[[int], np.ndarray]) -> float:
    """The variance of the mean when units are drawn; what so few of them hide of it is added.

    Args:
        totals, counts: sums and numbers of values, float64 `[places]`.
        units: that are drawn, independent of each other.
        drawn: how often each place is in each of some draws, float64 `[draws, places]`.
    """
    if units < 2:
        return 0.0
    size = max(1, DRAWN_AT_ONCE // len(totals))
    parts = [drawn(min(size, DRAWS - start)) for start in range(0, DRAWS, size)]
    found = [(part @ totals, part @ counts) for part in parts]
    means = np.concatenate([total[count > 0] / count[count > 0] for total, count in found])
    return float(means.var()) * units / (units - 1)


def _alone(places: int, draws: int, generator: np.random.Generator) -> np.ndarray:
    """How often each place is drawn, float64 `[draws, places]`."""
    return generator.multinomial(places, np.full(places, 1 / places), draws).astype(np.float64)


def _blocks(origins: int, length: int, draws: int, generator: np.random.Generator) -> np.ndarray:
    """How often each origin is drawn when it comes in blocks, float64 `[draws, origins]`."""
    blocks = -(-origins // length)
    first = generator.integers(0, origins, (draws, blocks))
    places = ((first[..., None] + np.arange(length)) % origins).reshape(draws, -1)[:, :origins]
    drawn = np.zeros((draws, origins))
    np.add.at(drawn, (np.arange(draws)[:, None], places), 1.0)
    return drawn
