"""The trials of a study: a line for each, a table at the end, and the same for programs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd
from rich.table import Table

import tsformer
from tsformer.ensemble import independent
from tsformer.report.tables import literal
from tsformer.tuning.record import Trial
from tsformer.tuning.study import Study

MOST_ROWS = 15
FEW = 5  # forecasts that do not overlap


def trial_line(trial: Trial, study: Study, trials: int) -> str:
    """What became of a trial, in one line."""
    found = {
        "complete": f"{study.judge.metric} {_number(trial.score)}",
        "pruned": "ended early",
        "failed": f"failed: {trial.reason}",
    }[trial.state]
    return f"trial {trial.number}/{trials}: {found}, {trial.seconds:.1f} s, {_options(trial.options)}"


def trials_table(study: Study) -> Table:
    """The best trials first; on which the naive forecast stands as well."""
    metric = study.judge.metric
    title = f"validation part: {len(study.judge.windows)} windows"
    table = Table(title=title, title_style="", box=None, pad_edge=False)
    table.add_column("trial", justify="right")
    table.add_column(metric, justify="right")
    table.add_column("seconds", justify="right")
    table.add_column("options", overflow="fold")
    for trial in ranked(study)[:MOST_ROWS]:
        outcome = _number(trial.score) if trial.score is not None else trial.state
        table.add_row(str(trial.number), outcome, f"{trial.seconds:.1f}", literal(_options(trial.options)))
    name, score = study.naive
    table.add_row("", _number(score), "", name)
    return table


def ranked(study: Study) -> list[Trial]:
    """Trials with a score, the best first, then those that were ended early, then those that failed."""
    order = ["complete", "pruned", "failed"]
    return sorted(study.trials, key=lambda trial: (order.index(trial.state), trial.score or 0.0, trial.number))


def trials_frame(study: Study) -> pd.DataFrame:
    """A row for each trial, in their order; a column for each option, empty where it was left open."""
    rows = [
        {
            "trial": trial.number,
            "state": trial.state,
            study.judge.metric: trial.score,
            "seconds": trial.seconds,
            "steps": trial.steps,
            "parameters": trial.parameters,
            **{each.key: trial.options.get(each.key) for each in study.space.dimensions},
            "reason": trial.reason,
        }
        for trial in study.trials
    ]
    return pd.DataFrame(rows)


def summary(study: Study) -> dict[str, Any]:
    """What programs are told."""
    best, (naive, score) = study.best, study.naive
    counts = {state: sum(trial.state == state for trial in study.trials) for state in ("complete", "pruned", "failed")}
    return {
        "metric": study.judge.metric,
        "windows": len(study.judge.windows),
        "best": None if best is None else {"trial": best.number, "score": best.score, "options": dict(best.options)},
        "naive": {"name": naive, "score": score},
        "counts": counts,
        "space": {each.key: str(each.space) for each in study.space.dimensions},
        "trials": [
            {name: value for name, value in trial.to_json().items() if name not in ("drawn", "exit_code")}
            for trial in study.trials
        ],
    }


def heading(study: Study) -> list[str]:
    """What stands above the configuration that was found: where it comes from, and how good it is."""
    best, (naive, score) = study.best, study.naive
    assert best is not None
    seconds, windows = sum(trial.seconds for trial in study.trials), len(study.judge.windows)
    return [
        f"found by tsformer tune {tsformer.__version__}: trial {best.number} of {len(study.trials)}, {seconds:.0f} s",
        f"{study.judge.metric} {_number(best.score)} on {windows} windows of the validation part, on which "
        f"{naive} has {_number(score)}; chosen there, it is too good there: the test part tells",
    ]


def outcome(study: Study) -> str:
    """The best trial and what it is to be read against, in one line."""
    best, (naive, score) = study.best, study.naive
    assert best is not None
    metric, first = study.judge.metric, study.trials[0]
    counts = summary(study)["counts"]
    more = [f"{counts['pruned']} ended early"] * bool(counts["pruned"]) + [f"{counts['failed']} failed"] * bool(
        counts["failed"]
    )
    trials = f"{len(study.trials)} trials{f' ({chr(44).join(more)})' if more else ''}"
    usual = f"; as given {_number(first.score)}" if first.score is not None else ""
    return f"best of {trials}: {metric} {_number(best.score)}, trial {best.number}{usual}; {naive} {_number(score)}"


def cautions(study: Study) -> Iterator[str]:
    """What the user should not overlook: few forecasts to choose by, a best trial no better than a naive forecast."""
    best, (naive, score) = study.best, study.naive
    apart = independent(study.judge.windows)
    if apart < FEW:
        yield (
            f"the validation part holds {apart:.0f} forecast(s) that do not overlap: what is chosen by so few is as "
            "likely worse as better on other rows"
        )
    if best is not None and best.score is not None and score is not None and best.score >= score:
        model = study.settings.model.name
        numbers = f"{_number(best.score)} to {_number(score)}"
        yield f"the best trial of {model} does not beat {naive} on the validation part: {numbers}"


def _options(options: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} {_value(value)}" for key, value in options.items()) or "as given"


def _value(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"
