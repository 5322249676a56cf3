"""Parts of a backtest, one for each model and block, and the folder that keeps those that are finished.

backtest.json             the data, the plan, what was asked for, and each model's settings, as fingerprints
<model>-<block>.json      written last: a finished part, with its seconds, notes and failures
<model>-<block>-<n>.safetensors   its forecasts, a portion each
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy

import tsformer
from tsformer import weights
from tsformer.atomic import write_atomically
from tsformer.data.panel import Panel
from tsformer.errors import RunError, TsformerError, UsageError
from tsformer.evaluation.outlook import NUMBERS_AT_ONCE, Outlook
from tsformer.evaluation.plan import Plan
from tsformer.fitted import Fitted
from tsformer.predictive import Predictive
from tsformer.run_files import read_json, to_json, writing
from tsformer.settings import Settings

FORMAT = 1
ABOUT = "backtest.json"


@dataclass(frozen=True)
class Part:
    """What one model says of one block.

    Attributes:
        outlooks: portions of the windows; those that are in none have no forecast.
        seconds: of the fit; of a part that was kept, of the forecasts, too.
        fits: 1 when there was a fit.
        notes: of the fit and of its intervals, one line each; complete when all outlooks were taken.
    """

    outlooks: Iterator[Outlook]
    seconds: float = 0.0
    fits: int = 0
    notes: Sequence[str] = ()


class Folder:
    """Keeps finished parts, so that a backtest that was stopped goes on where it was.

    Args:
        path: made when it is not there.
        about: fingerprints of what all models share, by what they are of.
        models: those of the models, by name.

    Raises:
        UsageError: it holds a backtest of something else, or anything else.
        ResourceError: it cannot be written to.
    """

    def __init__(self, path: Path, about: Mapping[str, str], models: Mapping[str, str]) -> None:
        self.path, self._models = path, dict(models)
        with writing(path):
            path.mkdir(parents=True, exist_ok=True)
            there = (path / ABOUT).is_file()
            if not there and any(path.iterdir()):
                raise UsageError(f"'{path}' is not empty and holds no backtest; give another folder")
        known: dict[str, str] = {}
        if there:
            document = read_json(path / ABOUT)
            other = [what for what, print_ in about.items() if document.get("about", {}).get(what) != print_]
            known = document.get("models", {})
            other += [name for name, print_ in models.items() if known.get(name, print_) != print_]
            if document.get("format") != FORMAT or other:
                what = ", ".join(other) or "version"
                raise UsageError(f"'{path}' holds a backtest with other {what}; give another folder, or remove it")
        if not there or not models.keys() <= known.keys():
            document = {"format": FORMAT, "written_by": f"tsformer {tsformer.__version__}", "about": dict(about)}
            self._write(ABOUT, to_json(document | {"models": known | dict(models)}))

    def read(self, name: str, block: int) -> Part | None:
        """A part that is finished; None when there is none.

        Raises:
            RunError: it is damaged.
        """
        file = self._file(name, block)
        if not file.is_file():
            return None
        document = read_json(file)
        try:
            failures = [_failure(each) for each in document["failures"]]
            portions = [self._portion(file, n) for n in range(document["portions"])]
            seconds, fits, notes = document["seconds"], document["fits"], tuple(document["notes"])
        except (KeyError, TypeError, ValueError) as error:
            raise RunError(f"'{file}' is no part of a backtest: {error}") from None
        return Part(_chained(failures, portions), float(seconds), int(fits), notes)

    def recorded(self, name: str, block: int, part: Part) -> Part:
        """The part as it is, written while it is read, and finished when it has been read to its end."""
        return replace(part, outlooks=self._written(name, block, part))

    def _written(self, name: str, block: int, part: Part) -> Iterator[Outlook]:
        file = self._file(name, block)
        waiting: list[Outlook] = []
        failures: list[dict[str, Any]] = []
        portions, numbers, seconds = 0, 0, part.seconds
        started = time.perf_counter()
        for outlook in part.outlooks:
            if outlook.said is None:
                failures.append(_written_failure(outlook))
            else:
                waiting.append(outlook)
                numbers += outlook.said.point.size
            seconds += time.perf_counter() - started
            if numbers >= NUMBERS_AT_ONCE:
                self._write(_portion_file(file, portions).name, _encoded(waiting))
                portions, numbers, waiting = portions + 1, 0, []
            yield outlook
            started = time.perf_counter()
        seconds += time.perf_counter() - started
        if waiting:
            self._write(_portion_file(file, portions).name, _encoded(waiting))
            portions += 1
        document = {
            "format": FORMAT,
            "model": name,
            "block": block,
            "seconds": seconds,
            "fits": part.fits,
            "notes": list(part.notes),
            "portions": portions,
            "failures": failures,
        }
        self._write(file.name, to_json(document))

    def _portion(self, file: Path, number: int) -> Path:
        portion = _portion_file(file, number)
        if not portion.is_file():
            raise RunError(f"'{portion}' is missing; the backtest is damaged: remove '{file}' to have it done again")
        return portion

    def _file(self, name: str, block: int) -> Path:
        plain = re.sub("[^A-Za-z0-9_.-]", "_", name)[:60]
        return self.path / f"{plain}-{self._models[name][:8]}-{block:04d}.json"

    def _write(self, name: str, content: bytes) -> None:
        with writing(self.path):
            write_atomically(self.path / name, content)


def prints_of_data(panel: Panel, plan: Plan) -> dict[str, str]:
    """Fingerprints of data and plan."""
    schema = json.dumps(panel.schema.to_json(), sort_keys=True, default=str)
    times = panel.times.astype("int64") if panel.times.dtype.kind == "M" else panel.times
    data = (panel.values, panel.offsets, panel.breaks, "\x00".join(panel.ids), "\x00".join(panel.texts or ()), schema)
    static = "" if panel.static is None else panel.static.to_csv(index=False)
    blocks = [
        part
        for block in plan.blocks
        for part in (block.split.train, block.split.validation, block.series, block.origins, block.number)
    ]
    scale = () if plan.scale is None else (plan.scale,)
    return {
        "data": _sha256((*data, ",".join(map(str, times.tolist())), static)),
        "origins": _sha256((str(plan.horizon), plan.before, *blocks, *scale)),
    }


def print_of_model(candidate: Settings | Fitted) -> str:
    """The fingerprint of settings, without the source of their data; of a fitted model with its weights."""
    settings = candidate.settings if isinstance(candidate, Fitted) else candidate
    document = {name: value for name, value in settings.to_json().items() if name != "data"}
    parts: list[str | bytes] = [json.dumps(document, sort_keys=True), tsformer.__version__]
    if isinstance(candidate, Fitted):
        parts += [json.dumps(candidate.chain.to_json(), sort_keys=True), weights.save(candidate.module)]
    return _sha256(parts)


def _sha256(parts: Iterable[str | bytes | np.ndarray]) -> str:
    found = hashlib.sha256()
    for part in parts:
        content = part.encode() if isinstance(part, str) else part if isinstance(part, bytes) else part.tobytes()
        found.update(len(content).to_bytes(8, "little"))
        found.update(content)
    return found.hexdigest()


def _encoded(outlooks: list[Outlook]) -> bytes:
    said = [outlook.said for outlook in outlooks if outlook.said is not None]
    tensors = {
        "index": np.concatenate([outlook.index for outlook in outlooks]),
        "point": np.concatenate([each.point for each in said]),
    }
    quantiles = [each.quantiles for each in said if each.quantiles is not None]
    if quantiles:
        tensors["quantiles"] = np.concatenate(quantiles)
    return safetensors.numpy.save({name: np.ascontiguousarray(value) for name, value in tensors.items()})


def _chained(failures: list[Outlook], portions: list[Path]) -> Iterator[Outlook]:
    for portion in portions:
        try:
            tensors = safetensors.numpy.load(portion.read_bytes())
            said = Predictive(tensors["point"], tensors.get("quantiles"))
        except (OSError, KeyError, safetensors.SafetensorError) as error:
            raise RunError(f"'{portion}' cannot be read: {error}") from None
        yield Outlook(tensors["index"], said)
    yield from failures


def _portion_file(file: Path, number: int) -> Path:
    return file.with_name(f"{file.stem}-{number}.safetensors")


def _written_failure(outlook: Outlook) -> dict[str, Any]:
    assert outlook.reason is not None
    reason = outlook.reason
    return {"windows": outlook.index.tolist(), "reason": reason.sentence(), "exit_code": reason.exit_code}


def _failure(document: Mapping[str, Any]) -> Outlook:
    error = TsformerError(document["reason"])
    error.exit_code = document["exit_code"]
    return Outlook(np.array(document["windows"], dtype=np.int64), None, error)
