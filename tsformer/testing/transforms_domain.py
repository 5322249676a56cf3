"""Checks of what a transform makes of values that it cannot take: outside its domain, or not there."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np

from tsformer.errors import InvalidValuesError
from tsformer.plugin import State, Transform, TransformPlugin
from tsformer.testing.failure import CheckFailedError
from tsformer.testing.trials import Trial, built, trials


def check_domain(plugin: TransformPlugin) -> None:
    """A value outside the domain raises `InvalidValuesError` with its place; no NaN, no infinity, no other error."""
    transform = built(plugin)
    some = next(trials(transform))
    step, channel = len(some.rows) // 2, 1
    place = np.zeros(some.rows.shape, dtype=bool)
    place[step, channel] = True
    for probe in (0.0, -1.0, -1e6, 2.0, 1e6):
        rows = some.rows.copy()
        rows[step, channel] = probe
        calls: dict[str, Callable[[np.ndarray], Any]] = {
            "fit": transform.fit,
            "forward": lambda rows: transform.forward(rows, some.state),
        }
        for name, call in calls.items():
            try:
                with np.errstate(all="ignore"):
                    result = call(rows.copy())
            except InvalidValuesError as fault:
                bad = np.asarray(fault.bad)
                if bad.shape != place.shape or bad.dtype != bool or not np.array_equal(bad, place):
                    raise CheckFailedError(
                        f"{name} of a value {probe:g} raises InvalidValuesError, whose `bad` is not a boolean array "
                        f"{place.shape}, True exactly at the bad value"
                    ) from fault
                continue
            except Exception as error:
                raise CheckFailedError(
                    f"{name} of a value {probe:g} raises {type(error).__name__} ({error}); say what is outside the "
                    "domain: raise InvalidValuesError(bad, 'are not ...', 'what to do')"
                ) from error
            if name == "forward" and not np.isfinite(result).all():
                raise CheckFailedError(
                    f"forward of a value {probe:g} gives NaN or infinity; raise "
                    "InvalidValuesError(bad, 'are not ...', 'what to do') for what is outside the domain"
                )


def check_missing(plugin: TransformPlugin) -> str | None:
    """`takes_missing = True` is kept: a NaN stays one and changes nothing else, and `fit` looks at the real values."""
    transform = built(plugin)
    takes = getattr(transform, "takes_missing", False)
    if not isinstance(takes, bool):
        raise CheckFailedError(f"takes_missing is {takes!r}, not True or False")
    if not takes:
        return "takes_missing is not set: the last value before stands in for one that is missing"
    lost = transform.lost_rows
    for some in trials(transform):
        rows, holes = some.rows.copy(), np.zeros(some.rows.shape, dtype=bool)
        holes[1 : some.train : 5, 0] = True
        holes[some.train :: 3, 1] = True
        rows[holes] = np.nan
        try:
            with np.errstate(all="ignore"):
                state = transform.fit(rows[: some.train].copy())
                changed = transform.forward(rows.copy(), some.state)
        except Exception as error:
            raise CheckFailedError(
                f"takes_missing is True, but {some.name} with NaN raise {type(error).__name__} ({error}); compare so "
                "that NaN is no value outside the domain: values <= 0, not ~(values > 0)"
            ) from error
        try:
            json.dumps(state, allow_nan=False)
        except ValueError as error:
            raise CheckFailedError(f"fit of {some.name} with NaN has a state that is not finite") from error
        parts = np.stack([holes[step : len(holes) - lost + step] for step in range(lost + 1)])
        if not np.isnan(changed[parts[-1]]).all():
            raise CheckFailedError(f"takes_missing is True, but forward of {some.name} makes a value of NaN")
        touched = parts.any(axis=0)
        if not np.array_equal(changed[~touched], some.changed[~touched]):
            raise CheckFailedError(f"takes_missing is True, but with {some.name} a NaN changes what is not made of it")
        if transform.pointwise and not _same_statistics(transform, some, rows[: some.train], state):
            raise CheckFailedError(
                f"takes_missing is True, but fit of {some.name} with NaN learns something else than of the real values "
                "alone; take np.nanmean for np.mean, and so on"
            )
    return None


def _same_statistics(transform: Transform, some: Trial, rows: np.ndarray, state: State) -> bool:
    """Whether what was learned of rows with NaN is what the real values of the first channel say."""
    real = rows[~np.isnan(rows[:, 0]), :1]
    alone = transform.fit(np.repeat(real, rows.shape[1], axis=1))
    with np.errstate(all="ignore"):
        one, other = (transform.forward(real.repeat(rows.shape[1], axis=1), each)[:, 0] for each in (state, alone))
    return np.allclose(one, other, rtol=1e-6, atol=1e-6 * np.abs(other).max())
