"""The training loop, the only one: it reads from top to bottom."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from tsformer.data.windows import Batch, Windows
from tsformer.errors import DivergedError
from tsformer.nn.outputs import Output
from tsformer.settings import TrainConfig
from tsformer.training import schedules
from tsformer.training.ema import WeightAverage

PREDICTED_AT_ONCE = 256
"""Windows in one batch where no gradients are kept."""


@dataclass(frozen=True)
class Progress:
    """What is told after each step."""

    step: int
    steps: int
    loss: float
    learning_rate: float
    best: float


@dataclass
class History:
    """How a training went.

    Attributes:
        evaluations: one record per evaluation: step, train_loss, validation_loss, learning_rate, truth, seconds.
        steps: steps taken.
        best_step: the step whose weights were kept.
        stopped: "finished", "early", "interrupted" or "diverged".
        error: what made it diverge.
    """

    evaluations: list[dict[str, Any]] = field(default_factory=list)
    steps: int = 0
    best_step: int = 0
    stopped: str = "finished"
    error: DivergedError | None = None


def train(
    module: nn.Module,
    windows: Windows,
    validation: Windows,
    output: Output,
    config: TrainConfig,
    *,
    generator: np.random.Generator,
    device: torch.device,
    on_step: Callable[[Progress], None] = lambda progress: None,
    on_evaluation: Callable[[dict[str, Any]], None] = lambda record: None,
    interrupted: Callable[[], bool] = lambda: False,
) -> History:
    """Fit `module` in place; on every way out it carries the weights that were best on validation.

    Validation is free-running: the decoder is never fed the truth there. With `config.ema` the moving average of the
    weights is what is validated and kept; the optimiser goes on from the weights themselves.

    Args:
        generator: draws the order of the windows; dropout and scheduled sampling use torch's global generator.
        interrupted: asked before each step; True ends the training as if it were complete.

    Returns:
        How it went. A loss that is not finite ends the training too; the history then carries the error.
    """
    size, steps = config.batch_for(len(windows)), config.steps_for(len(windows))
    warmup = config.warmup_for(steps)
    every = min(config.eval_every, steps)
    optimizer, average = _adamw(module, config), WeightAverage(module, config.ema)
    validation = validation.thin(config.eval_windows)

    history = History()
    best_loss, best_weights = math.inf, None
    patience, started = config.patience, time.perf_counter()
    losses: list[float] = []
    order = np.empty(0, dtype=np.int64)
    try:
        for step in range(steps):
            if interrupted():
                history.stopped = "interrupted"
                break
            if len(order) == 0:
                order = generator.permutation(len(windows))
            index, order = order[:size], order[size:]
            batch = windows.batch(torch.from_numpy(index)).to(device)

            rate = config.lr * schedules.rate(config.lr_schedule, step, steps, warmup)
            truth = schedules.truth(
                config.truth_schedule, step, steps, config.truth_start, config.truth_end, config.truth_decay
            )
            for group in optimizer.param_groups:
                group["lr"] = rate
            module.train()
            optimizer.zero_grad(set_to_none=True)
            loss = output.loss(module(batch, truth=truth), batch)
            loss.backward()  # type: ignore[no-untyped-call]
            norm = nn.utils.clip_grad_norm_(module.parameters(), config.clip)
            losses.append(_finite(loss, norm, step, rate, history.best_step, index))
            optimizer.step()
            average.update(step)
            history.steps = step + 1
            on_step(Progress(step + 1, steps, losses[-1], rate, best_loss))

            if history.steps % every and history.steps != steps:
                continue
            with average.in_place():
                validation_loss = evaluate(module, validation, output, device)
                improved = validation_loss < best_loss
                if improved:
                    best_loss, best_weights = validation_loss, copy.deepcopy(module.state_dict())
            record = {
                "step": history.steps,
                "train_loss": sum(losses) / len(losses),
                "validation_loss": validation_loss,
                "learning_rate": rate,
                "truth": truth,
                "seconds": round(time.perf_counter() - started, 3),
            }
            losses.clear()
            history.evaluations.append(record)
            on_evaluation(record)
            if improved:
                history.best_step, patience = history.steps, config.patience
            else:
                patience -= 1
                if patience <= 0 and history.steps < steps:
                    history.stopped = "early"
                    break
    except DivergedError as error:
        history.stopped, history.error = "diverged", error
    finally:
        if best_weights is not None:
            module.load_state_dict(best_weights)
        module.eval()
    return history


def evaluate(
    module: nn.Module, windows: Windows, output: Output, device: torch.device, size: int = PREDICTED_AT_ONCE
) -> float:
    """Free-running loss over all windows, whatever the batch size.

    Raises:
        DivergedError: it is not finite.
    """
    module.eval()
    losses, counts = [], []
    with torch.inference_mode():
        for batch in windows.batches(size):
            batch = batch.to(device)
            losses.append(output.loss(module(without_future(batch)), batch).float())
            whole = torch.tensor(len(batch.past), device=device)
            counts.append(whole if batch.future_mask is None else batch.future_mask.sum())
    # Read at the end only: reading a number from a device waits for all that it has been given to do.
    sums = [(loss * count, count) for loss, count in zip(_numbers(losses), _numbers(counts), strict=True)]
    mean = sum(loss for loss, _ in sums) / max(1, sum(count for _, count in sums))
    if not math.isfinite(mean):
        raise DivergedError(f"the validation loss is {mean}; lower --train.lr or look for extreme values in the data")
    return mean


def predict(
    module: nn.Module, windows: Windows, output: Output, device: torch.device, size: int = PREDICTED_AT_ONCE
) -> np.ndarray:
    """Free-running point forecasts of all windows, float64 `[windows, horizon, targets]`, on the windows' scale."""
    module.eval()
    with torch.inference_mode():
        parts = [output.point(module(without_future(batch).to(device))).cpu() for batch in windows.batches(size)]
    path = torch.cat(parts).double().numpy()
    if path.shape != (len(windows), windows.horizon, windows.targets):
        raise ValueError(f"{path.shape} is predicted, not {(len(windows), windows.horizon, windows.targets)}")
    return path


def without_future(batch: Batch) -> Batch:
    """What a model is given to be judged by: it cannot look at the truth."""
    return replace(batch, future=None, future_mask=None)


def _adamw(module: nn.Module, config: TrainConfig) -> torch.optim.Optimizer:
    # the plain for-loop implementation stalls for seconds on CPU, fused does not
    return torch.optim.AdamW(module.parameters(), lr=config.lr, weight_decay=config.weight_decay, fused=True)


def _numbers(scalars: Sequence[Tensor]) -> list[float]:
    """What scalars on a device are, in one go."""
    return torch.stack([scalar.detach() for scalar in scalars]).tolist()


def _finite(loss: Tensor, norm: Tensor, step: int, rate: float, best_step: int, index: np.ndarray) -> float:
    value, gradient = _numbers([loss.float(), norm.to(loss.device, torch.float32)])
    if math.isfinite(value) and math.isfinite(gradient):
        return value
    raise DivergedError(
        f"training diverged at step {step + 1}: loss {value:g}, gradient norm {gradient:g}, learning rate {rate:g}, "
        f"first window of the batch {int(index[0])}; the best weights are those of step {best_step}; "
        "lower --train.lr or --train.clip, or look for extreme values in the data"
    )
