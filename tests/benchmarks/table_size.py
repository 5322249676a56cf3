"""1,000,000 rows in 10,000 series from CSV and Parquet to a panel: seconds and peak memory, each in a fresh process.

The wide table has five more columns, of numbers and of words, that a reader who names the columns need not read.
"""

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

NAMED = {"id": ("unique_id",), "time": ("ds",), "target": ("y",)}
MIB = 2**20


def write(folder, rows, series):
    """Daily series, one after another, as four files."""
    random = np.random.default_rng(0)
    each = rows // series
    names = np.repeat([f"store-{i:05d}" for i in range(series)], each)
    days = np.tile(pd.date_range("2020-01-01", periods=each).strftime("%Y-%m-%d"), series)
    table = pd.DataFrame({"unique_id": names, "ds": days, "y": random.lognormal(3, 1, len(names)).round(3)})
    wide = table.copy()
    for i in range(4):
        wide[f"x{i}"] = random.normal(size=len(names)).round(4)
    wide["remark"] = random.choice(["none", "holiday, probably", "sold out"], len(names))
    for name, frame in (("narrow", table), ("wide", wide)):
        frame.to_csv(folder / f"{name}.csv", index=False)
        frame.assign(ds=pd.to_datetime(frame["ds"])).to_parquet(folder / f"{name}.parquet")


def measure(path, *, named):
    """Seconds, and MiB of the process at its peak and before, of one reading."""
    from tsformer import sources

    sources.read("csv", path="air_passengers")
    options = NAMED if named else {"id": NAMED["id"]}
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    start = time.perf_counter()
    panel = sources.read("csv", path=path, **options)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    columns = "named" if named else "found"
    print(
        f"{Path(path).name:<16} {columns:<8} {Path(path).stat().st_size / MIB:8.1f} {seconds:8.2f} "
        f"{peak:10.0f} {before:8.0f} {len(panel.ids):8,} x {panel.values.shape[1]}"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--series", type=int, default=10_000)
    parser.add_argument("--measure", metavar="FILE", help="measure a table that is there")
    parser.add_argument("--named", action="store_true", help="name the columns that are needed")
    asked = parser.parse_args()
    if asked.measure:
        measure(asked.measure, named=asked.named)
        return
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), asked.rows, asked.series)
        print(f"{'file':<16} {'columns':<8} {'MiB':>8} {'seconds':>8} {'peak MiB':>10} {'before':>8} {'series':>8}")
        sys.stdout.flush()
        for file in sorted(Path(folder).iterdir()):
            for flag in ([], ["--named"]):
                subprocess.run([sys.executable, __file__, "--measure", file, *flag], check=True)


if __name__ == "__main__":
    main()
