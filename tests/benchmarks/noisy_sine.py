"""A noisy sine: 20,000 points, period 60, noise 0.05, lookback 60, horizon 30, batch 64; the floor is MSE 0.0025."""

import argparse
import itertools
import statistics
import time
from typing import Any

from tsformer import fitting, read
from tsformer.config import resolve
from tsformer.config_layer import Layer

FALLING = {"truth_start": 1.0, "truth_end": 0.0}
AUTOREGRESSIVE = {"name": "transformer", "decoder": "autoregressive"}
SYSTEMS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "direct": ({"name": "transformer", "decoder": "direct"}, {}),
    "teacher forcing": (AUTOREGRESSIVE, {}),
    "step by step": ({**AUTOREGRESSIVE, "sampling": "steps"}, FALLING),
    "two-pass": ({**AUTOREGRESSIVE, "sampling": "two_pass"}, FALLING),
    "step by step, inverse sigmoid": (
        {**AUTOREGRESSIVE, "sampling": "steps"},
        {**FALLING, "truth_schedule": "inverse_sigmoid"},
    ),
    "two-pass, inverse sigmoid": (
        {**AUTOREGRESSIVE, "sampling": "two_pass"},
        {**FALLING, "truth_schedule": "inverse_sigmoid"},
    ),
    "normal, teacher forcing": (AUTOREGRESSIVE, {"output": "normal"}),
    "normal, fed means": ({**AUTOREGRESSIVE, "feedback": "mean"}, {**FALLING, "output": "normal"}),
    "normal, fed samples": ({**AUTOREGRESSIVE, "feedback": "sample"}, {**FALLING, "output": "normal"}),
    "tcn_transformer, direct": ({"name": "tcn_transformer"}, {}),
}


def measure(panel, model, options, steps, seed):
    """MSE over all test windows, and seconds per step without the evaluations (median step)."""
    train = {"max_steps": steps, "patience": 99, "eval_windows": 200, "seed": seed, **options}
    settings = resolve([Layer({"model": model, "train": train})], needs_data=False)
    ticks = []
    result = fitting.fit(settings, panel, watch=fitting.Watch(step=lambda progress: ticks.append(time.perf_counter())))
    seconds = statistics.median(after - before for before, after in itertools.pairwise(ticks))
    return result.test.overall["rmse"] ** 2, seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, nargs="+", default=[120, 500])
    parser.add_argument("--only", nargs="+", choices=list(SYSTEMS), default=list(SYSTEMS), metavar="ROW")
    arguments = parser.parse_args()
    panel = read("sine", points=20_000, noise=0.05)
    columns = "".join(f"  MSE after {steps:<{max(4, 8 * arguments.seeds - 11)}}" for steps in arguments.steps)
    print(f"{'system':<30} {'s/step':>7}{columns}")
    for name in arguments.only:
        model, options = SYSTEMS[name]
        errors, seconds = [], []
        for steps in arguments.steps:
            got = [measure(panel, model, options, steps, seed) for seed in range(arguments.seeds)]
            errors.append(" ".join(f"{error:7.4f}" for error, _ in got))
            seconds += [second for _, second in got]
        print(f"{name:<30} {statistics.median(seconds):7.4f}  {'  '.join(errors)}", flush=True)


if __name__ == "__main__":
    main()
