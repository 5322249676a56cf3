"""`tsformer backtest`: several models as of earlier moments, measured by what came after, beside naive forecasts."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from tsformer.cli import aliases
from tsformer.cli.console import data_only, guarded, print_json, say
from tsformer.cli.interval_options import IntervalsFrom, Levels, Samples, refuse_idle
from tsformer.cli.line_config import Data, File, PluginFiles, Scale, Transforms
from tsformer.cli.options import with_signature, with_values
from tsformer.cli.places import place, require_named, require_writable
from tsformer.errors import UsageError
from tsformer.levels import read_intervals, read_levels
from tsformer.settings import Settings

if TYPE_CHECKING:
    from tsformer.data.panel import Panel
    from tsformer.evaluation.backtest import Backtest, Candidate, Progress
    from tsformer.evaluation.leaderboard import Leaderboard
    from tsformer.evaluation.plan import Plan
    from tsformer.fitted import Fitted

Models = Annotated[
    list[str] | None,
    typer.Option(
        metavar="[NAME=]PLUGIN",
        help="A model plugin, several times for several models. A name of its own, --model a=tcn, gives it options of "
        "its own: --a.width 64, --a.lookback 96, --a.train.lr 1e-3.",
    ),
]
Runs = Annotated[
    list[str] | None,
    typer.Option(metavar="[NAME=]DIR", help="A run folder, several times for several; it is not fitted again."),
]


def command(words: Sequence[str] | None) -> Callable[..., None]:
    """The command with the options of the models that a line names; None when the line is another command's."""
    if words is None:
        return with_signature(backtest, [])
    options, all_there = aliases.added(words)
    if not all_there:  # to the parser, the options of that plugin would be the fault
        aliases.settings_of(**aliases.pre_read(words, options))
    return with_signature(backtest, options)


def with_switches(words: Sequence[str]) -> list[str]:
    """A line whose options that are true or false all have a value; see `with_values`."""
    return with_values(words, aliases.added(words)[0])


def backtest(
    model: Models = None,
    run: Runs = None,
    data: Data = None,
    transform: Transforms = None,
    scale: Scale = None,
    config: File = None,
    plugin: PluginFiles = None,
    origins: Annotated[
        int | None,
        typer.Option(metavar="INTEGER", min=1, help="Moments to forecast from, of each series. (default: 8)"),
    ] = None,
    step: Annotated[
        int | None, typer.Option(metavar="INTEGER", min=1, help="Rows from one to the next. (default: the horizon)")
    ] = None,
    refit: Annotated[
        str | None,
        typer.Option(
            metavar="never|every|N",
            help="Fit once, before the first origin; before every one; or before every N-th. (default: never)",
        ),
    ] = None,
    protocol: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Origins as the literature has them, in place of --origins: ltsf."),
    ] = None,
    split: Annotated[
        str | None,
        typer.Option(metavar="TRAIN,VALIDATION,TEST", help="Rows of the protocol's parts, in place of its own."),
    ] = None,
    test: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Rows that follow those of the data: one origin, between them."),
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="By which models are sorted and compared: mase, mae, rmse, smape, ..."),
    ] = None,
    levels: Levels = None,
    intervals: IntervalsFrom = None,
    samples: Samples = None,
    output: Annotated[
        str | None, typer.Option(metavar="FILE", help="Every forecast, in one table; .parquet and .csv.gz are known.")
    ] = None,
    out: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="Keeps what is finished; the same line once more goes on from there."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Only warnings and errors on stderr.")] = False,
    **options: Any,
) -> None:
    """Fit models as of earlier moments, forecast what came after, and print who was right: a leaderboard.

    Naive forecasts are always beside them. Name models and data to see their options:
    tsformer backtest --model tcn --model ridge --data csv --help
    """
    with guarded(as_json=json):
        _refuse(protocol=protocol, test=test, split=split, origins=origins, step=step, refit=refit)
        refuse_idle(levels, False, intervals=intervals, samples=samples)
        wanted, source = () if levels is None else read_levels(levels), read_intervals(intervals)
        often = read_refit(refit)
        with data_only():
            named = aliases.settings_of(
                models=model or (),
                config=config,
                data=data,
                transform=transform,
                scale=scale,
                options=options,
                needs_data=not run,
            )
            if not named and not run:
                raise UsageError("nothing to measure: name models, --model NAME, or runs, --run DIR")
            rows = next(iter(named.values()), None)
            if rows is None:
                _refuse_unread(transform=transform, scale=scale, options=options)
                # runs alone: the line says which rows they are measured on, as a model that only reads them
                (rows,) = aliases.settings_of(
                    models=["last_value"],
                    config=config,
                    data=data,
                    transform=None,
                    scale=None,
                    options=options,
                    needs_data=False,
                ).values()
        require_named("--test", test)
        folder = place("--out", out)
        if folder is not None:
            require_writable(f"--out {folder}", folder, folder=True)
        if output is not None:
            require_named("--output", output)
            if output == "-":
                raise UsageError("--output -: stdout is for the leaderboard, name a file for the forecasts")
            require_writable(f"--output '{output}'", Path(os.path.expanduser(output)))
        with data_only():
            # torch only from here on: what is wrong with the options is said at once
            from tsformer.data.files import write_table
            from tsformer.evaluation import backtest as backtests
            from tsformer.evaluation.leaderboard import leaderboard
            from tsformer.evaluation.origin_table import forecasts_table
            from tsformer.predictive import asked
            from tsformer.tables.output import keeps_dates, require

            if output is not None:
                require(Path(output))
            candidates: dict[str, Candidate] = {**named, **_runs(run or (), named, quiet=quiet)}
            panel = _rows(candidates, rows)
            told = list(map(str, panel.notes))
            panel, plan, season = _plan(
                candidates,
                panel,
                rows,
                protocol=protocol,
                split=split,
                test=test,
                origins=origins,
                step=step,
                refit=often,
            )
            told += plan.notes
            for line in dict.fromkeys(told):
                say(f"note: {line}", quiet=quiet)
            with progress_bar(quiet=quiet) as on_progress:
                found = backtests.backtest(
                    candidates,
                    panel,
                    plan,
                    ask=asked(wanted, samples=samples),
                    intervals=source,
                    season=season,
                    folder=folder,
                    keep=output is not None,
                    on_progress=on_progress,
                )
            board = leaderboard(found, metric)
            if output is not None:
                write_table(forecasts_table(found, written=not keeps_dates(Path(output))), output)
        _tell(found, board, quiet=quiet)
        _show(found, board, as_json=json, told=told, output=output, folder=folder)
        if output is not None:
            say(f"forecasts in {output}", quiet=quiet)
        code = next((f.exit_code for entry in found.entries.values() for f in entry.failures if f.exit_code), 0)
        if code:
            sys.exit(code)


def read_refit(text: str | None) -> Literal["never", "every"] | int:
    """What `--refit` says. Raises UsageError."""
    if text in (None, "never"):
        return "never"
    if text == "every":
        return "every"
    if text is not None and text.isascii() and text.isdigit() and 0 < int(text) < 2**31:
        return int(text)
    raise UsageError(f"--refit must be never, every, or a number of origins, not {text!r}")


def _refuse(**given: Any) -> None:
    """Raises UsageError for options that say where origins are in two ways."""
    ways = [f"--{name}" for name in ("protocol", "test") if given[name] is not None]
    if len(ways) > 1:
        raise UsageError("--protocol and --test both say what is forecast: leave one of them out")
    idle = [f"--{name}" for name in ("origins", "step", "refit") if given[name] is not None]
    if ways and idle:
        raise UsageError(f"{', '.join(idle)}: {ways[0]} says where the origins are; leave one of them out")
    if given["split"] is not None and given["protocol"] is None:
        raise UsageError("--split is of a protocol: add --protocol ltsf")


def _runs(given: Sequence[str], named: Mapping[str, Settings], *, quiet: bool) -> dict[str, Fitted]:
    """The runs of a line, by their names."""
    from tsformer import run as runs

    found: dict[str, Fitted] = {}
    for text in given:
        name, equals, path = text.partition("=")
        if not equals or not name.strip() or os.path.exists(os.path.expanduser(text)):
            path = text
            name = Path(os.path.expanduser(text)).resolve().name
        if name in named or name in found:
            raise UsageError(f"--run {text}: two models are called '{name}'; give it another name, --run other={path}")
        folder = runs.find(path)
        fitted, _ = runs.load(folder)
        for note in runs.other_plugins(folder, fitted):
            say(f"note: {note}", quiet=quiet)
        found[name] = fitted
    return found


def _refuse_unread(*, transform: object, scale: object, options: Mapping[str, Any]) -> None:
    """Raises UsageError for what is said of fits on a line of runs, which are not fitted again."""
    given = {"transform": transform, "scale": scale, **{name: value for name, value in options.items() if "__" in name}}
    idle = [
        "--" + name.replace("__", ".").replace("_", "-")
        for name, value in given.items()
        if value not in (None, []) and name.split("__")[0] not in ("data", "window")
    ]
    if idle:
        raise UsageError(f"{', '.join(idle)}: runs are not fitted again, and read nothing of it; leave it out")


def _rows(candidates: Mapping[str, Candidate], rows: Settings) -> Panel:
    """The data that the line names, else those that the first run was fitted on."""
    from tsformer import sources
    from tsformer.data.panel import Panel

    panel: Any = None
    if rows.data is not None:
        panel = sources.load_data(rows.data)
    for candidate in candidates.values() if panel is None else ():
        if not isinstance(candidate, Settings):
            panel = sources.read_rows(candidate.settings, None, candidate.schema)
            break
    if not isinstance(panel, Panel):
        raise UsageError("a backtest is of forecasts: it needs a table of rows, --data csv --path FILE")
    return panel


def _plan(
    candidates: Mapping[str, Candidate],
    panel: Panel,
    rows: Settings,
    *,
    protocol: str | None,
    split: str | None,
    test: str | None,
    origins: int | None,
    step: int | None,
    refit: Literal["never", "every"] | int,
) -> tuple[Panel, Plan, int]:
    """The data with the rows of a test file, the plan, and the season."""
    from tsformer import sources
    from tsformer.evaluation import protocols
    from tsformer.evaluation.origins import ORIGINS, needs, rolling_plan

    horizon, season, seen = needs(candidates, panel, rows.window)
    if protocol is not None:
        if protocol not in protocols.PROTOCOLS:
            raise UsageError(f"--protocol must be {' or '.join(protocols.PROTOCOLS)}, not {protocol!r}")
        parts = None if split is None else protocols.rows_of(split)
        return panel, protocols.ltsf(panel, horizon, parts), season
    if test is not None:
        before = panel.lengths
        if rows.data is None:
            raise UsageError("--test FILE follows the rows of the data: name them, --data csv --path FILE")
        panel = sources.read_test(rows, test, panel)
        return panel, protocols.follows(panel, before, horizon), season
    count = ORIGINS if origins is None else origins
    return panel, rolling_plan(panel, horizon, count, step, refit, seen=seen), season


def _tell(found: Backtest, board: Leaderboard, *, quiet: bool) -> None:
    """What a person should hear, on stderr."""
    for name, entry in found.entries.items():
        for note in entry.notes:
            say(f"note: {name}: {note}", quiet=quiet)
        for failure in entry.failures:
            what = "warning" if failure.exit_code else "note"
            line = f"{what}: {name} has no forecast of {failure.windows} window(s) at {failure.at()}: {failure.reason}"
            say(line, quiet=quiet and not failure.exit_code)
    for line in board.verdict:
        say(line, quiet=quiet)


def _show(
    found: Backtest, board: Leaderboard, *, as_json: bool, told: Sequence[str], output: str | None, folder: Path | None
) -> None:
    """The leaderboard on stdout: an object, or a table for a person, or CSV for a program."""
    from tsformer.report.leaderboard import leaderboard_frame, print_leaderboard

    if as_json:
        print_json(
            {
                "schema": 1,
                "task": "forecast",
                "series": len(found.panel.ids),
                "horizon": found.plan.horizon,
                "origins": found.origins,
                "fits": len(found.plan.blocks),
                "season": found.season,
                "levels": list(found.ask.levels),
                "standardised": found.plan.scale is not None,
                **board.to_json(),
                "failures": [
                    {"model": name, **failure.to_json()}
                    for name, entry in found.entries.items()
                    for failure in entry.failures
                ],
                "notes": list(dict.fromkeys(told)),
                "output": output,
                "out": None if folder is None else str(folder),
            }
        )
    elif sys.stdout.isatty():
        print_leaderboard(board)
    else:
        print(leaderboard_frame(board).to_csv(index=False, lineterminator="\n"), end="")


@contextmanager
def progress_bar(*, quiet: bool) -> Iterator[Callable[[Progress], None]]:
    """A bar of models and fits, with the losses of the one at work; only on a terminal."""
    if quiet or sys.stderr is None or not sys.stderr.isatty():
        yield lambda progress: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[doing]}"),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("backtest", total=None, doing="")

        def update(progress: Progress) -> None:
            training, doing = progress.training, progress.name
            share = 0.0
            if training is not None:
                share = training.step / max(1, training.steps)
                doing += f" step {training.step} of {training.steps}, loss {training.loss:.4g}"
            bar.update(task, completed=progress.part - 1 + share, total=progress.parts, doing=doing)

        yield update
