"""Tables of any library at the border: to pandas on the way in, and back to the kind that was given on the way out."""

from __future__ import annotations

from typing import Any, Literal

import narwhals as nw
import numpy as np
import pandas as pd

from tsformer.data.cells import as_text, listed
from tsformer.errors import DataError, UsageError


def is_table(data: object) -> bool:
    """Whether it is a table of pandas, polars, pyarrow or another library that narwhals knows, lazy ones included."""
    if isinstance(data, pd.DataFrame):
        return True  # also with names that repeat, at which narwhals raises an error of its own
    found = nw.from_native(data, pass_through=True)
    return isinstance(found, nw.DataFrame | nw.LazyFrame)


def to_pandas(data: Any, source: str) -> pd.DataFrame:
    """The table as a DataFrame with columns of different names, each a text.

    Columns keep what they hold: times their zone and unit, whole numbers with missing values their exact digits;
    categories become text.

    Raises:
        UsageError: for what is no table, or is one that is not computed yet.
        DataError: for one without rows or columns, or with names in several levels or several times.
    """
    if isinstance(data, pd.DataFrame):
        return _tidy(data, source)
    frame = nw.from_native(data, pass_through=True)
    if isinstance(frame, nw.LazyFrame):
        raise UsageError(f"a {type(data).__name__} is not computed yet: call .collect() on it first")
    if not isinstance(frame, nw.DataFrame):
        raise UsageError(f"a table of pandas, polars or pyarrow is needed, not {type(data).__name__}")
    columns = {name: _column(frame[name]) for name in frame.columns}
    return _tidy(pd.DataFrame(columns, index=range(len(frame))), source)


def like(table: pd.DataFrame, given: object) -> Any:
    """A DataFrame as a table of the library that the given one is of; as it is for those of pandas."""
    frame = nw.from_native(given, pass_through=True)
    if isinstance(given, pd.DataFrame) or not isinstance(frame, nw.DataFrame):
        return table
    columns: dict[str, Any] = {}
    for name in table.columns:
        column = table[name]
        if isinstance(column.dtype, pd.DatetimeTZDtype) or column.dtype.kind == "M":
            columns[name] = list(pd.DatetimeIndex(column).to_pydatetime())
        else:
            columns[name] = column.to_numpy() if column.dtype.kind in "iuf" else column.tolist()
    return nw.from_dict(columns, backend=frame.implementation).to_native()


def _tidy(frame: pd.DataFrame, source: str) -> pd.DataFrame:
    if frame.columns.nlevels > 1 or frame.index.nlevels > 1:
        raise DataError(f"{source} has a MultiIndex: reset_index() makes plain columns of it")
    if not len(frame):
        raise DataError(f"{source} has no rows")
    if not len(frame.columns):
        raise DataError(f"{source} has {len(frame)} row(s) but no column: a column of numbers is needed")
    frame = frame.set_axis([as_text(name, "column", source) for name in frame.columns], axis=1)
    if not frame.columns.is_unique:
        repeated = sorted(set(frame.columns[frame.columns.duplicated()]))
        raise DataError(f"{source} has several columns called {listed(repeated)}: give each its own name")
    return frame


def _column(series: nw.Series[Any]) -> Any:
    dtype = series.dtype
    if dtype == nw.Date:
        return _times(series.cast(nw.Datetime("us")), "us", None)
    if isinstance(dtype, nw.Datetime):
        return _times(series, dtype.time_unit, dtype.time_zone)
    if dtype.is_decimal():
        series = series.cast(nw.Float64)
    elif dtype in (nw.Categorical, nw.Enum):
        series = series.cast(nw.String)
    if series.dtype.is_float():
        return np.asarray(series.to_numpy(), dtype=np.float64)
    if series.dtype.is_integer():
        cells = series.to_list()
        unsigned = series.dtype.is_unsigned_integer()
        return pd.array(cells, dtype=pd.UInt64Dtype()) if unsigned else pd.array(cells, dtype=pd.Int64Dtype())
    return pd.Series(series.to_list(), dtype=object)


def _times(series: nw.Series[Any], unit: str, zone: str | None) -> pd.DatetimeIndex:
    """Times in their own unit: what is finer than a microsecond is seen later, and refused."""
    step: Literal["ns", "us"] = "ns" if unit == "ns" else "us"
    since = pd.array(series.dt.timestamp(step).to_list(), dtype="Int64")
    stamps = np.where(since.isna(), np.iinfo(np.int64).min, since.to_numpy(dtype=np.int64, na_value=0))
    times = pd.DatetimeIndex(stamps.astype(f"datetime64[{step}]"))
    return times.tz_localize("UTC").tz_convert(zone) if zone else times
