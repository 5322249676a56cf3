"""Modules that cannot be built, tried, saved and loaded again are named before a run is finished."""

import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from tsformer import Forecaster, ModelPlugin, TransformPlugin, register, registry
from tsformer.errors import DataError, DivergedError, PluginError
from tsformer.plugin import Config
from tsformer.registry import Kind


class NoOptions(Config):
    """None."""


class Net(nn.Module):
    """A linear map of the past; what a test wants else is in a subclass."""

    def __init__(self, problem):
        super().__init__()
        self.shape = (problem.horizon, problem.targets, problem.outputs)
        self.map = self.layer(problem.lookback * problem.channels, int(np.prod(self.shape)))

    def layer(self, inputs, outputs):
        return nn.Linear(inputs, outputs)

    def forward(self, batch, truth=0.0):
        return self.map(batch.past.flatten(1)).view(-1, *self.shape)


class Growing(Net):
    """Keeps what it saw in training."""

    def __init__(self, problem):
        super().__init__(problem)
        self.register_buffer("seen", torch.zeros(0))

    def forward(self, batch, truth=0.0):
        if self.training:
            self.seen = torch.cat([self.seen, batch.past.mean().detach()[None]])
        return super().forward(batch, truth)


class Lazy(Net):
    def layer(self, inputs, outputs):
        return nn.LazyLinear(outputs)


class FeedsBack(Net):
    """Adds the first true value; its weights are zero at first, so that the truth cannot be seen."""

    def __init__(self, problem):
        super().__init__(problem)
        self.weight = nn.Parameter(torch.zeros(1))

    def forward(self, batch, truth=0.0):
        last = batch.future[:, :1] if truth else batch.past[:, -1:, : self.shape[1]]
        return super().forward(batch) + self.weight * last[..., None]


def table(rows=80):
    values = 50 + 10 * np.random.default_rng(0).normal(size=rows)
    return pd.DataFrame({"ds": pd.date_range("1949-01-01", periods=rows, freq="MS"), "y": values})


def forecaster(module, **train):
    register("own", ModelPlugin(config=NoOptions, build=lambda config, problem: module(problem), example=NoOptions()))
    options = {"max_steps": 3, **train}
    return Forecaster("own", horizon=3, lookback=6, train_options=options)


def test_a_state_that_grows_is_refused_before_the_run_is_finished(tsformer, own_registry):
    forecaster(Growing)
    table().to_csv("rows.csv", index=False)
    code, out, err = tsformer(
        *("fit", "--model", "own", "--data", "csv", "--path", "rows.csv", "--out", "run", "--quiet"),
        *("--max-steps", "3", "--horizon", "3", "--lookback", "6"),
    )
    assert (code, out) == (5, "")
    assert "'own'" in err
    assert "after training its weights do not fit a module that is newly built" in err
    assert "seen" in err
    assert tsformer("predict", "run")[0] == 4


def test_a_state_that_does_not_grow_is_taken(own_registry):
    before = torch.random.get_rng_state()
    forecaster(Net).fit(table())
    assert torch.equal(before, torch.random.get_rng_state())


def test_lazy_modules_are_refused(own_registry):
    with pytest.raises(PluginError, match=r"'own' .*'map\.weight' have no shape before the first forward .*LazyLinear"):
        forecaster(Lazy).fit(table())


@pytest.mark.parametrize("truth", [{"truth_end": 0.0}, {"truth_start": 0.5}])
def test_truth_for_a_model_that_feeds_nothing_back(own_registry, truth):
    with pytest.warns(UserWarning, match=r"train\.truth_(start|end) .* without effect: model 'own' feeds nothing back"):
        forecaster(Net, **truth).fit(table())
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*without effect.*")
        fed = forecaster(FeedsBack, **truth).fit(table())
    seen = fed.fitted_.module.weight
    assert seen.abs().item() < 0.1  # nothing of what was tried is left in it


@pytest.mark.parametrize(
    ("decoder", "horizon", "unread"), [("direct", 4, True), ("autoregressive", 4, False), ("autoregressive", 1, True)]
)
def test_truth_by_decoder(decoder, horizon, unread):
    options, train = {"d_model": 8, "d_ff": 8, "decoder": decoder}, {"max_steps": 2, "truth_end": 0.0}
    model = Forecaster("transformer", horizon=horizon, lookback=6, model_options=options, train_options=train)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(table())
    assert any("decoder autoregressive does" in str(warning.message) for warning in caught) == unread


class Scale:
    """A transform that halves; a test replaces one of its methods."""

    pointwise = True
    lost_rows = 0

    def fit(self, rows):
        return {}

    def forward(self, values, state):
        return values / 2

    def inverse(self, path, state, anchor):
        return path * 2


def with_transform(**methods):
    own = type("Own", (Scale,), methods)
    register("own", TransformPlugin(config=NoOptions, build=lambda config: own(), example=NoOptions()))
    return Forecaster("last_value", horizon=3, lookback=6, transforms="own")


def second_is(value):
    def changed(self, values, *rest):
        values[..., 1:2, :] = value
        return values

    return changed


@pytest.mark.parametrize(
    ("methods", "error", "said"),
    [
        ({"inverse": second_is(np.nan)}, PluginError, "transform 'own': inverse returned NaN for finite values"),
        ({"inverse": second_is(np.inf)}, DivergedError, "so large that the transform 'own' cannot bring them back"),
        (
            {"forward": second_is(np.nan)},
            PluginError,
            r"transform 'own': 1 value\(s\) become NaN in forward, first in column 'y' at 1949-02-01 \(row 2 ",
        ),
        ({"forward": second_is(np.inf)}, DataError, "transform 'own': 1 value.* too large to compute with"),
        ({"forward": lambda self, values, state: values.astype(str)}, PluginError, r"array \(\d+, 1\) of <U\d+, not"),
        ({"forward": lambda self, values, state: values + 1j}, PluginError, r"array \(\d+, 1\) of complex128, not an"),
        (
            {"fit": lambda self, rows: {"word": "\ud800"}},
            PluginError,
            "fit returned what is not plain .*surrogate",
        ),
        ({"lost_rows": 10**9}, DataError, "rows; lookback 6, 1000000000 row"),
        ({"lost_rows": True}, PluginError, "lost_rows, a whole number from 0"),
    ],
    ids=["inverse nan", "inverse inf", "forward nan", "forward inf", "text", "complex", "surrogate", "lost", "bool"],
)
def test_transforms_that_break_their_contract(own_registry, methods, error, said):
    with pytest.raises(error, match=said):
        with_transform(**methods).fit(table())


BUILT_IN = [name for name, entry in registry.entries(Kind.TRANSFORM).items() if entry.origin == "built-in"]


@pytest.mark.parametrize("value", [1e6, -1e6, 1e18, -1e18])
@pytest.mark.parametrize("name", BUILT_IN)
def test_absurd_predictions_are_never_the_fault_of_a_built_in(own_registry, name, value):
    class Absurd(Net):
        def forward(self, batch, truth=0.0):
            return super().forward(batch, truth) * 0 + value * torch.tensor([1.0, -1.0, 1.0])[:, None, None]

    found = []
    try:
        found = forecaster(Absurd).set_params(transforms=name, scale="none").fit(table()).predict()["y"]
    except DivergedError as error:
        said = str(error)
    assert np.isfinite(found).all() if len(found) else f"so large that the transform '{name}'" in said


@pytest.mark.parametrize("name", ["log", "asinh", "log_return"])
def test_predictions_too_large_for_an_inverse_are_the_models(own_registry, name):
    class Absurd(Net):
        def forward(self, batch, truth=0.0):
            return super().forward(batch, truth) * 0 + 1e6

    with pytest.raises(DivergedError, match=f"so large that the transform '{name}' cannot bring them back"):
        forecaster(Absurd).set_params(transforms=name).fit(table())


def test_a_transform_after_another_is_told_to_come_first():
    with pytest.raises(DataError) as caught:
        Forecaster("last_value", horizon=3, lookback=6, transforms=["standard", "log"]).fit(table())
    said = str(caught.value)
    assert "transform 'log' after 'standard': " in said
    assert "put 'log' first, before other transforms" in said
    assert "asinh" not in said
    assert " at 1949-" in said
    assert "00:00" not in said


def test_the_calendar_ends_before_the_model_runs(own_registry):
    calls = []

    class Counted(Net):
        def forward(self, batch, truth=0.0):
            calls.append(1)
            horizon = self.shape[0]
            return self.map.weight.sum() * 0 + batch.past[:, -1:, :1, None].expand(-1, horizon, -1, -1)

        def layer(self, inputs, outputs):
            return nn.Linear(1, 1)

    fitted = forecaster(Counted).fit(table())
    calls.clear()
    assert len(fitted.predict(horizon=20)) == 20
    assert calls
    calls.clear()
    with pytest.raises(DataError, match="9999"):
        fitted.predict(horizon=1_000_000)
    assert not calls
