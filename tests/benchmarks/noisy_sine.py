"""A noisy sine: 20,000 points, period 60, noise 0.05, lookback 60, horizon 30, batch 64; the floor is MSE 0.0025."""

import argparse
import itertools
import statistics
import time

from tsformer import fitting, read
from tsformer.config import Layer, resolve

SYSTEMS = {
    "transformer, direct": ("transformer", {"decoder": "direct"}, {}),
    "transformer, teacher forcing": (
        "transformer",
        {"decoder": "autoregressive"},
        {"truth_start": 1.0, "truth_end": 1.0},
    ),
    "transformer, scheduled sampling": (
        "transformer",
        {"decoder": "autoregressive"},
        {"truth_start": 1.0, "truth_end": 0.0},
    ),
    "tcn_transformer, direct": ("tcn_transformer", {}, {}),
}


def measure(panel, model, model_options, train_options, steps, seed):
    """MSE over all test windows, and steps per second without the evaluations (median step)."""
    train = {"max_steps": steps, "patience": 99, "eval_windows": 200, "seed": seed, **train_options}
    settings = resolve([Layer({"model": {"name": model, **model_options}, "train": train})], needs_data=False)
    ticks = []
    result = fitting.fit(settings, panel, on_step=lambda progress: ticks.append(time.perf_counter()))
    step = statistics.median(b - a for a, b in itertools.pairwise(ticks))
    return result.test.overall["rmse"] ** 2, 1 / step


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, nargs="+", default=[120, 500])
    arguments = parser.parse_args()
    panel = read("sine", points=20_000, noise=0.05)
    for name, (model, model_options, train_options) in SYSTEMS.items():
        for steps in arguments.steps:
            got = [measure(panel, model, model_options, train_options, steps, seed) for seed in range(arguments.seeds)]
            errors = " ".join(f"{error:.4f}" for error, _ in got)
            speed = statistics.median(speed for _, speed in got)
            print(f"{name:<32} {steps:4} steps  {speed:6.1f} steps/s  MSE {errors}", flush=True)


if __name__ == "__main__":
    main()
