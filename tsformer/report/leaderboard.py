"""A leaderboard for a person at a terminal, and as a table for a program."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import pandas as pd
from rich.console import Console
from rich.table import Table

from tsformer.evaluation.leaderboard import WORDS, Leaderboard, Row
from tsformer.report.tables import literal


def leaderboard_frame(board: Leaderboard) -> pd.DataFrame:
    """A row for each model, the best first; what is undefined is empty."""
    return pd.DataFrame([row.to_json() for row in board.rows])


def print_leaderboard(board: Leaderboard) -> None:
    """The table on stdout; where it is too wide, with fewer metrics beside the main one."""
    console = Console()
    metrics = [name for name in board.rows[0].metrics if any(row.metrics[name] is not None for row in board.rows)]
    order = [board.metric, *(name for name in metrics if name != board.metric)]
    free = console.options.update(max_width=sys.maxsize)
    while len(order) > 1 and console.measure(_table(board, order), options=free).maximum > console.width:
        order.pop()
    console.print(_table(board, order))


def _table(board: Leaderboard, order: Sequence[str]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="")
    table.add_column("model", overflow="fold", min_width=min(32, max(len(row.name) for row in board.rows)))
    for name in order:
        table.add_column(_title(name), justify="right", no_wrap=True)
    for title in ("skill", "min..max", "p", "p best", "seconds"):
        table.add_column(title, justify="right")
    for row in board.rows:
        cells = [_number(row.metrics[name], percent=name.startswith("coverage")) for name in order]
        table.add_row(literal(row.name), *cells, *_rest(row, board))
    return table


def _rest(row: Row, board: Leaderboard) -> list[str]:
    spread = "" if row.skill_low is None else f"{_percent(row.skill_low)}..{_percent(row.skill_high)}"
    skill = "-" if row.name == board.reference else _percent(row.skill)
    best = "best" if row is board.rows[0] else _p(row.p_best)
    return [skill, spread, _p(row.p_reference), best, f"{row.seconds:.1f}"]


def _title(name: str) -> str:
    if name.startswith("coverage_"):
        return f"in {name.removeprefix('coverage_')} %"
    return WORDS[name] + (" %" if name == "smape" else "")


def _number(value: float | None, *, percent: bool = False) -> str:
    return "-" if value is None else f"{100 * value:.1f} %" if percent else f"{value:.4g}"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.0f} %"


def _p(value: float | None) -> str:
    return "" if value is None else f"{value:.2g}" if value >= 0.001 else "<0.001"
