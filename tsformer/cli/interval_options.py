"""The options of intervals and sample paths, the same for every command that has them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tsformer.errors import UsageError
from tsformer.levels import read_levels

if TYPE_CHECKING:
    from tsformer.predictive import Ask

Levels = Annotated[
    str | None,
    typer.Option(
        metavar="80,95", help="Intervals of these levels, in percent: columns <target>_lo_80, <target>_hi_80."
    ),
]
IntervalsFrom = Annotated[
    str | None,
    typer.Option(
        metavar="native|conformal|adaptive",
        help="Where they come from: what the model says of how values scatter, or its errors on rows that it did not "
        "learn from, all of the same weight or the later ones of more. (default: native where the model says it)",
    ),
]
Samples = Annotated[
    int | None,
    typer.Option(
        metavar="INTEGER",
        min=1,
        help="Paths to draw where intervals have to be found from them: through returns and differences, and where a "
        "model goes step by step. (default: 400)",
    ),
]
Seed = Annotated[
    int | None, typer.Option(metavar="INTEGER", min=0, max=2**63 - 1, help="Of what is drawn. (default: 0)")
]


def check_levels(levels: str | None) -> tuple[float, ...]:
    """The levels of an option, none when it was not given. Raises UsageError."""
    return () if levels is None else read_levels(levels)


def ask_for(levels: tuple[float, ...], *, paths: int = 0, samples: int | None = None, seed: int | None = None) -> Ask:
    """What a line asks for beside points."""
    from tsformer.predictive import asked

    return asked(levels, paths=paths, samples=samples, seed=seed)


def refuse_idle(levels: str | None, paths: bool, **given: object) -> None:
    """Raises UsageError for options about intervals on a line that asks for none.

    Args:
        paths: whether sample paths are asked for, of which the seed is, too.
        given: options by name, None where they are not on the line.
    """
    idle = [f"--{name}" for name, value in given.items() if value is not None]
    if paths:
        idle = [flag for flag in idle if flag != "--seed"]
    if levels is None and idle:
        have = "has" if len(idle) == 1 else "have"
        raise UsageError(f"{' and '.join(idle)} {have} no effect without --levels: add --levels 80,95")
