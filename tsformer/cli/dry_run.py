"""`tsformer fit --dry-run`: everything that a fit checks before its first step, and what it would take."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tsformer.cli.console import data_only, print_json, say, targets_named
from tsformer.settings import Settings

if TYPE_CHECKING:
    from tsformer.dry_run import DryRun


def rehearse(settings: Settings, *, out: Path | None, plot: Path | None, as_json: bool, quiet: bool) -> None:
    """Print what a fit would do. Writes nothing.

    Raises:
        ResourceError: its memory would not suffice.
    """
    with data_only():
        from tsformer import sources
        from tsformer.dry_run import dry_run
        from tsformer.report import plots
        from tsformer.run import Writer

        if plot is not None:
            plots.require(plot)
        if out is not None:
            Writer(out).check()
        data = sources.load_data(settings.data)
        for note in data.notes:
            say(f"note: {note}", quiet=quiet)
        made = dry_run(settings, data)
        for note in made.notes:
            say(f"note: {note}", quiet=quiet)
    if as_json:
        print_json(made.to_json())
    else:
        print("\n".join(_lines(made)))
    made.require_memory()


def _lines(made: DryRun) -> list[str]:
    from tsformer.machine import in_units

    document, memory = made.to_json(), made.memory
    kind = "windows" if "windows" in document else "examples"
    table = {
        "model": document["model"],
        "task": document["task"],
        **(_rows(document) if kind == "windows" else _sequences(document)),
        kind: ", ".join(f"{count:,} {name}" for name, count in document[kind].items()),
        "parameters": f"{made.parameters:,}",
        "steps": f"{made.steps:,} at most, of {made.batch_size} {kind}"
        if made.steps
        else "none: fitted without gradients",
        "device": document["device"],
        "memory": f"about {in_units(made.process + memory.peak)} at the peak"
        + (f"; {in_units(made.available)} are free" if made.available is not None else ""),
    }
    parts = {
        "Python and libraries": made.process,
        f"data and {kind}": memory.data,
        "weights": memory.weights,
        "gradients": memory.gradients,
        "optimiser": memory.optimiser,
        "best weights": memory.kept,
        "activations": memory.activations,
        "or, later, scoring": memory.scoring,
    }
    lines = [f"{name:<12}{text}" for name, text in table.items()]
    return lines + [f"  {name:<22}{in_units(count):>10}" for name, count in parts.items()]


def _rows(document: dict[str, Any]) -> dict[str, str]:
    return {
        "data": f"{document['data']}: {document['rows']:,} rows, {document['series']:,} series, "
        f"{targets_named(document['targets'])}, {document['covariates']} covariates",
        "frequency": document["frequency"] or "unknown",
        "window": f"lookback {document['lookback']}, horizon {document['horizon']}, season {document['season']}, "
        f"stride {document['stride']}",
    }


def _sequences(document: dict[str, Any]) -> dict[str, str]:
    sizes = [f"{document[name]:,} {word}" for name, word in _SIZES.items() if document[name]]
    return {"data": f"{document['data']}: {', '.join(sizes)}", "lookback": f"{document['lookback']}"}


_SIZES = {"channels": "channels", "vocabulary": "tokens in the vocabulary", "classes": "classes"}
