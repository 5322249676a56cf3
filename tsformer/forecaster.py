"""Forecasts of tables, in scikit-learn's manners."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import pandas as pd

from tsformer import sources
from tsformer.data.frames import panel_from_frame, panel_with_schema
from tsformer.data.panel import Panel, Schema
from tsformer.data.sequences import Sequences
from tsformer.errors import UsageError
from tsformer.estimators import Estimator, shared_arguments, short
from tsformer.fitted import Fitted
from tsformer.forecast import forecast
from tsformer.plugin import Task


class Forecaster(Estimator):
    """Fits a model plugin on a table and forecasts what comes next, in the table's own units.

    Args:
        model: name of a model plugin.
        horizon, lookback, season: steps; None is chosen from the data's frequency.
        model_options: options of the model, `{"d_model": 128}`.
        train_options: options of the training loop, `{"max_steps": 1000, "lr": 3e-4}`.
        transforms: names of transforms of the targets, or `{"name": ..., option: value}`.
        scale: the scaler that follows, or "none"; with options, `{"name": ..., option: value}`.
        id_column: tells series apart in a long table; a table without this column is one series.
        time_column: the times; a table without this column has them in its index or in the one column of dates.
        targets: names of the columns to predict; None is "y" if there is one, else every numeric column.
        text_column: texts beside the numbers, of which a forecast reads those of its lookback.
        token_options: how texts become tokens, `{"tokenizer": "char"}`.
        init_from: an earlier run, of any task, whose encoder is loaded.
        freeze: leave what was loaded as it is.
        seed: same seed, same machine: same forecast.
        device: "auto", "cpu", "cuda", ...

    Attributes:
        fitted_: everything that a forecast needs.
        metrics_: errors on the test part and those of naive forecasts, as `fit --json` prints them.
        history_: how the training went; None after `tsformer.load`.
    """

    def __init__(
        self,
        model: str = "tcn_transformer",
        *,
        horizon: int | None = None,
        lookback: int | None = None,
        season: int | None = None,
        model_options: Mapping[str, Any] | None = None,
        train_options: Mapping[str, Any] | None = None,
        transforms: Sequence[str | Mapping[str, Any]] = (),
        scale: str | Mapping[str, Any] = "standard",
        id_column: str = "unique_id",
        time_column: str = "ds",
        targets: Sequence[str] | None = None,
        text_column: str | None = None,
        token_options: Mapping[str, Any] | None = None,
        init_from: str | Path | None = None,
        freeze: bool = False,
        seed: int = 0,
        device: str = "auto",
    ) -> None:
        self.model = model
        self.horizon = horizon
        self.lookback = lookback
        self.season = season
        self.model_options = model_options
        self.train_options = train_options
        self.transforms = transforms
        self.scale = scale
        self.id_column = id_column
        self.time_column = time_column
        self.targets = targets
        self.text_column = text_column
        self.token_options = token_options
        self.init_from = init_from
        self.freeze = freeze
        self.seed = seed
        self.device = device

    def fit(self, data: pd.DataFrame | Panel, y: None = None) -> Self:
        """Fit on a table, or on what `tsformer.read` returned.

        The rows are split by time, 70/10/20: the last fifth is the test part of `evaluate`, the tenth before it
        decides when training stops.

        Args:
            data: long (id, time and target columns) or wide (each numeric column a target).
            y: ignored.

        Raises:
            DataError, UsageError, PluginError, DivergedError: what is wrong, in one line.

        Warns:
            UserWarning: a naive forecast is as good, MASE is undefined, or an option has no effect.
        """
        settings = self._settings()
        panel = data if isinstance(data, Panel) else self._panel(data)
        lines = self._fit(settings, panel)
        self._rows: Panel | None = panel
        self._ids = _ids(data, panel)
        self._tell(lines)
        return self

    def predict(self, data: pd.DataFrame | Panel | None = None, horizon: int | None = None) -> pd.DataFrame:
        """What follows the last row of each series, whichever other series are in the table.

        Args:
            data: new rows, of series that were in `fit` or of others, which are scaled by their own rows (a warning
                names them); the rows of `fit` when None.
            horizon: steps; the fitted horizon when None.

        Returns:
            The id column if there is one, the time column, and each target under its own name.

        Raises:
            DataError, UsageError, DivergedError: what is wrong, in one line.
        """
        self._check_fitted()
        if data is not None and not isinstance(data, pd.DataFrame | Panel):
            raise UsageError(f"predict takes a DataFrame or what tsformer.read returns, not {type(data).__name__}")
        fitted = self.fitted_
        assert isinstance(fitted.schema, Schema)
        panel: Panel | Sequences
        if isinstance(data, pd.DataFrame):
            panel = panel_with_schema(data, fitted.schema)
        else:
            panel = data or self._rows or sources.read_rows(fitted.settings, None, fitted.schema)
        assert isinstance(panel, Panel)
        made = forecast(fitted, panel, horizon)
        for note in made.notes:
            warnings.warn(note, stacklevel=2)
        table, ids = made.to_frame(), self._ids if data is None else _ids(data, panel)
        if ids is not None:
            table[panel.schema.id] = ids[table[panel.schema.id]].array
        return table

    def evaluate(self) -> pd.DataFrame:
        """Errors on the test part: a row for the model and for each naive forecast."""
        self._check_fitted()
        rows = {self.fitted_.settings.model.name: self.metrics_["test"], **self.metrics_["baselines"]}
        return pd.DataFrame.from_dict(rows, orient="index")

    def _values(self) -> dict[str, Any]:
        transforms = [self.transforms] if isinstance(self.transforms, str | Mapping) else list(self.transforms)
        return {
            **super()._values(),
            "task": Task.FORECAST.value,
            "transform": [{"name": item} if isinstance(item, str) else dict(item) for item in transforms],
            "window": {"lookback": self.lookback, "horizon": self.horizon, "season": self.season},
        }

    def _panel(self, data: pd.DataFrame) -> Panel:
        if not isinstance(data, pd.DataFrame):
            raise UsageError(f"fit takes a pandas DataFrame or what tsformer.read returns, not {type(data).__name__}")
        targets = self.targets if self.targets is not None else (("y",) if "y" in data.columns else None)
        targets = (targets,) if isinstance(targets, str) else targets  # columns of any name are called by their text
        if targets is not None and not isinstance(targets, Sequence):
            raise UsageError(f"targets are names of columns, not {targets!r}")
        return panel_from_frame(
            data,
            id=self._present(data, self.id_column, "unique_id"),
            time=self._present(data, self.time_column, "ds"),
            targets=targets and tuple(str(name) for name in targets),
            text=None if self.text_column is None else str(self.text_column),
        )

    @staticmethod
    def _present(data: pd.DataFrame, name: str, usual: str) -> str | None:
        """The usual name may be absent; one that the user chose must be there (and reading says so if not)."""
        return str(name) if name in data.columns or name != usual else None

    @classmethod
    def from_run(cls, fitted: Fitted, summary: Mapping[str, Any]) -> Self:
        """The Forecaster of a run."""
        settings, schema = fitted.settings, fitted.schema
        assert isinstance(schema, Schema)
        forecaster = cls(
            **shared_arguments(settings),
            horizon=settings.window.horizon,
            lookback=settings.window.lookback,
            season=settings.window.season,
            transforms=[short(chosen.to_json()) for chosen in settings.transforms],
            id_column=schema.id or "unique_id",
            time_column=schema.time or "ds",
            targets=schema.targets,
            text_column=schema.text,
        )
        forecaster._set(fitted, summary)
        forecaster._rows = forecaster._ids = None
        return forecaster


def _ids(data: pd.DataFrame | Panel, panel: Panel) -> pd.Series | None:
    """The ids of a table in their own type, by their text; None when there are none."""
    if not isinstance(data, pd.DataFrame) or panel.schema.id is None:
        return None
    ids = data.set_axis([str(name) for name in data.columns], axis=1)[panel.schema.id].drop_duplicates()
    ids = ids.set_axis([str(name) for name in ids])
    return ids[~ids.index.duplicated()]
