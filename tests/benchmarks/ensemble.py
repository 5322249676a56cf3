"""What averaging gives on ETTh1, horizon 96: each member alone, their mean, and weights from the validation part.

    python tests/benchmarks/ensemble.py FOLDER [--seeds 0 1 2] [--members LINE LINE ...] [--horizon 96]

FOLDER holds ETTh1.csv.gz as the long-horizon papers have it: 8640 rows to train, 2880 to validate, 2880 to test, all
windows. Errors are of standardised values, with mean and deviation of the training rows.
"""

import argparse
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from tsformer import fitting, sources
from tsformer.config import resolve
from tsformer.config_layer import Layer
from tsformer.data.split import Split
from tsformer.held_out import backcast
from tsformer.preparation import origin_rows

NETWORK = "d_model=64 dropout=0.3 train.loss=mae train.max_steps=1000 train.batch_size=32 train.eval_every=100"
MEMBERS = ("ridge lookback=512", f"tcn_transformer lookback=336 {NETWORK}")


def errors(fitted, prepared):
    """In words: MSE and MAE of the test part, and MSE of the validation part, standardised."""
    (squared, absolute), (judged, _) = (
        _errors(fitted, replace(prepared, test=part)) for part in (prepared.test, prepared.validation)
    )
    return f"{squared:.4f} / {absolute:.4f}  (validation {judged:.4f})"


def _errors(fitted, prepared):
    rows, targets = prepared.panel.values, prepared.problem.targets
    deviation = rows[: prepared.split.train[0], :targets].std(axis=0)
    truth = rows[origin_rows(prepared)[:, None] + np.arange(prepared.problem.horizon), :targets]
    off = (backcast(fitted, prepared) - truth) / deviation
    return (off**2).mean(), np.abs(off).mean()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--members", nargs="+", default=MEMBERS, metavar="LINE")
    parser.add_argument("--horizon", type=int, default=96)
    arguments = parser.parse_args()
    for seed in arguments.seeds:
        layer = {
            "model": {"name": "ensemble", "members": tuple(arguments.members)},
            "data": {"name": "csv", "path": str(arguments.folder / "ETTh1.csv.gz")},
            "window": {"horizon": arguments.horizon, "season": 24},
            "train": {"seed": seed},
        }
        settings, started = resolve([Layer(layer)]), time.perf_counter()
        split = Split(*(np.array([rows]) for rows in (8640, 8640 + 2880, 8640 + 2 * 2880)))
        learned = fitting.learn(settings, sources.load_data(settings.data), split=split)
        module, prepared, seconds = learned.fitted.module, learned.prepared, time.perf_counter() - started
        everyone = range(len(module.models))
        print(f"seed {seed}: {seconds:.0f} s, {len(prepared.test)} windows, lookback {prepared.problem.lookback}")
        for place in everyone:
            module.keep([place])
            print(f"  {errors(learned.fitted, prepared)}  {module.models[place].title}", flush=True)
        for weighting in ("equal", "validation"):
            module.weighting = weighting
            module.weigh(everyone, prepared.validation.thin(settings.train.eval_windows), learned.device)
            weights = " ".join(f"{weight:.3f}" for weight in module.weights.tolist())
            print(f"  {errors(learned.fitted, prepared)}  {weighting} weights: {weights}", flush=True)


if __name__ == "__main__":
    main()
