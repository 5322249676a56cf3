"""Parquet files, read by pyarrow: only the columns that are needed, numbers as they are, dates as dates."""

from __future__ import annotations

from collections.abc import Collection

import pandas as pd

from tsformer.data.cells import one_line
from tsformer.errors import DataError

MAGIC = b"PAR1"
"""What such a file begins with."""

_INDEX = "__index_level_0__"  # what pandas calls an index without a name


def read(content: bytes, columns: Collection[str] | None, name: str) -> pd.DataFrame:
    """The table, with rows numbered from 0; an index that pandas saved with it is a column.

    Args:
        content: of the file.
        columns: the only ones that are needed, those that are there; None takes all.
        name: what messages call the file.

    Raises:
        DataError: pyarrow is missing, or the file is damaged or empty.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise DataError(
            f"{name} is a Parquet file, and pyarrow is not there: pip install 'tsformer[parquet]'"
        ) from None
    try:
        file = pq.ParquetFile(pa.BufferReader(content))
        there = file.schema_arrow.names
        table = file.read(columns=None if columns is None else [column for column in there if column in columns])
        plain = pa.table(
            [
                column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
                for column in table.columns
            ],
            names=["index" if column == _INDEX and "index" not in there else column for column in table.column_names],
        )
        frame: pd.DataFrame = plain.to_pandas(ignore_metadata=True, date_as_object=False, timestamp_as_object=False)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise DataError(f"{name} is a damaged Parquet file ({one_line(error)[:200]}): fetch it again") from None
    if not len(frame):
        raise DataError(f"{name} has no rows, only the columns' names: {', '.join(frame.columns)[:200]}")
    words = [column for column in frame.columns if isinstance(frame[column].dtype, pd.StringDtype)]
    return frame.astype(dict.fromkeys(words, object))
