"""The chain where values are missing: statistics of real values, NaN that stays where it is, anchors, gaps in time."""

import numpy as np
import pytest
from sklearn.preprocessing import MinMaxScaler, PowerTransformer, RobustScaler, StandardScaler

from tsformer import registry
from tsformer.data.empty_columns import refuse_empty
from tsformer.data.transforms import Chain, Link
from tsformer.data.windows import cut_windows
from tsformer.errors import DataError, PluginError
from tsformer.registry import Kind

NAMES = list(registry.entries(Kind.TRANSFORM))
NAN = np.nan


def link_of(name, columns=1, **options):
    plugin = registry.get(Kind.TRANSFORM, name)
    return Link(name, plugin.build(plugin.config(**options) if options else plugin.example), (0, columns))


@pytest.fixture
def masked(make_panel):
    def make(series, **changes):
        return make_panel(series, masked=True, **changes)

    return make


def holed(rows=60, channels=2, share=0.3, seed=0):
    rng = np.random.default_rng(seed)
    values = rng.uniform(1, 9, (rows, channels))
    values[rng.random(values.shape) < share] = NAN
    return values


@pytest.mark.parametrize(
    ("name", "oracle"), [("standard", StandardScaler), ("minmax", MinMaxScaler), ("robust", RobustScaler)]
)
def test_statistics_are_scikit_learns_which_leaves_missing_values_out(masked, name, oracle):
    values = holed()
    chain = Chain([link_of(name, 2)])
    panel = masked([values])
    chain.fit(panel, np.array([40]))
    np.testing.assert_allclose(chain.forward(panel).values, oracle().fit(values[:40]).transform(values), rtol=1e-12)


@pytest.mark.parametrize(("name", "method"), [("boxcox", "box-cox"), ("yeo_johnson", "yeo-johnson")])
def test_powers_are_scikit_learns(masked, name, method):
    values = holed()
    chain = Chain([link_of(name, 2)])
    chain.fit(masked([values]), np.array([60]))
    wanted = PowerTransformer(method=method, standardize=False).fit(values).lambdas_
    np.testing.assert_allclose(chain.to_json()[""][0]["lambda"], np.clip(wanted, -1, 3), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_missing_stays_so_and_changes_nothing_else(masked, make_panel, name):
    values = holed(share=0.2)
    whole = np.where(np.isnan(values), 5.0, values)
    link = link_of(name, 2)
    lost = link.transform.lost_rows
    state = link.fit(whole)
    found, wanted = link.forward(values, state), link.forward(whole, state)
    touched = np.stack([np.isnan(values)[step : 60 - lost + step] for step in range(lost + 1)])
    assert np.isnan(found[touched[-1]]).all()
    np.testing.assert_array_equal(found[~touched.any(0)], wanted[~touched.any(0)])


def test_one_that_knows_nothing_of_missing_values_is_given_the_last_ones(masked):
    class Shift:
        pointwise, lost_rows = True, 0
        seen = None

        def fit(self, rows):
            return {}

        def forward(self, values, state):
            self.seen = values.copy()
            return values + 1

        def inverse(self, path, state, anchor):
            return path - 1

    shift = Shift()
    found = Chain([Link("shift", shift, (0, 1))]).forward(masked([[NAN, 1.0, NAN, 4.0, NAN]])).values[:, 0]
    np.testing.assert_array_equal(shift.seen[:, 0], [1, 1, 1, 4, 4])
    np.testing.assert_array_equal(found, [NAN, 2, NAN, 5, NAN])


def test_nan_of_a_real_value_is_the_transforms_fault(masked):
    class Spreads:
        pointwise, lost_rows, takes_missing = True, 0, True

        def fit(self, rows):
            return {}

        def forward(self, values, state):
            return values + 0 * values.sum(axis=0)

    with pytest.raises(PluginError, match=r"2 value\(s\) become NaN in forward, first .* at 2020-01-01 .*row 1"):
        Chain([Link("spreads", Spreads(), (0, 1))]).forward(masked([[1.0, NAN, 3.0]]))


def path_of(chain, panel, path):
    data = chain.forward(panel)
    return chain.inverse(np.array(path)[None, :, None], data, np.array([0]), data.offsets[1:])[0, :, 0].tolist()


def test_a_path_starts_from_the_last_real_value(masked):
    panel = masked([[1.0, 4.0, 6.0, NAN, NAN]])
    assert path_of(Chain([link_of("difference")]), panel, [1.0, 2.0]) == [7.0, 9.0]
    assert path_of(Chain([link_of("log_return")]), panel, [np.log(2.0)]) == [pytest.approx(12.0)]


def test_a_seasonal_path_starts_from_the_same_place_a_season_before(masked):
    panel = masked([[10.0, 20.0, 30.0, 11.0, NAN, 31.0, NAN, NAN, 32.0]])
    chain = Chain([link_of("seasonal_difference", period=3)])
    assert path_of(chain, panel, [1.0, 1.0, 1.0, 1.0]) == [12.0, 21.0, 33.0, 13.0]


def test_steps_across_a_gap_are_none(masked):
    values = np.array([1.0, 2.0, 4.0, 100.0, 103.0, 107.0, 112.0])
    panel = masked([values, values], breaks=np.array([3, 10]))
    once, twice = link_of("difference"), link_of("difference", order=2)
    data = Chain([once]).forward(panel)
    np.testing.assert_array_equal(data.values[:6, 0], [1, 2, NAN, 3, 4, 5])
    assert data.breaks.tolist() == [2, 3, 8, 9]
    for links in ([twice], [once, once]):
        data = Chain(links).forward(panel)
        np.testing.assert_array_equal(data.values[5:, 0], [1, NAN, NAN, 1, 1])
        assert data.breaks.tolist() == [1, 3, 6, 8]
    np.testing.assert_array_equal(Chain([link_of("standard")]).forward(panel).breaks, [3, 10])


def test_statistics_are_not_of_steps_across_a_gap(masked):
    panel = masked([[1.0, 2.0, 4.0, 1000.0, 1003.0, 1007.0]], breaks=np.array([3]))
    chain = Chain([link_of("difference"), link_of("standard")])
    chain.fit(panel, np.array([6]))
    assert chain.to_json()[""][1]["mean"] == [2.5]


def test_tensor_and_mask(masked, make_panel):
    data = Chain([]).forward(masked([[1.0, NAN, 3.0]]))
    assert data.tensor()[:, 0].tolist() == [1, 0, 3]
    assert data.mask()[:, 0].tolist() == [True, False, True]
    assert Chain([]).forward(make_panel([[1.0, 2.0]])).mask() is None


@pytest.mark.parametrize("name", NAMES)
def test_a_series_without_a_value_in_training_does_not_spoil_the_others(masked, name):
    values = holed(share=0.0)
    empty = values.copy()
    empty[:40, 1] = NAN
    chain, alone = Chain([link_of(name, 2)]), Chain([link_of(name, 2)])
    panel = masked([values, empty])
    chain.fit(panel, np.array([40, 40]))
    alone.fit(masked([values, values]), np.array([40, 40]))
    assert chain.states["s0"] == alone.states["s0"]
    data = chain.forward(panel)
    assert np.isfinite(data.values[chain.lost - 20 :]).all()
    origin = data.offsets[1:] - 4
    path = data.values[origin[:, None] + np.arange(4)]
    wanted = np.stack([values[-4:], empty[-4:]])
    np.testing.assert_allclose(chain.inverse(path, data, np.arange(2), origin), wanted, rtol=1e-9)


def test_a_column_without_any_value_in_training_is_refused_with_the_others(masked):
    values = holed(share=0.0, channels=3)
    values[:40, 1] = NAN
    with pytest.raises(
        DataError, match="column 'y1' has no value in the training rows; leave it out: --target"
    ) as error:
        refuse_empty(masked([values]), np.array([40]))
    finding = error.value.finding
    assert (finding.kind, finding.column) == ("empty_column", "y1")
    assert finding.options == {"data.target": ["y0", "y2"]}
    with pytest.raises(DataError, match="choose another column") as error:
        refuse_empty(masked([values[:, 1:2]]), np.array([40]))
    assert not error.value.finding.options


def test_a_negative_price_is_named_with_what_else_there_is(make_panel):
    panel = make_panel([[21.0, 18.3, -37.63, 10.0]], names=["WTI"])
    with pytest.raises(DataError, match="asinh or yeo_johnson instead, or difference, or --transform none") as error:
        Chain([link_of("log")]).forward(panel)
    finding = error.value.finding
    assert (finding.kind, finding.level, finding.column, finding.count) == ("domain", "fault", "WTI", 1)
    assert (finding.row, finding.example) == ("row 3 of the series", "-37.63")
    with pytest.raises(DataError, match="column 'WTI' at 2020-01-03"):
        Chain([link_of("log_return")]).forward(panel)


@pytest.mark.parametrize("place", [1, 2, 3, 18, 19])
def test_a_break_near_an_end_is_none_of_the_series_beside_it(masked, place):
    """The seasonal difference of 4 steps takes more rows than there are between the break and the end."""
    chain = Chain([link_of("seasonal_difference", period=4)])
    series = [np.random.default_rng(i).uniform(1, 9, 20) for i in range(3)]

    def windows(breaks):
        panel = masked(series, breaks=np.array(breaks, dtype=np.int64))
        chain.fit(panel, np.array([20, 20, 20]))
        data = chain.forward(panel)
        shape = {"lookback": 3, "horizon": 2, "targets": 1}
        span = np.full(3, 3), np.full(3, 16)
        cut = cut_windows(data.tensor(), data.offsets, *span, **shape, mask=data.mask(), breaks=data.breaks)
        return [cut.origins[cut.series == i].tolist() for i in range(3)]

    broken, whole = windows([20 + place]), windows([])
    assert [broken[0], broken[2]] == [whole[0], whole[2]]
    assert len(whole[0]) == 16 - 3 - 2 + 1
    lost, stop = 16 + place - 4, 16 + place  # rows of the second series after the chain that lie across the break
    kept = [o for o in whole[1] if not any(o - 3 < row < o + 2 for row in (lost, stop))]
    assert broken[1] == kept
