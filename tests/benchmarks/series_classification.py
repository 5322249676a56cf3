"""Small data sets of labelled series from the UCR and UEA archives (Dau et al. 2019, Bagnall et al. 2018).

    python tests/benchmarks/series_classification.py FOLDER [--models lstm tcn] [--sets GunPoint] [--seeds 3]
        [--option model.dropout=0.2] [--window 0.1]

FOLDER holds `NAME_TRAIN.ts` and `NAME_TEST.ts`, each also as .gz. Accuracy on the test part: the mean over the seeds
and that of each, beside the nearest neighbour by Euclidean distance, series stretched to the length of the longest, and
by dynamic time warping, all channels at once, with a window that is a share of the longest series. Published for the
latter without a window: ArrowHead 0.703, GunPoint 0.907, ItalyPowerDemand 0.950, BasicMotions 0.975, JapaneseVowels
0.949.
"""

import argparse
import time
from pathlib import Path

import numpy as np

import tsformer
from tsformer import fitting
from tsformer.config import resolve
from tsformer.config_layer import Layer
from tsformer.data.sequences import TEST, TRAIN

SETS = ("ArrowHead", "ItalyPowerDemand", "BasicMotions", "GunPoint", "JapaneseVowels")
CELLS = 2**21  # of a diagonal that are held at once


def load(folder, name):
    """Both parts of a data set."""
    train, test = (
        next(str(file) for file in sorted(folder.glob(f"{name}_{part}.ts*")) if file.suffix in (".ts", ".gz"))
        for part in ("TRAIN", "TEST")
    )
    return tsformer.read("series", path=train, test=test)


def padded(series):
    """Series `[length, channels]` as `[series, longest, channels]`, zeros behind their ends, and their lengths."""
    lengths = np.array([len(values) for values in series])
    filled = np.zeros((len(series), lengths.max(), series[0].shape[1]))
    for row, values in zip(filled, series, strict=True):
        row[: len(values)] = values
    return filled, lengths


def stretched(values, length):
    """`[time, channels]` at that many evenly spaced places, by linear interpolation."""
    places = np.linspace(0, len(values) - 1, length)
    return np.stack([np.interp(places, np.arange(len(values)), channel) for channel in values.T], axis=1)


def euclid(first, second):
    """Squared distances `[first, second]`."""
    longest = max(len(values) for values in (*first, *second))
    a, b = (np.stack([stretched(values, longest).ravel() for values in series]) for series in (first, second))
    return (a**2).sum(1)[:, None] + (b**2).sum(1) - 2 * a @ b.T


def warped(first, second, window):
    """Squared distances `[first, second]` by dynamic time warping, all pairs at a time, diagonal by diagonal."""
    (a, rows), (b, columns) = padded(first), padded(second)
    n, m = a.shape[1], b.shape[1]
    reach = max(round(window * max(n, m)), abs(rows[:, None] - columns).max())
    found = np.empty((len(a), len(b)))
    size = max(1, CELLS // (n * len(b) * a.shape[2]))
    for start in range(0, len(a), size):
        part, ends = a[start : start + size, None], rows[start : start + size, None] + columns - 2
        before = last = np.full((len(part), len(b), n + 1), np.inf)  # diagonals; entry i + 1 is row i
        for diagonal in range(n + m - 1):
            i = np.arange(max(0, diagonal - m + 1), min(diagonal, n - 1) + 1)
            i = i[np.abs(diagonal - 2 * i) <= reach]
            cost = ((part[:, :, i] - b[None, :, diagonal - i]) ** 2).sum(-1)
            best = np.minimum(np.minimum(last[..., i], last[..., i + 1]), before[..., i]) if diagonal else 0.0
            before, last = last, np.full_like(last, np.inf)
            last[..., i + 1] = cost + best
            at = np.nonzero(ends == diagonal)
            found[start : start + size][at] = last[(*at, rows[start + at[0]])]
    return found


def neighbours(data, distances):
    """Accuracy of the label of the nearest training series, and seconds."""
    started = time.perf_counter()
    labels = np.array(data.labels)
    train, test = (np.flatnonzero(data.parts == part) for part in (TRAIN, TEST))
    nearest = distances([data.series[i] for i in test], [data.series[i] for i in train]).argmin(1)
    return (labels[train][nearest] == labels[test]).mean(), time.perf_counter() - started


def options_of(words):
    """`["model.d_model=32"]` as sections."""
    options = {}
    for path, value in (word.split("=", 1) for word in words):
        section, name = path.split(".", 1)
        options.setdefault(section, {})[name] = value
    return options


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sets", nargs="+", default=SETS, metavar="NAME")
    parser.add_argument("--models", nargs="*", default=("tcn_transformer", "transformer"), metavar="NAME")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--window", type=float, default=1.0, help="of time warping, a share; 0: without it")
    parser.add_argument(
        "--option", nargs="*", default=[], metavar="PATH=VALUE", help="for example train.max_steps=1000"
    )
    arguments = parser.parse_args()
    options = options_of(arguments.option)
    for name in arguments.sets:
        data = load(arguments.folder, name)
        print(f"{name}: {np.sum(data.parts == TRAIN)} training and {np.sum(data.parts == TEST)} test examples")
        if arguments.window:
            print("  {:<16} {:.3f}  {:6.1f} s".format("1-NN Euclid", *neighbours(data, euclid)))
            score, seconds = neighbours(data, lambda a, b: warped(a, b, arguments.window))
            print(f"  {'1-NN DTW':<16} {score:.3f}  {seconds:6.1f} s  window {arguments.window:g}", flush=True)
        for model in arguments.models:
            scores, validation, steps, started = [], [], [], time.perf_counter()
            for seed in range(arguments.seeds):
                values = {
                    **options,
                    "task": "classify",
                    "model": {"name": model, **options.get("model", {})},
                    "train": {"seed": seed, **options.get("train", {})},
                }
                result = fitting.fit(resolve([Layer(values)], needs_data=False), data)
                scores.append(result.score.overall["accuracy"])
                best = {record["step"]: record for record in result.history.evaluations}[result.history.best_step]
                validation.append(best["validation_loss"])
                steps.append(result.history.best_step)
            print(
                f"  {model:<16} {np.mean(scores):.3f}  {(time.perf_counter() - started) / arguments.seeds:6.1f} s  "
                f"({', '.join(f'{score:.3f}' for score in scores)})  validation loss {np.mean(validation):.3f}, best "
                f"steps {', '.join(map(str, steps))}",
                flush=True,
            )


if __name__ == "__main__":
    main()
