"""Tables that are no CSV: Parquet and .tsf; and how long a large CSV takes."""

import io
import subprocess
import sys
import zipfile

import numpy as np
import pandas as pd
import pytest

from tsformer.data.table_options import TableOptions
from tsformer.errors import DataError
from tsformer.tables.files import read_file

TSF = """# a comment
@relation trial
@attribute series_name string
@attribute start_timestamp date
@frequency {frequency}
@horizon 4
@missing true
@data
T1:1979-01-31 12-00-00:1,2,?,4.5
T2:1980-01-01 00-00-00:7
"""


def read(content, **options):
    return read_file(io.BytesIO(content.encode() if isinstance(content, str) else content), TableOptions(**options))


@pytest.mark.parametrize(
    ("frequency", "times"),
    [
        ("yearly", ["1979-01-31", "1980-01-31", "1981-01-31", "1982-01-31"]),
        ("quarterly", ["1979-01-31", "1979-04-30", "1979-07-31", "1979-10-31"]),
        ("monthly", ["1979-01-31", "1979-02-28", "1979-03-31", "1979-04-30"]),
        ("weekly", ["1979-01-31", "1979-02-07", "1979-02-14", "1979-02-21"]),
        ("daily", ["1979-01-31", "1979-02-01", "1979-02-02", "1979-02-03"]),
        ("hourly", ["1979-01-31 12:00", "1979-01-31 13:00", "1979-01-31 14:00", "1979-01-31 15:00"]),
        ("half_hourly", ["1979-01-31 12:00", "1979-01-31 12:30", "1979-01-31 13:00", "1979-01-31 13:30"]),
        ("10_minutes", ["1979-01-31 12:00", "1979-01-31 12:10", "1979-01-31 12:20", "1979-01-31 12:30"]),
    ],
)
def test_tsf(frequency, times):
    raw = read(TSF.format(frequency=frequency))
    frame = raw.frame
    assert list(frame.columns) == ["unique_id", "ds", "y"]
    assert list(frame["unique_id"]) == ["T1"] * 4 + ["T2"]
    assert list(frame["ds"][:4]) == list(pd.to_datetime(times))
    np.testing.assert_array_equal(frame["y"], [1, 2, np.nan, 4.5, 7])
    assert "2 series" in raw.notes[0].text


def test_tsf_without_a_start_is_counted():
    text = "@attribute series_name string\n@attribute state string\n@data\nA:NSW:5,6,7\nB:VIC:8\n"
    raw = read(text)
    assert list(raw.frame["ds"]) == [1, 2, 3, 1]
    assert "attributes left out: state" in raw.notes[0].text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (TSF.format(frequency="now and then"), "the frequency 'now and then'"),
        (TSF.format(frequency="daily").replace("4.5", "x"), "line 9 holds values that are no numbers"),
        (TSF.format(frequency="daily").replace("T2:", ""), "line 10 has 1 attribute(s), not 2"),
        (TSF.format(frequency="daily").replace("1980-01-01", "June"), "a start that is no time"),
        ("@attribute series_name string\n@frequency daily\n", "no @data"),
        ("@attribute series_name string\n@data\n", "no series"),
    ],
)
def test_tsf_that_is_damaged(text, expected):
    with pytest.raises(DataError, match=expected.replace("(", r"\(").replace(")", r"\)")):
        read(text)


def parquet(frame, **options):
    packed = io.BytesIO()
    frame.to_parquet(packed, **options)
    return packed.getvalue()


def test_parquet():
    frame = pd.DataFrame(
        {
            "ds": pd.date_range("2024-01-01", periods=3, tz="UTC"),
            "id": pd.Categorical(["a", "b", "a"]),
            "n": [2**53 + 1, 2, 3],
            "y": [0.1, np.nan, 0.3],
            "on": [True, False, True],
            "unused": ["x", "y", "z"],
        }
    )
    content = parquet(frame)
    read_again = read(content).frame
    assert list(read_again["n"]) == [2**53 + 1, 2, 3]
    assert list(read_again["ds"]) == list(frame["ds"])
    assert list(read_again["id"]) == ["a", "b", "a"]
    assert read_again["id"].dtype == object
    np.testing.assert_array_equal(read_again["y"], frame["y"])
    few = read_file(io.BytesIO(content), TableOptions(), columns=["y", "ds"]).frame
    assert sorted(few.columns) == ["ds", "y"]


def test_an_index_that_pandas_saved_is_a_column():
    frame = pd.DataFrame({"y": [1.0, 2.0]}, index=pd.date_range("2024-01-01", periods=2))
    assert list(read(parquet(frame)).frame.columns) == ["y", "index"]
    assert list(read(parquet(frame.rename_axis("day"))).frame.columns) == ["y", "day"]


def test_parquet_in_a_zip_and_without_rows():
    frame = pd.DataFrame({"y": [1.0]})
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("x.parquet", parquet(frame))
    assert read(packed.getvalue()).frame.equals(frame)
    with pytest.raises(DataError, match="no rows"):
        read(parquet(frame.head(0)))
    with pytest.raises(DataError, match="damaged Parquet"):
        read(parquet(frame)[:-7])


MEASURE = """
import resource, sys, time
from tsformer.data.table_options import TableOptions
from tsformer.tables.files import read_file
before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
frame = read_file(sys.argv[1], TableOptions()).frame
print(len(frame), time.process_time() - start, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""


def test_a_large_table_takes_little(tmp_path):
    path = tmp_path / "large.csv"
    rows = "".join(
        f"series_{series:05},2024-01-{day:02},{series / 7 + day}\n" for series in range(4000) for day in range(1, 29)
    )
    path.write_text("unique_id,ds,y\n" + rows)
    done = subprocess.run([sys.executable, "-c", MEASURE, str(path)], capture_output=True, text=True, check=True)
    count, seconds, megabytes = map(float, done.stdout.split())
    assert count == 112_000
    assert seconds < 3
    assert megabytes < 100


def test_years_that_begin_anywhere_are_told_by_their_first_day():
    head = "@attribute series_name string\n@attribute start_timestamp date\n@frequency yearly\n@data\n"
    rows = "a:1979-01-01 12-00-00:1,2,3\nb:1979-12-31 12-00-00:4,5\n"
    table = read_file(io.StringIO(head + rows), TableOptions())
    assert [f"{day:%Y-%m-%d}" for day in table.frame["ds"]] == [f"{y}-01-01" for y in (1979, 1980, 1981, 1979, 1980)]
    assert "1 of them begin within a year" in str(table.notes[-1])
