"""From every file of a folder to a forecast, by the line that `tsformer inspect` prints, and is the forecast right?

    python tests/benchmarks/real_tables.py FOLDER ... [--expect FILE.tsv] [--out FILE.md] [--only PATTERN] [--jobs 2]

Each line is run in the file's folder, with `--max-steps 3 --quiet --out`, then `tsformer predict`. What comes out is
checked by pandas alone: rows for each series, finite, in ascending times at one step that begins after the last time of
the file, within the range of the column's own numbers. A table of expectations (columns `file`, `verdict`, `frequency`,
`first`, `series`, with "|" between several that are right, an empty cell for what is not checked) says what a person
who looked at the file would call right; `real_tables.tsv` beside this script is one. Exit code 1 when one is wrong.
"""

import argparse
import csv
import fnmatch
import gzip
import io
import json
import shlex
import subprocess
import sys
import tempfile
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

ENDINGS = (".csv", ".tsv", ".txt", ".gz", ".zip", ".parquet", ".tsf", ".json", ".xlsx", ".dat")
FIELDS = ("verdict", "frequency", "first", "series")
RANGES = 3  # that a forecast may lie beyond the column's own numbers


@dataclass
class Outcome:
    """What became of one file; `wrong` says why it is not right."""

    file: str
    verdict: str = ""
    kinds: list[str] = field(default_factory=list)
    options: str = ""
    frequency: str = ""
    first: str = ""
    series: str = ""
    seconds: float = 0
    wrong: list[str] = field(default_factory=list)

    @property
    def result(self) -> str:
        if self.wrong:
            return "WRONG: " + "; ".join(self.wrong)
        return "right" if self.verdict.startswith("ready") else "refused rightly"


def run(words: list[str], folder: Path, timeout: float) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "tsformer", *words[1:]]
    try:
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, -1, "", f"no end after {timeout:g} s")


def judge(file: Path, expected: dict[str, str] | None, timeout: float) -> Outcome:
    """All steps for one file."""
    found = Outcome(file.name)
    begun = pd.Timestamp.now()
    try:
        _judge(file, found, expected, timeout)
    except Exception as error:  # of this script: the file is not judged, the others are
        found.wrong.append(f"not judged, {type(error).__name__}: {error}")
    found.seconds = (pd.Timestamp.now() - begun).total_seconds()
    for name in FIELDS if expected else ():
        wanted, got = expected.get(name, ""), str(getattr(found, name))
        if (
            wanted
            and got not in wanted.split("|")
            and not (name != "verdict" and not found.verdict.startswith("ready"))
        ):
            found.wrong.append(f"{name} is {got or 'missing'}, not {wanted}")
    return found


def _judge(file: Path, found: Outcome, expected: dict[str, str] | None, timeout: float) -> None:
    made = run(["tsformer", "inspect", file.name, "--json"], file.parent, timeout)
    if not _ended(made, "inspect", found, (0, 3)):
        return
    document = json.loads(made.stdout)
    found.verdict = document["verdict"]
    found.kinds = list(dict.fromkeys(f["kind"] for f in document["findings"] if f["level"] != "note"))
    found.kinds += sorted({f["kind"] for f in document["findings"]} - set(found.kinds))
    if made.returncode == 3 and (not made.stderr.strip() or document["command"]):
        found.wrong.append("exit 3 without a reason, or with a line to run")
    if document["command"] is None:
        if expected is None and made.returncode == 0 and not any(f["remedy"] for f in document["findings"]):
            found.wrong.append("a decision without a remedy")
        return
    words = shlex.split(document["command"])
    found.options = shlex.join(words[words.index("--path") + 2 :])
    with tempfile.TemporaryDirectory() as folder:
        folder, table = f"{folder}/run", f"{folder}/forecast.csv"
        fit = run([*words, "--max-steps", "3", "--quiet", "--out", folder], file.parent, timeout)
        if not _ended(fit, "fit", found):
            return
        predict = run(["tsformer", "predict", folder, "--output", table], file.parent, timeout)
        if _ended(predict, "predict", found):
            check(pd.read_csv(table, dtype=str, keep_default_na=False), document, file, found)


def _ended(made: subprocess.CompletedProcess, step: str, found: Outcome, codes: tuple[int, ...] = (0,)) -> bool:
    last = (made.stderr.strip().splitlines() or [""])[-1][:200]
    if "Traceback" in made.stderr or made.returncode not in codes:
        found.wrong.append(f"{step} ends with {made.returncode}: {last}")
        return False
    return True


def check(forecast: pd.DataFrame, document: dict, file: Path, found: Outcome) -> None:
    """Say what is wrong with a forecast table."""
    time, ids = document["time"]["name"], document["series"]["id"]
    series, horizon = document["series"]["count"], document["window"]["horizon"]
    found.series, found.frequency = str(series), str(document["time"]["frequency"])
    targets = [name for name in forecast.columns if name not in (time, *ids)]
    absent = [name for name in (time, *ids) if name and name not in forecast.columns]
    absent += [c["name"] for c in document["columns"] if c["role"] == "target" and c["name"] not in targets]
    if absent:
        found.wrong.append(f"the forecast has no column {absent[0]!r}, it has {list(forecast.columns)[:5]}")
    made = forecast.groupby(ids, sort=False).ngroups if ids and not absent else 1
    skips = "--short skip" in found.options  # series that are too short have no forecast, and a note says so
    if len(forecast) != made * horizon or (made != series and not (skips and 0 < made < series)):
        found.wrong.append(f"{len(forecast)} rows for {series} series of {horizon} steps")
    values = forecast[targets].apply(pd.to_numeric, errors="coerce").to_numpy(float)
    if not np.isfinite(values).all():
        found.wrong.append(f"{int((~np.isfinite(values)).sum())} values are not finite")
    source = rows_of(file, [name for name in (time, *targets) if name], document)
    for name in targets if source is not None else ():
        if name in source:
            own, mine = numbers(source[name]), numbers(forecast[name])
            own = own[~own.isin(document["options"].get("data.sentinel", []))]
            room = RANGES * (own.max() - own.min())
            if len(own) and not mine.between(own.min() - room, own.max() + room).all():
                found.wrong.append(
                    f"{name!r} goes to {mine.min():g}..{mine.max():g}, the file to {own.min():g}..{own.max():g}"
                )
    if time and not absent:
        check_times(forecast, time, ids, source, document, found)


def check_times(forecast, time, ids, source, document, found):
    written, frequency, zone = (document["time"][key] for key in ("format", "frequency", "zone"))
    times = moments(forecast[time], written, zone)
    if times is None:
        found.wrong.append(f"times cannot be read: {forecast[time].iloc[0]!r}")
        return
    groups = [times[rows] for rows in forecast.groupby(ids, sort=False).indices.values()] if ids else [times]
    firsts = [group[0] for group in groups]
    found.first = str(max(firsts)).removesuffix(" 00:00:00") if len(times) else ""
    known = None if source is None or time not in source else moments(source[time], written, zone)
    for group in groups:
        if not group.is_monotonic_increasing or not group.is_unique:
            found.wrong.append(f"times do not ascend: {forecast[time].iloc[0]} ...")
            return
        if list(group) != list(following(group[0], frequency, len(group))):
            found.wrong.append(f"times are not at step {frequency}: {list(map(str, group[:3]))} ...")
            return
    if known is not None and len(known):
        last = known.max()
        wanted = following(last, frequency, 3)
        # a row off the grid, or a holiday, may lie between
        if not last < max(firsts) <= wanted[-1]:
            found.wrong.append(f"begins at {max(firsts)}, the file ends at {last}")


def following(first, frequency, count):
    """`count` times from one on."""
    if frequency is None or not isinstance(first, pd.Timestamp):
        return [first + i * float(frequency or 1) for i in range(count)]
    if frequency.startswith("C-"):
        days = " ".join(day.capitalize() for day in frequency[2:].split("-"))
        return pd.date_range(first, periods=count, freq=pd.offsets.CustomBusinessDay(weekmask=days))
    begun = pd.date_range(first, periods=count, freq=frequency)
    # months and weeks are counted from where the file counts them
    return begun if len(begun) and begun[0] == first else [first, *begun[: count - 1]]


def moments(cells: pd.Series, written: str | None, zone: str | None) -> pd.Index | None:
    """Times as pandas reads them; None when it cannot."""
    cells = cells[cells.notna() & (cells.astype(str).str.strip() != "")].astype(str).str.strip()
    plain = pd.to_numeric(cells, errors="coerce")
    if plain.notna().all() and not (written or "").startswith("%Y"):
        unit = {10: "s", 13: "ms", 16: "us", 19: "ns"}.get(len(cells.iloc[0].split(".")[0]))
        return pd.to_datetime(plain, unit=unit) if unit else pd.Index(plain)
    quarter = cells.str.extract(r"^(\d{4})\s?Q(\d)$")
    week = cells.str.extract(r"^(\d{4})\s?-?W(\d+)$")
    if quarter.notna().all(axis=None):
        return pd.PeriodIndex(quarter[0] + "Q" + quarter[1], freq="Q").to_timestamp()
    if week.notna().all(axis=None):
        return pd.DatetimeIndex(pd.to_datetime(week[0] + week[1] + "1", format="%G%V%u"))
    for layout in ((written or "").replace("%-", "%").replace("%3f", "%f").replace("%#", "%"), "ISO8601"):
        try:
            times = pd.DatetimeIndex(pd.to_datetime(cells, format=layout, utc=has_offsets(cells)))
        except ValueError:
            continue
        if zone and times.tz is None:
            return times.tz_localize(zone, ambiguous=np.zeros(len(times), bool), nonexistent="shift_forward")
        return times.tz_convert(zone) if zone else times
    return None


def has_offsets(cells: pd.Series) -> bool:
    return bool(cells.str.contains(r":\d\d.*(?:Z|[+-]\d\d:?\d\d)$").any())


def numbers(cells: pd.Series) -> pd.Series:
    """The numbers among cells, with whatever mark most of them can be read."""
    text = cells.astype(str).str.strip().str.replace(r"[%$€£]", "", regex=True)
    grouped = text.str.replace(r"(?<=\d),(?=\d{3}(?:\D|$))", "", regex=True)
    german = text.str.replace(".", "", regex=False).str.replace(",", ".", regex=False)
    read = [pd.to_numeric(each, errors="coerce") for each in (text, grouped, german)]
    return max(read, key=lambda found: found.notna().sum()).dropna()


def rows_of(file: Path, names: list[str], document: dict) -> pd.DataFrame | None:
    """The cells below the first line that holds all names; None where there is no such line."""
    if file.suffix == ".parquet":
        return pd.read_parquet(file).reset_index().astype(str)
    content = file.read_bytes()
    if file.suffix == ".gz":
        content = gzip.decompress(content)
    if file.suffix == ".zip":
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            content = archive.read(archive.namelist()[0])
    text = content.decode(document["encoding"] or "utf-8", "replace").lstrip("\ufeff")
    for sep in (",", ";", "\t", "|"):
        rows = list(csv.reader(io.StringIO(text), delimiter=sep, skipinitialspace=True))
        at = next((i for i, row in enumerate(rows[:100]) if {n.strip() for n in row} >= set(names)), None)
        if at is not None:
            head = [name.strip() for name in rows[at]]
            body = [row[: len(head)] for row in rows[at + 1 :] if len(row) >= len(head) and any(row)]
            return pd.DataFrame(body, columns=head)
    return None


def report(found: list[Outcome]) -> str:
    head = (
        "file",
        "verdict",
        "findings",
        "options of the line",
        "frequency",
        "first forecast",
        "series",
        "s",
        "result",
    )
    rows = [head, tuple("---" for _ in head)]
    for o in found:
        cells = (o.file, o.verdict, ", ".join(o.kinds), o.options, o.frequency, o.first, o.series, f"{o.seconds:.0f}")
        rows.append((*cells, o.result))
    lines = ["| " + " | ".join(str(c).replace("|", "/")[:160] for c in row) + " |" for row in rows]
    wrong = sum(bool(o.wrong) for o in found)
    forecasts = sum(o.verdict.startswith("ready") and not o.wrong for o in found)
    return "\n".join(
        [
            *lines,
            "",
            f"{len(found)} files: {forecasts} right, {len(found) - forecasts - wrong} refused rightly, {wrong} wrong",
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--expect", type=Path, help="table of what is right")
    parser.add_argument("--out", type=Path, help="where the report goes, too")
    parser.add_argument("--only", default="*", help="names of files, * for any characters")
    parser.add_argument("--timeout", type=float, default=300, help="seconds for one command")
    parser.add_argument("--jobs", type=int, default=1)
    asked = parser.parse_args()
    files = [file for folder in asked.folders for file in sorted(folder.iterdir()) if file.name.endswith(ENDINGS)]
    files = [file.absolute() for file in files if fnmatch.fnmatch(file.name, asked.only)]
    known = {}
    if asked.expect:
        table = pd.read_csv(asked.expect, sep="\t", dtype=str, keep_default_na=False)
        known = {row["file"]: row for row in table.to_dict("records")}
    with ThreadPoolExecutor(asked.jobs) as pool:
        found = []
        for outcome in pool.map(lambda file: judge(file, known.get(file.name), asked.timeout), files):
            print(f"{outcome.file}: {outcome.result}", file=sys.stderr, flush=True)
            found.append(outcome)
    print(text := report(found))
    if asked.out:
        asked.out.write_text(text + "\n")
    sys.exit(any(o.wrong for o in found))


if __name__ == "__main__":
    main()
