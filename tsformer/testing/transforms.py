"""Checks of a transform plugin, each a plain function that explains what is wrong."""

from __future__ import annotations

import copy
import itertools
import json
from collections.abc import Callable
from typing import Any

import numpy as np

from tsformer.errors import InvalidValuesError, in_words
from tsformer.plugin import Transform, TransformPlugin
from tsformer.testing.failure import CheckFailedError
from tsformer.testing.generators import generators, seeded
from tsformer.testing.transforms_domain import check_domain, check_missing
from tsformer.testing.trials import CHANNELS, anchor_of, built, seasonal, trials

EXACT = 1e-9
"""Error that an inverse may have, relative to the largest value."""


def check_shapes(plugin: TransformPlugin) -> None:
    """`lost_rows` and `pointwise` are there and true of what forward and inverse return, whatever the shape."""
    transform = built(plugin)
    lost, pointwise = getattr(transform, "lost_rows", None), getattr(transform, "pointwise", None)
    if not isinstance(lost, int) or isinstance(lost, bool) or lost < 0:
        raise CheckFailedError(f"lost_rows is {lost!r}, not a whole number from 0")
    if not isinstance(pointwise, bool):
        raise CheckFailedError(f"pointwise is {pointwise!r}, not True or False")
    for season in (1, 12) if plugin.with_season else ():
        config = plugin.with_season(plugin.example, season) if plugin.with_season else None
        if not isinstance(config, plugin.config):
            raise CheckFailedError(f"with_season returns {type(config).__name__}, not a {plugin.config.__name__}")
    for some in trials(transform):
        wanted = (len(some.rows) - lost, CHANNELS)
        _expect(some.changed, wanted, f"forward of {some.name} {some.rows.shape} with lost_rows = {lost}")
        few = transform.forward(some.rows[: lost + 1].copy(), some.state)
        _expect(few, (1, CHANNELS), f"forward of the fewest rows, {lost + 1}")
        path = some.changed[-4:]
        for lead in ((), (2,), (2, 5)):
            paths = np.broadcast_to(path, (*lead, *path.shape)).copy()
            anchor = anchor_of(transform, some.rows, len(some.rows) - 4)
            anchors = np.broadcast_to(anchor, (*lead, *anchor.shape)).copy()
            back = transform.inverse(paths, some.state, anchors)
            _expect(back, paths.shape, f"inverse of paths {paths.shape} of {some.name}")


def check_inverse(plugin: TransformPlugin) -> None:
    """The inverse is exact in float64, from every origin, beyond the training rows, for the first channels alone.

    So is that of what `with_season` makes of the example, and of the default options, for months of a year.
    """
    for transform in (built(plugin), *seasonal(plugin)):
        _invert(transform)


def _invert(transform: Transform, horizon: int = 6) -> None:
    for some in trials(transform):
        lost, rows = transform.lost_rows, some.rows
        origins = np.arange(max(1, lost), len(rows) - horizon + 1)
        path = some.changed[(origins - lost)[:, None] + np.arange(horizon)]
        wanted = rows[origins[:, None] + np.arange(horizon)]
        for channels in range(CHANNELS, 0, -1):
            anchors = anchor_of(transform, rows, origins)[..., :channels]
            given = path[..., :channels].copy()
            try:
                back = transform.inverse(given, some.state, anchors)
            except Exception as error:
                if channels == CHANNELS:
                    raise
                raise CheckFailedError(_few_channels(given, error)) from error
            if np.shape(back) != given.shape:
                raise CheckFailedError(_few_channels(given, f"it returns {np.shape(back)}"))
            off = np.abs(back - wanted[..., :channels]).max(axis=(1, 2)) / np.abs(rows).max()
            worst = int(np.nanargmax(np.where(np.isfinite(off), off, np.inf)))
            if not off[worst] <= EXACT:
                few = f", with {channels} of the {CHANNELS} channels that fit saw" if channels < CHANNELS else ""
                raise CheckFailedError(
                    f"{some.name}: inverse(forward(x)) is off by {off[worst]:.1g} of the largest value, for a path "
                    f"from row {origins[worst]} on ({some.train} rows were for fit){few}; is the anchor the last rows "
                    "before the path, is everything float64, is nothing clipped to the range seen in fit?"
                )


def _few_channels(path: np.ndarray, fault: Exception | str) -> str:
    said = in_words(fault) if isinstance(fault, Exception) else fault
    return (
        f"inverse does not take a path {path.shape} with the first {path.shape[-1]} of the {CHANNELS} channels that "
        f"fit saw: {said}; only targets are predicted, and they come first: take state[...][: path.shape[-1]]"
    )


def check_inverse_is_defined(plugin: TransformPlugin) -> None:
    """A path far from what was seen comes back finite: a model may predict anything."""
    transform = built(plugin)
    for some in trials(transform):
        low, high = some.changed.min(axis=0), some.changed.max(axis=0)
        anchor = anchor_of(transform, some.rows, len(some.rows))
        for name, level in {"above": high + 2 * (high - low), "below": low - 2 * (high - low)}.items():
            path = np.tile(level, (4, 1))
            back = transform.inverse(path, some.state, anchor)
            if not np.isfinite(back).all():
                raise CheckFailedError(
                    f"{some.name}: the inverse of a path {name} the range of forward is not finite; a model may "
                    "predict what forward never returns: clip before the inverse"
                )


def check_state(plugin: TransformPlugin) -> None:
    """The state is a dictionary of plain JSON, the same for the same rows, and all that forward and inverse use."""
    transform = built(plugin)
    other, some = itertools.islice(trials(transform), 2)  # fitted last on `some`
    try:
        text = json.dumps(some.state, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise CheckFailedError(f"fit returns what is not plain JSON ({error}); .tolist() makes it so") from error
    if not isinstance(some.state, dict):
        raise CheckFailedError(f"fit returns {type(some.state).__name__}, not a dictionary")
    states = []
    for seed in (1, 2):
        with seeded(seed):
            states.append(json.dumps(built(plugin).fit(some.rows[: some.train].copy()), allow_nan=False))
    if states[0] != states[1]:
        raise CheckFailedError("fit on the same rows gives another state")
    state = json.loads(text)
    anchor = anchor_of(transform, some.rows, len(some.rows) - 4)
    back = transform.inverse(some.changed[-4:].copy(), some.state, anchor)
    transform.fit(other.rows[: other.train].copy())  # of another series: one transform serves all
    for who, one in {"after a fit on another series": transform, "in another process": built(plugin)}.items():
        try:
            same = np.array_equal(one.forward(some.rows.copy(), state), some.changed)
            same = same and np.array_equal(one.inverse(some.changed[-4:].copy(), state, anchor), back)
        except (AttributeError, KeyError, TypeError) as error:
            raise CheckFailedError(f"{who}, a state that went through JSON does not do ({error!r})") from error
        if not same:
            raise CheckFailedError(
                f"{who}, forward or inverse with the state that fit returned gives something else; keep nothing in "
                "self, everything in the state"
            )


def check_leaves_inputs_alone(plugin: TransformPlugin) -> None:
    """fit, forward and inverse change neither the arrays nor the state that they are given."""
    transform = built(plugin)
    for some in trials(transform):
        rows, path = some.rows.copy(), some.changed[-4:].copy()
        anchor = anchor_of(transform, rows, len(rows) - 4)
        state = copy.deepcopy(some.state)
        calls: tuple[tuple[Callable[..., object], dict[str, Any]], ...] = (
            (transform.fit, {"rows": rows}),
            (transform.forward, {"values": rows, "state": state}),
            (transform.inverse, {"path": path, "state": state, "anchor": anchor}),
        )
        for call, given in calls:
            before = copy.deepcopy(given)
            call(*given.values())
            for name, value in given.items():
                same = value == before[name] if name == "state" else np.array_equal(value, before[name])
                if not same:
                    raise CheckFailedError(f"{call.__name__} changes its {name} in place; work on a copy")


def check_causality(plugin: TransformPlugin) -> None:
    """What comes later changes nothing before it: forward knows the training rows by the state alone."""
    transform = built(plugin)
    for some in trials(transform):
        for cut in (some.train, len(some.rows) - 1):
            kept = some.changed[: cut - transform.lost_rows]
            for extreme in (some.rows.max(axis=0), some.rows.min(axis=0)):
                later = some.rows.copy()
                later[cut:] = extreme
                if not np.array_equal(transform.forward(later, some.state)[: len(kept)], kept):
                    raise CheckFailedError(
                        f"{some.name}: other rows from row {cut} on change what forward makes of earlier ones; take "
                        "statistics in fit, and let step k see nothing behind it"
                    )
            if not np.array_equal(transform.forward(some.rows[:cut].copy(), some.state), kept):
                raise CheckFailedError(
                    f"{some.name}: forward makes something else of the first {cut} rows alone than of all rows"
                )


def check_pointwise(plugin: TransformPlugin) -> str | None:
    """`pointwise = True` is kept: each step stands alone, in both directions, and the anchor does not matter."""
    transform = built(plugin)
    if not transform.pointwise:
        return "pointwise is False"
    if transform.lost_rows:
        raise CheckFailedError(f"pointwise is True, but lost_rows is {transform.lost_rows}; one of the two is wrong")
    for some in trials(transform):
        step = len(some.rows) // 2
        others = np.arange(len(some.rows)) != step
        values = some.rows.copy()
        values[step] = some.rows[step - 7]
        changed = transform.forward(values, some.state)
        anchor = anchor_of(transform, some.rows, 1)
        before, after = (transform.inverse(path.copy(), some.state, anchor) for path in (some.changed, changed))
        same = np.array_equal(changed[others], some.changed[others]) and np.array_equal(before[others], after[others])
        elsewhere = transform.inverse(some.changed.copy(), some.state, anchor_of(transform, some.rows, step))
        if not same or not np.array_equal(before, elsewhere):
            raise CheckFailedError(
                f"pointwise is True, but with {some.name} a step changes others, or the inverse uses the anchor; set "
                "pointwise = False"
            )
    return None


def check_constant_channel(plugin: TransformPlugin) -> None:
    """A channel that never changes, and a series of a single row, come through without NaN and come back."""
    transform = built(plugin)
    fewest = transform.lost_rows + 1
    for value in (0.7, 1e6, 0.0):
        rows = np.full((40 + 4 * transform.lost_rows, 2), value)
        for name, seen in {"a constant channel": rows, f"a series of {fewest} row(s)": rows[:fewest]}.items():
            try:
                state = transform.fit(seen.copy())
                changed = transform.forward(rows.copy(), state)
            except InvalidValuesError:
                continue  # outside the domain; check_domain looks at how that is said
            origin = len(rows) - 5
            anchor = anchor_of(transform, rows, origin)
            back = transform.inverse(changed[origin - transform.lost_rows :].copy(), state, anchor)
            if not np.isfinite(changed).all() or not np.allclose(back, value, rtol=EXACT, atol=EXACT):
                raise CheckFailedError(
                    f"{name} of {value:g} becomes {changed[0, 0]:g} and comes back as {back[0, 0]:g}; a spread of zero "
                    "must not be divided by (scikit-learn's rule: scale 1)"
                )


def check_scaler(plugin: TransformPlugin) -> str | None:
    """`scaler = True` is kept: whatever the unit, training rows come out of the size of 1."""
    if not plugin.scaler:
        return "scaler is False"
    transform = built(plugin)
    for some in trials(transform):
        size = float(np.abs(some.changed[: some.train]).mean())
        if not 1e-2 < size < 1e2:
            raise CheckFailedError(
                f"scaler is True, but {some.name} come out with a mean size of {size:.1g}; a scaler replaces --scale, "
                "so nothing else brings the values to the size of 1"
            )
    return None


def check_leaves_rng_alone(plugin: TransformPlugin) -> None:
    """Building, fitting, forward and inverse neither seed nor draw from the caller's random generators."""
    with seeded(20201):
        before = generators()
        transform = built(plugin)
        some = next(trials(transform))
        transform.inverse(some.changed[-4:].copy(), some.state, anchor_of(transform, some.rows, len(some.rows) - 4))
        for name, state in generators().items():
            if state != before[name]:
                raise CheckFailedError(f"{name} global random generator is changed; do not seed or draw from it")


def _expect(values: object, shape: tuple[int, ...], what: str) -> None:
    if not isinstance(values, np.ndarray) or values.dtype.kind not in "fiu" or values.shape != shape:
        got = f"{values.dtype} {values.shape}" if isinstance(values, np.ndarray) else type(values).__name__
        raise CheckFailedError(f"{what} returns {got}, not an array of numbers {shape}")


TRANSFORM_CHECKS: tuple[Callable[[TransformPlugin], str | None], ...] = (
    check_shapes,
    check_inverse,
    check_inverse_is_defined,
    check_state,
    check_leaves_inputs_alone,
    check_causality,
    check_pointwise,
    check_constant_channel,
    check_domain,
    check_missing,
    check_scaler,
    check_leaves_rng_alone,
)
