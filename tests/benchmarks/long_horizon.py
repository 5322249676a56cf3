"""The long-horizon papers' protocol: figures of `tsformer backtest --protocol ltsf` beside check values and papers.

    python tests/benchmarks/long_horizon.py FOLDER [--sets ETTh1 weather] [--horizons 96] [--models linear ridge]
        [--option a.lookback=336]

FOLDER holds ETTh1.csv.gz, ETTh2, ETTm1, ETTm2, weather, exchange_rate and ILI as the papers have them, or some of them.
MSE/MAE of standardised values, all windows. Of the naive forecasts the figures must be those of `long_horizon.tsv`,
which were computed by a program of its own, to the last digit. Of other models the papers' are shown beside them, with
the lookback; many were measured without the last windows (drop_last), and papers differ by 5 % in the same cell.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd

PUBLISHED = Path(__file__).with_suffix(".tsv")
SEASONS = {"ETTh1": 24, "ETTh2": 24, "ETTm1": 96, "ETTm2": 96, "weather": 144, "exchange_rate": 7, "ILI": 52}
READ = {"weather": ("--duplicates", "first", "--gaps", "split")}
"""Its table has one row twice, and lacks nine rows."""
NAIVE = ("last_value", "seasonal_naive")


def backtest(file, name, horizon, models, options):
    """The leaderboard of a call of the command, by model: mse, mae, windows and seconds."""
    line = ["--protocol", "ltsf", "--data", "csv", "--path", str(file), *READ.get(name, ())]
    line += ["--horizon", str(horizon), "--season", str(SEASONS[name])]
    line += [word for model in models for word in ("--model", model)]
    line += [word for option in options for word in (f"--{option.split('=', 1)[0]}", option.split("=", 1)[1])]
    done = subprocess.run(
        [sys.executable, "-m", "tsformer", "backtest", *line, "--json", "--quiet"], capture_output=True, text=True
    )
    if done.returncode:
        sys.exit(f"{' '.join(line)}: {done.stderr.strip()}")
    return {each["model"]: each for each in json.loads(done.stdout)["leaderboard"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sets", nargs="+", default=list(SEASONS), choices=list(SEASONS), metavar="NAME")
    parser.add_argument("--horizons", nargs="+", type=int, metavar="STEPS")
    parser.add_argument("--models", nargs="+", default=[], metavar="NAME")
    parser.add_argument("--option", nargs="*", default=[], metavar="FLAG=VALUE", help="of the command: lookback=336")
    arguments = parser.parse_args()
    known = pd.read_csv(PUBLISHED, sep="\t", dtype={"lookback": str}, keep_default_na=False)
    wrong = 0
    for name in arguments.sets:
        file = arguments.folder / f"{name}.csv.gz"
        if not file.is_file():
            print(f"{name}: no file {file}")
            continue
        for horizon in arguments.horizons or ((24, 36, 48, 60) if name == "ILI" else (96, 192, 336, 720)):
            started = time.perf_counter()
            found = backtest(file, name, horizon, (*NAIVE, *arguments.models), arguments.option)
            rows = known[(known["set"] == name) & (known["horizon"] == horizon)]
            checks = rows.set_index("model")
            for model, each in found.items():
                own, said = f"{each['mse']:.3f}/{each['mae']:.3f}", ""
                if model in NAIVE and model in checks.index:
                    wanted = "{mse:.3f}/{mae:.3f}".format(**checks.loc[model])
                    said = f"  check value {wanted}  {'equal' if own == wanted else 'DIFFERENT'}"
                    wrong += own != wanted
                print(f"{name:<14}{horizon:4} {each['windows']:6} windows  {model:<18} {own}{said}", flush=True)
            if arguments.models:
                papers = rows[~rows["model"].isin(NAIVE)].sort_values("mse")
                each = ", ".join(f"{r.model} ({r.lookback}) {r.mse:.3f}/{r.mae:.3f}" for r in papers.itertuples())
                print(f"{'':<14}published: {each or '-'}; {time.perf_counter() - started:.1f} s")
    sys.exit(f"{wrong} figures differ from their check values" if wrong else 0)


if __name__ == "__main__":
    main()
