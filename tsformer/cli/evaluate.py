"""`tsformer evaluate`: a run's errors on the part that its fit held out, or on a file, beside naive forecasts."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tsformer.cli.console import data_only, guarded, print_json, say
from tsformer.cli.interval_options import IntervalsFrom, Levels, Samples, ask_for, check_levels, refuse_idle
from tsformer.cli.line_config import PluginFiles
from tsformer.cli.places import require_apart, require_named, require_writable
from tsformer.errors import UsageError
from tsformer.levels import read_intervals

if TYPE_CHECKING:
    import pandas as pd


def evaluate(
    run: Annotated[str, typer.Argument(metavar="[RUN]", help="A run folder; the newest one if left out.")] = "latest",
    input: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Score every window of these rows, - for stdin. (default: the test part of the data of the fit)",
        ),
    ] = None,
    by: Annotated[
        str | None, typer.Option(metavar="series|horizon|target", help="A row for each of them, in place of one.")
    ] = None,
    levels: Levels = None,
    intervals: IntervalsFrom = None,
    samples: Samples = None,
    output: Annotated[
        str | None, typer.Option(metavar="FILE", help="Every forecast, in one table; .parquet and .csv.gz are known.")
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1 or mps.")] = "auto",
    plugin: PluginFiles = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Only warnings and errors on stderr.")] = False,
) -> None:
    """Print the errors of a run on rows that it was not fitted on, beside those of naive forecasts.

    The model is not fitted again. Every metric is in units of the data, or relative; what is undefined is empty.
    """
    with guarded(as_json=json):
        for flag, path in (("--input", input), ("--output", output), ("RUN", run)):
            require_named(flag, path)
        if output is not None:
            if output == "-":
                raise UsageError("--output -: stdout is for the scores, name a file for the forecasts")
            require_writable(f"--output '{output}'", Path(os.path.expanduser(output)))
            require_apart("--output", output, {"--input": input})
        if by not in (None, "series", "horizon", "target"):
            raise UsageError(f"--by must be series, horizon or target, not {by!r}")
        refuse_idle(levels, False, intervals=intervals, samples=samples)
        wanted, source = check_levels(levels), read_intervals(intervals)
        from tsformer import run as runs
        from tsformer import sources
        from tsformer.building import device_of
        from tsformer.data.files import write_table
        from tsformer.data.panel import Panel
        from tsformer.evaluation import evaluate as scoring
        from tsformer.evaluation.origin_table import forecasts_table
        from tsformer.tables.output import keeps_dates, require

        if output is not None:
            require(Path(output))
        folder = runs.find(run)
        with data_only():
            fitted, summary = runs.load(folder)
            if summary["status"] != "complete":
                say(f"note: the fit of {folder} was {summary['status']}", quiet=quiet)
            for note in runs.other_plugins(folder, fitted):
                say(f"note: {note}", quiet=quiet)
            scoring.require_forecasts(fitted)
            fitted.module.to(device_of(device))
            data = sources.read_rows(fitted.settings, input, fitted.schema)
            assert isinstance(data, Panel)
            found = scoring.evaluate(
                fitted,
                data,
                held_out=input is None,
                ask=ask_for(wanted, samples=samples),
                intervals=source,
                keep=output is not None,
            )
            for line in dict.fromkeys(map(str, (*data.notes, *found.plan.notes))):
                say(f"note: {line}", quiet=quiet)
            table = scoring.scores(found, by)
            if output is not None:
                write_table(forecasts_table(found, written=not keeps_dates(Path(output))), output)
        for name, entry in found.entries.items():
            for note in entry.notes:
                say(f"note: {name}: {note}", quiet=quiet)
            for failure in entry.failures:
                say(f"warning: {name} has no forecast of {failure.windows} window(s): {failure.reason}")
        for line in scoring.cautions(found, held_out=input is None):
            say(f"warning: {line}")
        if json:
            about = {
                "schema": 1,
                "task": "forecast",
                "run": str(folder),
                "input": input,
                "part": "test" if input is None else "all",
                "series": len(found.panel.ids),
                "horizon": found.plan.horizon,
                "season": found.season,
                "levels": list(wanted),
            }
            print_json({**about, "scores": _plain(table), "output": output})
        else:
            _show(table)
        if output is not None:
            say(f"forecasts in {output}", quiet=quiet)


def _show(table: pd.DataFrame) -> None:
    """A table for a person at a terminal, CSV for a program."""
    if not sys.stdout.isatty():
        print(table.to_csv(index=False, lineterminator="\n"), end="")
        return
    from tsformer.report.scores import print_scores

    print_scores(table)


def _plain(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows as JSON has them: None for what is undefined."""
    return [
        {str(name): None if value is None or value != value else value for name, value in row.items()}
        for row in table.astype(object).to_dict("records")
    ]
