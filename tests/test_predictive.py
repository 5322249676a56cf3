"""From a model's distributions to quantiles and paths in the user's units, with scipy for an oracle."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import stats
from scipy.stats import mstats
from torch import nn

from tsformer import predictive as module_of_predictive
from tsformer import sample_paths
from tsformer.config import resolve
from tsformer.config_layer import Layer
from tsformer.errors import DivergedError, UsageError
from tsformer.fitting import make_ready
from tsformer.predictive import Ask, asked, predictive
from tsformer.sample_paths import path_quantiles

MEAN, SPREAD, HORIZON = 0.01, 0.05, 30
RAW = float(np.log(np.expm1(SPREAD)))  # whose softplus is the spread


class Says(nn.Module):
    """The same normal distribution of every step."""

    def __init__(self, mean=MEAN, raw=RAW):
        super().__init__()
        self.numbers = torch.tensor([mean, raw])

    def forward(self, batch, truth=0.0):
        return self.numbers.expand(len(batch.past), HORIZON, 1, 2)


class Walks(Says):
    """A random walk from 0, drawn step by step: no step by itself says how far it goes."""

    rolls_out = True

    def __init__(self):
        super().__init__()
        self.asked = []

    def draw(self, batch, samples):
        self.asked.append((len(batch.past), samples))
        return SPREAD * torch.randn(len(batch.past), samples, HORIZON, 1).cumsum(2)


def ready(make_panel, transforms, series=2, module=None, **values):
    """A model that says the same of every window, and the validation windows of some prices."""
    rng = np.random.default_rng(0)
    prices = [100 * np.exp(np.cumsum(0.02 * rng.standard_normal(400))) for _ in range(series)]
    layer = {
        "model": {"name": "linear"},
        "window": {"lookback": 5, "horizon": HORIZON},
        "train": {"output": "normal"},
        "transform": [{"name": name} for name in transforms],
        "scale": {"name": "none"},
        **values,
    }
    made = make_ready(resolve([Layer(layer)], needs_data=False), make_panel(prices))
    return replace(made.fitted, module=module or Says()), made.prepared


def before(prepared):
    """The last price that each validation window sees."""
    series, data = prepared.validation.series.numpy(), prepared.data
    rows = prepared.validation.origins.numpy() - data.offsets[series] + prepared.chain.lost
    return prepared.panel.values[prepared.panel.offsets[series] + rows - 1, 0]


def test_a_quantile_of_prices_is_that_of_the_lognormal_and_not_cumulated_quantiles_of_returns(make_panel):
    fitted, prepared = ready(make_panel, ["log_return"])
    samples, ask = 4000, Ask((80.0, 95.0), samples=4000)
    found = predictive(fitted, prepared.validation, prepared.data, ask)
    steps = np.arange(1, HORIZON + 1)
    law = stats.lognorm(s=SPREAD * np.sqrt(steps)[:, None], scale=np.exp(MEAN * steps)[:, None])
    reached = law.cdf(found.quantiles[:, :, 0] / before(prepared)[:, None, None])  # [windows, horizon, probabilities]
    wanted = np.array(ask.probabilities)
    noise = np.sqrt(wanted * (1 - wanted) / samples)
    assert np.abs((reached - wanted) / noise).max() < 5
    assert np.abs(reached.mean(0) - wanted).max() < 0.01
    np.testing.assert_allclose(found.point[:, :, 0] / before(prepared)[:, None], np.exp([MEAN * steps] * len(reached)))


def test_the_same_through_differences_and_a_scale(make_panel):
    fitted, prepared = ready(make_panel, ["difference"], scale={"name": "standard"})
    ask = Ask((50.0,), samples=4000)
    found = predictive(fitted, prepared.validation, prepared.data, ask)
    steps = np.arange(1, HORIZON + 1)
    state = np.array([[states[-1]["mean"][0], states[-1]["scale"][0]] for states in prepared.data.states])
    shift, scale = state[prepared.validation.series.numpy()].T[:, :, None]
    law = stats.norm((shift + scale * MEAN) * steps, scale * SPREAD * np.sqrt(steps))
    for place, probability in enumerate(ask.probabilities):
        reached = law.cdf(found.quantiles[:, :, 0, place] - before(prepared)[:, None])
        assert np.abs(reached - probability).max() < 5 * np.sqrt(0.25 * 0.75 / 4000)


def test_through_pointwise_transforms_quantiles_are_exact(make_panel):
    fitted, prepared = ready(make_panel, ["log"], module=Says(4.0, RAW))
    ask = Ask((80.0, 95.0))
    found = predictive(fitted, prepared.validation, prepared.data, ask).quantiles
    wanted = np.exp(stats.norm(4.0, SPREAD).ppf([0.025, 0.1, 0.9, 0.975]))
    np.testing.assert_allclose(found, np.broadcast_to(wanted, found.shape), rtol=1e-5)


def test_a_falling_transform_keeps_the_lower_end_below(make_panel):
    class Turned:
        pointwise, lost_rows = True, 0

        def fit(self, rows):
            return {}

        def forward(self, values, state):
            return -values

        def inverse(self, path, state, anchor):
            return -path

    fitted, prepared = ready(make_panel, [], module=Says(4.0, RAW), scale={"name": "standard"})
    chain = type(fitted.chain)([replace(fitted.chain.links[0], transform=Turned())], {})
    data = chain.forward(prepared.panel)
    found = predictive(fitted, prepared.validation, data, Ask((80.0,)), chain=chain).quantiles
    np.testing.assert_allclose(found[0, 0, 0], -4.0 + SPREAD * stats.norm.ppf([0.1, 0.9]), rtol=1e-5)


def test_a_module_that_rolls_out_is_asked_for_paths_through_pointwise_transforms_too(make_panel, monkeypatch):
    monkeypatch.setattr(sample_paths, "ROWS_AT_ONCE", 1500)
    module = Walks()
    fitted, prepared = ready(make_panel, [], module=module)
    windows = prepared.validation.some(np.array([0, 9]))
    found = predictive(fitted, windows, prepared.data, Ask((80.0,), paths=7, samples=4000))
    assert module.asked == 2 * [(1, 1500), (1, 1500), (1, 1000)]
    law = stats.norm(0, SPREAD * np.sqrt(np.arange(1, HORIZON + 1)))
    assert np.abs(law.cdf(found.quantiles[:, :, 0, 0]) - 0.1).max() < 5 * np.sqrt(0.1 * 0.9 / 4000)
    assert found.paths.shape == (2, 7, HORIZON, 1)


def test_paths_on_request_and_none_without_a_distribution(make_panel):
    fitted, prepared = ready(make_panel, ["log"], module=Says(4.0, RAW))
    found = predictive(fitted, prepared.validation, prepared.data, Ask(paths=300), horizon=3)
    assert found.quantiles is None
    assert found.paths.shape == (len(prepared.validation), 300, 3, 1)
    noise = np.log(found.paths).mean((1, 2, 3)) - 4.0
    assert np.abs(noise / (SPREAD / 30)).max() < 5
    bare = replace(fitted, problem=replace(fitted.problem, output="point", outputs=1), module=Bare())
    found = predictive(bare, prepared.validation, prepared.data, Ask((80.0,), paths=3))
    assert found.quantiles is found.paths is None


class Bare(nn.Module):
    def forward(self, batch, truth=0.0):
        return torch.full((len(batch.past), HORIZON, 1, 1), 4.0)


@pytest.mark.parametrize("walks", [False, True])
def test_the_seed_says_what_is_drawn_and_nothing_else_does(make_panel, monkeypatch, walks):
    fitted, prepared = ready(make_panel, ["log_return"], module=Walks() if walks else None)
    windows = prepared.validation.some(np.arange(10))
    ask = Ask((80.0,), paths=2, samples=50)

    def made(some=windows, **changed):
        return predictive(fitted, some, prepared.data, replace(ask, **changed))

    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    first = made()
    assert torch.equal(torch.rand(3), expected)  # the caller's generator goes on as if nothing had been drawn
    torch.manual_seed(6)
    again, other = made(), made(seed=1)
    assert first.quantiles.tobytes() == again.quantiles.tobytes()
    assert first.paths.tobytes() == again.paths.tobytes()
    assert not np.allclose(first.quantiles, other.quantiles, rtol=1e-6)
    assert np.array_equal(first.point, other.point)
    ratio = first.paths[:, 0, :, 0] / before(prepared)[:10, None]
    assert len(np.unique(ratio[:, 0])) == 10  # each window has noise of its own
    # neither how many windows go at a time, nor which others are beside it
    monkeypatch.setattr(module_of_predictive, "PREDICTED_AT_ONCE", 3)
    monkeypatch.setattr(module_of_predictive, "HELD_AT_ONCE", 2 * 50 * HORIZON)
    np.testing.assert_allclose(made().quantiles, first.quantiles, rtol=1e-12)
    np.testing.assert_allclose(made(windows.some(np.array([7]))).quantiles[0], first.quantiles[7], rtol=1e-12)


def test_few_paths_are_held_at_a_time(make_panel, monkeypatch):
    fitted, prepared = ready(make_panel, ["log_return"])
    sizes, inverse = [], type(fitted.chain).inverse

    def recorded(chain, path, *rest, **options):
        sizes.append(len(path))
        return inverse(chain, path, *rest, **options)

    monkeypatch.setattr(type(fitted.chain), "inverse", recorded)
    monkeypatch.setattr(module_of_predictive, "HELD_AT_ONCE", 1000 * HORIZON)
    predictive(fitted, prepared.validation, prepared.data, Ask((80.0,), samples=400))
    assert max(sizes) == 800


@pytest.mark.parametrize("count", [39, 400, 1001])
def test_quantiles_of_paths_are_order_statistics(count):
    paths = np.random.default_rng(1).standard_normal((3, count, 2, 2))
    probabilities = Ask((50.0, 95.0)).probabilities
    found = path_quantiles(paths, probabilities)
    assert found.shape == (3, 2, 2, 4)
    wanted = mstats.mquantiles(paths[2, :, 1, 0], probabilities, alphap=0, betap=0)
    np.testing.assert_allclose(found[2, 1, 0], wanted)
    if count == 39:  # the smallest of 39 lies below a new one with a probability of 39/40
        assert found[2, 1, 0, 0] == paths[2, :, 1, 0].min()


def test_one_path_that_is_too_large_does_not_matter_and_a_point_does(make_panel):
    class Wild(Says):
        rolls_out = True

        def draw(self, batch, samples):
            paths = torch.zeros(len(batch.past), samples, HORIZON, 1)
            paths[:, 0] = 1000.0  # whose exponential no number holds
            return paths

    fitted, prepared = ready(make_panel, ["log_return"], module=Wild())
    found = predictive(fitted, prepared.validation, prepared.data, Ask((80.0,)))
    assert np.isfinite(found.quantiles).all()
    with pytest.raises(DivergedError):
        predictive(replace(fitted, module=Says(1000.0)), prepared.validation, prepared.data)


def test_too_few_paths_for_a_level(make_panel):
    fitted, prepared = ready(make_panel, ["log_return"])
    with pytest.raises(UsageError, match=r"--samples 38 are too few paths for an interval of 95 %: at least 39"):
        predictive(fitted, prepared.validation, prepared.data, Ask((80.0, 95.0), samples=38))
    assert predictive(fitted, prepared.validation, prepared.data, Ask((95.0,), samples=39)).quantiles is not None
    assert asked([99.9]).samples == 1999
    assert asked("80").samples == 400


@pytest.mark.parametrize("wrong", [{"samples": 0}, {"samples": 2.5}, {"seed": -1}, {"seed": True}, {"paths": -1}])
def test_what_is_asked_for_is_a_whole_number(wrong):
    (name,) = wrong
    with pytest.raises(UsageError, match=f"--{name} must be a whole number"):
        asked([80], **wrong)
