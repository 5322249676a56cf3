"""What a backtest comes to: models in order, their skill over a naive forecast, and whether differences are real."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tsformer.errors import UsageError, did_you_mean
from tsformer.evaluation.backtest import Backtest
from tsformer.evaluation.entries import Entry
from tsformer.evaluation.metrics import overall_weighted_average
from tsformer.evaluation.significance import REAL, Difference, compare
from tsformer.levels import level_name

WORDS = {
    "mase": "MASE",
    "mae": "MAE",
    "mse": "MSE",
    "rmse": "RMSE",
    "smape": "sMAPE",
    "rmsse": "RMSSE",
    "wql": "WQL",
    "owa": "OWA",
}
_LOSS_OF = {"rmse": "mse", "owa": "mase"}
_ROOTS = ("rmse", "rmsse")


@dataclass(frozen=True)
class Row:
    """One model of a leaderboard. What is undefined is None.

    Attributes:
        name: of the model.
        yardstick: whether it is one of the naive forecasts that are always there.
        metrics: by name, see `WORDS`; with levels `coverage_80` and the like.
        skill: 1 less the ratio of the main metric to that of the reference, where both have a forecast.
        skill_low, skill_high, skill_sd: least, largest and standard deviation of the skill over the origins.
        p_reference, p_best: of no difference to the reference, and to the best model.
        seconds: of fits and forecasts.
        fits: how often it was fitted.
        windows: forecasts that could be.
        without: of these those that it has not.
    """

    name: str
    yardstick: bool
    metrics: Mapping[str, float | None]
    skill: float | None
    skill_low: float | None
    skill_high: float | None
    skill_sd: float | None
    p_reference: float | None
    p_best: float | None
    seconds: float
    fits: int
    windows: int
    without: int

    def to_json(self) -> dict[str, Any]:
        """One flat object."""
        return {
            "model": self.name,
            **self.metrics,
            "skill": self.skill,
            "skill_low": self.skill_low,
            "skill_high": self.skill_high,
            "skill_sd": self.skill_sd,
            "p_reference": self.p_reference,
            "p_best": self.p_best,
            "seconds": round(self.seconds, 3),
            "fits": self.fits,
            "windows": self.windows,
            "without_forecast": self.without,
        }


@dataclass(frozen=True)
class Leaderboard:
    """Models in order of the main metric, the best first.

    Attributes:
        metric: the main one.
        reference: the naive forecast that skill is measured against.
        rows: of all models and naive forecasts.
        verdict: in words, what can be said of the best, one line each.
        by_origin: the main metric's loss of each model at each origin, averaged over series; squared where that is a
            root.
    """

    metric: str
    reference: str
    rows: tuple[Row, ...]
    verdict: tuple[str, ...] = ()
    by_origin: Mapping[str, tuple[float | None, ...]] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """What `backtest --json` prints of it."""
        return {
            "metric": self.metric,
            "reference": self.reference,
            "leaderboard": [row.to_json() for row in self.rows],
            "by_origin": {name: list(losses) for name, losses in self.by_origin.items()},
            "verdict": list(self.verdict),
        }


def leaderboard(backtest: Backtest, metric: str | None = None) -> Leaderboard:
    """Put the models of a backtest in order.

    Args:
        metric: the main one, by which models are sorted, and whose losses are compared; None is MASE, or MSE where
            errors are of standardised values, or MAE where there is no MASE.

    Raises:
        UsageError: a metric that there is not.
    """
    entries = backtest.entries
    metrics = {name: _metrics(backtest, entry) for name, entry in entries.items()}
    main = _main(backtest, metrics, metric)
    reference, loss = backtest.reference, _LOSS_OF.get(main, main)
    losses = {name: entry.losses.mean(loss) for name, entry in entries.items()}
    order = sorted(entries, key=lambda name: _first_small(metrics[name].get(main)))
    best, overlap = order[0], _overlap(backtest)
    against = {
        other: {n: compare(losses[n], losses[other], overlap) for n in order if n != other}
        for other in {best, reference} & entries.keys()
    }
    rows = []
    for name in order:
        entry = entries[name]
        skill, each = None, np.array([])
        if reference in losses and name != reference:
            skill, each = _skill(losses[name], losses[reference], root=main in _ROOTS)
        windows, without = sum(len(block.series) for block in backtest.plan.blocks), _without(entry)
        rows.append(
            Row(
                name,
                entry.yardstick,
                metrics[name],
                skill,
                _plain(each.min()) if len(each) else None,
                _plain(each.max()) if len(each) else None,
                _plain(each.std(ddof=1)) if len(each) > 1 else None,
                _p(against.get(reference, {}).get(name)),
                _p(against[best].get(name)),
                entry.seconds,
                entry.fits,
                windows,
                without,
            )
        )
    by_origin = {name: tuple(_mean(column) for column in losses[name].T) for name in order}
    return Leaderboard(main, reference, tuple(rows), tuple(_verdict(rows, main, reference, against)), by_origin)


def _metrics(backtest: Backtest, entry: Entry) -> dict[str, float | None]:
    overall = entry.score.overall
    standard = backtest.plan.scale is not None
    names = ("mse", "mae") if standard else ("mase", "smape", "rmsse", "rmse", "mae")
    rmse = overall.get("rmse")
    found: dict[str, float | None] = {}
    for name in names:
        found[name] = (None if rmse is None else rmse**2) if name == "mse" else overall.get(name)
    naive2 = backtest.entries.get("naive2")
    if naive2 is not None and not standard:
        found["owa"] = overall_weighted_average(overall, naive2.score.overall)
    if backtest.ask.levels:
        found["wql"] = overall.get("wql")
        for level in backtest.ask.levels:
            found[f"coverage_{level_name(level)}"] = overall.get(f"coverage_{level_name(level)}")
    return found


def _main(backtest: Backtest, metrics: Mapping[str, Mapping[str, float | None]], asked: str | None) -> str:
    there = [name for name in next(iter(metrics.values())) if name in WORDS]
    if asked is not None:
        word = asked.lower()
        if word not in there:
            known = ", ".join(there)
            raise UsageError(f"--metric {asked}: this backtest has {known}{did_you_mean(word, there)}")
        return word
    for name in ("mse", "mase") if backtest.plan.scale is not None else ("mase",):
        if name in there and any(each.get(name) is not None for each in metrics.values()):
            return name
    return "mae"


def _skill(own: np.ndarray, other: np.ndarray, *, root: bool) -> tuple[float | None, np.ndarray]:
    """Skill over all series and origins that both have, and at each origin, float64 `[origins]`."""
    both = np.isfinite(own) & np.isfinite(other)

    def ratio(mine: np.ndarray, others: np.ndarray, there: np.ndarray) -> float:
        if not there.any() or not others[there].mean() > 0:
            return np.nan
        found = float(mine[there].mean() / others[there].mean())
        return float(np.sqrt(found)) if root else found

    each = np.array([1 - ratio(*columns) for columns in zip(own.T, other.T, both.T, strict=True)])
    return _plain(1 - ratio(own, other, both)), each[np.isfinite(each)]


def _overlap(backtest: Backtest) -> int:
    """Origins whose forecasts share true values with those of a given one, itself included."""
    steps = [
        np.diff(np.unique(np.concatenate([block.origins[block.series == series] for block in backtest.plan.blocks])))
        for series in np.unique(backtest.plan.blocks[0].series)[:100].tolist()
    ]
    apart = np.concatenate(steps)
    return max(1, -(-backtest.plan.horizon // int(np.median(apart)))) if len(apart) else 1


def _without(entry: Entry) -> int:
    return sum(failure.windows for failure in entry.failures)


def _verdict(
    rows: list[Row], main: str, reference: str, against: Mapping[str, Mapping[str, Difference | None]]
) -> Iterator[str]:
    """What can be said of the best model."""
    best, word = rows[0], WORDS[main]
    if best.metrics.get(main) is None:
        yield f"no model has a {word}"
        return
    if best.yardstick or best.name == reference:
        yield f"no model beats {best.name} by {word}"
    elif reference in against:
        lead = f"{best.name} has {_percent(best.skill)} {word} than {reference}"
        yield f"{lead}: {_said(against[reference].get(best.name))}"
    runner = next((row for row in rows[1:] if row.metrics.get(main) is not None), None)
    if runner is not None and runner.name != reference:
        mine, others = best.metrics[main], runner.metrics[main]
        assert mine is not None
        assert others is not None
        share = 1 - mine / others if others else None
        lead = f"{best.name} has {_percent(share)} {word} than the runner-up, {runner.name}"
        yield f"{lead}: {_said(against[best.name].get(runner.name))}"


def _said(difference: Difference | None) -> str:
    if difference is None or difference.p is None:
        return "whether that is more than chance cannot be told from so few origins and series"
    many = f"{difference.series} series x " if difference.series > 1 else ""
    how = f"p = {difference.p:.2g}, {difference.test} over {many}{difference.origins} origin(s)"
    return f"a real difference ({how})" if difference.p < REAL else f"no more than chance may give ({how})"


def _percent(share: float | None) -> str:
    if share is None:
        return "another"
    return f"{abs(100 * share):.2g} % {'less' if share >= 0 else 'more'}"


def _p(difference: Difference | None) -> float | None:
    return None if difference is None else difference.p


def _mean(losses: np.ndarray) -> float | None:
    real = losses[np.isfinite(losses)]
    return float(real.mean()) if len(real) else None


def _plain(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _first_small(value: float | None) -> tuple[bool, float]:
    return value is None, 0.0 if value is None else value
