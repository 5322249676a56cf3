"""`tsformer tune`: search for a model's options on the validation part; what is found is a file for `fit --config`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tsformer.cli.config import configuration_file
from tsformer.cli.console import data_only, graceful_stop, guarded, print_json, progress_bar, say
from tsformer.cli.line_config import (
    Data,
    File,
    Model,
    PluginFiles,
    Scale,
    Transforms,
    read_layers,
    with_plugin_options,
)
from tsformer.cli.places import place, require_apart, require_writable
from tsformer.config import resolve
from tsformer.errors import UsageError

if TYPE_CHECKING:
    from tsformer.tuning.study import Study


def command(words: Sequence[str] | None) -> Callable[..., None]:
    """The command with the options of the plugins that a line names; None when the line is another command's."""
    return with_plugin_options(tune, words, needs_data=True)


def tune(
    model: Model = None,
    data: Data = None,
    transform: Transforms = None,
    scale: Scale = None,
    config: File = None,
    plugin: PluginFiles = None,
    trials: Annotated[
        int, typer.Option(metavar="INTEGER", min=1, help="Trials in all, those that the study has already included.")
    ] = 30,
    timeout: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Begin no trial after that, and end the one at work.")
    ] = None,
    search: Annotated[
        list[str] | None,
        typer.Option(
            metavar="OPTION=SPACE",
            help="What to search, several times for several options: model.d_model=16:256:log, train.lr=1e-4:1e-2, "
            "model.positions=sinusoidal,rotary. (default: what model and training declare, but for what is given)",
        ),
    ] = None,
    only: Annotated[bool, typer.Option("--only", help="Search nothing but what --search names.")] = False,
    fix: Annotated[
        list[str] | None, typer.Option(metavar="OPTION", help="Leave an option as it is; several times for several.")
    ] = None,
    study: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Keeps finished trials; the same line once more goes on from there."),
    ] = None,
    out: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write the configuration here. (default: to stdout)")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Only warnings and errors on stderr.")] = False,
    **options: Any,
) -> None:
    """Try options of a model, judge them on the validation part, and print the best as a file for fit --config.

    Takes the options of fit: what is given is not searched, unless --search names it. The test part is not looked at.
    """
    with guarded(as_json=json):
        layers = read_layers(config=config, model=model, data=data, transform=transform, scale=scale, options=options)
        with data_only():
            settings = resolve(layers)
        asked = spaces(search or ())
        if only and not asked:
            raise UsageError("--only needs --search OPTION=SPACE, which says what is searched")
        file, kept = place("--out", out), place("--study", study)
        for flag, path in (("--out", file), ("--study", kept)):
            if path is not None:
                require_writable(f"{flag} {path}", path)
        if file is not None:
            require_apart("--out", str(file), {"--config": config, "--study": study})
        with data_only():
            from tsformer import sources
            from tsformer.report import tuning as reports
            from tsformer.report.tables import PatientConsole
            from tsformer.tuning import study as studies

            rows = sources.load_data(settings.data)
            for line in rows.notes:
                say(f"note: {line}", quiet=quiet)
            begun: list[Study] = []

            def begin(found: Study) -> None:
                begun.append(found)
                if found.trials:
                    say(f"{len(found.trials)} trials are in the study already", quiet=quiet)
                say(f"search space: {found.space}", quiet=quiet)

            with graceful_stop("finished trials are kept") as stop, progress_bar(quiet=quiet) as on_step:
                found = studies.tune(
                    layers,
                    rows,
                    search=asked,
                    only=only,
                    fix=fix or (),
                    trials=trials,
                    timeout=timeout,
                    path=kept,
                    watch=studies.Watch(
                        note=lambda line: say(f"note: {line}", quiet=quiet),
                        begin=begin,
                        step=on_step,
                        trial=lambda trial: say(reports.trial_line(trial, begun[0], trials), quiet=quiet),
                        interrupted=stop,
                    ),
                )
            best = found.best
            if best is None:
                sys.exit(stop.exit_code)  # ended before the first trial was finished
            if not quiet:
                PatientConsole().print(reports.trials_table(found))
            say(reports.outcome(found), quiet=quiet)
            for line in reports.cautions(found):
                say(f"warning: {line}")
            resolved = found.resolved(best)
            text = configuration_file(resolved.settings.to_json(), resolved.origins)
            content = "".join(f"# {line}\n" for line in reports.heading(found)) + f"\n{text}\n"
            if file is not None:
                from tsformer.atomic import write_atomically

                file.parent.mkdir(parents=True, exist_ok=True)
                write_atomically(file, content.encode())
        if json:
            shown: Mapping[str, Any] = {
                "schema": 1,
                "task": "forecast",
                "model": settings.model.name,
                "data": settings.data.name if settings.data else None,
                **reports.summary(found),
                "settings": resolved.settings.to_json(),
                "study": None if kept is None else str(kept),
                "out": None if file is None else str(file),
            }
            print_json(shown)
        else:
            print(content if file is None else file, end="" if file is None else "\n")
        if stop():
            sys.exit(stop.exit_code)


def spaces(given: Sequence[str]) -> dict[str, str]:
    """What `--search` says, by option. Raises UsageError."""
    found: dict[str, str] = {}
    for text in given:
        key, equals, space = text.partition("=")
        if not key.strip():
            raise UsageError(f"--search {text!r}: an option and its space are wanted, model.d_model=16:256")
        if key in found:
            raise UsageError(f"--search names {key} twice")
        found[key] = space if equals else ""
    return found
