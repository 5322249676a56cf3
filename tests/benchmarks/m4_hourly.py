"""M4 Hourly (Makridakis, Spiliotis & Assimakopoulos 2020): 414 series, horizon 48, season 24.

    python tests/benchmarks/m4_hourly.py FOLDER [--models ridge linear] [--seeds 3] [--option train.max_steps=1000]

FOLDER holds `m4_hourly_train.csv.gz` and `m4_hourly_test.csv.gz`: a header, then a series in each row, its name first.
Validation is the last 48 rows of the train file; the test file is forecast from the end of the train file, one window a
series. MASE is scaled by the in-sample error of the seasonal naive forecast over the train file; both figures are means
over the series. Published for the seasonal naive forecast: MASE 1.193, sMAPE 13.912.
"""

import argparse
import csv
import gzip
from pathlib import Path

import numpy as np
import pandas as pd

from tsformer import fitting
from tsformer.config import resolve
from tsformer.config_layer import Layer
from tsformer.data.panel import Panel, Schema
from tsformer.data.split import Split

HORIZON, SEASON = 48, 24
MODELS = (
    "last_value",
    "seasonal_naive",
    "drift",
    "ridge",
    "linear",
    "lstm",
    "tcn",
    "tcn_transformer",
    "transformer",
)


START = np.datetime64("2015-07-01T12", "us")  # the files tell no times; the competition's start at about this one


def read(file):
    """The series of a file by name; rows are filled up with empty cells."""
    with gzip.open(file, "rt", newline="") as lines:
        rows = csv.reader(lines)
        next(rows)
        return {name: np.array([float(cell) for cell in cells if cell]) for name, *cells in rows}


def load(folder):
    """Panel and split."""
    train, test = (read(folder / f"m4_hourly_{part}.csv.gz") for part in ("train", "test"))
    series = [np.concatenate([train[name], test[name]]) for name in train]
    lengths = np.array([len(values) for values in series])
    hours = np.concatenate([np.arange(length) for length in lengths])
    panel = Panel(
        values=np.concatenate(series)[:, None],
        offsets=np.concatenate([[0], np.cumsum(lengths)]),
        times=pd.DatetimeIndex(START + hours.astype("timedelta64[h]")),
        ids=tuple(train),
        schema=Schema(targets=("y",), time="ds", id="unique_id", frequency="h"),
    )
    return panel, Split(lengths - 2 * HORIZON, lengths - HORIZON, lengths)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--models", nargs="+", default=MODELS, metavar="NAME")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument(
        "--option", nargs="*", default=[], metavar="PATH=VALUE", help="for example train.max_steps=1000"
    )
    arguments = parser.parse_args()
    panel, split = load(arguments.folder)
    options = {}
    for path, value in (option.split("=", 1) for option in arguments.option):
        section, name = path.split(".", 1)
        options.setdefault(section, {})[name] = value
    for name in arguments.models:
        for seed in range(arguments.seeds):
            values = {
                **options,
                "model": {"name": name, **options.get("model", {})},
                "window": {"horizon": HORIZON, "season": SEASON, **options.get("window", {})},
                "train": {"seed": seed, **options.get("train", {})},
            }
            result = fitting.fit(resolve([Layer(values)], needs_data=False), panel, split=split)
            test, lookback = result.test.overall, result.fitted.problem.lookback
            print(
                f"{name:<16} seed {seed} lookback {lookback:4}  MASE {test['mase']:7.3f}  sMAPE {test['smape']:7.3f}  "
                f"{result.history.steps:5} steps (best {result.history.best_step})  {result.seconds:6.1f} s",
                flush=True,
            )


if __name__ == "__main__":
    main()
