"""Studies from Python: a forecaster whose options are searched for on the validation part."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from sklearn.base import clone

from tsformer.config_layer import Layer
from tsformer.data.panel import Panel
from tsformer.errors import UsageError
from tsformer.forecaster import Forecaster
from tsformer.report.tuning import cautions, trials_frame
from tsformer.tuning import study as studies
from tsformer.tuning.record import Trial
from tsformer.tuning.study import Study


@dataclass(frozen=True)
class Tuned:
    """What a study found.

    Attributes:
        forecaster: with the best options, not yet fitted.
        options: that were chosen, `{"model.d_model": 64, "window.lookback": 48}`.
        metric: by which trials were judged on the validation part, in the user's units: "mase", "mae" or "wql".
        score: of the best trial.
        naive: the naive forecast on the same windows, and its score; None where it is undefined.
        trials: a row for each trial.
        details: all of it, for programs.
    """

    forecaster: Forecaster
    options: dict[str, Any]
    metric: str
    score: float
    naive: tuple[str, float | None]
    trials: pd.DataFrame
    details: Study


def tune(
    forecaster: Forecaster | str,
    data: Any,
    *,
    search: Mapping[str, Any] | None = None,
    only: bool = False,
    fix: Sequence[str] = (),
    trials: int = studies.TRIALS,
    timeout: float | None = None,
    study: str | Path | None = None,
    on_trial: Callable[[Trial], None] = lambda trial: None,
) -> Tuned:
    """Search for the options of a forecaster on the validation part of a table. Its test part is not looked at.

    Args:
        forecaster: whose options are given; they are searched only if `search` names them. Or the name of a model.
        data: a table, or what `tsformer.read` returned.
        search: spaces by option, `{"model.d_model": (16, 256), "train.loss": ["mse", "mae"]}`: a range, with "log" or
            "linear" if wanted, a list of choices, or True for all of a switch.
        only: search nothing but that.
        fix: options that are left as they are.
        trials: in the whole study, with those that its file has already.
        timeout: seconds after which no trial is begun.
        study: a file that keeps finished trials; the same call once more goes on from there.
        on_trial: told of each trial that is finished.

    Raises:
        DataError, UsageError, PluginError, DivergedError, ResourceError: what is wrong, in one line.

    Warns:
        UserWarning: the best trial does not beat the naive forecast, there is little to choose by, or something has no
            effect.
    """
    chosen = Forecaster(forecaster) if isinstance(forecaster, str) else forecaster
    if not isinstance(chosen, Forecaster):
        raise UsageError(f"tune takes a Forecaster or the name of a model, not {type(forecaster).__name__}")
    chosen._settings()
    panel = data if isinstance(data, Panel) else chosen._panel(data)
    notes: list[str] = []
    found = studies.tune(
        [Layer(chosen._values())],
        panel,
        search=search,
        only=only,
        fix=fix,
        trials=trials,
        timeout=timeout,
        path=None if study is None else Path(study).expanduser(),
        watch=studies.Watch(note=notes.append, trial=on_trial),
    )
    best = found.best
    assert best is not None
    assert best.score is not None
    for line in dict.fromkeys([*notes, *cautions(found)]):
        warnings.warn(line, stacklevel=2)
    options = dict(best.options)
    frame = trials_frame(found)
    return Tuned(_with(chosen, found, best), options, found.judge.metric, best.score, found.naive, frame, found)


def _with(forecaster: Forecaster, study: Study, trial: Trial) -> Forecaster:
    """A forecaster with the options of a trial."""
    window = study.settings_of(trial.options).window
    sections: dict[str, dict[str, Any]] = {"model": {}, "train": {}}
    for key, value in trial.options.items():
        section, _, name = key.partition(".")
        sections.setdefault(section, {})[name] = value
    made: Forecaster = clone(forecaster)
    return made.set_params(
        model_options={**(forecaster.model_options or {}), **sections["model"]},
        train_options={**(forecaster.train_options or {}), **sections["train"]},
        lookback=window.lookback,
        horizon=window.horizon,
        season=window.season,
    )
