"""Which columns tell the series of a long table apart: found where times repeat, joined where they are several."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from tsformer.data.cells import LINE, listed, parsed, place
from tsformer.data.columns import is_time_name, part_of_time
from tsformer.data.identity import join_id
from tsformer.errors import DataError
from tsformer.findings import Finding
from tsformer.tables.time_formats import looks_like_date
from tsformer.tables.time_numbers import are_whole
from tsformer.tables.time_parts import is_clock
from tsformer.tables.zones import clock_changes

_MOST = 12  # columns among which sets of three are looked for
_CLOCKS = {"clock", "min", "sec", "hhmm"}
_MOSTLY = 0.3  # share of rows with the time of another one, beyond which they cannot be duplicates
_STRAY = 0.01  # share of rows that may still repeat a time: duplicates to be settled, not further series
_LONG = 20  # rows in a block on average, beyond which it is no chance that times start again with a block


@dataclass(frozen=True)
class _Candidate:
    """A column that may tell series apart: a code for each row `[rows]`, and whether its cells are words."""

    name: str
    codes: np.ndarray
    words: bool


def find_ids(frame: pd.DataFrame, times: pd.Index, taken: Collection[str], source: str) -> tuple[str, ...]:
    """The columns that tell series apart where times repeat or start again; none where nothing does.

    Where few times repeat, which may be duplicates, or none does, only columns whose cells stand in blocks count, one
    series after another: blocks of three rows where times repeat, or blocks with which times start again. The smallest
    sets of one, two or three columns with which each time comes once are compared, words before whole numbers; sets
    that part the rows in the same way are one, and the first is taken.

    Raises:
        DataError: when several sets part the rows in different ways, or cells of a file name no series unless they are
            read as they are written.
    """
    at, moments = pd.factorize(times, sort=True)
    repeated = len(at) - len(moments)
    if 0 < repeated <= _STRAY * len(at) and isinstance(times, pd.DatetimeIndex) and clock_changes(times):
        return ()  # of the hour that comes twice a table may say which is which: that is no series
    steps = np.diff(at)
    if not repeated and ((steps > 0).all() or (steps < 0).all()):
        return ()
    candidates = list(_candidates(frame, taken, np.bincount(at)))[:_MOST]
    if repeated <= _MOSTLY * len(at):
        candidates = [one for one in candidates if (repeated and _in_blocks(one.codes)) or _start_again(one.codes, at)]
    words = [candidate for candidate in candidates if candidate.words]
    for stray, columns in itertools.product((0.0, _STRAY), (words, candidates)):
        for size in (1, 2, 3):
            found = [some for some in itertools.combinations(columns, size) if _tells_apart(some, at, stray)]
            if found:
                return _all_named(frame, _only(found, source), source)
    return ()


def with_id(frame: pd.DataFrame, columns: Sequence[str]) -> tuple[pd.DataFrame, str | None]:
    """The table with a column of joined names where several columns tell series apart, and the name of the id."""
    if len(columns) < 2:
        return frame, columns[0] if columns else None
    codes = pd.factorize(_combined([pd.factorize(frame[name], use_na_sentinel=False)[0] for name in columns]))[0]
    first = frame[list(columns)].iloc[np.unique(codes, return_index=True)[1]].astype(object)
    parts = first.where(first.notna(), "").map(str).itertuples(index=False, name=None)
    names = np.array([join_id(part) for part in parts], dtype=object)
    return frame.assign(**{join_id(columns): names[codes]}), join_id(columns)


def own_ids(frame: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame | None:
    """The columns of ids in their own types, a row for each series under its name; None where they are not there."""
    if not set(columns) <= set(frame.columns):
        return None
    ids = frame[list(columns)].drop_duplicates()
    ids = ids.set_axis(_names(ids), axis=0)
    return ids[~ids.index.duplicated()]


def with_own_ids(table: pd.DataFrame, ids: pd.DataFrame | None) -> pd.DataFrame:
    """A table of forecasts whose ids, which are text, are those of the same names in `own_ids`."""
    if ids is None:
        return table
    names = _names(table[list(ids.columns)])
    return (
        table.assign(**{name: ids[name].loc[names].array for name in ids.columns})
        if names.isin(ids.index).all()
        else table
    )


def _names(ids: pd.DataFrame) -> pd.Index:
    frame, name = with_id(ids, list(ids.columns))
    return pd.Index([str(cell) for cell in frame[name]], dtype=object)


def series_codes(frame: pd.DataFrame, id: str | None) -> np.ndarray:
    """The series of each row, int64 `[rows]` in order of appearance; -1 where the id is missing."""
    if id is None:
        return np.zeros(len(frame), dtype=np.int64)
    column = frame[id]
    return pd.factorize(column.map(str, na_action="ignore") if column.dtype == object else column)[0].astype(np.int64)


def smallest_key(frame: pd.DataFrame, names: Sequence[str], most: int = 3) -> tuple[str, ...]:
    """The first smallest set of those columns whose cells together differ in every row; none where no set does."""
    names = names[:_MOST]
    for size in range(1, most + 1):
        for some in itertools.combinations(names, size):
            if not frame.duplicated(list(some)).any():
                return some
    return ()


def may_be_id(column: pd.Series) -> bool:
    """Whether cells of words `[rows]` stand in long blocks, as those of series one after another do."""
    codes, cells = pd.factorize(column.map(str))  # lists among the cells have no hash
    if len(cells) and looks_like_date(str(cells[0])):
        return False
    return 0 < codes.max(initial=0) < len(codes) / _LONG and _in_blocks(codes)


def _candidates(frame: pd.DataFrame, taken: Collection[str], rows_at: np.ndarray) -> Iterator[_Candidate]:
    most_at_once = int(rows_at.max())
    for name in frame.columns:
        column = frame[name]
        if name in taken or name.lower() in _CLOCKS or is_time_name(name) or name.startswith("Unnamed: "):
            continue
        if part_of_time(name) or pd.api.types.is_bool_dtype(column) or column.dtype.kind in "cmM":
            continue
        if column.dtype.kind == "f" and not are_whole(column.dropna().to_numpy(dtype=np.float64)):
            continue
        try:
            codes, distinct = pd.factorize(column, use_na_sentinel=False)
        except TypeError:  # lists and the like
            continue
        if column.dtype.kind not in "iuf" and is_clock(pd.Series(distinct)):
            continue
        words = column.dtype.kind not in "iuf" and np.isnan(parsed(pd.Series(distinct)).astype(np.float64)).any()
        # A whole number that tells series apart has hardly more values than there are rows at one time.
        most = len(frame) / 3 if words else min(len(frame) / 3, 3 * most_at_once)
        if 2 <= len(distinct) <= most:
            yield _Candidate(name, codes.astype(np.int64), bool(words))


def _tells_apart(some: Sequence[_Candidate], at: np.ndarray, stray: float) -> bool:
    """Whether at most that share of rows has the time of another row of its series."""
    few = slice(None, 2000)
    keys = [candidate.codes for candidate in some]
    busiest = np.flatnonzero(at == np.bincount(at).argmax())
    if not stray and _repeats([key[busiest] for key in keys], at[busiest]):
        return False
    if _repeats([key[few] for key in keys], at[few]) > max(stray * len(at), 1e-9):
        return False
    return _repeats(keys, at) <= stray * len(at)


def _in_blocks(codes: np.ndarray) -> bool:
    """Whether equal codes `[rows]` stand together, three at least."""
    starts = np.flatnonzero(np.diff(codes, prepend=codes[0] - 1))
    return len(starts) == codes.max() + 1 and bool(np.diff(starts, append=len(codes)).min() >= 3)


def _start_again(codes: np.ndarray, at: np.ndarray) -> bool:
    """Whether equal codes `[rows]` stand together, two at least, and times `[rows]` run one way but between them."""
    borders = np.diff(codes) != 0
    starts = np.concatenate(([0], np.flatnonzero(borders) + 1))
    if len(starts) != codes.max() + 1 or np.diff(starts, append=len(codes)).min() < 2:
        return False
    back = np.diff(at) * (1 if at[1] < at[0] else -1) >= 0
    again = int((back & borders).sum())
    return (
        again > 0 and not (back & ~borders).any() and (2 * again >= borders.sum() or len(codes) >= _LONG * len(starts))
    )


def _repeats(keys: Sequence[np.ndarray], at: np.ndarray) -> int:
    return int(pd.Series(_combined([*keys, at])).duplicated().sum())


def _combined(keys: Sequence[np.ndarray]) -> np.ndarray:
    """One code `[rows]` for several."""
    joined = keys[0]
    for key in keys[1:]:
        joined = pd.factorize(joined * (int(key.max(initial=0)) + 1) + key)[0]
    return joined


def _all_named(frame: pd.DataFrame, names: tuple[str, ...], source: str) -> tuple[str, ...]:
    """The names, unless a row of a file has an empty cell there: NA may be a name, which --id reads as written."""
    if frame.index.name != LINE or frame.index.dtype.kind not in "iu":
        return names
    lacking = frame[list(names)].isna()
    if not lacking.to_numpy().any():
        return names
    name = next(name for name in names if lacking[name].any())
    count, row = int(lacking[name].sum()), place(frame, int(lacking[name].to_numpy().argmax()))
    remedy = f"--id {','.join(names)} takes its cells as they are written, NA among them"
    text = (
        f"{source}: series seem to be told apart by {listed(names)}, and column {name!r} names none in {count} row(s), "
        f"the first in {row}: {remedy}"
    )
    raise DataError(
        text, finding=Finding("id", text, "fault", name, row, count, remedy=remedy, options={"data.id": list(names)})
    )


def _only(found: Sequence[Sequence[_Candidate]], source: str) -> tuple[str, ...]:
    partitions: dict[bytes, tuple[str, ...]] = {}
    series: dict[bytes, int] = {}
    for some in found:
        codes = pd.factorize(_combined([candidate.codes for candidate in some]))[0]
        key = codes.tobytes()
        partitions.setdefault(key, tuple(candidate.name for candidate in some))
        series[key] = int(codes.max()) + 1
    fewest = min(partitions, key=lambda key: series[key])
    if len(partitions) > 1:
        choices = [f"{' and '.join(map(repr, names))} gives {series[key]}" for key, names in partitions.items()]
        text = (
            f"{source}: times repeat, and different columns could tell series apart: choose with --id, "
            f"{listed(choices)} series"
        )
        remedy = "name the columns that tell series apart with --id"
        raise DataError(
            text,
            finding=Finding("id", text, "fault", remedy=remedy, options={"data.id": list(partitions[fewest])}),
        )
    return partitions[fewest]
