"""The run folder that a fit leaves behind: JSON and safetensors, complete or visibly incomplete, nothing executable.

config.json        written before the first step: versions, plugins, options, problem, schema
transforms.json    what the transforms learned, by series
model.safetensors  the best weights
metrics.jsonl      one line per evaluation
manifest.json      written last: status, metrics, sha256 of what loading needs; its presence means complete
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shlex
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

import tsformer
from tsformer import weights
from tsformer.atomic import write_atomically
from tsformer.building import rebuilt
from tsformer.config import resolve
from tsformer.config_layer import Layer
from tsformer.data.panel import Schema
from tsformer.errors import PluginError, ResourceError, RunError, TsformerError, UsageError, in_words
from tsformer.fitting import Fitted
from tsformer.plugin import Problem
from tsformer.preparation import build_chain
from tsformer.settings import Settings

FORMAT = 2  # of what this version writes, and the newest that it reads; 2 has other names for weights than 1
OLDEST = 2  # that it reads
MANIFEST, CONFIG, TRANSFORMS, WEIGHTS, METRICS = (
    "manifest.json",
    "config.json",
    "transforms.json",
    "model.safetensors",
    "metrics.jsonl",
)
NEEDED = (CONFIG, TRANSFORMS, WEIGHTS)
LARGEST_JSON = 256 * 2**20  # bytes; nothing sensible comes near


def new_folder(settings: Settings, root: Path = Path("runs")) -> Path:
    """A name for a new run that no other run has: `runs/<time>-<model>-<data>-<suffix>`."""
    moment = datetime.now().strftime("%Y%m%d-%H%M%S")
    data = settings.data.name if settings.data else "frame"
    return root / f"{moment}-{settings.model.name}-{data}-{secrets.token_hex(2)}"


@dataclass(frozen=True)
class Writer:
    """Writes one run: `start` before the first step, `log` after each evaluation, `finish` to make it complete."""

    folder: Path

    def start(self, fitted: Fitted) -> None:
        """Make the folder and write config.json, so that an unwritable place is found before training.

        Raises:
            UsageError: the folder exists and is not empty.
            ResourceError: it cannot be made or written to.
        """
        self.check()
        with _writing(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            try:
                (self.folder / CONFIG).touch(exist_ok=False)  # of two fits that find the folder empty, one gets it
            except FileExistsError:
                raise self._taken() from None
        self._write(CONFIG, _to_json(_config(fitted)))

    def check(self) -> None:
        """Raises UsageError when the folder exists and is not empty."""
        with _writing(self.folder):
            if self.folder.exists() and (not self.folder.is_dir() or any(self.folder.iterdir())):
                raise self._taken()

    def log(self, record: Mapping[str, Any]) -> None:
        """Append one evaluation to metrics.jsonl."""
        with _writing(self.folder), (self.folder / METRICS).open("a", encoding="utf-8") as file:
            file.write(json.dumps(record, allow_nan=False) + "\n")

    def finish(self, fitted: Fitted, summary: Mapping[str, Any]) -> None:
        """Write transforms and weights, and last the manifest with the summary (`Result.summary`)."""
        persistent = fitted.settings.model.plugin.persistent
        written = NEEDED if persistent else (CONFIG, TRANSFORMS)
        self._write(TRANSFORMS, _to_json(fitted.chain.to_json()))
        if persistent:
            self._write(WEIGHTS, weights.save(fitted.module))
        manifest = {
            "format": FORMAT,
            "min_reader": FORMAT,
            "written_by": f"tsformer {tsformer.__version__}",
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            **summary,
            "persistent": persistent,
            "files": {name: _fingerprint((self.folder / name).read_bytes()) for name in written},
        }
        self._write(MANIFEST, _to_json(manifest))

    def _taken(self) -> UsageError:
        return UsageError(f"'{self.folder}' exists and is not an empty folder; give another one")

    def _write(self, name: str, content: bytes) -> None:
        with _writing(self.folder):
            write_atomically(self.folder / name, content)


def find(name: str | None, root: Path = Path("runs")) -> Path:
    """The folder of a run; None or "latest" is the newest complete one below `root`.

    Raises:
        RunError: there is none.
    """
    if name not in (None, "latest"):
        return Path(os.path.expanduser(str(name)))
    complete = sorted(root.glob(f"*/{MANIFEST}"), key=lambda file: (file.stat().st_mtime_ns, str(file)))
    if not complete:
        raise RunError(f"no complete run in '{root}' here; fit one first, or give the run's folder")
    return complete[-1].parent


def load(folder: Path) -> tuple[Fitted, dict[str, Any]]:
    """Load a run on the CPU, in any process, on any machine.

    Returns:
        The model, and the summary of its fit: status, steps, best_step, metrics.

    Raises:
        RunError: missing, incomplete, damaged, or written by a newer version or a much older one.
        PluginError: it was made with a plugin that is not here.
    """
    try:
        there = folder.is_dir()
    except (OSError, ValueError):
        there = False
    if not there:
        raise RunError(f"no run folder '{folder}'")
    if not (folder / MANIFEST).is_file():
        raise RunError(f"'{folder}' is not a complete run: it has no {MANIFEST} (the fit did not end)")
    manifest = _read_json(folder / MANIFEST)
    _check_format(folder, manifest)
    if manifest.get("persistent") is False:
        raise RunError(f"'{folder}' holds only the score of a fit: its model cannot be saved; fit again to forecast")
    if not isinstance(manifest.get("metrics"), dict):
        raise RunError(f"'{folder / MANIFEST}' is not the manifest of a run: it has no metrics")
    if not isinstance(manifest.get("status"), str):
        raise RunError(f"'{folder / MANIFEST}' is not the manifest of a run: it has no status")
    _verify(folder, manifest)
    config, states = _read_json(folder / CONFIG), _read_json(folder / TRANSFORMS)
    try:
        settings = resolve([Layer(config["settings"], f"{folder / CONFIG}")], needs_data=False)
        problem, schema = Problem.from_json(config["problem"]), Schema.from_json(config["schema"])
        _check(problem, schema, states, settings)
        chain = build_chain(settings, schema, states)
    except PluginError as error:
        raise PluginError(
            f"{error.sentence()}; the run was made with {_origins(config)}: install its package, or give its file "
            "with --plugin"
        ) from None
    except UsageError as error:
        raise RunError(f"the options in '{folder}' do not fit the plugins that are here: {error.sentence()}") from None
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise RunError(f"'{folder / CONFIG}' is not the configuration of a run: {in_words(error)}") from None
    try:
        module = rebuilt(settings.model, problem)
    except PluginError as error:
        raise RunError(f"the model in '{folder}' cannot be built: {error}") from None
    try:
        weights.load(module, (folder / WEIGHTS).read_bytes())
    except (ValueError, OSError) as error:
        raise RunError(f"the weights in '{folder / WEIGHTS}' do not fit the model: {error}") from None
    told = ("status", "steps", "best_step", "metrics")
    summary: dict[str, Any] = {key: manifest[key] for key in told if key in manifest}
    return Fitted(settings, problem, schema, chain, module.eval()), summary


def other_plugins(folder: Path, fitted: Fitted) -> list[str]:
    """A line for each plugin that comes from elsewhere than the one of its name that a run was made with.

    Args:
        folder: of the run.
        fitted: what `load` made of it.
    """
    origins = _read_json(folder / CONFIG).get("origins")
    then = origins if isinstance(origins, dict) else {}
    now = _origins_of(fitted.settings)
    return [
        f"the run was made with the {name.replace(':', ' ')!r} of {then[name]}, and now there is that of {origin}; "
        "its forecasts may differ"
        for name, origin in now.items()
        if name in then and then[name] != origin
    ]


def _origins_of(settings: Settings) -> dict[str, str]:
    """Where the plugins come from, by kind and name."""
    chosen = [c for c in (settings.model, settings.data, *settings.transforms, settings.scale) if c]
    return {f"{c.kind}:{c.name}": c.origin for c in chosen}


def _config(fitted: Fitted) -> dict[str, Any]:
    settings = fitted.settings
    return {
        "format": FORMAT,
        "task": fitted.problem.task.value,
        "versions": {
            "tsformer": tsformer.__version__,
            "torch": torch.__version__,
            "python": ".".join(map(str, sys.version_info[:3])),
        },
        "threads": torch.get_num_threads(),
        "origins": _origins_of(settings),
        "settings": settings.to_json(),
        "problem": fitted.problem.to_json(),
        "schema": fitted.schema.to_json(),
    }


def _check_format(folder: Path, manifest: Mapping[str, Any]) -> None:
    written, needed, by = manifest.get("format"), manifest.get("min_reader"), manifest.get("written_by")
    if not isinstance(needed, int) or needed > FORMAT:
        raise RunError(
            f"'{folder}' needs a newer tsformer (it was written by {by!r}, format {needed!r}; "
            f"this is {tsformer.__version__}, format {FORMAT})"
        )
    if not isinstance(written, int) or written < OLDEST:
        raise RunError(
            f"'{folder}' is from an older version (it was written by {by!r}, format {written!r}; this one reads "
            f"format {OLDEST}): fit again with its options, tsformer fit --config {shlex.quote(str(folder))}"
        )


def _check(problem: Problem, schema: Schema, states: Mapping[str, Any], settings: Settings) -> None:
    """Raises ValueError when the parts of a configuration do not fit together."""
    window = settings.window
    if (problem.lookback, problem.horizon, problem.season) != (window.lookback, window.horizon, window.season):
        raise ValueError("the problem is not that of the window")
    counts = (len(schema.targets), len(schema.past_covariates), len(schema.future_covariates))
    if counts != (problem.targets, problem.past_covariates, problem.future_covariates):
        raise ValueError(f"the schema has {counts} columns, the problem another number")
    steps = len(settings.transforms) + (settings.scale is not None)
    for series, state in states.items():
        if not isinstance(state, list) or len(state) != steps or not all(isinstance(part, dict) for part in state):
            raise ValueError(f"the transforms of series {series!r} are not {steps} states")


def _verify(folder: Path, manifest: Mapping[str, Any]) -> None:
    files = manifest.get("files")
    for name in NEEDED:
        expected = files.get(name) if isinstance(files, dict) else None
        try:
            content = (folder / name).read_bytes()
        except OSError:
            raise RunError(f"'{folder / name}' is missing; the run is damaged") from None
        if expected != _fingerprint(content):
            raise RunError(f"'{folder / name}' is damaged: its sha256 is not the one in {MANIFEST}")


def _fingerprint(content: bytes) -> dict[str, Any]:
    return {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}


def _read_json(file: Path) -> dict[str, Any]:
    try:
        if file.stat().st_size > LARGEST_JSON:
            raise RunError(f"'{file}' is larger than {LARGEST_JSON} bytes; it is no file of a run")
        document = json.loads(file.read_text(encoding="utf-8"), parse_constant=_no_constant)
    except (OSError, ValueError, RecursionError) as error:
        raise RunError(f"'{file}' cannot be read: {error}") from None
    if not isinstance(document, dict):
        raise RunError(f"'{file}' is not a JSON object")
    return document


def _no_constant(name: str) -> None:
    raise ValueError(f"it holds {name}, which no JSON is")


def _to_json(document: Mapping[str, Any]) -> bytes:
    return (json.dumps(document, indent=2, allow_nan=False, ensure_ascii=False) + "\n").encode()


def _origins(config: Mapping[str, Any]) -> str:
    origins = config.get("origins")
    items = origins.items() if isinstance(origins, dict) else ()
    return ", ".join(f"{name} ({origin})" for name, origin in items if origin != "built-in") or "built-in plugins"


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    try:
        yield
    except TsformerError:
        raise
    except OSError as error:
        raise ResourceError(f"cannot write to '{folder}': {error.strerror or error}") from None
