"""The `tsformer` command: a thin shell around the Python API."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence
from typing import Annotated, Any

import typer

import tsformer
from tsformer.cli import backtest, config, evaluate, fit, inspect, plugins, predict, tune
from tsformer.cli.console import data_only, guarded
from tsformer.cli.line_config import with_switches
from tsformer.cli.options import given, normalised
from tsformer.cli.places import require_named
from tsformer.errors import ResourceError
from tsformer.registry import load_file


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; always ends in `SystemExit`."""
    words = normalised(sys.argv[1:] if arguments is None else arguments)
    # Read when torch is first imported. Threads that spin while they wait are a third quicker on an idle machine, and
    # five times slower as soon as anything else runs on it.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    _open_closed_streams()
    _tolerate_any_encoding()
    with guarded(as_json="--json" in words), warnings.catch_warnings():
        if sys.stdout is None:
            raise ResourceError("stdout is closed; there is nowhere to write to")
        if not os.environ.get("TSFORMER_DEBUG"):
            warnings.simplefilter("ignore")  # those of libraries are no lines for a user
        with data_only():
            words = _load_plugin_files(words)
            if _command(words) in ("fit", "tune", "config"):
                words = with_switches(words)
            elif _command(words) == "inspect":
                words = inspect.with_switches(words)
            elif _command(words) == "backtest":
                words = backtest.with_switches(words)
            app = build(words)
        code = app(args=words or ["--help"], prog_name="tsformer", standalone_mode=False)
        sys.stdout.flush()
        sys.exit(code if isinstance(code, int) else 0)


def build(words: Sequence[str]) -> typer.Typer:
    """The app for one command line: `fit` has the options of the plugins that this line names, `inspect` of `csv`."""
    app = typer.Typer(
        help="Forecasts of time series, labels of series and texts: Transformer-family models.",
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_root)
    command = _command(words)
    app.command("fit")(fit.command(words if command == "fit" else None))
    app.command("predict")(predict.predict)
    app.command("inspect")(inspect.command(words if command == "inspect" else None))
    app.command("evaluate")(evaluate.evaluate)
    app.command("backtest")(backtest.command(words if command == "backtest" else None))
    app.command("tune")(tune.command(words if command == "tune" else None))
    app.add_typer(plugins.app, name="plugins")
    app.add_typer(config.group(words if command == "config" else None), name="config")
    return app


def _command(words: Sequence[str]) -> str | None:
    return next((word for word in words if not word.startswith("-")), None)


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"tsformer {tsformer.__version__}")
        raise typer.Exit


def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", is_eager=True, callback=_show_version)
    ] = False,
) -> None:
    pass


def _load_plugin_files(words: Sequence[str]) -> list[str]:
    """Load each `--plugin FILE`, wherever it stands, and take it off the line."""
    for path in given(words, "--plugin"):
        require_named("--plugin", path)
        load_file(path)
    left: list[str] = []
    skip = False
    for position, word in enumerate(words):
        if word == "--":
            return left + list(words[position:])
        if skip or word.startswith("--plugin="):
            skip = False
            continue
        if word == "--plugin" and position + 1 < len(words):
            skip = True
            continue
        left.append(word)
    return left


def _open_closed_streams() -> None:
    """A program may be started without a stream: nobody reads it, and no other file may get its descriptor."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # which takes the lowest that is free: this one
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115


def _tolerate_any_encoding() -> None:
    """A redirected stream in a small code page must not fail on a table's line."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure: Any = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
