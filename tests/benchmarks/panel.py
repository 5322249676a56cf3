"""A long table of many series, from the CSV file to the forecast: CPU seconds and peak memory of each stage.

Memory is what the process holds above its imports, beside the bytes of the arrays that it works on. Linux only.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

MODEL = {"name": "last_value"}  # the seconds are those of what surrounds a model

MIB = 2**20


def write(path, rows, series):
    """Daily series of different starts and lengths, one after another, with a name that is text."""
    random = np.random.default_rng(0)
    lengths = np.full(series, rows // series)
    spread = random.integers(0, max(1, rows // series // 2), series // 2)
    lengths[: len(spread)] += spread
    lengths[len(spread) : 2 * len(spread)] -= spread
    lengths[0] += rows - lengths.sum()
    starts = pd.Timestamp("2020-01-01") + pd.to_timedelta(random.integers(0, 400, series), unit="D")
    within = np.arange(rows) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    days = np.repeat(starts.to_numpy(), lengths) + within.astype("timedelta64[D]")
    level = np.repeat(random.lognormal(4, 1, series), lengths)
    values = level * (1 + 0.3 * np.sin(within * 2 * np.pi / 7) + 0.1 * random.normal(size=rows))
    names = np.repeat([f"Süd-{i:05d} store" for i in range(series)], lengths)
    table = pd.DataFrame({"unique_id": names, "ds": days.astype("datetime64[D]").astype(str), "y": values.round(3)})
    table.to_csv(path, index=False)


def resident(field):
    """VmRSS (now) or VmHWM (the most since the last reset), in MiB."""
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(field))
    return int(line.split()[1]) / 1024


def measure(path):
    from tsformer import held_out, preparation
    from tsformer import run as runs
    from tsformer.building import build_module
    from tsformer.config import resolve
    from tsformer.config_layer import Layer
    from tsformer.data.frames import panel_from_frame, read_table
    from tsformer.data.table_options import TableOptions
    from tsformer.fitted import Fitted
    from tsformer.forecast import forecast
    from tsformer.run_files import TRANSFORMS

    panel_from_frame(pd.DataFrame({"ds": ["2020-01-01", "2020-01-02", "2020-01-03"], "y": [1.0, 2.0, 3.0]}))
    before, peaks = resident("VmRSS"), []

    def stage(name, function, *args):
        Path("/proc/self/clear_refs").write_text("5")  # forgets the peak so far
        start = time.process_time()
        result = function(*args)
        seconds = time.process_time() - start
        peaks.append(resident("VmHWM") - before)
        print(f"{name:<24} {seconds:8.2f} {peaks[-1]:10.0f} {resident('VmRSS') - before:10.0f}")
        return result

    print(f"{'stage':<24} {'seconds':>8} {'peak MiB':>10} {'kept MiB':>10}")
    frame = stage("read_table", partial(read_table, path, text=["unique_id", "ds"]))
    panel = stage("panel_from_frame", partial(panel_from_frame, frame, TableOptions(id="unique_id", time="ds")))
    del frame
    settings = resolve([Layer({"model": MODEL})], needs_data=False)
    settings = preparation.complete(settings, panel)
    prepared = stage("transforms and windows", preparation.prepare, settings, panel)
    load_and_windows = max(peaks)
    problem = prepared.problem
    module = build_module(settings.model, problem).eval()
    fitted = Fitted(settings, problem, panel.schema, prepared.chain, module)
    test = stage("forecast of the test", held_out.backcast, fitted, prepared)
    stage("score", held_out._errors, prepared, test, None)
    made = stage("forecast", forecast, fitted, panel)
    stage("forecast as a table", made.to_frame)
    with tempfile.TemporaryDirectory() as folder:
        writer = runs.Writer(Path(folder) / "run")

        def save():
            writer.start(fitted)
            writer.finish(fitted, {"status": "complete", "steps": 1, "best_step": 1, "metrics": {}})

        stage("save the run", save)
        stage("load the run", runs.load, writer.folder)
        states = (writer.folder / TRANSFORMS).stat().st_size
    parts = {"training": prepared.train, "validation": prepared.validation, "test": prepared.test}
    arrays = {
        "values of the panel": panel.values.nbytes,
        "times": panel.times.nbytes,
        "values for the windows": prepared.train.values.nbytes,
        "windows": sum(t.nbytes for w in parts.values() for t in (w.starts, w.origins, w.series)),
    }
    print(", ".join(f"{len(windows):,} {name}" for name, windows in parts.items()), "windows")
    print(", ".join(f"{name} {size / MIB:.1f}" for name, size in arrays.items()), "MiB")
    print(f"all arrays {sum(arrays.values()) / MIB:.1f} MiB; peak of load + windows {load_and_windows:.0f} MiB")
    print(f"{TRANSFORMS} {states / MIB:.1f} MiB")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--series", type=int, default=10_000)
    parser.add_argument("--measure", metavar="FILE", help="measure a table that is there")
    options = parser.parse_args()
    if options.measure:
        measure(options.measure)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "panel.csv"
        write(path, options.rows, options.series)
        print(f"{options.rows:,} rows in {options.series:,} series, {path.stat().st_size / MIB:.1f} MiB of CSV")
        sys.stdout.flush()
        # A process of its own, so that making the table is not counted.
        subprocess.run([sys.executable, __file__, "--measure", path], check=True)


if __name__ == "__main__":
    main()
