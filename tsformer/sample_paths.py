"""Sample paths: possible futures of a window, and the quantiles that they have at each step."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from tsformer.building import device_in_use
from tsformer.data.windows import Batch, Windows
from tsformer.dependence import Dependence, rolls_out
from tsformer.errors import UsageError
from tsformer.nn.outputs import Output
from tsformer.training.loop import without_truth

ROWS_AT_ONCE = 1024
"""Paths that a module rolls out in one pass."""


def draw(
    module: nn.Module,
    output: Output,
    windows: Windows,
    index: np.ndarray,
    prediction: Tensor,
    samples: int,
    seed: int,
    dependence: Dependence | None = None,
) -> Iterator[np.ndarray]:
    """For each of some windows its paths, float64 `[samples, horizon, targets]`, on the windows' scale.

    A module that rolls out draws each path step by step. Of any other one the steps of a path are drawn each by itself,
    for it says nothing of how they depend on each other; `dependence` does.

    What is drawn for a window follows from the seed and from what is seen of it. It is the same whichever other windows
    are forecast beside it, and windows have noise of their own. torch's global generators are seeded.

    Args:
        index: int64 `[some]`, which of the windows.
        prediction: of these, `[some, horizon, targets, outputs]`.
        samples: paths of each window.
        dependence: of steps that are drawn each by itself; they are left independent when None.
    """
    device, stepwise = device_in_use(module), rolls_out(module)
    for number, said in zip(torch.from_numpy(index), prediction, strict=True):
        window = without_truth(windows.batch(number[None]))
        _start(_seed(seed, window.past), device)
        if stepwise:
            parts = [_rolled_out(module, window.to(device), rows) for rows in _portions(samples)]
            yield torch.cat(parts).numpy()
        else:
            values = output.sample(said.cpu().double().expand(samples, *said.shape))
            yield (values if dependence is None else dependence.ordered(values)).numpy()


def path_quantiles(paths: np.ndarray, probabilities: Sequence[float]) -> np.ndarray:
    """Quantiles of `[windows, samples, horizon, targets]` at each step: `[windows, horizon, targets, probabilities]`.

    The k-th smallest of n paths stands for the probability k / (n + 1), so that a new path falls below it that often
    (Hyndman & Fan 1996, definition 6); in between they are interpolated.
    """
    found = np.quantile(paths, np.asarray(probabilities), axis=1, method="weibull")
    return np.moveaxis(found, 0, -1)


def fewest_samples(probabilities: Sequence[float]) -> int:
    """How many paths it takes that the outermost of some quantiles lies among them."""
    return int(np.ceil(round(1 / min(probabilities, default=0.5), 6))) - 1


def require_samples(samples: int, probabilities: Sequence[float]) -> None:
    """Raises UsageError when so few paths say nothing of the outermost quantiles."""
    fewest = fewest_samples(probabilities)
    if samples < fewest:
        level = 100 - 200 * min(probabilities)
        raise UsageError(
            f"--samples {samples} are too few paths for an interval of {level:.10g} %: at least {fewest} are needed"
        )


def _rolled_out(module: Any, window: Batch, samples: int) -> Tensor:
    with torch.inference_mode():
        paths: Tensor = module.draw(window, samples)
    return paths[0].cpu().double()


def _portions(samples: int) -> list[int]:
    return [min(ROWS_AT_ONCE, samples - start) for start in range(0, samples, ROWS_AT_ONCE)]


def _start(seed: int, device: torch.device) -> None:
    torch.default_generator.manual_seed(seed)
    if device.type != "cpu":  # where there is no other device, seeding those all the same takes longer than drawing
        torch.manual_seed(seed)


def _seed(seed: int, past: Tensor) -> int:
    sequence = np.random.SeedSequence([seed, zlib.crc32(past.contiguous().numpy().tobytes())])
    return int(sequence.generate_state(1, np.uint64)[0])
