"""The run folder that a fit leaves behind: JSON and safetensors, complete or visibly incomplete, nothing executable.

config.json        written before the first step: versions, plugins, options, problem, schema
transforms.json    what the transforms learned, by series
statics.json       what static covariates are in numbers, where there are any
vocabulary.json    tokenizer and classes, where there are any
dependence.safetensors   how the steps of one forecast depend on each other, where that was learned
calibration.safetensors  errors of forecasts, of which conformal intervals are made
model.safetensors  the best weights
metrics.jsonl      one line per evaluation
manifest.json      written last: status, metrics, sha256 of what loading needs; its presence means complete
"""

from __future__ import annotations

import json
import os
import secrets
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import torch

import tsformer
from tsformer import weights
from tsformer.atomic import write_atomically
from tsformer.building import rebuilt
from tsformer.config import resolve
from tsformer.config_layer import Layer
from tsformer.data.calendar import calendar_width
from tsformer.data.panel import Schema
from tsformer.data.sequences import SequenceSchema
from tsformer.data.statics import Statics
from tsformer.dependence import Dependence
from tsformer.errors import PluginError, RunError, UsageError, in_words
from tsformer.evaluation.conformal import Calibration
from tsformer.fitted import Fitted
from tsformer.plugin import Problem
from tsformer.preparation import build_chain, links_of
from tsformer.run_files import (
    CALIBRATION,
    CONFIG,
    DEPENDENCE,
    FORMAT,
    MANIFEST,
    METRICS,
    NEEDED,
    STATICS,
    TRANSFORMS,
    VOCABULARY,
    WEIGHTS,
    fingerprint,
    open_run,
    read_json,
    to_json,
    writing,
)
from tsformer.sequence_preparation import numbers_of
from tsformer.settings import Settings
from tsformer.words import Words

Part = TypeVar("Part")


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
        with writing(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            try:
                (self.folder / CONFIG).touch(exist_ok=False)  # of two fits that find the folder empty, one gets it
            except FileExistsError:
                raise self._taken() from None
        self._write(CONFIG, to_json(_config(fitted)))

    def check(self) -> None:
        """Raises UsageError when the folder exists and is not empty."""
        with writing(self.folder):
            if self.folder.exists() and (not self.folder.is_dir() or any(self.folder.iterdir())):
                raise self._taken()

    def log(self, record: Mapping[str, Any]) -> None:
        """Append one evaluation to metrics.jsonl."""
        with writing(self.folder), (self.folder / METRICS).open("a", encoding="utf-8") as file:
            file.write(json.dumps(record, allow_nan=False) + "\n")

    def finish(self, fitted: Fitted, summary: Mapping[str, Any]) -> None:
        """Write transforms and weights, and last the manifest with the summary (`Result.summary`)."""
        persistent = fitted.settings.model.persistent
        written = NEEDED if persistent else (CONFIG, TRANSFORMS)
        self._write(TRANSFORMS, to_json(fitted.chain.to_json()))
        if fitted.statics:
            written = (*written, STATICS)
            self._write(STATICS, to_json(fitted.statics.to_json()))
        if fitted.words:
            written = (*written, VOCABULARY)
            self._write(VOCABULARY, to_json(fitted.words.to_json()))
        if fitted.dependence is not None:
            written = (*written, DEPENDENCE)
            self._write(DEPENDENCE, fitted.dependence.to_bytes())
        if fitted.calibration is not None:
            written = (*written, CALIBRATION)
            self._write(CALIBRATION, fitted.calibration.to_bytes())
        if persistent:
            self._write(WEIGHTS, weights.save(fitted.module))
        manifest = {
            "format": FORMAT,
            "min_reader": FORMAT,
            "written_by": f"tsformer {tsformer.__version__}",
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            **summary,
            "persistent": persistent,
            "files": {name: fingerprint((self.folder / name).read_bytes()) for name in written},
        }
        self._write(MANIFEST, to_json(manifest))

    def _taken(self) -> UsageError:
        return UsageError(f"'{self.folder}' exists and is not an empty folder; give another one")

    def _write(self, name: str, content: bytes) -> None:
        with writing(self.folder):
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
        The model, and the summary of its fit: status, steps, best_step, metrics; python, what an estimator adds.

    Raises:
        RunError: missing, incomplete, damaged, or written by a newer version or a much older one.
        PluginError: it was made with a plugin that is not here.
    """
    manifest = open_run(folder)
    config, states = read_json(folder / CONFIG), read_json(folder / TRANSFORMS)
    words = _optional(folder, manifest, VOCABULARY, Words.from_json, "vocabulary") or Words()
    statics = _optional(folder, manifest, STATICS, Statics.from_json, "static covariates") or Statics()
    try:
        settings = resolve([Layer(config["settings"], f"{folder / CONFIG}")], needs_data=False)
        problem = Problem.from_json(config["problem"])
        schema = _schema(config["schema"])
        _check(problem, schema, states, settings, words, statics)
        chain = build_chain(settings, numbers_of(schema), states)
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
    dependence = calibration = None
    if DEPENDENCE in manifest["files"]:
        try:
            dependence = Dependence.from_bytes((folder / DEPENDENCE).read_bytes())
        except (ValueError, OSError) as error:
            raise RunError(f"'{folder / DEPENDENCE}' is not that of a run: {error}") from None
    if CALIBRATION in manifest["files"]:
        try:
            content = (folder / CALIBRATION).read_bytes()
            calibration = Calibration.from_bytes(content, problem.horizon, problem.targets)
        except (ValueError, OSError) as error:
            raise RunError(f"'{folder / CALIBRATION}' is not that of a run: {error}") from None
    told = ("status", "steps", "best_step", "metrics", "python")
    summary: dict[str, Any] = {key: manifest[key] for key in told if key in manifest}
    return Fitted(settings, problem, schema, chain, module.eval(), words, statics, dependence, calibration), summary


def _optional(
    folder: Path, manifest: Mapping[str, Any], name: str, from_json: Callable[[Mapping[str, Any]], Part], what: str
) -> Part | None:
    """What a file of a run holds that not all runs have; None where it is not there. Raises RunError for another."""
    if name not in manifest["files"]:
        return None
    try:
        return from_json(read_json(folder / name))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise RunError(f"'{folder / name}' is not the {what} of a run: {in_words(error)}") from None


def other_plugins(folder: Path, fitted: Fitted) -> list[str]:
    """A line for each plugin that comes from elsewhere than the one of its name that a run was made with.

    Args:
        folder: of the run.
        fitted: what `load` made of it.
    """
    origins = read_json(folder / CONFIG).get("origins")
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
    models = (settings.model, *settings.model.members)
    chosen = [c for c in (*models, settings.data, *settings.transforms, settings.scale) if c]
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


def _schema(document: Mapping[str, Any]) -> Schema | SequenceSchema:
    """Of a table of rows, or of sequences: only those have channels."""
    return SequenceSchema.from_json(document) if "channels" in document else Schema.from_json(document)


def _check(
    problem: Problem,
    schema: Schema | SequenceSchema,
    states: Mapping[str, Any],
    settings: Settings,
    words: Words,
    statics: Statics,
) -> None:
    """Raises ValueError when the parts of a configuration do not fit together."""
    window, numbers = settings.window, numbers_of(schema)
    if problem.task is not settings.task:
        raise ValueError("the problem is not that of the task")
    if isinstance(schema, Schema):
        if (problem.lookback, problem.horizon, problem.season) != (window.lookback, window.horizon, window.season):
            raise ValueError("the problem is not that of the window")
        known = len(schema.future_covariates) + calendar_width(schema)
        counts = (len(schema.targets), len(schema.past_covariates), known)
        if set(schema.static_covariates) != {*statics.scales, *statics.words}:
            raise ValueError("the static covariates of the schema are not those that were learned from")
    else:
        counts = (0, len(schema.channels), 0)
    if counts != (problem.targets, problem.past_covariates, problem.future_covariates):
        raise ValueError(f"the schema has {counts} columns, the problem another number")
    if (len(statics.scales), statics.cardinalities) != (problem.static_covariates, problem.static_cardinalities):
        raise ValueError("the problem has another number of static covariates")
    size = len(words.tokenizer.vocabulary) if words.tokenizer else 0
    if (size, len(words.classes)) != (problem.vocabulary, problem.classes):
        raise ValueError(f"there are {size} tokens and {len(words.classes)} classes, in the problem another number")
    steps = len(links_of(settings, numbers)) if numbers.columns else 0
    for series, state in states.items():
        if not isinstance(state, list) or len(state) != steps or not all(isinstance(part, dict) for part in state):
            raise ValueError(f"the transforms of series {series!r} are not {steps} states")


def _origins(config: Mapping[str, Any]) -> str:
    origins = config.get("origins")
    items = origins.items() if isinstance(origins, dict) else ()
    return ", ".join(f"{name} ({origin})" for name, origin in items if origin != "built-in") or "built-in plugins"
