"""The chain of transforms: exact inverse, training rows only, errors that name the place."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.preprocessing import StandardScaler

from tsformer import registry
from tsformer.data.transforms import Chain, Link
from tsformer.errors import DataError
from tsformer.registry import Kind

NAMES = list(registry.entries(Kind.TRANSFORM))


def chain_of(*names, columns=1):
    links = []
    for name in names:
        plugin = registry.get(Kind.TRANSFORM, name)
        links.append(Link(name, plugin.build(plugin.example), (0, columns)))
    return Chain(links)


def round_trip(chain, panel, horizon):
    """Transform, cut the last `horizon` rows of each series, bring them back."""
    data = chain.forward(panel)
    series = np.arange(len(panel.ids))
    origin = data.offsets[1:] - horizon
    path = data.values[origin[:, None] + np.arange(horizon)][:, :, : len(panel.schema.targets)]
    return chain.inverse(path, data, series, origin)


positive = hnp.arrays(np.float64, (12, 2), elements=st.floats(0.01, 1e6))


@pytest.mark.parametrize("names", [["standard"], ["log", "standard"], ["log_return", "standard"]], ids=str)
@given(values=positive)
def test_inverse_is_exact(names, values):
    chain = chain_of(*names, columns=2)
    panel = _panel([values, values[::-1] * 3 + 1])
    chain.fit(panel, np.array([8, 8]))
    back = round_trip(chain, panel, 4)
    wanted = np.stack([panel.values[panel.rows(s)][-4:] for s in range(2)])
    np.testing.assert_allclose(back, wanted, rtol=1e-9, atol=1e-9 * panel.values.max())


def test_log_return_by_hand(make_panel):
    panel = make_panel([[100.0, 110.0, 99.0, 99.0]])
    chain = chain_of("log_return")
    chain.fit(panel, np.array([3]))
    data = chain.forward(panel)
    np.testing.assert_allclose(data.values[:, 0], [np.log(1.1), np.log(0.9), 0.0], atol=1e-12)
    # a forecast of +10 % twice starts from the last observed price, 99
    path = np.full((1, 2, 1), np.log(1.1))
    back = chain.inverse(path, data, np.array([0]), data.offsets[1:])
    np.testing.assert_allclose(back[0, :, 0], [99 * 1.1, 99 * 1.21], rtol=1e-12)


def test_the_anchor_of_a_window_is_the_value_before_it(make_panel):
    panel = make_panel([np.arange(1.0, 21.0), np.arange(101.0, 111.0)])
    chain = chain_of("log_return", "standard")
    chain.fit(panel, np.array([14, 7]))
    data = chain.forward(panel)
    origins = np.array([5, 12, data.offsets[1] + 3])
    path = data.values[origins[:, None] + np.arange(3)]
    back = chain.inverse(path, data, np.array([0, 0, 1]), origins)
    np.testing.assert_allclose(back[:, :, 0], [[7, 8, 9], [14, 15, 16], [105, 106, 107]], rtol=1e-12)


def test_standard_is_scikit_learns(make_panel):
    values = np.random.default_rng(0).normal(5, 3, (30, 2))
    panel = make_panel([values])
    chain = chain_of("standard", columns=2)
    chain.fit(panel, np.array([20]))
    np.testing.assert_allclose(chain.forward(panel).values, StandardScaler().fit(values[:20]).transform(values))


def test_a_constant_series_keeps_its_value(make_panel):
    panel = make_panel([np.full(20, 7.0)])
    chain = chain_of("standard")
    chain.fit(panel, np.array([14]))
    assert (chain.forward(panel).values == 0).all()
    np.testing.assert_array_equal(round_trip(chain, panel, 3), np.full((1, 3, 1), 7.0))


@pytest.mark.parametrize("name", NAMES)
def test_states_come_from_training_rows_only(make_panel, name):
    values = np.random.default_rng(0).uniform(1, 9, 30)
    garbage = values.copy()
    garbage[20:] = 12345.0
    states = []
    for series in (values, garbage):
        chain = chain_of(name)
        chain.fit(make_panel([series]), np.array([20]))
        states.append(json.dumps(chain.to_json()))  # plain JSON, or this fails
    assert states[0] == states[1]


def test_each_series_has_its_own_state_and_a_new_one_is_fitted_on_its_rows(make_panel):
    chain = chain_of("standard")
    chain.fit(make_panel([np.arange(10.0), np.arange(10.0) * 100]), np.array([10, 10]))
    means = {name: states[0]["mean"][0] for name, states in chain.to_json().items()}
    assert means == {"s0": 4.5, "s1": 450.0}
    stranger = make_panel([np.arange(10.0) + 1000.0])
    assert abs(chain.forward(stranger).values.mean()) < 1e-12
    assert "" not in chain.to_json()


@pytest.mark.parametrize("name", ["log", "log_return"])
def test_values_outside_the_domain_are_named(make_panel, name):
    panel = make_panel([[1.0, 2.0, -37.63, 0.0, 5.0]], names=["price"])
    chain = chain_of(name)

    def transformed(train):
        chain.fit(panel, np.array([train]))
        return chain.forward(panel)

    for train in (4, 2):  # with some of them in training, or none
        with pytest.raises(DataError, match=r"2 value\(s\) .*column 'price' at 2020-01-03.*row 3"):
            transformed(train)


def test_a_fit_transforms_only_what_other_transforms_are_fitted_on(make_panel, monkeypatch):
    chain, forwards = chain_of("log", "standard"), []
    monkeypatch.setattr(Link, "forward", lambda link, rows, state: forwards.append(link.name) or np.log(rows))
    chain.fit(make_panel([np.arange(1.0, 9.0)] * 3), np.array([5, 5, 5]))
    assert forwards == ["log"] * 3
    assert chain.states["s0"][1]["mean"] == [pytest.approx(np.log(np.arange(1.0, 6.0)).mean())]


def _panel(series):
    import pandas as pd

    from tsformer.data.panel import Panel, Schema

    rows = len(series[0])
    return Panel(
        values=np.ascontiguousarray(np.concatenate(series)),
        offsets=np.arange(len(series) + 1) * rows,
        times=pd.Index(np.tile(np.arange(rows), len(series))),
        ids=tuple(f"s{i}" for i in range(len(series))),
        schema=Schema(targets=("a", "b"), id="id"),
    )
