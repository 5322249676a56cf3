"""The sine plugin: the textbook case, to the bit."""

import numpy as np
import pytest
from pydantic import ValidationError
from tsformer_plugins.data.sine import SineConfig, plugin

from tsformer.data.frequency import infer_frequency
from tsformer.data.panel import Defaults


def values(**options):
    return plugin.load(SineConfig(**options)).values[:, 0]


def test_the_default_is_the_textbook_case():
    panel = plugin.load(SineConfig())
    steps = np.arange(1801)
    np.testing.assert_allclose(panel.values[:, 0], np.sin(2 * np.pi * steps / 60), atol=1e-12)
    assert (panel.times[0], panel.times[60], panel.times[-1]) == (0.0, 1.0, 30.0)
    assert panel.times.to_numpy() == pytest.approx(steps / 60, abs=1e-12)
    assert (panel.schema.time, panel.schema.targets) == ("t", ("value",))
    assert panel.schema.frequency == 1 / 60 == infer_frequency(panel.times)
    assert plugin.defaults(panel) == Defaults(lookback=60, horizon=30)


def test_components_add_up():
    both = values(period=(60, 7.5), amplitude=(1, 0.25), points=300)
    steps = np.arange(300)
    expected = np.sin(2 * np.pi * steps / 60) + 0.25 * np.sin(2 * np.pi * steps / 7.5)
    np.testing.assert_allclose(both, expected, atol=1e-12)
    np.testing.assert_allclose(values(period=(60, 20), amplitude=(2,)), 2 * values(period=(60, 20)), atol=1e-12)


def test_trend_is_the_rise_in_a_thousand_steps():
    rise = values(trend=3.0) - values()
    assert rise[0] == 0
    assert rise[1000] == pytest.approx(3.0)


def test_noise_has_its_deviation_and_its_seed():
    noise = values(noise=0.5, points=50_000) - values(points=50_000)
    assert noise.std() == pytest.approx(0.5, rel=0.02)
    assert noise.mean() == pytest.approx(0, abs=0.01)
    assert (values(noise=0.5, seed=1) == values(noise=0.5, seed=1)).all()
    assert (values(noise=0.5, seed=1) != values(noise=0.5, seed=2)).all()


def test_the_global_generator_is_left_alone():
    np.random.seed(3)  # noqa: NPY002
    expected = np.random.random()  # noqa: NPY002
    np.random.seed(3)  # noqa: NPY002
    values(noise=1.0)
    assert np.random.random() == expected  # noqa: NPY002


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"period": (60, 30, 20), "amplitude": (1, 2)}, "2 amplitudes do not go with 3 periods"),
        ({"period": (60, 0)}, "period must be positive"),
        ({"period": (-5,)}, "period must be positive"),
        ({"period": ()}, "at least 1"),
        ({"amplitude": ()}, "at least 1"),
        ({"points": 2}, "greater than 2"),
        ({"noise": -1}, "greater than or equal to 0"),
        ({"seed": -1}, "greater than or equal to 0"),
        ({"trend": float("nan")}, "finite"),
    ],
)
def test_options_that_make_no_sense(wrong, said):
    with pytest.raises(ValidationError, match=said):
        SineConfig(**wrong)


def test_the_example_is_small():
    assert plugin.load(plugin.example).values.shape == (400, 1)
