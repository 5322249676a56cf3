"""What trials are judged by: errors on the windows of the validation part, the same for all of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tsformer.data.panel import Panel
from tsformer.data.selection import beginnings, named, selected
from tsformer.data.split import Split, long_enough, split_by_time
from tsformer.data.windows import Windows
from tsformer.dependence import rolls_out
from tsformer.errors import DivergedError
from tsformer.evaluation.baselines import BASELINES
from tsformer.evaluation.metrics import Errors
from tsformer.evaluation.scales import seasonal_scale
from tsformer.fitted import Fitted
from tsformer.nn.spread import Spread
from tsformer.predictive import Ask, predictive
from tsformer.preparation import Prepared, complete, rows_of
from tsformer.search import Choices
from tsformer.settings import Settings

MOST_JUDGED = 4096
"""Windows by which a finished trial is judged, at most."""
MOST_DRAWN = 128
"""The same where forecasts have to be drawn."""
SAMPLES = 100
LEVELS = (50.0, 80.0, 95.0)
"""Of the intervals whose ends are judged; of a model of other quantiles its own."""
SCORED_AT_ONCE = 2**20
MULTIPLES = (1, 2, 3, 4, 6, 8)
SHORTEST = 8  # steps that lookbacks are multiples of, at least


@dataclass(frozen=True)
class Known:
    """The rows that a study may see: those before the test part that a fit would hold out.

    Attributes:
        panel: without the test part.
        split: of which nothing is the test part.
        lookback: that a fit would choose.
        horizon, season: steps.
        notes: what the user should hear of, one line each.
    """

    panel: Panel
    split: Split
    lookback: int
    horizon: int
    season: int
    notes: tuple[str, ...] = ()


def known_part(settings: Settings, panel: Panel, longest: int | None, lost: int) -> Known:
    """Cut the test part off, where `fit` would hold it out.

    Args:
        longest: lookback that will be tried; None is the one that a fit would choose. Series that are too short for it
            are left out where the settings say that short ones are.
        lost: rows that transforms lose.

    Raises:
        DataError: a series is too short.
    """
    window = complete(settings, panel).window
    horizon, season = window.horizon, window.season
    assert horizon is not None
    assert season is not None
    settings = replace(settings, window=settings.window.model_copy(update={"horizon": horizon, "season": season}))
    some = long_enough(panel.lengths, horizon, 1, 0, "skip")[0]
    ends = panel.lengths.copy()
    if some.any():
        ends[some] = split_by_time(panel.lengths[some], horizon, 1).validation
    series = np.searchsorted(panel.offsets, panel.breaks, side="right") - 1
    before = panel.breaks[panel.breaks - panel.offsets[series] < ends[series]]  # gaps behind decide nothing
    lookback = complete(settings, replace(panel, breaks=before)).window.lookback
    assert lookback is not None
    notes: tuple[str, ...] = ()
    if settings.window.short != "error":
        stay, _ = long_enough(panel.lengths, horizon, longest or lookback, lost, "skip")
        if stay.any() and not stay.all():
            notes = (f"left out {named(panel, ~stay)}, which are too short for a lookback of {longest or lookback}",)
            panel = selected(panel, stay)
    ids = panel.ids if panel.schema.id else None
    split = split_by_time(panel.lengths, horizon, longest or lookback, lost, ids)
    ends = split.validation
    return Known(beginnings(panel, ends), Split(split.train, ends, ends), lookback, horizon, season, notes)


def lookbacks(known: Known, lost: int, least: int | None) -> Choices | None:
    """Lookbacks that fit all series, the usual one among them: multiples of the horizon in whole seasons.

    At least half of the training rows stay targets. None where there is only one.
    """
    unit, season = max(known.horizon, known.season, SHORTEST), known.season
    wanted = {-(-unit * times // season) * season for times in MULTIPLES}
    most = int(min((known.split.train.min() - lost) // 2, known.split.train.min() - lost - known.horizon))
    fit = {length for length in wanted if (least or 1) <= length <= most} | {known.lookback}
    return Choices(tuple(sorted(fit))) if len(fit) > 1 else None


@dataclass(frozen=True)
class Judge:
    """Judges models by the validation windows that the longest lookback can see.

    Errors are in the user's own units, whatever a trial transforms them to and whatever its loss is. The rows of one
    lookback serve all, for what differs is only how many of them a window shows.

    Attributes:
        known: the rows.
        prepared: the same with the longest lookback.
        metric: "mase" of points; "mae" where no series has a MASE; "wql" of quantiles of a probabilistic model, the
            mean over its targets.
        points: the metric of points, by which trials are compared while they are trained if quantiles are costly.
        drawn: whether they are: they come from sample paths, or of points whose scatter is learned last.
        ask: the quantiles.
    """

    known: Known
    prepared: Prepared
    metric: str
    points: str
    drawn: bool
    ask: Ask

    @classmethod
    def of(cls, known: Known, prepared: Prepared, fitted: Fitted, *, any_decoder: bool) -> Judge:
        """The judge of a study.

        Args:
            prepared: the known rows with the longest lookback.
            fitted: the model of the first trial, before it is fitted.
            any_decoder: whether trials may have a decoder that has to be sampled.
        """
        module, problem = fitted.module, fitted.problem
        scale = seasonal_scale(known.panel, known.split.train, known.season)
        points = "mase" if np.isfinite(scale[np.unique(prepared.validation.series.numpy())]).any() else "mae"
        levels: tuple[float, ...] = () if problem.output == "point" else LEVELS
        if problem.quantiles and not set(Ask(LEVELS).probabilities) <= set(problem.quantiles):
            low = [p for p in problem.quantiles if _has_mirror(p, problem.quantiles)]
            levels = tuple(sorted(round(100 - 200 * p, 9) for p in low))
        sampled = any_decoder or rolls_out(module) or not fitted.chain.pointwise(problem.targets)
        drawn = bool(levels) and (sampled or isinstance(module, Spread))
        ask = Ask(levels, samples=SAMPLES)
        return cls(known, prepared, "wql" if levels else points, points, drawn, ask)

    @property
    def windows(self) -> Windows:
        """By which a finished trial is judged."""
        return self.prepared.validation.thin(MOST_DRAWN if self.drawn else MOST_JUDGED)

    def score(self, fitted: Fitted) -> float:
        """How large the errors of a fitted model are.

        Raises:
            DivergedError: a forecast is not finite.
        """
        return self._score(fitted, self.windows, self.metric)

    def score_on_the_way(self, fitted: Fitted) -> float:
        """The same of a model in training, by fewer windows, and by points where quantiles are costly."""
        few = self.windows.thin(fitted.settings.train.eval_windows)
        return self._score(fitted, few, self.points if self.drawn else self.metric)

    def naive(self) -> tuple[str, float | None]:
        """The naive forecast on the same windows, and its score; None where it is undefined."""
        name, season = "seasonal_naive" if self.known.season > 1 else "last_value", self.known.season
        errors = self._errors()
        for some in self._portions(self.windows):
            rows, series = rows_of(self.prepared, some), some.series.numpy()
            point = BASELINES[name](self.known.panel, series, rows, some.horizon, season)
            quantiles = np.repeat(point[..., None], len(self.ask.probabilities), axis=-1)
            self._add(errors, some, point, quantiles if self.ask.levels else None)
        return name, _number(errors, self.metric)

    def _score(self, fitted: Fitted, windows: Windows, metric: str) -> float:
        errors, ask = self._errors(), self.ask if metric == "wql" else None
        for some in self._portions(replace(windows, lookback=fitted.problem.lookback)):
            said = predictive(fitted, some, self.prepared.data, ask)
            if not np.isfinite(said.point).all():
                raise DivergedError("its forecasts are not finite")
            self._add(errors, some, said.point, said.quantiles)
        found = _number(errors, metric)
        if found is None:
            raise DivergedError(f"its forecasts have no {metric.upper()}")
        return found

    def _errors(self) -> Errors:
        scale = seasonal_scale(self.known.panel, self.known.split.train, self.known.season)
        return Errors(scale, self.known.panel.schema.targets, self.ask.probabilities)

    def _portions(self, windows: Windows) -> Iterator[Windows]:
        size = max(1, SCORED_AT_ONCE // (windows.horizon * windows.targets * (1 + len(self.ask.probabilities))))
        return (windows.part(start, start + size) for start in range(0, len(windows), size))

    def _add(self, errors: Errors, windows: Windows, point: np.ndarray, quantiles: np.ndarray | None) -> None:
        rows = rows_of(self.prepared, windows)[:, None] + np.arange(windows.horizon)
        truth = self.known.panel.values[rows, : windows.targets]
        errors.add(point, truth, windows.series.numpy(), quantiles)


def _has_mirror(probability: float, all_of_them: Sequence[float]) -> bool:
    return probability < 0.5 and any(abs(1 - probability - other) < 1e-9 for other in all_of_them)


def _number(errors: Errors, metric: str) -> float | None:
    """The metric of a score, as the mean over targets where it is none of scaled errors."""
    score = errors.score()
    of_targets = [score.overall] if metric == "mase" else list(score.by_target.values())
    numbers = [number for each in of_targets if (number := each.get(metric)) is not None]
    return float(np.mean(numbers)) if numbers else None
