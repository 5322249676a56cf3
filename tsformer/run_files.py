"""The files of a run folder: their names, and how they are written and read with care."""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import tsformer
from tsformer.errors import ResourceError, RunError, TsformerError

FORMAT = 4  # of what this version writes, and the newest that it reads; 3 has tasks and vocabularies, 4 covariates
OLDEST = 2  # that it reads
MANIFEST, CONFIG, TRANSFORMS, STATICS, VOCABULARY, WEIGHTS, METRICS, DEPENDENCE, CALIBRATION = (
    "manifest.json",
    "config.json",
    "transforms.json",
    "statics.json",
    "vocabulary.json",
    "model.safetensors",
    "metrics.jsonl",
    "dependence.safetensors",
    "calibration.safetensors",
)
NEEDED = (CONFIG, TRANSFORMS, WEIGHTS)
OPTIONAL = (STATICS, VOCABULARY, DEPENDENCE, CALIBRATION)
LARGEST_JSON = 256 * 2**20  # bytes; nothing sensible comes near


def open_run(folder: Path) -> dict[str, Any]:
    """The manifest of a complete and undamaged run, before anything of it is built.

    Raises:
        RunError: missing, incomplete, damaged, without a model, or written by a newer version or a much older one.
    """
    try:
        there = folder.is_dir()
    except (OSError, ValueError):
        there = False
    if not there:
        raise RunError(f"no run folder '{folder}'")
    if not (folder / MANIFEST).is_file():
        raise RunError(f"'{folder}' is not a complete run: it has no {MANIFEST} (the fit did not end)")
    manifest = read_json(folder / MANIFEST)
    check_format(folder, manifest)
    if manifest.get("persistent") is False:
        raise RunError(f"'{folder}' holds only the score of a fit: its model cannot be saved; fit again to forecast")
    if not isinstance(manifest.get("metrics"), dict):
        raise RunError(f"'{folder / MANIFEST}' is not the manifest of a run: it has no metrics")
    if not isinstance(manifest.get("status"), str):
        raise RunError(f"'{folder / MANIFEST}' is not the manifest of a run: it has no status")
    verify(folder, manifest)
    return manifest


def check_format(folder: Path, manifest: Mapping[str, Any]) -> None:
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


def verify(folder: Path, manifest: Mapping[str, Any]) -> None:
    files = manifest.get("files")
    for name in (*NEEDED, *(name for name in OPTIONAL if isinstance(files, dict) and name in files)):
        expected = files.get(name) if isinstance(files, dict) else None
        try:
            content = (folder / name).read_bytes()
        except OSError:
            raise RunError(f"'{folder / name}' is missing; the run is damaged") from None
        if expected != fingerprint(content):
            raise RunError(f"'{folder / name}' is damaged: its sha256 is not the one in {MANIFEST}")


def fingerprint(content: bytes) -> dict[str, Any]:
    return {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}


def read_json(file: Path) -> dict[str, Any]:
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


def to_json(document: Mapping[str, Any]) -> bytes:
    return (json.dumps(document, indent=2, allow_nan=False, ensure_ascii=False) + "\n").encode()


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    try:
        yield
    except TsformerError:
        raise
    except OSError as error:
        raise ResourceError(f"cannot write to '{folder}': {error.strerror or error}") from None
