"""Forecasts of tables, in scikit-learn's manners."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import pandas as pd

from tsformer import sources
from tsformer.config import validate_options
from tsformer.data.frames import future_panel, panel_from_frame, panel_with_schema
from tsformer.data.panel import Panel, Schema
from tsformer.data.sequences import Sequences
from tsformer.data.table_options import COLUMNS, TableOptions
from tsformer.errors import UsageError
from tsformer.estimators import Estimator, shared_arguments, short
from tsformer.evaluation.evaluate import evaluate, scores
from tsformer.fitted import Fitted
from tsformer.forecast import forecast
from tsformer.plugin import Task
from tsformer.predictive import asked
from tsformer.settings import Settings
from tsformer.tables.border import is_table, like, to_pandas
from tsformer.tables.ids import own_ids, with_own_ids

Names = str | Sequence[str]


class Forecaster(Estimator):
    """Fits a model plugin on a table and forecasts what comes next, in the table's own units.

    Args:
        model: name of a model plugin.
        horizon, lookback, season: steps; None is chosen from the data's frequency.
        model_options: options of the model, `{"d_model": 128}`.
        train_options: options of the training loop, `{"max_steps": 1000, "lr": 3e-4}`.
        transforms: names of transforms of the targets, or `{"name": ..., option: value}`.
        scale: the scaler that follows, or "none"; with options, `{"name": ..., option: value}`.
        id_column: tells series apart in a long table, or several names that do so together; a table without this
            column is one series, or has columns of words that tell its series apart where times repeat.
        time_column: the times; a table without this column has them in its index or in the one column of dates.
        targets: names of the columns to predict; None is "y" if there is one, else every numeric column.
        text_column: texts beside the numbers, of which a forecast reads those of its lookback.
        future_covariates: columns that are known ahead; `predict(future=...)` gives their next rows.
        past_covariates: columns that are known up to now.
        static_covariates: columns with one value for each series.
        short: what is done about series with too few rows: "error", "skip" or "pad".
        table_options: what is done about the rest, `{"missing": "mask", "gaps": "fill", "calendar": ["month"]}`; the
            options of the csv plugin.
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
        id_column: Names = "unique_id",
        time_column: Names = "ds",
        targets: Names | None = None,
        text_column: str | None = None,
        future_covariates: Names = (),
        past_covariates: Names = (),
        static_covariates: Names = (),
        short: str = "error",
        table_options: Mapping[str, Any] | None = None,
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
        self.future_covariates = future_covariates
        self.past_covariates = past_covariates
        self.static_covariates = static_covariates
        self.short = short
        self.table_options = table_options
        self.token_options = token_options
        self.init_from = init_from
        self.freeze = freeze
        self.seed = seed
        self.device = device

    def fit(self, data: Any, y: None = None) -> Self:
        """Fit on a table, or on what `tsformer.read` returned.

        The rows are split by time, 70/10/20: the last fifth is the test part of `evaluate`, the tenth before it
        decides when training stops.

        Args:
            data: a table of pandas, polars or pyarrow, long (id, time and target columns) or wide (each numeric column
                a target).
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
        self._ids = _own_ids(data, panel.schema)
        self._given: object = data
        self._tell(lines)
        return self

    def predict(
        self,
        data: Any = None,
        horizon: int | None = None,
        future: Any = None,
        *,
        levels: Sequence[float] = (),
        intervals: str | None = None,
        samples: int | None = None,
        seed: int = 0,
    ) -> Any:
        """What follows the last row of each series, whichever other series are in the table.

        Args:
            data: new rows, of series that were in `fit` or of others, which are scaled by their own rows (a warning
                names them); the rows of `fit` when None.
            horizon: steps; the fitted horizon when None.
            future: a table of the next rows of the future covariates, with time and id; other columns of it, and
                values of the targets there, are not looked at.
            levels: of intervals around the forecast, in percent: `[80, 95]`.
            intervals: where they come from: "native", "conformal" or "adaptive"; None is native where the model says
                how values scatter (`train_options={"output": "normal"}`), else conformal.
            samples: paths to draw where intervals have to be found from them; 400, or as many as the levels need, when
                None.
            seed: of what is drawn.

        Returns:
            The id columns if there are any, the time column, and each target under its own name, followed by the ends
            of its intervals (`y_lo_80`, `y_hi_80`): a table of the library that `data` is of, or of that of the table
            of `fit` when it is None.

        Raises:
            DataError, UsageError, DivergedError: what is wrong, in one line.
        """
        self._check_fitted()
        fitted = self.fitted_
        assert isinstance(fitted.schema, Schema)
        ask, panel = asked(levels, samples=samples, seed=seed), self._rows_of(data, "predict")
        ahead = None
        if future is not None:
            ahead = future_panel(future, fitted.schema, self._reading(), source="future")
        made = forecast(fitted, panel, horizon, ahead, ask=ask, intervals=intervals)
        for note in made.notes:
            warnings.warn(str(note), stacklevel=2)
        ids = self._ids if data is None else _own_ids(data, panel.schema)
        return like(with_own_ids(made.to_frame(), ids), self._given if data is None else data)

    def evaluate(
        self, data: Any = None, *, by: str | None = None, levels: Any = (), intervals: str | None = None
    ) -> pd.DataFrame:
        """Errors of the model and of naive forecasts, as `tsformer evaluate` gives them.

        Args:
            data: rows to score, every window of them; the test part of the fit when None.
            by: "series", "horizon" or "target": a row for each of them.
            levels: intervals whose coverage is measured, in percent, [80, 95].
            intervals: where they come from, as in `predict`.

        Returns:
            A row for the model and for each naive forecast, which are the index; with `by` a column names the part.

        Raises:
            DataError, UsageError: what is wrong, in one line.
        """
        self._check_fitted()
        if data is None and by is None and not levels:
            rows = {self.fitted_.settings.model.name: self.metrics_["test"], **self.metrics_["baselines"]}
            return pd.DataFrame.from_dict(rows, orient="index")
        found = evaluate(
            self.fitted_,
            self._rows_of(data, "evaluate"),
            held_out=data is None,
            ask=asked(levels),
            intervals=intervals,
        )
        for entry in found.entries.values():
            for line in (*entry.notes, *(failure.reason for failure in entry.failures)):
                warnings.warn(f"{entry.name}: {line}", stacklevel=2)
        return scores(found, by).set_index("model").rename_axis(None)

    def _rows_of(self, data: Any, asked_for: str) -> Panel:
        """Rows in the columns of the fit: those of a table, or those of the fit when it is None."""
        fitted = self.fitted_
        assert isinstance(fitted.schema, Schema)
        panel: Panel | Sequences
        if data is None:
            panel = self._rows or sources.read_rows(fitted.settings, None, fitted.schema)
        elif isinstance(data, Panel):
            panel = data
        else:
            panel = panel_with_schema(self._table(data, asked_for), fitted.schema, self._reading())
        assert isinstance(panel, Panel)
        return panel

    def _reading(self) -> TableOptions:
        """How tables with new rows are read: as said here, else as in the fit."""
        assert isinstance(self.fitted_.schema, Schema)
        return self._policies() if self.table_options else sources.policies(self.fitted_.settings, self.fitted_.schema)

    def _values(self) -> dict[str, Any]:
        transforms = [self.transforms] if isinstance(self.transforms, str | Mapping) else list(self.transforms)
        return {
            **super()._values(),
            "task": Task.FORECAST.value,
            "transform": [{"name": item} if isinstance(item, str) else dict(item) for item in transforms],
            "window": {
                "lookback": self.lookback,
                "horizon": self.horizon,
                "season": self.season,
                "short": self.short,
            },
        }

    def _panel(self, data: Any) -> Panel:
        data = self._table(data, "fit")
        targets = self.targets if self.targets is not None else (("y",) if "y" in data.columns else ())
        if not isinstance(targets, Sequence):
            raise UsageError(f"targets are names of columns, not {targets!r}")
        roles = {
            "id": self._present(data, self.id_column, "unique_id"),
            "time": self._present(data, self.time_column, "ds"),
            "target": _names(targets if isinstance(targets, str) else list(targets)),
            "text": None if self.text_column is None else str(self.text_column),
            "future_covariates": _names(self.future_covariates),
            "past_covariates": _names(self.past_covariates),
            "static_covariates": _names(self.static_covariates),
        }
        return panel_from_frame(data, self._policies().model_copy(update=roles))

    @staticmethod
    def _table(data: Any, asked: str) -> pd.DataFrame:
        if not is_table(data):
            raise UsageError(
                f"{asked} takes a table of pandas, polars or pyarrow, or what tsformer.read returns, "
                f"not {type(data).__name__}"
            )
        return to_pandas(data, "table")

    def _policies(self) -> TableOptions:
        """The table options, without the columns, which are arguments of their own."""
        given = dict(self.table_options or {})
        for name in COLUMNS:
            if name in given:
                raise UsageError(f"'{name}' is none of table_options: {type(self).__name__} has arguments for columns")
        options = validate_options(TableOptions, "table_options", given)
        assert isinstance(options, TableOptions)
        return options

    @staticmethod
    def _present(data: pd.DataFrame, names: Names, usual: str) -> tuple[str, ...]:
        """The usual name may be absent; one that the user chose must be there (and reading says so if not)."""
        found = _names(names)
        return () if found == (usual,) and usual not in data.columns else found

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
            id_column=schema.id_columns or schema.id or "unique_id",
            time_column=schema.time_columns or schema.time or "ds",
            targets=schema.targets,
            text_column=schema.text,
            future_covariates=schema.future_covariates,
            past_covariates=schema.past_covariates,
            static_covariates=schema.static_covariates,
            short=settings.window.short,
            table_options=_policies_of(settings, schema),
        )
        forecaster._set(fitted, summary)
        forecaster._rows = forecaster._ids = forecaster._given = None
        return forecaster


def _names(names: Any) -> tuple[str, ...]:
    """Names of columns as their texts, for columns of any name are called by them; a tuple of anything is one name."""
    several = isinstance(names, list) or (isinstance(names, tuple) and all(isinstance(name, str) for name in names))
    return tuple(str(name) for name in (names if several else (names,)))


def _policies_of(settings: Settings, schema: Schema) -> dict[str, Any] | None:
    """The table options of a run, but for its columns."""
    options = sources.policies(settings, schema).policies()
    if schema.calendar:
        options |= {"calendar": schema.calendar}
    if schema.holidays:
        options |= {"holidays": schema.holidays}
    return options or None


def _own_ids(data: Any, schema: Schema) -> pd.DataFrame | None:
    return (
        own_ids(to_pandas(data, "table"), schema.id_columns or (schema.id,)) if schema.id and is_table(data) else None
    )
