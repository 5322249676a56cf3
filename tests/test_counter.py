"""Times that are numbers: their step, exactly, and what comes next."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tsformer.data.frequency import infer_frequency, next_times
from tsformer.errors import DataError


@given(start=st.integers(-(10**6), 10**6), step=st.integers(1, 10**4), periods=st.integers(3, 50))
def test_whole_numbers(start, step, periods):
    times = pd.Index(start + step * np.arange(periods))
    assert infer_frequency(times) == step
    assert isinstance(infer_frequency(times), int)
    assert list(next_times(int(times[-1]), step, 2)) == [times[-1] + step, times[-1] + 2 * step]


@given(start=st.integers(-1000, 1000), step=st.integers(1, 1000), digits=st.integers(1, 6), periods=st.integers(3, 99))
def test_decimals_stay_short(start, step, digits, periods):
    numbers = [float(f"{start + step * i}e-{digits}") for i in range(periods + 3)]
    times = pd.Index(numbers[:periods])
    frequency = infer_frequency(times)
    assert frequency == float(f"{step}e-{digits}")
    assert list(next_times(times[-1], frequency, 3)) == numbers[periods:]


def test_a_sixtieth_keeps_its_digits():
    times = pd.Index(np.arange(1801) / 60)
    assert infer_frequency(times) == 1 / 60
    np.testing.assert_allclose(next_times(times[-1], 1 / 60, 30), np.arange(1801, 1831) / 60, rtol=1e-15)


def test_numbers_with_gaps_or_without_a_step():
    with pytest.raises(DataError, match=r"2 step\(s\) of 0.5 missing in 1 gap.*between 1.0 and 2.5"):
        infer_frequency(pd.Index([0.0, 0.5, 1.0, 2.5, 3.0]))
    with pytest.raises(DataError, match=r"1 step\(s\) of 1 missing in 1 gap"):
        infer_frequency(pd.Index([1, 2, 3, 5]))
    with pytest.raises(DataError, match="irregular"):
        infer_frequency(pd.Index([0.0, 1.0, 2.1, 3.3]))
    with pytest.raises(DataError, match="dates or numbers"):
        infer_frequency(pd.Index(["a", "b", "c"]))
