"""M3 and M4: the seasonal naive forecast through `tsformer backtest --test`, beside its published figures.

    python tests/benchmarks/competitions.py FOLDER [--models ets theta] [--only "M3 Monthly"]

FOLDER holds m4_hourly_train.csv.gz and m4_hourly_test.csv.gz as the organisers have them, and m3.json.gz, one object a
series with its rows `x` and `xx`, which are written to such tables. sMAPE and MASE are means over series, MASE scaled
by the rows of the train file; the published ones are of the seasonal naive forecast without deseasonalising.
"""

import argparse
import gzip
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PUBLISHED = {
    "M4 Hourly": ("13.912", "1.193"),
    "M3 Yearly": ("17.880", "3.172"),
    "M3 Quarterly": ("11.065", "1.425"),
    "M3 Monthly": ("17.234", "1.146"),
    "M3 Other": ("6.302", "3.089"),
}
WINDOWS = {
    "M4 Hourly": (48, 24),
    "M3 Yearly": (6, 1),
    "M3 Quarterly": (8, 4),
    "M3 Monthly": (18, 12),
    "M3 Other": (8, 1),
}
"""Horizon and season."""


def tables_of(folder, name, made):
    """Train and test file; those of M3 are written to the folder `made`."""
    if name == "M4 Hourly":
        return folder / "m4_hourly_train.csv.gz", folder / "m4_hourly_test.csv.gz"
    with gzip.open(folder / "m3.json.gz") as file:
        every = json.load(file)
    some = {id: each for id, each in every.items() if each["period"] == [name.split()[1].upper()]}
    for part, key in (("train", "x"), ("test", "xx")):
        width = max(len(each[key]) for each in some.values())
        lines = [",".join(f"V{number}" for number in range(1, width + 2))]
        for id, each in some.items():
            lines.append(",".join([id, *map(str, each[key]), *[""] * (width - len(each[key]))]))
        (made / f"{part}.csv").write_text("\n".join(lines) + "\n")
    return made / "train.csv", made / "test.csv"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--models", nargs="+", default=[], metavar="NAME")
    parser.add_argument("--only", nargs="+", default=list(PUBLISHED), choices=list(PUBLISHED), metavar="NAME")
    arguments = parser.parse_args()
    wrong = 0
    for name in arguments.only:
        horizon, season = WINDOWS[name]
        started = time.perf_counter()
        with tempfile.TemporaryDirectory() as made:
            train, test = tables_of(arguments.folder, name, Path(made))
            line = ["--data", "csv", "--path", str(train), "--test", str(test)]
            line += ["--horizon", str(horizon), "--season", str(season), "--short", "pad"]
            line += [word for model in ("seasonal_naive", *arguments.models) for word in ("--model", model)]
            done = subprocess.run(
                [sys.executable, "-m", "tsformer", "backtest", *line, "--json", "--quiet"],
                capture_output=True,
                text=True,
            )
        if done.returncode:
            sys.exit(f"{name}: {done.stderr.strip()}")
        for each in json.loads(done.stdout)["leaderboard"]:
            own, said = (f"{each['smape']:.3f}", f"{each['mase']:.3f}"), ""
            if each["model"] == "seasonal_naive":
                said = f"  published {' '.join(PUBLISHED[name])}  {'equal' if own == PUBLISHED[name] else 'DIFFERENT'}"
                wrong += own != PUBLISHED[name]
            print(f"{name:<14} {each['model']:<18} sMAPE {own[0]:>7} MASE {own[1]:>6}{said}", flush=True)
        print(f"{'':<14} {time.perf_counter() - started:.1f} s")
    sys.exit(f"{wrong} figures differ from the published ones" if wrong else 0)


if __name__ == "__main__":
    main()
