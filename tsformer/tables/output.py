"""Tables as the bytes of a file, whose name says in which way: CSV, packed CSV, or Parquet."""

from __future__ import annotations

import gzip
import importlib.util
import io
from pathlib import Path

import pandas as pd

from tsformer.errors import UsageError

_OTHERS = {".xlsx", ".xls", ".ods", ".feather", ".arrow", ".orc", ".json", ".jsonl", ".html", ".h5", ".pkl", ".zip"}


def require(path: Path) -> None:
    """Raises UsageError when a file of that name cannot be written: of another kind, or Parquet without pyarrow."""
    if path.suffix.lower() in _OTHERS:
        raise UsageError(f"{path}: tables are written as .csv, .csv.gz or .parquet, not {path.suffix}")
    if _is_parquet(path) and importlib.util.find_spec("pyarrow") is None:
        raise UsageError(f"{path}: Parquet needs pyarrow: pip install 'tsformer[parquet]', or write .csv")


def encoded(frame: pd.DataFrame, path: Path) -> bytes:
    """The table without its index: Parquet, or CSV with floats in all their digits, packed for a name in .gz."""
    if _is_parquet(path):
        require(path)
        buffer = io.BytesIO()
        frame.to_parquet(buffer, index=False, engine="pyarrow")
        return buffer.getvalue()
    content = frame.to_csv(index=False, lineterminator="\n").encode()
    return gzip.compress(content) if path.suffix == ".gz" else content


def keeps_dates(path: Path) -> bool:
    """Whether a file of that name holds dates as such, not as somebody writes them."""
    return _is_parquet(path)


def _is_parquet(path: Path) -> bool:
    return path.suffix.lower() == ".parquet"
