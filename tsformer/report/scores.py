"""Scores for a person at a terminal: a metric in each row where there are few columns, else a model in each row."""

from __future__ import annotations

import math

import pandas as pd
from rich.console import Console
from rich.table import Table

from tsformer.report.tables import literal

MOST_ROWS = 60
LONG = ("mae", "rmse", "mase", "smape", "bias", "skill")
"""What is shown of many parts; all of it is in CSV and JSON."""


def print_scores(table: pd.DataFrame) -> None:
    """The table on stdout."""
    Console().print(_by_metric(table) if len(table.columns) and _one_row_each(table) else _by_part(table))
    if len(table) > MOST_ROWS:
        print(f"the first {MOST_ROWS} of {len(table)} rows; all of them: | cat, or --json")


def _one_row_each(table: pd.DataFrame) -> bool:
    return table["model"].is_unique and list(table.columns).index("mae") == 1


def _by_metric(table: pd.DataFrame) -> Table:
    found = Table(box=None, pad_edge=False, header_style="")
    found.add_column("")
    for name in table["model"]:
        found.add_column(literal(name), justify="right")
    for metric in table.columns.drop("model"):
        found.add_row(literal(str(metric)), *map(_cell, table[metric]))
    return found


def _by_part(table: pd.DataFrame) -> Table:
    first = list(table.columns).index("mae")
    keys, metrics = table.columns[:first], table.columns[first:]
    shown = [*keys, *(name for name in metrics if name in LONG or str(name).startswith("coverage"))]
    found = Table(box=None, pad_edge=False, header_style="")
    for name in shown:
        found.add_column(literal(str(name)), justify="left" if name in keys else "right")
    for row in table[shown].head(MOST_ROWS).itertuples(index=False):
        found.add_row(*map(_cell, row))
    return found


def _cell(value: object) -> str:
    if isinstance(value, str):
        return str(literal(value))
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
