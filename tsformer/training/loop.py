"""The training loop, the only one: it reads from top to bottom."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from tsformer.data.examples import Examples
from tsformer.data.windows import Batch
from tsformer.errors import DivergedError
from tsformer.nn.objective import Objective, Verdict
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
        evaluations: one record per evaluation: step, train_loss, validation_loss, further measures of the task,
            learning_rate, truth, seconds.
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
    examples: Examples,
    validation: Examples,
    objective: Objective,
    config: TrainConfig,
    *,
    groups: Sequence[dict[str, Any]] | None = None,
    generator: np.random.Generator,
    device: torch.device,
    on_step: Callable[[Progress], None] = lambda progress: None,
    on_evaluation: Callable[[dict[str, Any]], None] = lambda record: None,
    interrupted: Callable[[], bool] = lambda: False,
) -> History:
    """Fit `module` in place; on every way out it carries the weights that were best on validation.

    Validation is as the objective says: forecasts run freely there, and are never fed the truth. With `config.ema` the
    moving average of the weights is what is validated and kept; the optimiser goes on from the weights themselves.

    Args:
        groups: of parameters, as an optimiser takes them, each with a "rate" that its learning rate is multiplied by;
            by default all that is trained, at 1.
        generator: draws the order of the examples; dropout and scheduled sampling use torch's global generator.
        interrupted: asked before each step; True ends the training as if it were complete.

    Returns:
        How it went. A loss that is not finite ends the training too; the history then carries the error.
    """
    size, steps = config.batch_for(len(examples)), config.steps_for(len(examples))
    warmup = config.warmup_for(steps)
    every = min(config.eval_every, steps)
    optimizer, average = _adamw(groups or everything(module), config), WeightAverage(module, config.ema)
    validation = validation.thin(config.eval_windows)

    history = History()
    best: Verdict | None = None
    best_weights = None
    patience, started = config.patience, time.perf_counter()
    losses: list[float] = []
    order = examples.passes(size, generator)
    try:
        for step in range(steps):
            if interrupted():
                history.stopped = "interrupted"
                break
            index = next(order)
            batch = examples.batch(torch.from_numpy(index)).to(device)

            rate = config.lr * schedules.rate(config.lr_schedule, step, steps, warmup)
            truth = schedules.truth(
                config.truth_schedule, step, steps, config.truth_start, config.truth_end, config.truth_decay
            )
            for group in optimizer.param_groups:
                group["lr"] = rate * group["rate"]
            module.train()
            optimizer.zero_grad(set_to_none=True)
            loss = objective.loss(module(batch, truth=truth), batch)
            loss.backward()  # type: ignore[no-untyped-call]
            norm = nn.utils.clip_grad_norm_(module.parameters(), config.clip)
            losses.append(_finite(loss, norm, step, rate, history.best_step, index))
            optimizer.step()
            average.update(step)
            history.steps = step + 1
            on_step(Progress(step + 1, steps, losses[-1], rate, best.loss if best else math.inf))

            if history.steps % every and history.steps != steps:
                continue
            with average.in_place():
                verdict = evaluate(module, validation, objective, device)
                improved = best is None or verdict.rank > best.rank
                if improved:
                    best, best_weights = verdict, copy.deepcopy(module.state_dict())
            record = {
                "step": history.steps,
                "train_loss": sum(losses) / len(losses),
                "validation_loss": verdict.loss,
                **verdict.measures,
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
    module: nn.Module, examples: Examples, objective: Objective, device: torch.device, size: int = PREDICTED_AT_ONCE
) -> Verdict:
    """What the objective says of all examples, whatever the batch size.

    Raises:
        DivergedError: the loss is not finite.
    """
    module.eval()
    tallies = []
    with torch.inference_mode():
        for batch in examples.batches(size):
            batch = batch.to(device)
            given = batch if objective.truth else without_truth(batch)
            tallies.append(objective.tally(module(given, truth=objective.truth), batch))
    # Read at the end only: reading a number from a device waits for all that it has been given to do.
    verdict = objective.verdict(torch.stack(tallies).cpu().double().sum(0).tolist())
    if not math.isfinite(verdict.loss):
        raise DivergedError(
            f"the validation loss is {verdict.loss}; lower --train.lr or look for extreme values in the data"
        )
    return verdict


def predictions(
    module: nn.Module, examples: Examples, device: torch.device, size: int = PREDICTED_AT_ONCE
) -> Iterator[tuple[Tensor, Batch]]:
    """What a module predicts of each batch without seeing the truth; the batch, truth included, is on the CPU."""
    module.eval()
    for batch in examples.batches(size):
        with torch.inference_mode():
            prediction = module(without_truth(batch).to(device))
        yield prediction, batch


def without_truth(batch: Batch) -> Batch:
    """What a model is given to be judged by: it cannot look at the answer."""
    return replace(batch, future=None, future_mask=None, target_tokens=None, target_token_mask=None, label=None)


def everything(module: nn.Module) -> list[dict[str, Any]]:
    """All parameters in one group, at the full learning rate."""
    return [{"params": list(module.parameters()), "rate": 1.0}]


def _adamw(groups: Sequence[dict[str, Any]], config: TrainConfig) -> torch.optim.Optimizer:
    # the plain for-loop implementation stalls for seconds on CPU, fused does not
    return torch.optim.AdamW(groups, lr=config.lr, weight_decay=config.weight_decay, fused=True)


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
