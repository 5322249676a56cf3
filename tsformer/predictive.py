"""What a model says of windows, in the user's units: points, and where asked for, quantiles and sample paths.

Forecasts, scores, backtests and calibrations all come through here, so that an interval means the same everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from numbers import Integral

import numpy as np
import torch
from torch import Tensor, nn

from tsformer.building import device_in_use, same_random_state
from tsformer.data.transforms import Chain, Transformed
from tsformer.data.windows import Windows
from tsformer.dependence import rolls_out
from tsformer.errors import UsageError
from tsformer.fitted import Fitted
from tsformer.levels import read_levels
from tsformer.nn.outputs import Output, output_of
from tsformer.sample_paths import draw, fewest_samples, path_quantiles, require_samples
from tsformer.training.loop import PREDICTED_AT_ONCE, predictions

HELD_AT_ONCE = 2**22
"""Numbers of paths that are held at a time: samples, steps and targets of some windows, at least of one."""


@dataclass(frozen=True)
class Ask:
    """What is asked for beside points.

    Attributes:
        levels: central intervals, in percent, ascending: (80.0, 95.0).
        paths: sample paths to return of each window.
        samples: paths to draw where quantiles have to be found from paths.
        seed: of what is drawn.
    """

    levels: tuple[float, ...] = ()
    paths: int = 0
    samples: int = 400
    seed: int = 0

    @property
    def probabilities(self) -> tuple[float, ...]:
        """Of the ends of all intervals, ascending: of 80 and 95 % 0.025, 0.1, 0.9, 0.975."""
        lower = sorted(round((100 - level) / 200, 12) for level in self.levels)
        return (*lower, *(round(1 - p, 12) for p in reversed(lower)))


def asked(
    levels: str | Iterable[object] = (), *, paths: int = 0, samples: int | None = None, seed: int | None = None
) -> Ask:
    """What a user asks for: levels as `read_levels` takes them, and what is None as usual, or as many
    samples as the levels need.

    Raises:
        UsageError: levels that are none, or numbers that are not whole or too small.
    """
    usual = Ask(read_levels(levels))
    if samples is None:
        samples = max(usual.samples, fewest_samples(usual.probabilities))
    seed = usual.seed if seed is None else seed
    for name, value, least in (("paths", paths, 0), ("samples", samples, 1), ("seed", seed, 0)):
        if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
            raise UsageError(f"--{name} must be a whole number from {least} on, not {value!r}")
    return Ask(usual.levels, int(paths), int(samples), int(seed))


@dataclass(frozen=True)
class Predictive:
    """What a model says of windows, in the user's units.

    Attributes:
        point: float64 `[windows, horizon, targets]`.
        quantiles: float64 `[windows, horizon, targets, probabilities]`, ascending in the last axis; None when none are
            asked for, or the model says nothing of how values scatter.
        paths: float64 `[windows, paths, horizon, targets]`; None like `quantiles`.
    """

    point: np.ndarray
    quantiles: np.ndarray | None = None
    paths: np.ndarray | None = None


def predictive(
    fitted: Fitted,
    windows: Windows,
    data: Transformed,
    ask: Ask | None = None,
    *,
    chain: Chain | None = None,
    module: nn.Module | None = None,
    horizon: int | None = None,
) -> Predictive:
    """Forecast windows; nothing is checked for being finite.

    Quantiles of the output are brought back one by one where the transforms are pointwise. Through others, as log
    returns are, no quantile of the result follows from quantiles of single steps: paths are drawn, brought back, and
    then summarised. So it is with a module that rolls out. The caller's random state is left as it was.

    Args:
        windows: over what `data` became.
        data: the rows after the chain.
        ask: what is wanted beside points.
        chain: that made `data`; the fitted one when None.
        module: the fitted one when None.
        horizon: steps of the forecast that are kept; all when None.

    Raises:
        UsageError: too few samples for the levels, or an output that does not reach that far into the tails.
    """
    ask, chain, module = ask or Ask(), chain or fitted.chain, module or fitted.module
    output = output_of(fitted.problem)
    probabilities = ask.probabilities if output.probabilistic else ()
    sampled = bool(probabilities) and (rolls_out(module) or not chain.pointwise(fitted.problem.targets))
    if sampled:
        require_samples(ask.samples, probabilities)
    paths = ask.paths if output.probabilistic else 0
    samples = max(paths, ask.samples) if sampled or paths else 0
    series, origins = windows.series.numpy(), windows.origins.numpy()

    def own_units(path: np.ndarray, index: np.ndarray, *, unbounded: bool = True) -> np.ndarray:
        return chain.inverse(path[:, :horizon], data, series[index], origins[index], unbounded=unbounded)

    found, of_paths, kept = [], [], []
    with fitted.settings.model.at_fault("prediction"), same_random_state():
        for index, prediction in _predicted(module, windows):
            found.append(_described(output, prediction, () if sampled else probabilities))
            for some in _portions(index, samples * prediction[0, ..., 0].numel()) if samples else ():
                said = prediction[some - index[0]]
                drawn = np.stack(list(draw(module, output, windows, some, said, samples, ask.seed, fitted.dependence)))
                back = own_units(np.concatenate(drawn), np.repeat(some, samples))
                back = back.reshape(*drawn.shape[:2], *back.shape[1:])
                if sampled:
                    of_paths.append(path_quantiles(back[:, : ask.samples], probabilities))
                kept.append(back[:, :paths].copy())  # not all that were drawn
    every = np.arange(len(windows))
    on_scale, *each = np.concatenate(found).transpose(3, 0, 1, 2)
    point = own_units(on_scale, every, unbounded=False)
    quantiles = None
    if sampled:
        quantiles = np.concatenate(of_paths)
    elif probabilities:
        quantiles = np.sort(np.stack([own_units(one, every) for one in each], axis=-1), axis=-1)
    return Predictive(point, quantiles, np.concatenate(kept) if paths else None)


def _predicted(module: nn.Module, windows: Windows) -> Iterator[tuple[np.ndarray, Tensor]]:
    """Some windows at a time: which, int64 `[some]`, and what is predicted of them."""
    start = 0
    for prediction, _ in predictions(module, windows, device_in_use(module), PREDICTED_AT_ONCE):
        yield np.arange(start, start + len(prediction)), prediction
        start += len(prediction)


def _portions(index: np.ndarray, size: int) -> list[np.ndarray]:
    """Windows of `size` numbers each, as many at a time as may be held."""
    at_once = max(1, HELD_AT_ONCE // size)
    return [index[first : first + at_once] for first in range(0, len(index), at_once)]


def _described(output: Output, prediction: Tensor, probabilities: Sequence[float]) -> np.ndarray:
    """The point and the quantiles of a prediction, float64 `[batch, horizon, targets, 1 + probabilities]`."""
    parts = [output.point(prediction).cpu().double()[..., None]]
    if probabilities:
        parts.append(output.quantiles(prediction.cpu().double(), probabilities))
    return torch.cat(parts, dim=-1).numpy()
