"""`tsformer predict`: a run and new rows make a forecast table."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from tsformer.cli.console import data_only, guarded, print_json, say
from tsformer.cli.line_config import PluginFiles
from tsformer.cli.places import place, require_named, require_writable


def predict(
    run: Annotated[str, typer.Argument(metavar="[RUN]", help="A run folder; the newest one if left out.")] = "latest",
    input: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="New rows, - for stdin. (default: the data that the run was fitted on)"),
    ] = None,
    output: Annotated[str, typer.Option(metavar="FILE", help="The forecast table, - for stdout.")] = "-",
    plot: Annotated[str | None, typer.Option(metavar="FILE", help="A picture of history and forecast.")] = None,
    horizon: Annotated[
        int | None, typer.Option(metavar="INTEGER", help="Steps to predict. (default: as fitted)")
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1 or mps.")] = "auto",
    plugin: PluginFiles = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Only warnings and errors on stderr.")] = False,
) -> None:
    """Forecast what follows the last row of the input, in its own units and with the dates that come next."""
    with guarded(as_json=json):
        for flag, path in (("--input", input), ("--output", output), ("RUN", run)):
            require_named(flag, path)
        picture = place("--plot", plot)
        if output != "-":
            require_writable(f"--output '{output}'", Path(os.path.expanduser(output)))
        from tsformer import preparation
        from tsformer import run as runs
        from tsformer.building import device_of
        from tsformer.data.frames import write_table
        from tsformer.forecast import forecast
        from tsformer.report import plots

        if picture is not None:
            require_writable(f"--plot '{plot}'", picture)
            plots.require(picture)
        folder = runs.find(run)
        with data_only():
            fitted, summary = runs.load(folder)
            if summary["status"] != "complete":
                say(f"note: the fit of {folder} was {summary['status']}", quiet=quiet)
            for note in runs.other_plugins(folder, fitted):
                say(f"note: {note}", quiet=quiet)
            fitted.module.to(device_of(device))
            panel = preparation.read_rows(fitted.settings, input, fitted.schema)
            for note in panel.notes:
                say(f"note: {note}", quiet=quiet)
            made = forecast(fitted, panel, horizon)
            for note in made.notes:
                say(f"note: {note}", quiet=quiet)
        table = made.to_frame()
        if json:
            rows = [{name: _plain(cell) for name, cell in row.items()} for row in table.to_dict("records")]
            if output != "-":
                write_table(table, output)
            print_json(
                {
                    "schema": 1,
                    "task": fitted.problem.task.value,
                    "run": str(folder),
                    "horizon": made.values.shape[1],
                    "output": None if output == "-" else output,
                    "forecast": rows,
                }
            )
        else:
            write_table(table, output)
        if picture is not None:
            plots.plot_forecast(panel, made, picture, fitted.settings.model.name)
            say(f"picture: {picture}", quiet=quiet)
        if output != "-":
            say(f"{len(table)} rows of {folder} in {output}", quiet=quiet)


def _plain(cell: Any) -> Any:
    """A cell as JSON has it."""
    return cell.isoformat() if hasattr(cell, "isoformat") else cell.item() if hasattr(cell, "item") else cell
