"""How many true values intervals of 80 and 95 % hold, native and conformal, and how wide they are.

    python tests/benchmarks/coverage.py FOLDER [--models transformer tcn_transformer] [--steps 300] [--sets wave ...]

FOLDER holds `ETTh1.csv.gz`, `m4_hourly_train.csv.gz` and `stocks5_long.csv.gz`, anywhere below it. The sets: waves with
noise that a model can know all about; ETTh1's OT; the first 100 series of M4 hourly; stocks through log returns. Each
model is fitted with `--train.output` normal and quantiles (native) and point (conformal, by errors that were known at
each origin), and scored on the test part of its fit. Coverage has a confidence interval of 95 % of its own: from series
where there are 20 or more, else from 20 stretches of time one after another. Widths are relative to those of conformal
intervals around the seasonal naive forecast.
"""

import argparse
import time
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

import tsformer
from tsformer import fitting
from tsformer.config import resolve
from tsformer.config_layer import Layer
from tsformer.data.panel import Panel, Schema
from tsformer.data.selection import selected
from tsformer.evaluation.evaluate import evaluate
from tsformer.predictive import Ask

LEVELS = (80.0, 95.0)
WINDOWS = {
    "wave": {"lookback": 48, "horizon": 24, "season": 24},
    "etth1": {"lookback": 168, "horizon": 24, "season": 24},
    "m4": {"lookback": 168, "horizon": 48, "season": 24},
    "stocks": {"lookback": 60, "horizon": 10, "season": 5},
}


def waves():
    """Eight series of waves with a level that wanders a little, and normal noise."""
    random = np.random.default_rng(0)
    step = np.arange(1500)
    series = [
        50
        + 10 * np.sin(2 * np.pi * (step + 3 * i) / 24)
        + random.normal(0, 0.1, 1500).cumsum()
        + random.normal(size=1500)
        for i in range(8)
    ]
    times = pd.date_range("2024-01-01", periods=1500, freq="h")
    return Panel(
        values=np.concatenate(series)[:, None],
        offsets=np.arange(9) * 1500,
        times=times.append([times] * 7),
        ids=tuple(f"s{i}" for i in range(8)),
        schema=Schema(targets=("y",), time="ds", id="id", frequency="h"),
    )


def load(name, folder):
    if name == "wave":
        return waves(), []
    if name == "etth1":
        return tsformer.read("csv", path=_file(folder, "ETTh1.csv.gz"), target=["OT"]), []
    if name == "m4":
        panel = tsformer.read("csv", path=_file(folder, "m4_hourly_train.csv.gz"))
        return selected(panel, np.arange(len(panel.ids)) < 100), []
    return tsformer.read("csv", path=_file(folder, "stocks5_long.csv.gz"), **STOCKS), ["log_return"]


STOCKS = {"target": ["Adj Close"], "id": ["Ticker"], "time": ["Date"]}


def _file(folder, name):
    return str(next(folder.rglob(name)))


def covered(found, model):
    """Share held of each window and level, and the mean width of each level."""
    entry = found.entries[model]
    (block,), (said,) = found.plan.blocks, entry.forecasts
    rows = found.panel.offsets[block.series] + block.origins
    truth = found.panel.values[rows[:, None] + np.arange(found.plan.horizon), : len(found.panel.schema.targets)]
    shares, widths = [], []
    for place in (1, 0):
        low, high = said.quantiles[..., place], said.quantiles[..., -1 - place]
        real = np.isfinite(low) & np.isfinite(truth)
        inside = np.where(real, (low <= truth) & (truth <= high), np.nan)
        shares.append(np.nanmean(inside, axis=(1, 2)))
        widths.append(np.nanmean(np.where(real, high - low, np.nan)))
    return block, np.array(shares), widths


def interval(block, share):
    """Mean and the half width of its confidence interval."""
    series = np.unique(block.series)
    if len(series) >= 20:
        groups = [share[block.series == number].mean() for number in series]
    else:
        order = np.argsort(block.origins, kind="stable")
        groups = [part.mean() for part in np.array_split(share[order], 20)]
    return np.mean(share), stats.t.ppf(0.975, len(groups) - 1) * np.std(groups, ddof=1) / np.sqrt(len(groups))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--models", nargs="+", default=["transformer", "tcn_transformer"], metavar="NAME")
    parser.add_argument("--sets", nargs="+", default=list(WINDOWS), choices=list(WINDOWS))
    parser.add_argument("--steps", type=int, default=300)
    arguments = parser.parse_args()
    print(f"{'set':<8} {'model':<16} {'output':<10} {'in 80 %':>14} {'in 95 %':>14} {'width 80':>9} {'95':>6} {'s':>6}")
    for name in arguments.sets:
        panel, transforms = load(name, arguments.folder)
        naive = None
        for model in ("seasonal_naive", *arguments.models):
            own = [] if model == "seasonal_naive" else transforms
            for output in ("point",) if model == "seasonal_naive" else ("normal", "quantiles", "point"):
                started = time.perf_counter()
                values = {
                    "model": {"name": model},
                    "window": WINDOWS[name],
                    "train": {"output": output, "max_steps": arguments.steps},
                    "transform": [{"name": each} for each in own],
                }
                settings = resolve([Layer(values)], needs_data=False)
                result = fitting.fit(settings, panel)
                fitted = result.fitted
                found = evaluate(fitted, panel, held_out=True, ask=Ask(LEVELS, samples=200), keep=True)
                block, shares, widths = covered(found, model)
                naive = naive or widths
                cells = [
                    f"{100 * mean:6.1f} +- {100 * half:4.1f}" for mean, half in (interval(block, s) for s in shares)
                ]
                ratio = [width / other for width, other in zip(widths, naive, strict=True)]
                seconds = time.perf_counter() - started
                told = "conformal" if output == "point" else output
                print(
                    f"{name:<8} {model:<16} {told:<10} {cells[0]:>14} {cells[1]:>14} {ratio[0]:9.2f} {ratio[1]:6.2f} "
                    f"{seconds:6.0f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
