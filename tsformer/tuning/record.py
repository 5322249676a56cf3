"""The file of a study: a line of JSON for what the study is, then one for each finished trial.

A line is written at once and flushed to the disk. What a killed process leaves of a line is cut off again, so that
nothing but that trial is lost. A lock of the system, which ends with its process, keeps a second one out.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any, Literal

import tsformer
from tsformer.errors import ResourceError, RunError, UsageError

FORMAT = 1
BEGINNING = b'{"tsformer_study": '


@dataclass(frozen=True)
class Trial:
    """A trial that is finished.

    Attributes:
        number: from 1.
        options: what it chose, by key: {"model.d_model": 64}.
        drawn: the same as optuna drew it.
        state: "complete", "pruned" or "failed".
        score: on the validation part; None unless complete.
        reason: why it failed, in one line.
        exit_code: of that.
        curve: the score on the way, by twentieths of the training.
        steps, best_step: of its training.
        parameters: of its module.
    """

    number: int
    options: Mapping[str, Any]
    drawn: Mapping[str, Any]
    state: Literal["complete", "pruned", "failed"]
    score: float | None = None
    reason: str | None = None
    exit_code: int = 0
    curve: Mapping[int, float] = field(default_factory=dict)
    seconds: float = 0.0
    steps: int = 0
    best_step: int = 0
    parameters: int | None = None

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "curve": {str(place): score for place, score in self.curve.items()}}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Trial:
        """Raises TypeError, ValueError or AttributeError for what is none."""
        curve = {int(place): float(score) for place, score in document["curve"].items()}
        return cls(**{**document, "curve": curve})


@dataclass
class Record:
    """Finished trials, in a file where there is one.

    Attributes:
        trials: in their order.
    """

    trials: list[Trial] = field(default_factory=list)
    _file: IO[bytes] | None = None
    _path: Path | None = None

    def add(self, trial: Trial) -> None:
        """Remember a trial. Raises ResourceError when it cannot be written."""
        self.trials.append(trial)
        if self._file is not None:
            self._write(trial.to_json())

    def _write(self, document: Mapping[str, Any]) -> None:
        assert self._file is not None
        try:
            self._file.write((json.dumps(document, allow_nan=False, ensure_ascii=False) + "\n").encode())
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise ResourceError(f"cannot write to the study '{self._path}': {error.strerror or error}") from None


@contextmanager
def opened(path: Path | None, about: Mapping[str, str]) -> Iterator[Record]:
    """The record of a study, which nobody else may write to meanwhile.

    Args:
        path: of its file; None keeps it in memory.
        about: fingerprints of what the study is of, by what they are of.

    Raises:
        UsageError: the file is of another study, or of none, or in use.
        RunError: it is damaged.
        ResourceError: it cannot be written to.
    """
    if path is None:
        yield Record()
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("a+b")
    except OSError as error:
        raise ResourceError(f"the study '{path}' cannot be opened: {error.strerror or error}") from None
    with file:
        if not _locked(file):
            raise UsageError(f"the study '{path}' is in use by another process: wait for it, or name another file")
        file.seek(0)
        content = file.read()
        record = Record(_read(path, content, about), file, path)
        kept = content.rfind(b"\n") + 1
        if kept < len(content):  # of a line that a killed process began
            file.truncate(kept)
        if not kept:
            head = {"tsformer_study": FORMAT, "written_by": f"tsformer {tsformer.__version__}", "about": dict(about)}
            record._write(head)
        yield record


def _read(path: Path, content: bytes, about: Mapping[str, str]) -> list[Trial]:
    """The trials of a file's whole lines; raises as `opened` does, before anything is changed."""
    if not (content.startswith(BEGINNING) or BEGINNING.startswith(content)):
        raise UsageError(f"'{path}' holds no study; give another file")
    lines = content.split(b"\n")[:-1]
    if not lines:
        return []
    try:
        head, *documents = [json.loads(line) for line in lines]
        known = dict(head["about"])
    except (ValueError, KeyError, TypeError):
        raise RunError(f"the study '{path}' is damaged: a line of it is no JSON; begin another one") from None
    if head["tsformer_study"] != FORMAT:
        by = head.get("written_by")
        raise RunError(f"the study '{path}' was written by another version, {by}; begin another one")
    other = [what for what, print_ in about.items() if known.get(what) != print_]
    if other:
        raise UsageError(f"'{path}' holds a study with other {', '.join(other)}; give another file, or remove it")
    try:
        return [Trial.from_json(document) for document in documents]
    except (TypeError, ValueError, KeyError, AttributeError):
        raise RunError(f"the study '{path}' is damaged: a line of it is no trial; begin another one") from None


def _locked(file: IO[bytes]) -> bool:
    """Whether the lock of the file could be had; it ends with the file, or with the process."""
    try:
        import fcntl
    except ImportError:  # a system without it, where writers are not kept apart
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
