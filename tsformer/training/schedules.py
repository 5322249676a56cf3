"""Pure functions of the step, so that a resumed run cannot be off by one."""

from __future__ import annotations

import math


def cosine_with_warmup(step: int, steps: int, warmup: int) -> float:
    """Factor of the learning rate: linear warm-up, then half a cosine towards zero (Loshchilov & Hutter 2017).

    Args:
        step: the step about to be taken, from 0.
        steps: all steps of the run.
        warmup: steps of the linear part; the first step already has the rate 1 / warmup.
    """
    if step < warmup:
        return (step + 1) / warmup
    progress = (step - warmup) / max(1, steps - warmup)
    return 0.5 * (1.0 + math.cos(math.pi * min(1.0, progress)))


def linear_truth(step: int, steps: int, start: float, end: float) -> float:
    """Probability that the decoder is fed the true previous value: linear from `start` to `end` over the run.

    Scheduled sampling, Bengio et al. 2015, section 2.4.
    """
    return start + (end - start) * min(1.0, step / max(1, steps - 1))
