"""What a transform is tried on: ordinary rows of several kinds, within its domain."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tsformer.errors import InvalidValuesError
from tsformer.plugin import State, Transform, TransformPlugin
from tsformer.testing.failure import CheckFailedError

CHANNELS = 3


@dataclass(frozen=True)
class Trial:
    """Rows that a transform takes, and where its training part ends.

    Attributes:
        name: what messages call them.
        rows: float64 `[time, channels]`.
        train: rows `[0, train)` are for `fit`.
        state: what `fit` learned from them.
        changed: `forward(rows)`.
    """

    name: str
    rows: np.ndarray
    train: int
    state: State
    changed: np.ndarray


def built(plugin: TransformPlugin) -> Transform:
    """The transform of the plugin's example."""
    return plugin.build(plugin.example)


def seasonal(plugin: TransformPlugin) -> Iterator[Transform]:
    """What `with_season` makes, for months of a year, of the example, and of the defaults where nothing is required."""
    if plugin.with_season is None:
        return
    configs = [plugin.example]
    if not any(field.is_required() for field in plugin.config.model_fields.values()):
        configs.append(plugin.config())
    for config in configs:
        yield plugin.build(plugin.with_season(config, 12))


def trials(transform: Transform) -> Iterator[Trial]:
    """Ordinary rows of several kinds, each moved into the transform's domain where it has one."""
    generator = np.random.default_rng(3)
    steps = 48 + 4 * transform.lost_rows
    noise = generator.standard_normal((steps, CHANNELS))
    kinds = {
        "random values": noise,
        "values with a trend": 100 + 3.0 * np.arange(steps)[:, None] + noise,
        "tiny values": 1e-9 * np.exp(0.5 * noise),
        "huge values": 1e9 * np.exp(0.5 * noise),
    }
    for name, rows in kinds.items():
        yield trial(transform, name, rows)


def trial(transform: Transform, name: str, rows: np.ndarray) -> Trial:
    """Rows as they are, or made positive, or brought between 0 and 1: the first that the transform takes.

    Where it takes none, as one that is bound to the range seen in `fit`, the same are clipped to that of the training
    rows.
    """
    low, spread = rows.min(), max(np.ptp(rows), 1e-3 * abs(rows).max(), 1e-12)
    train = len(rows) * 7 // 10
    said = ""
    moved = (rows, rows - low + 0.1 * spread, (rows - low + 0.1 * spread) / (1.2 * spread))
    for some in (*moved, *(np.clip(each, each[:train].min(axis=0), each[:train].max(axis=0)) for each in moved)):
        try:
            state = transform.fit(some[:train].copy())
            with np.errstate(all="ignore"):
                changed = transform.forward(some.copy(), state)
        except InvalidValuesError as fault:
            said = fault.what
            continue
        if isinstance(changed, np.ndarray) and changed.dtype.kind == "f" and not np.isfinite(changed).all():
            raise CheckFailedError(
                f"forward of {name} gives NaN or infinity; raise InvalidValuesError(bad, 'are not ...', 'what to do') "
                "for what is outside the domain"
            )
        return Trial(name, some, train, state, changed)
    raise CheckFailedError(
        f"{name} are refused, since they {said}: as they are, from {rows.min():.3g} to {rows.max():.3g}; positive; "
        "and brought between 0 and 1, all within the range of the training rows. Data come in any unit and size, so "
        "that checks try tiny and huge values; a transform takes those of its domain whatever their size, or has an "
        "example whose options allow values between 0 and 1"
    )


def anchor_of(transform: Transform, rows: np.ndarray, first: np.ndarray | int) -> np.ndarray:
    """The rows before a path that begins at row `first`: `[..., max(1, lost_rows), channels]`."""
    depth = max(1, transform.lost_rows)
    return np.array(rows[np.asarray(first)[..., None] + np.arange(-depth, 0)])
