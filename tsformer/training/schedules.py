"""Pure functions of the step, so that a resumed run cannot be off by one."""

from __future__ import annotations

import math
from collections.abc import Callable


def rate(schedule: str, step: int, steps: int, warmup: int) -> float:
    """The learning rate as a share of the highest one: a linear warm-up, then what the schedule says.

        cosine    half a cosine towards zero (Loshchilov & Hutter 2017, SGDR, equation 5, one cycle)
        linear    a straight line towards zero
        noam      falls with the inverse square root of the step (Vaswani et al. 2017, section 5.3, equation 3, scaled
                  so that its highest value, at the end of the warm-up, is 1)
        constant  stays at 1

    Args:
        schedule: one of these.
        step: the step about to be taken, from 0.
        steps: all steps of the run.
        warmup: steps of the warm-up, at least 1; the first step already has 1 / warmup.
    """
    if step < warmup:
        return (step + 1) / warmup
    if schedule == "noam":
        return math.sqrt(warmup / (step + 1))
    # zero stands after the last step, so that no step is taken for nothing
    return _RATES[schedule](min(1.0, (step - warmup) / max(1, steps - warmup)))


def truth(schedule: str, step: int, steps: int, start: float, end: float, decay: float) -> float:
    """Probability that the decoder is fed the true previous value (scheduled sampling).

    The curves are those of Bengio et al. 2015, section 2.4, for the run's length, stretched so that the first step has
    `start` and the last one has `end` exactly. With p from 0 to 1 over the run:

        linear           straight
        exponential      k^i there, exp(-decay p) here: k = exp(-decay / steps)
        inverse_sigmoid  k / (k + exp(i / k)) there, which is a logistic curve of steepness 1 / k; here it has the
                         steepness `decay` over the whole run, k = steps / decay, and its middle in the run's middle
        constant         always `start`

    Args:
        schedule: one of these.
        step: the step about to be taken, from 0.
        steps: all steps of the run.
        start, end: at the first and at the last step; `end` may be the larger one.
        decay: how steep exponential and inverse_sigmoid are; towards 0 they become straight.
    """
    share = _TRUTHS[schedule](min(1.0, step / max(1, steps - 1)), decay)
    # rounding must not leave the two: at exactly 1 the decoder needs one pass only, and above 1 is no probability
    low, high = sorted((start, end))
    return min(high, max(low, share * start + (1.0 - share) * end))


def ema_decay(step: int, decay: float) -> float:
    """Decay of the moving average of the weights: (1 + step) / (10 + step), at most `decay`.

    The average reaches back over about a ninth of the steps so far, and at most over 1 / (1 - decay) steps, so that
    even a short run forgets its first weights (TensorFlow's ExponentialMovingAverage, `num_updates`).

    Args:
        step: the step just taken, from 0.
        decay: the highest decay.
    """
    return min(decay, (1 + step) / (10 + step))


_RATES: dict[str, Callable[[float], float]] = {
    "cosine": lambda progress: 0.5 * (1.0 + math.cos(math.pi * progress)),
    "linear": lambda progress: 1.0 - progress,
    "constant": lambda progress: 1.0,
}


def _exponential(progress: float, decay: float) -> float:
    # (exp(-decay p) - exp(-decay)) / (1 - exp(-decay)), without cancellation for a small decay
    return math.exp(-decay * progress) * math.expm1(-decay * (1.0 - progress)) / math.expm1(-decay)


def _inverse_sigmoid(progress: float, decay: float) -> float:
    # a logistic curve is (1 + tanh(x / 2)) / 2; divided by its value at the ends, tanh goes from 1 to -1 exactly
    return 0.5 * (1.0 + math.tanh(0.5 * decay * (0.5 - progress)) / math.tanh(0.25 * decay))


_TRUTHS: dict[str, Callable[[float, float], float]] = {
    "linear": lambda progress, decay: 1.0 - progress,
    "exponential": _exponential,
    "inverse_sigmoid": _inverse_sigmoid,
    "constant": lambda progress, decay: 1.0,
}
