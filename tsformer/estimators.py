"""What the estimators of the Python API share: from arguments to settings, fitting, the run folder."""

from __future__ import annotations

import os
import warnings
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from tsformer import fitting
from tsformer import run as runs
from tsformer.config import resolve
from tsformer.config_layer import SCALE, Layer
from tsformer.data.panel import Panel
from tsformer.data.sequences import Sequences
from tsformer.errors import UsageError
from tsformer.fitted import Fitted
from tsformer.settings import Settings
from tsformer.training.loop import History


class Estimator(BaseEstimator):  # type: ignore[misc]
    """An estimator that keeps its arguments as they are until `fit`.

    Attributes:
        fitted_: everything that a prediction needs.
        metrics_: the score and that of naive answers, as `fit --json` prints them.
        history_: how the training went; None after `tsformer.load`.
    """

    model: str
    model_options: Mapping[str, Any] | None
    train_options: Mapping[str, Any] | None
    scale: str | Mapping[str, Any]
    token_options: Mapping[str, Any] | None
    init_from: str | Path | None
    freeze: bool
    seed: int
    device: str

    def save(self, path: str | Path) -> Path:
        """Write a run folder, the same that `tsformer fit` leaves; `tsformer predict` takes it."""
        self._check_fitted()
        if not isinstance(path, str | Path) or "\0" in str(path):
            raise UsageError(f"save takes the path of a folder, not {path!r}")
        writer = runs.Writer(Path(os.path.expanduser(path)))
        writer.start(self.fitted_)
        for record in self.history_.evaluations if self.history_ else ():
            writer.log(record)
        writer.finish(self.fitted_, {**self._summary, "python": self._own()})
        return writer.folder

    @classmethod
    @abstractmethod
    def from_run(cls, fitted: Fitted, summary: Mapping[str, Any]) -> Self:
        """What `tsformer.run.load` gives, as an estimator."""

    def _own(self) -> dict[str, Any]:
        """What a run says of this estimator alone, in JSON."""
        return {}

    def _settings(self) -> Settings:
        try:
            values = self._values()
        except (TypeError, ValueError) as error:
            raise UsageError(f"an argument of {type(self).__name__} is of the wrong type: {error}") from None
        return resolve([Layer(values)], needs_data=False)

    def _values(self) -> dict[str, Any]:
        """The arguments as a layer of configuration."""
        model, train = dict(self.model_options or {}), dict(self.train_options or {})
        for options, name in ((model, "name"), (train, "seed"), (train, "device")):
            if name in options:
                own = "model" if name == "name" else name
                raise UsageError(f"'{name}' is no option here: give it as {type(self).__name__}({own}=...)")
        return {
            "model": {**model, "name": self.model},
            # the default is not said: beside a scaler among the transforms, a scaler that somebody named is a fault
            "scale": {"name": None if self.scale == SCALE else self.scale}
            if isinstance(self.scale, str)
            else dict(self.scale),
            "train": {**train, "seed": self.seed, "device": self.device},
            "tokens": dict(self.token_options or {}),
            "transfer": {
                "init_from": None if self.init_from is None else str(self.init_from),
                "freeze": self.freeze,
            },
        }

    def _fit(self, settings: Settings, data: Panel | Sequences) -> list[str]:
        """Fit, and return what the user should hear of, one line each."""
        notes: list[str] = []
        result = fitting.fit(settings, data, watch=fitting.Watch(note=notes.append))
        self._set(result.fitted, result.summary())
        self.history_: History | None = result.history
        return [*notes, *result.cautions()]

    def _tell(self, lines: Sequence[str]) -> None:
        """Warn the caller of `fit`; raise what ended the training, with the best weights so far in place."""
        for line in lines:
            warnings.warn(line, stacklevel=3)
        if self.history_ is not None and self.history_.error is not None:
            raise self.history_.error

    def _set(self, fitted: Fitted, summary: Mapping[str, Any]) -> None:
        self.fitted_ = fitted
        self.metrics_ = dict(summary["metrics"])
        self.history_ = None
        self._summary = dict(summary)

    def _check_fitted(self) -> None:
        if not hasattr(self, "fitted_"):
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet; call fit first")


def shared_arguments(settings: Settings) -> dict[str, Any]:
    """The arguments that every estimator has, from the settings of a run."""
    return {
        "model": settings.model.name,
        "model_options": settings.model.config.model_dump(),
        "train_options": settings.train.model_dump(exclude={"seed", "device"}),
        "scale": short(settings.to_json().get("scale", {"name": SCALE})),
        "token_options": settings.tokens.model_dump(),
        "init_from": settings.transfer.init_from,
        "freeze": settings.transfer.freeze,
        "seed": settings.train.seed,
        "device": settings.train.device,
    }


def short(chosen: Mapping[str, Any]) -> Any:
    """A name alone where there are no options."""
    return chosen["name"] if len(chosen) == 1 else dict(chosen)
