"""The last real value before a row: pandas' ffill is the oracle."""

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tsformer.data.carry import carried, filled, last_real

some = hnp.arrays(
    np.float64, st.tuples(st.integers(1, 20), st.integers(1, 3)), elements=st.sampled_from([np.nan, 1, 2])
)


@given(values=some, data=st.data())
def test_within_groups_in_any_order(values, data):
    values = values * np.arange(1, values.size + 1).reshape(values.shape)  # each value is another one
    group = data.draw(hnp.arrays(np.int64, len(values), elements=st.integers(-1, 2)))
    wanted = pd.DataFrame(values).groupby(group).ffill().to_numpy()
    np.testing.assert_array_equal(carried(values, group), wanted)
    rows = last_real(~np.isnan(values), group)
    assert ((rows >= 0) == ~np.isnan(wanted)).all()
    assert (rows <= np.arange(len(values))[:, None]).all()


@given(values=some)
def test_filled_on_both_ends(values):
    wanted = pd.DataFrame(values).ffill().bfill().fillna(7.0).to_numpy()
    np.testing.assert_array_equal(filled(values, 7.0), wanted)
